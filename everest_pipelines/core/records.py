"""The typed rows that flow from stage to stage.

Every table of the lake has one struct here. Times are integers: microseconds since the Unix
epoch, UTC. Days are ISO strings (``YYYY-MM-DD``) in the lake's zone. Structs are frozen: a
stage returns new rows, it never edits the rows that it was given.
"""

from __future__ import annotations

import datetime as dt
import enum

from msgspec import Struct

Micros = int
Day = str
ProjectKey = str

EVERYWHERE: ProjectKey = "everywhere"  # the reserved project that holds what is shared


class Role(enum.StrEnum):
    """Who speaks in a turn. Sub-agents' prompts are harness: no person typed them."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    HARNESS = "harness"


class Channel(enum.StrEnum):
    """Where in the transcript the words of a turn sat."""

    PROMPT = "prompt"  # typed at the prompt
    COMMAND = "command"  # the arguments of a slash command
    BASH = "bash"  # a shell command typed by the person
    COMMENT = "comment"  # text beside a tool result, typed while approving
    REFUSAL = "refusal"  # the reason given with a refused call
    QUEUED = "queued"  # typed while the agent worked
    REPLY = "reply"  # an assistant's turn
    INTERRUPTION = "interruption"
    COMPACTION = "compaction"
    NOTIFICATION = "notification"
    HOOK = "hook"
    PLAN = "plan"  # a plan that the harness replays into a new session
    SUBAGENT_PROMPT = "subagent_prompt"  # the parent agent's words
    MACHINE = "machine"  # a machine's prompt that looks like a person's
    OTHER = "other"


class EpisodeKind(enum.StrEnum):
    SESSION = "session"
    ERROR = "error"
    CORRECTION = "correction"
    REFUSAL = "refusal"
    INTERRUPTION = "interruption"
    SURPRISE = "surprise"
    ENVIRONMENT = "environment"
    NOTE = "note"


class Origin(enum.StrEnum):
    """Whose claim an episode is."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"
    HARNESS = "harness"


class LessonKind(enum.StrEnum):
    """What joining, clustering and merging go by."""

    RULE = "rule"
    ERROR = "error"
    SURPRISE = "surprise"
    NOTE = "note"


class State(enum.StrEnum):
    """The trust a lesson has earned."""

    CANDIDATE = "candidate"
    STATED = "stated"
    CORROBORATED = "corroborated"
    APPROVED = "approved"
    PINNED = "pinned"
    DISPUTED = "disputed"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    RETIRED = "retired"


VISIBLE_STATES = frozenset(
    {State.STATED, State.CORROBORATED, State.APPROVED, State.PINNED, State.DISPUTED}
)


class ToolCall(Struct, frozen=True, gc=False):
    """One call of a tool inside an assistant's turn.

    ``input`` is JSON text and ``output`` plain text, both redacted and kept head and tail up
    to a cap; the sizes (bytes) are of the whole. ``output`` is None while no result is known.
    """

    id: str
    name: str
    input: str = ""
    output: str | None = None
    is_error: bool = False
    refused: bool = False
    input_bytes: int = 0
    output_bytes: int = 0


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """One speaker's contribution; all lines of one message id make one turn."""

    turn_id: str  # message id, else record uuid, else a digest of time and text
    session_id: str
    role: Role
    channel: Channel
    occurred_at: Micros
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    agent: str = "claude-code"
    agent_version: str = ""
    model: str = ""
    cwd: str = ""
    git_branch: str = ""
    subagent: str = ""  # the sub-agent's id, empty in the main thread
    parent: str = ""  # turn_id of the turn that this one answers
    withdrawn: bool = False  # taken back by the person inside the transcript
    duplicate_of: str = ""  # the turn that delivered the same queued words
    flags: tuple[str, ...] = ()  # e.g. time_corrected, text_cut, undelivered
    source_path: str = ""
    line_from: int = 0  # 1-based
    line_to: int = 0
    sha256: str = ""  # of the redacted records the turn was read from
    session_started_at: Micros = 0  # first time in the containing session's file
    family_id: str = ""  # filled at ingest: root session of resumed and forked copies


