"""Random schemas and rows: every type, odd names, the ends of each range, nulls everywhere."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

ID = pa.field("id", pa.int64(), nullable=False)
"""The first column of each table: a row's number, by which it is told from all others."""
NAMES = ("plain", "UPPER", "ünï", "with-dash", "with.dot", "123", "select", "tick`", "q'uote")
SPACED_NAMES = ("a b", "x,y", "p=q;", "(r)", "tab\tbed", "{s}")
"""Names that need column mapping."""
WORDS = ("", " ", "a", "a b", "ä/ö", "%41", "NULL", "null", "'", "a=b", "x" * 40, "😀", "\n", "\\")
NO_TEXT = b"\0\xff\xfe"
MOMENTS = tuple(
    dt.datetime.fromisoformat(text)
    for text in (
        "1900-01-01",
        "1969-12-31T23:59:59.999999",
        "2024-02-29T12:34:56.123456",
        "2200-01-01T00:00:00.000001",
    )
)
DECIMALS = (pa.decimal128(9, 2), pa.decimal128(18, 0), pa.decimal128(38, 10))
PRIMITIVES = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    *DECIMALS,
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
)
NTZ = pa.timestamp("us")
NULL_SHARE = 0.2


def random_schema(random: Random, *, ntz: bool, spaced: bool) -> pa.Schema:
    """The id and up to seven columns; ``ntz`` and ``spaced`` allow what needs a feature."""
    names = random.sample([*NAMES, *(SPACED_NAMES if spaced else ())], random.randint(1, 7))
    primitives = (*PRIMITIVES, NTZ) if ntz else PRIMITIVES
    fields = [
        pa.field(name, random_type(random, primitives), nullable=random.random() > 0.15)
        for name in names
    ]
    return pa.schema([ID, *fields])


def random_type(random: Random, primitives: tuple[pa.DataType, ...], depth: int = 2) -> pa.DataType:
    found: pa.DataType = random.choice(primitives)
    match random.randrange(8) if depth else 7:
        case 0:
            return pa.list_(random_type(random, primitives, depth - 1))
        case 1:
            members = [
                pa.field(name, random_type(random, primitives, depth - 1))
                for name in random.sample(NAMES, random.randint(1, 3))
            ]
            return pa.struct(members)
        case 2:
            keys = (pa.string(), pa.int32(), pa.date32())
            found = pa.map_(random.choice(keys), random_type(random, primitives, depth - 1))
    return found


def random_partitioning(
    random: Random, schema: pa.Schema, *, without: tuple[pa.DataType, ...] = ()
) -> list[str]:
    """None, one or two columns of primitive types, but ``without`` some; never the id."""
    able = [
        f.name
        for f in schema
        if f.name != ID.name and not pa.types.is_nested(f.type) and f.type not in without
    ]
    return random.sample(able, min(len(able), random.choice([0, 0, 1, 1, 2])))


def random_rows(
    random: Random, schema: pa.Schema, partition_by: list[str], first: int, count: int
) -> list[dict[str, Any]]:
    """Rows with ids from ``first``; partition columns have few values, so that files are few."""
    pools = {
        name: [random_value(random, schema.field(name), partition=True) for _ in range(2)]
        for name in partition_by
    }
    return [
        {
            ID.name: number,
            **{
                f.name: random.choice(pools[f.name]) if f.name in pools else random_value(random, f)
                for f in schema
                if f.name != ID.name
            },
        }
        for number in range(first, first + count)
    ]


def random_value(random: Random, field: pa.Field[Any], *, partition: bool = False) -> Any:
    """A value of the field; of a partition column one that every reader takes from its text.

    The protocol writes empty text as it writes null, and peers don't know how it writes bytes that
    are no text.
    """
    if field.nullable and random.random() < NULL_SHARE:
        return None
    found = random_of(random, field.type)
    if partition and found in ("", b"", NO_TEXT):
        return "e" if found == "" else b"e"
    return found


def random_of(random: Random, kind: pa.DataType) -> Any:
    match kind:
        case pa.ListType():
            return [random_value(random, kind.value_field) for _ in range(random.randrange(4))]
        case pa.MapType():
            key = pa.field("key", kind.key_type, nullable=False)
            keys = {random_value(random, key) for _ in range(random.randrange(3))}
            return [(key, random_value(random, kind.item_field)) for key in sorted(keys)]
        case pa.StructType():
            return {f.name: random_value(random, f) for f in kind}
        case _:
            return random_primitive(random, kind)


def random_primitive(random: Random, kind: pa.DataType) -> Any:  # noqa: PLR0911 -- one a type
    types = pa.types
    if types.is_boolean(kind):
        return random.random() < 0.5
    if types.is_integer(kind):
        end = 2 ** (kind.bit_width - 1)
        return random.choice([0, 1, -1, end - 1, -end, random.randrange(-end, end)])
    if types.is_floating(kind):
        exact = random.randrange(-(10**6), 10**6) / 8  # a float32 holds it, too
        return random.choice([0.0, -0.0, exact, float("nan"), float("inf"), -float("inf")])
    if isinstance(kind, pa.Decimal128Type):
        end = 10**kind.precision
        unscaled = random.choice([0, 1, 1 - end, end - 1, random.randrange(1 - end, end)])
        sign, digits, _ = Decimal(unscaled).as_tuple()
        return Decimal((sign, digits, -kind.scale))
    if types.is_string(kind):
        return random.choice(WORDS)
    if types.is_binary(kind):
        return random.choice([b"", NO_TEXT, b"abc", "é".encode()])
    if types.is_date(kind):
        return random.choice([*[moment.date() for moment in MOMENTS], dt.date(9999, 12, 31)])
    assert isinstance(kind, pa.TimestampType)
    moment = random.choice(MOMENTS)
    return moment if kind.tz is None else moment.replace(tzinfo=dt.UTC)
