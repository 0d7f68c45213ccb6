"""Types of Claude Code's records that hold nothing that memory needs.

They are known, so that an unknown one is told from them: a share of unknown records means that
the format has drifted. The second part of each list was not seen in files, but stands in public
accounts of the versions up to 2.1.2xx.
"""

from __future__ import annotations

# ``progress`` repeats what sub-agents' files hold; titles and tags are the agent's or the app's.
SILENT = frozenset(
    [
        "progress",
        "file-history-snapshot",
        "last-prompt",
        "custom-title",
        "mode",
        "permission-mode",
        "summary",
        "pr-link",
        "frame-link",
        *("ai-title", "tag", "task-summary", "agent-name", "agent-color", "agent-setting"),
        *("worktree-state", "content-replacement", "attribution-snapshot", "speculation-accept"),
        *("file-history-delta", "continued-in", "fork-context-ref", "bridge-session", "relocated"),
        *("isolation-latch", "history-suppression", "ended-by-model", "artifact-comment-monitor"),
        *("artifact-autoreact-ledger", "marble-origami-commit", "marble-origami-snapshot"),
        "marble-origami-reset",
    ]
)
SILENT_SYSTEM = frozenset(
    [
        "stop_hook_summary",
        "turn_duration",
        "compact_boundary",
        "microcompact_boundary",
        "api_error",
        "model_refusal_fallback",
        *("api_metrics", "memory_saved", "file_snapshot", "bridge_status"),
    ]
)
SILENT_ATTACHMENTS = frozenset(  # context that the harness adds by itself
    [
        "task_reminder",
        "hook_additional_context",
        "nested_memory",
        "hook_success",
        "edited_text_file",
        "command_permissions",
        "deferred_tools_delta",
        "skill_listing",
        "mcp_instructions_delta",
        "hook_system_message",
        "agent_listing_delta",
        "hook_non_blocking_error",
        "auto_mode",
        "file",
        "compact_file_reference",
        *("todo", "todo_reminder", "plan_mode", "plan_mode_reentry", "plan_mode_exit", "pdf"),
        *("plan_file_reference", "verify_plan_reminder", "auto_mode_exit", "swarm_mode"),
        *("opened_file_in_ide", "selected_lines_in_ide", "directory", "diagnostics", "date_change"),
        *("lsp_diagnostics", "output_style", "token_usage", "budget_usd", "agent_mention"),
        *("mcp_resource", "already_read_file", "edited_image_file", "relevant_memories"),
        *("invoked_skills", "dynamic_skill", "skill_discovery", "compaction_reminder"),
        *("critical_system_reminder", "critical_reminder", "ultramemory", "max_turns_reached"),
        *("current_session_memory", "teammate_mailbox", "team_context", "task_status"),
        *("unified_tasks", "background_task_status", "task_progress", "autocheckpointing"),
        *("hook_cancelled", "hook_blocking_error", "hook_stopped_continuation"),
        *("hook_error_during_execution", "hook_permission_decision", "async_hook_response"),
        *("structured_output", "context_efficiency", "instruction_update", "requested_tools"),
    ]
)