class BadLine(Struct, frozen=True, kw_only=True, gc=False):
    """A line (or a piece of one) that no reader understood, or of an unknown record type."""

    source_path: str
    line: int  # 1-based
    byte_offset: int
    reason: str  # torn, not_json, not_a_record, too_long, unknown_type:<type>, …
    content: bytes  # redacted and capped
    size: int  # bytes of the whole line


class Episode(Struct, frozen=True, kw_only=True, gc=False):
    """Something worth remembering that happened at one moment."""

    episode_id: str
    kind: EpisodeKind
    sub: str = ""
    title: str = ""
    gist: str = ""
    detail: str = ""
    quote: str = ""  # verbatim in the redacted text of the turn
    quote_from: int = 0  # the span of the quote in the turn's text, in characters
    quote_to: int = 0
    origin: Origin
    standing: bool = False  # states something that outlives the task
    sure: bool = False  # above the detector's sure cut
    score: float = 0.0  # the detector's score, rounded to 1e-6
    occurred_at: Micros
    turn_id: str = ""
    session_id: str = ""
    family_id: str = ""
    source_path: str = ""
    line_from: int = 0
    line_to: int = 0
    detector: str = ""
    detector_version: int = 1
    reason: str = ""  # reason code of the detector
    fix: str = ""  # what then worked
    fix_turn_id: str = ""
    settled_at: Micros = 0  # time of the last turn that the row depends on


class Vector(Struct, frozen=True, kw_only=True):
    episode_id: str
    space: str
    text_sha256: str
    vector: tuple[float, ...]


class LessonRevision(Struct, frozen=True, kw_only=True):
    """A lesson as it stands from the end of the day on which this row was written."""

    lesson_id: str  # digest of (lesson kind, scope, oldest source episode)
    revision: int  # 1-based, counts the days on which the lesson changed
    text: str
    lesson_kind: LessonKind
    polarity: int = 0  # -1 forbids, +1 demands, 0 neither
    scope: ProjectKey
    state: State
    strength: float  # as of valid_from
    seen: int  # number of source episodes
    first_seen_at: Micros
    last_seen_at: Micros
    source_episode_ids: tuple[str, ...]
    source_lesson_ids: tuple[str, ...] = ()
    families: int = 1  # distinct session families among the sources
    days: int = 1  # distinct days among the sources
    quote: str = ""
    valid_from: Micros
    valid_to: Micros | None = None
    value_key: str  # normalised value, what tombstones are keyed on
    decided_by: str = "night"  # night, human, …
    reason: str = ""  # why the revision was made
    origin: Origin
    origins: tuple[str, ...] = ()
    hash: str = ""  # digest of the wire form
    fix: str = ""
    wording: str = ""  # a model's sentence that passed its gate; ``text`` stands all the same


class Merge(Struct, frozen=True, kw_only=True):
    old_id: str
    new_id: str
    old_created_at: Micros
    merged_on: Day
    why: str


class Prediction(Struct, frozen=True, kw_only=True):
    prediction_id: str
    lesson_id: str
    text: str
    probability: float
    made_at: Micros
    due_on: Day


class Verification(Struct, frozen=True, kw_only=True):
    prediction_id: str
    lesson_id: str
    outcome: bool
    by_episode: str = ""
    resolved_on: Day
    probability: float


class SessionDay(Struct, frozen=True, kw_only=True):
    """One session's counts on one day."""

    session_id: str
    family_id: str
    agent: str
    first_at: Micros
    last_at: Micros
    human_turns: int
    assistant_turns: int
    tool_calls: int
    tool_errors: int
    refused: int
    interruptions: int
    subagent_turns: int
    waited: int  # hand-backs: assistant turns that end without a tool call
    machine: bool = False


class Offer(Struct, frozen=True, kw_only=True):
    """A reply in which the agent offered to act, and what the person answered."""

    offer_id: str
    session_id: str
    turn_id: str
    occurred_at: Micros
    action: str  # kind of action: run, edit, commit, …
    answer: str  # corrected, declined, approved, other
    answer_turn_id: str = ""


def micros(moment: dt.datetime) -> Micros:
    """Aware datetime to microseconds since the epoch, exactly (no float on the way)."""
    delta = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def moment(at: Micros) -> dt.datetime:
    """Microseconds since the epoch to an aware UTC datetime."""
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)
