"""Tables in any state of their log, made in one line."""

import datetime as dt
import re

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.protocol import DomainMetadata
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock, TableBuilder, numbered_rows

WIDE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("tiny", pa.int8()),
        pa.field("odd", pa.bool_()),
        pa.field("ratio", pa.float64()),
        pa.field("price", pa.decimal128(5, 2)),
        pa.field("name", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("there", pa.timestamp("us")),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("sizes", pa.map_(pa.string(), pa.int32())),
        pa.field("place", pa.struct([pa.field("x", pa.float32())])),
    ]
)


def numbers(table: sl.Table) -> list[int | None]:
    return table.snapshot().to_arrow()["n"].to_pylist()


def names(store) -> list[str]:
    return [meta.path.removeprefix("_delta_log/") for meta in store.list_from("_delta_log/")]


def test_a_builder_without_a_step_makes_version_0():
    table = TableBuilder().build()
    assert (table.version, table.schema.names) == (0, ["n"])


def test_numbered_rows_go_on_from_commit_to_commit():
    table = TableBuilder().append(times=3).append(2).build()
    assert (table.version, numbers(table)) == (4, [0, 1, 2, 3, 4])


def test_numbered_rows_come_in_every_type(tmp_path):
    table = TableBuilder(tmp_path / "t").schema(WIDE).append(3).append(200).build()
    found = table.snapshot().to_arrow()
    assert found.equals(numbered_rows(WIDE, 0, 203))
    assert found.slice(7, 1).to_pylist()[0]["day"] == dt.date(1970, 1, 8)


def test_a_type_that_has_no_numbers_is_told():
    with pytest.raises(sl.InvalidInputError, match="duration"):
        numbered_rows(pa.schema([pa.field("t", pa.duration("s"))]), 0, 1)


@pytest.mark.parametrize(
    ("builder", "told"),
    [
        (TableBuilder().append([{"m": 1}]), "columns of the table"),
        (TableBuilder().append("n"), "columns of the table"),
        (TableBuilder().append([{"n": "one"}]), "not of its column's type"),
        (TableBuilder().append(-1), "at least 0"),
        (TableBuilder().append().remove(1), "no file at 1"),
    ],
)
def test_a_step_that_can_not_be_carried_out_is_told(builder, told):
    with pytest.raises(sl.InvalidInputError, match=told):
        builder.build()


def test_the_definition_counts_wherever_it_stands(tmp_path):
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("p", pa.string())])
    builder = TableBuilder(tmp_path).append([{"n": 1, "p": "a"}]).partitioned_by("p").schema(schema)
    table = builder.properties({"delta.appendOnly": "true"}).properties({"mine": "1"}).build()
    assert table.partition_columns == ("p",)
    assert table.properties == {"delta.appendOnly": "true", "mine": "1"}
    assert [file.partition_values for file in table.snapshot().files()] == [{"p": "a"}]


def test_a_builder_is_the_beginning_of_several_tables():
    base = TableBuilder().append(times=2)
    assert numbers(base.append().build()) == [0, 1, 2]
    assert numbers(base.build()) == [0, 1]


def test_a_table_is_made_once_in_one_place():
    builder = TableBuilder(MemoryStore())
    builder.build()
    with pytest.raises(sl.TableExistsError):
        builder.build()


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        (TableBuilder().append(times=4).remove(0, -1), [1, 2]),
        (TableBuilder().append(times=4).remove(), []),
        (TableBuilder().append(2).append().remove(where=lambda f: f.num_records == 2), [2]),
        (TableBuilder().append(times=4).overwrite(2), [4, 5]),
        (TableBuilder().append(times=4).remove(1).optimize(), [0, 2, 3]),
    ],
)
def test_files_are_removed_and_replaced(removed, left):
    assert numbers(removed.build()) == left


def test_a_removal_stops_a_tail_and_an_optimize_does_not():
    base = TableBuilder().append(times=2)
    optimized = base.optimize().build().tail(stop="latest")
    assert sum(batch.data.num_rows for batch in optimized) == 2
    with pytest.raises(sl.DataRemovedError):
        list(base.remove(0).build().tail(stop="latest"))


def test_a_log_is_cut_below_its_checkpoint_and_loses_its_hint():
    builder = TableBuilder().append(times=3).checkpoint().append()
    store = builder.delete_commits(below=3).drop_hint().write()
    assert [name for name in names(store) if not name.endswith(".crc")] == [
        "00000000000000000003.checkpoint.parquet",
        "00000000000000000003.json",
        "00000000000000000004.json",
    ]
    assert numbers(builder.delete_commits(below=3).drop_hint().build()) == [0, 1, 2, 3]


def test_a_log_has_v2_checkpoints_and_compacted_commits():
    v2 = TableBuilder().properties({"delta.checkpointPolicy": "v2"})
    builder = v2.append(times=2).checkpoint().append(times=3).compact_log()
    found = " ".join(names(builder.write()))
    assert re.search(r"02\.checkpoint\.[0-9a-f-]{36}\.parquet", found)
    assert re.search(r"03\.0+5\.compacted\.json", found)
    assert numbers(builder.delete_commits(below=3).build()) == [0, 1, 2, 3, 4]


def test_damage_is_done_where_it_was_asked_for():
    base = TableBuilder().append(times=2).checkpoint()
    assert numbers(base.corrupt("*.checkpoint.parquet").build()) == [0, 1]
    with pytest.raises(sl.CorruptTableError, match=r"02\.checkpoint"):
        base.corrupt("*.checkpoint.parquet").delete_commits(below=2).build()
    with pytest.raises(sl.CorruptTableError, match=r"1\.json"):
        base.corrupt("*1.json", lambda data: data[:9]).delete("*check*").build()


def test_damage_to_nothing_is_a_mistake_of_the_test():
    with pytest.raises(sl.InvalidInputError, match="No file of the table matches"):
        TableBuilder().delete("*.checkpoint.parquet").build()


def test_commits_of_other_writers_are_put_as_they_are():
    builder = TableBuilder().append().commit({"commitInfo": {"operation": "X"}})
    table = builder.commit(DomainMetadata("d", "{}", removed=False)).append().build()
    assert (table.version, numbers(table)) == (4, [0, 1])
    assert [record.operation for record in table.history()][2] == "X"


def test_a_table_that_can_not_be_opened_is_written_even_so():
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["teleportation"], "writerFeatures": ["teleportation"]}
    builder = TableBuilder().commit({"protocol": protocol | features})
    assert names(builder.write())[-1] == "00000000000000000001.json"
    with pytest.raises(sl.UnsupportedFeatureError, match="teleportation"):
        builder.build()


def test_with_a_manual_clock_the_same_table_is_made_each_time():
    first, second = (
        TableBuilder(clock=ManualClock()).append().wait(60).append(txn=sl.SetTransaction("a", 1))
        for _ in range(2)
    )
    one, other = first.write(), second.write()
    assert names(one) == names(other)
    assert all(one.get(m.path) == other.get(m.path) for m in one.list_from("_delta_log/"))


def test_files_of_a_memory_store_bear_the_times_of_the_builders_clock():
    store = TableBuilder(clock=ManualClock(now_ms=0)).append().wait(60).append().write()
    times = [meta.modified_ms for meta in store.list_from("_delta_log/")]
    assert times == [0, 0, 60_000]


def test_a_table_that_is_there_goes_on():
    table = TableBuilder().append(times=2).build()
    TableBuilder().append(2).checkpoint().extend(table)
    assert (table.version, numbers(table)) == (3, [0, 1, 2, 3])


def test_any_operation_of_a_table_is_a_step():
    seen = []
    TableBuilder().append().then(lambda table: seen.append(table.version)).build()
    assert seen == [1]
