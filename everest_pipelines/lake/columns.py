"""Rows to columns and back: what an Arrow schema means for a struct.

A table's columns are declared (schemas.py); this module turns whole lists of structs into Arrow
tables and back, column by column.
"""

from __future__ import annotations

import enum
import inspect
import operator
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from typing import Any, cast

import msgspec
import pyarrow as pa

from everest_pipelines.text.errors import DamagedError

Row = Any  # a frozen struct of core/records.py or lake/operational.py

# pyarrow ships no types that a strict checker accepts.
ArrowTable = Any
ArrowSchema = Any
ArrowType = Any
ArrowArray = Any

TEXT = pa.string()
INT = pa.int64()
FLOAT = pa.float64()
BOOL = pa.bool_()
BYTES = pa.binary()
TIME = pa.timestamp("us", tz="UTC")  # structs hold microseconds since the epoch
DAY = pa.date32()  # structs hold YYYY-MM-DD


def many(element: ArrowType) -> ArrowType:
    """A list of values, none of them absent. Parquet's own name for the child is `element`."""
    return pa.list_(pa.field("element", element, nullable=False))


def struct(*fields: tuple[str, ArrowType], nullable: Sequence[str] = ()) -> ArrowType:
    """A struct; `nullable` names the children that may be absent."""
    return pa.struct([pa.field(name, kind, nullable=name in nullable) for name, kind in fields])


class Kind(enum.StrEnum):
    """Where a table lives."""

    PARTITIONED = "partitioned"  # one file a (day, project)
    OPERATIONAL = "operational"  # one file, rewritten; excluded from equality tests
    PUBLISHED = "published"  # only in generations, from rows that publishing is given


@dataclass(frozen=True)
class Column:
    """One column. `distinct`: nearly every value differs, so a dictionary would only cost.

    `packed`: a zstd frame in the lake, the text that it holds in published files.
    """

    name: str
    type: ArrowType
    doc: str
    nullable: bool = False
    distinct: bool = False
    packed: bool = False


@dataclass(frozen=True)
class TableSpec:
    """One table: `key` is the order of its rows, and unique; `version` goes up with the columns."""

    name: str
    struct: type[msgspec.Struct]
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    doc: str
    kind: Kind = Kind.PARTITIONED
    version: int = 1
    row_group: int = 32_768  # rows; a small cell is one group

    def __post_init__(self) -> None:
        declared = tuple(column.name for column in self.columns)
        if declared != self.struct.__struct_fields__:
            raise ValueError(f"The columns of {self.name} are not the fields of its struct.")
        if not set(self.key) <= set(declared):
            raise ValueError(f"The key of {self.name} names no column.")

    @property
    def partitioned(self) -> bool:
        """Whether rows live in (day, project) cells."""
        return self.kind is Kind.PARTITIONED

    @cached_property
    def schema(self) -> ArrowSchema:
        """The Arrow schema of a cell, with table and version in its metadata."""
        fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns]
        return pa.schema(fields, metadata=self.metadata)

    @cached_property
    def published_schema(self) -> ArrowSchema:
        """The schema of a published file: day and project stand first where there are cells."""
        if not self.partitioned:
            kinds = [TEXT if c.packed else c.type for c in self.columns]
            fields = [f.with_type(kind) for f, kind in zip(self.schema, kinds, strict=True)]
            return pa.schema(fields, metadata=self.metadata)
        place = [pa.field("day", DAY, nullable=False), pa.field("project", TEXT, nullable=False)]
        return pa.schema([*place, *self.schema], metadata=self.metadata)

    @property
    def metadata(self) -> dict[str, str]:
        """What every Parquet file of this table carries."""
        return {"everest.table": self.name, "everest.version": str(self.version)}

    @cached_property
    def dictionary_columns(self) -> list[str]:
        """The Parquet leaves that are worth a dictionary."""
        leaves = ["day", "project"] if self.partitioned else []
        for column in self.columns:
            if not column.distinct:
                leaves += [leaf for leaf, _ in _leaves(column.name, column.type)]
        return leaves


def sorted_rows(spec: TableSpec, rows: Sequence[Row]) -> list[Row]:
    """The rows in the order of the spec's key; rows that share a key, by their whole content."""
    if len(spec.key) == 1:
        keyed = [(getattr(row, spec.key[0]),) for row in rows]
    else:
        take = operator.attrgetter(*spec.key)
        keyed = [take(row) for row in rows]
    order = sorted(range(len(rows)), key=keyed.__getitem__)
    if any(keyed[a] == keyed[b] for a, b in pairwise(order)):
        order.sort(key=lambda i: (keyed[i], msgspec.msgpack.encode(rows[i])))
    return [rows[i] for i in order]


def to_arrow(spec: TableSpec, rows: Sequence[Row]) -> ArrowTable:
    """Structs to an Arrow table with the spec's schema, in the order given.

    Lone surrogates in texts become U+FFFD. Raises DamagedError, naming table and column, for a
    value that the column cannot hold.
    """
    arrays: list[ArrowArray] = []
    for column in spec.columns:
        take = operator.attrgetter(column.name)
        try:
            array = _encode([take(row) for row in rows], column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
            raise _mismatch(spec, column.name, f"a value does not fit {column.type}") from error
        if array.null_count and not column.nullable:
            raise _mismatch(spec, column.name, "a value is absent")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=spec.schema)


