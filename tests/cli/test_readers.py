import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlake as sl
from streamlake.cli.ddl import parse_columns
from streamlake.cli.infer import infer_schema
from streamlake.cli.json_reader import BLOCK_BYTES, line_blocks
from streamlake.cli.json_text import json_lines
from streamlake.cli.readers import Input, InputFormat


def source(text, kind=InputFormat.JSONL):
    data = text.encode() if isinstance(text, str) else text
    return Input(name="in", format=kind, stream=io.BufferedReader(io.BytesIO(data)))


def read(text, columns, kind=InputFormat.JSONL):
    schema = parse_columns(columns)
    return pa.concat_tables([chunk.rows for chunk in source(text, kind).chunks(schema)])


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "s": st.none() | st.text(),
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
                "x": st.none() | st.binary(),
                "at": st.none() | st.integers(0, 2**50),
                "l": st.none()
                | st.lists(st.none() | st.fixed_dictionaries({"at": st.integers(0, 2**50)})),
            }
        ),
        min_size=1,
    )
)
def test_what_a_tail_prints_an_append_reads(records):
    columns = "s string, n long, x binary, at timestamp, l array<struct<at: timestamp_ntz>>"
    data = pa.Table.from_pylist(records, schema=parse_columns(columns))
    assert read(b"".join(json_lines(data)), columns).equals(data)


def test_times_keep_their_zone_or_their_lack_of_one():
    rows = read(
        '{"at":"2026-01-02T03:00:00+02:00","local":"2026-01-02T03:00:00"}',
        "at timestamp, local timestamp_ntz",
    )
    assert rows["at"][0].value == 1767315600000000
    assert rows["local"][0].value == 1767322800000000


def test_csv_tells_an_empty_text_from_none():
    rows = read('s,n\n"",1\n,2\n', "s string, n long", InputFormat.CSV)
    assert rows["s"].to_pylist() == ["", None]


def test_csv_with_a_column_twice_is_refused():
    with pytest.raises(sl.InvalidInputError, match="column twice"):
        read("a,a\n1,2\n", "a long", InputFormat.CSV)


def test_a_null_list_hides_what_lies_below_it():
    rows = read(
        '{"l":[{"at":"2026-01-02T00:00:00Z"},null]}\n{"l":null}\n', "l array<struct<at: timestamp>>"
    )
    assert rows["l"].null_count == 1
    assert rows["l"][0].as_py()[1] is None


def test_lines_that_straddle_blocks_are_read_whole():
    line = b'{"a":"' + b"x" * (BLOCK_BYTES // 3) + b'"}\n'
    blocks = list(line_blocks(io.BytesIO(line * 10), "in"))
    assert b"".join(blocks) == line * 10
    assert len(blocks) > 1
    assert all(block.endswith(b"\n") for block in blocks)


def test_the_bad_line_is_found_in_a_later_block():
    good = b'{"a":1}\n' * (BLOCK_BYTES // 8 + 5)
    with pytest.raises(sl.InvalidInputError) as caught:
        read(good + b"oops\n", "a long")
    assert caught.value.where == f"in, line {BLOCK_BYTES // 8 + 6}"


def test_a_byte_order_mark_and_empty_lines_mean_nothing():
    assert read(b'\xef\xbb\xbf{"a":1}\n\n{"a":2}\n', "a long")["a"].to_pylist() == [1, 2]


def test_invalid_utf8_is_refused():
    with pytest.raises(sl.InvalidInputError, match="can't be read"):
        read(b'{"a":"\xff"}', "a string")


def test_a_schema_is_inferred_and_nothing_is_lost_by_looking():
    text = '{"n":1,"f":1.5,"at":"2026-01-02T03:04:05Z","day":"2026-01-02","none":null,"l":[]}\n'
    schema, again = infer_schema(source(text))
    assert schema == pa.schema(
        [
            ("n", pa.int64()),
            ("f", pa.float64()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("none", pa.string()),
            ("l", pa.list_(pa.string())),
        ]
    )
    assert sum(chunk.rows.num_rows for chunk in again.chunks(schema)) == 1


def test_looking_at_a_long_input_loses_none_of_it():
    line = b'{"a":"' + b"x" * 99 + b'"}\n'
    count = 2 * BLOCK_BYTES // len(line) + 3
    schema, again = infer_schema(source(line * count))
    assert sum(chunk.rows.num_rows for chunk in again.chunks(schema)) == count


def test_times_with_and_without_a_zone_are_inferred_as_text():
    schema, _again = infer_schema(
        source('{"t":"2026-01-02T03:04:05Z"}\n{"t":"2026-01-02T03:04:05"}\n')
    )
    assert schema.field("t").type == pa.string()


def test_a_csv_schema_is_inferred():
    schema, again = infer_schema(source("a,t\n1,2026-01-02T03:04:05Z\n", InputFormat.CSV))
    assert schema == pa.schema([("a", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    assert [chunk.rows.num_rows for chunk in again.chunks(schema)] == [1]


@pytest.mark.parametrize("text", ["", "\n", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "{"])
def test_what_shows_no_schema_is_refused(text):
    with pytest.raises(sl.InvalidInputError):
        infer_schema(source(text))