def from_arrow(spec: TableSpec, table: ArrowTable) -> list[Row]:
    """An Arrow table to structs; columns that the spec does not name (day, project) are left out.

    Raises DamagedError when the table's columns are not the spec's.
    """
    check_schema(spec, table.schema)
    hints = _hints_of(spec.struct)
    columns = [_decode(table.column(c.name).combine_chunks(), hints[c.name]) for c in spec.columns]
    return _build(spec.struct, spec.struct.__struct_fields__, columns, table.num_rows)


def check_schema(
    spec: TableSpec, schema: ArrowSchema, metadata: dict[bytes, bytes] | None = None
) -> None:
    """Raise DamagedError unless `schema` holds the spec's columns; `metadata` is the file's."""
    if metadata is not None:
        found = metadata.get(b"everest.version", b"").decode("ascii", "replace")
        if found != str(spec.version):
            raise DamagedError(
                f"The table {spec.name} is of version {found or '(none)'}, "
                f"this program reads version {spec.version}.",
                "everest doctor",
            )
    for wanted in spec.schema:
        place = schema.get_field_index(wanted.name)
        if place < 0:
            raise _mismatch(spec, wanted.name, "it is missing")
        if schema.field(place).type != wanted.type:
            raise _mismatch(spec, wanted.name, f"it is {schema.field(place).type}")
    if metadata is not None:  # a cell: nothing but the declared columns
        extra = set(schema.names) - set(spec.published_schema.names)
        if extra:
            raise _mismatch(spec, min(extra), "nobody declared it")


def _mismatch(spec: TableSpec, column: str, what: str) -> DamagedError:
    return DamagedError(f"Table {spec.name}, column {column}: {what}.", "everest doctor")


def _leaves(path: str, kind: ArrowType) -> list[tuple[str, ArrowType]]:
    if pa.types.is_list(kind):
        return _leaves(f"{path}.list.element", kind.value_type)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return [leaf for f in fields for leaf in _leaves(f"{path}.{f.name}", f.type)]
    return [(path, kind)]


def _encode(values: Sequence[Any], kind: ArrowType) -> ArrowArray:
    if pa.types.is_string(kind):
        return _texts(values)
    if pa.types.is_date32(kind):
        return pa.array(values, TEXT).cast(DAY)
    if pa.types.is_list(kind):
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value))
        flat = _encode(list(chain.from_iterable(values)), kind.value_type)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat, type=kind)
    if pa.types.is_struct(kind):
        return _structs(values, kind)
    return pa.array(values, kind)


def _texts(values: Sequence[Any]) -> ArrowArray:
    try:
        return pa.array(values, TEXT)
    except UnicodeEncodeError:  # a lone surrogate: one sign is lost, not the row
        whole = [v if v is None else v.encode("utf-16", "surrogatepass") for v in values]
        mended = [v if v is None else v.decode("utf-16", "replace") for v in whole]
        return pa.array(mended, TEXT)


def _structs(values: Sequence[Any], kind: ArrowType) -> ArrowArray:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    plain = bool(values) and isinstance(values[0], tuple)
    children: list[ArrowArray] = []
    for place, field in enumerate(fields):
        take = operator.itemgetter(place) if plain else operator.attrgetter(field.name)
        child = _encode([take(value) for value in values], field.type)
        if child.null_count and not field.nullable:
            raise ValueError(f"{field.name} is absent")
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=fields)


def _decode(array: Any, hint: Any) -> list[Any]:
    hint = _present(hint)
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(INT).to_pylist()
    if pa.types.is_date32(kind):
        return array.cast(TEXT).to_pylist()
    if pa.types.is_list(kind):
        element = typing.get_args(hint)[0]
        ends: list[int] = array.offsets.to_pylist()
        first = ends[0] if ends else 0
        flat = _decode(array.flatten(), element)
        return [tuple(flat[a - first : b - first]) for a, b in pairwise(ends)]
    if pa.types.is_struct(kind):
        return _decode_structs(array, hint)
    values = array.to_pylist()
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        members = {member.value: member for member in hint}
        return [members[value] for value in values]
    return values


def _decode_structs(array: Any, hint: Any) -> list[Any]:
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        columns = [_decode(array.field(i), part) for i, part in enumerate(parts)]
        return list(zip(*columns, strict=True))
    cls = cast(type[msgspec.Struct], hint)
    hints = _hints_of(cls)
    names = cls.__struct_fields__
    return _build(cls, names, [_decode(array.field(n), hints[n]) for n in names], len(array))


def _build(
    cls: Callable[..., Any], names: Sequence[str], columns: Sequence[list[Any]], count: int
) -> list[Any]:
    if not columns:
        return [cls() for _ in range(count)]
    if _by_name_only(cls):
        return [cls(**dict(zip(names, v, strict=True))) for v in zip(*columns, strict=True)]
    return [cls(*values) for values in zip(*columns, strict=True)]


@cache
def _hints_of(cls: type[msgspec.Struct]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@cache
def _by_name_only(cls: Callable[..., Any]) -> bool:
    kinds = {parameter.kind for parameter in inspect.signature(cls).parameters.values()}
    return inspect.Parameter.KEYWORD_ONLY in kinds


def _present(hint: Any) -> Any:
    """The hint without its None."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint
