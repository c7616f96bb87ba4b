"""A table as a sink: rows and positions in one commit, one owner, one kind of marker."""

import pyarrow as pa
import pytest

import streamlake as sl
from stream.builders import (
    SCHEMA,
    change_metadata,
    clock_of,
    fresh,
    new_table,
    rows,
    stored,
    table_of,
)
from streamlake.testing import CountingStore

APP = "ingest"
EXPIRY = "delta.setTransactionRetentionDuration"
DAY_S = 86_400


def opened(table: sl.Table, **options) -> sl.TableSink:
    sink = sl.TableSink(fresh(table), app_id=APP, **options)
    sink.open()
    return sink


@pytest.fixture
def table() -> sl.Table:
    return new_table()


@pytest.fixture
def sink(table):
    sink = opened(table)
    yield sink
    sink.close()


def batch(*numbers: int, **positions: int) -> sl.Batch:
    """Rows, and positions with "_" for "/"."""
    named = {name.replace("_", "/"): position for name, position in positions.items()}
    return sl.Batch(data=rows(*numbers), positions=named)


def markers(table: sl.Table) -> dict[str, int]:
    return {app_id: marker.version for app_id, marker in table.markers().items()}


def test_rows_and_positions_are_one_commit(table, sink):
    version = sink.write(batch(1, 2, orders_0=41, orders_1=7))
    assert (version, stored(table)) == (1, [1, 2])
    assert markers(table) == {"ingest/orders/0": 41, "ingest/orders/1": 7}


def test_the_commit_says_what_it_is(table, sink):
    sink.write(batch(1, orders_0=1))
    record = next(table.history())
    assert (record.operation, record.operation_parameters["appId"]) == ("STREAMING UPDATE", APP)
    assert record.is_blind_append


def test_committed_gives_the_positions_of_this_app_id_alone(table, sink):
    sink.write(batch(1, orders_0=3))
    table.append(rows(2), txn=sl.SetTransaction("ingest2/orders/0", 99))
    assert sink.committed() == {"orders/0": 3}


def test_a_reopened_sink_goes_on(table, sink):
    sink.write(batch(1, orders_0=3))
    sink.close()
    again = opened(table)
    assert again.committed() == {"orders/0": 3}
    again.write(batch(2, orders_0=4))
    again.close()
    assert stored(table) == [1, 2]


def test_positions_move_without_rows(table, sink):
    version = sink.write(batch(orders_0=9))
    assert (version, stored(table), markers(table)) == (1, [], {"ingest/orders/0": 9})


def test_an_empty_batch_of_no_columns_moves_positions(table, sink):
    sink.write(sl.Batch(data=pa.table({}), positions={"orders/0": 5}))
    assert markers(table) == {"ingest/orders/0": 5}


def test_a_repeat_writes_nothing(table, sink):
    sink.write(batch(1, orders_0=3))
    sink.committed()
    assert sink.write(batch(1, orders_0=3)) == 1
    assert stored(table) == [1]


def test_a_batch_of_which_a_part_is_stored_is_an_error(table, sink):
    sink.write(batch(1, orders_0=3))
    with pytest.raises(sl.PartlyCommittedError):
        sink.write(batch(1, 2, orders_0=3, orders_1=1))
    assert stored(table) == [1]


def test_a_batch_without_positions_is_stored_without_markers(table, sink):
    sink.write(sl.Batch(data=rows(1)))
    assert (stored(table), markers(table)) == ([1], {})


def test_a_second_sink_of_one_app_id_in_this_process_is_refused(table, sink):
    assert sink.committed() == {}
    with pytest.raises(sl.InvalidInputError, match="already open in this process"):
        opened(table)


def test_an_app_id_can_be_opened_again_after_its_sink_was_closed(table, sink):
    sink.close()
    sink.close()
    opened(table).close()


def test_other_app_ids_and_other_tables_are_free(table, sink):
    assert sink.committed() == {}
    other = sl.TableSink(table, app_id="other")
    other.open()
    other.close()
    opened(new_table()).close()


def test_opening_writes_nothing_and_a_write_makes_two_requests(table):
    store = CountingStore(table.log.store)
    sink = sl.TableSink(fresh(table, store), app_id=APP)
    sink.open()
    assert {method for method, _ in store.requests} <= {"get", "list_from"}
    sink.write(batch(1, orders_0=1))
    store.requests.clear()
    sink.write(batch(2, orders_0=2))
    sink.close()
    assert [method for method, _ in store.requests] == ["put", "put_if_absent"]


@pytest.mark.parametrize("app_id", ["", "a/b", "/", 5, None])
def test_an_app_id_that_can_not_be_is_refused(app_id):
    with pytest.raises(sl.InvalidInputError, match="app_id"):
        sl.TableSink("memory://unused", app_id=app_id)


@pytest.mark.parametrize(
    ("name", "value"),
    [("target", 5), ("target", None), ("schema", {"n": "long"}), ("partition_by", "n")],
)
def test_an_argument_of_another_type_is_refused_by_name(name, value):
    given = {"target": "memory://unused", "app_id": APP, name: value}
    with pytest.raises(sl.InvalidInputError, match=f"^{name} must") as caught:
        sl.TableSink(**given)
    assert caught.value.found == repr(value)


def test_a_sink_that_is_not_open_says_so():
    sink = sl.TableSink("memory://unused", app_id=APP)
    for call in (sink.committed, sink.tend, lambda: sink.write(batch(1))):
        with pytest.raises(sl.InvalidInputError, match="not open"):
            call()
    sink.close()


def test_a_missing_table_is_an_error_unless_a_schema_says_how_to_make_it(tmp_path):
    with pytest.raises(sl.TableNotFoundError):
        sl.TableSink(tmp_path / "t", app_id=APP).open()
    sink = sl.TableSink(tmp_path / "t", app_id=APP, schema=SCHEMA, properties={"a.b": "c"})
    sink.open()
    sink.write(batch(1, orders_0=0))
    sink.close()
    table = sl.Table.open(tmp_path / "t")
    assert (stored(table), table.properties["a.b"]) == ([1], "c")


def test_a_schema_does_not_make_a_table_that_is_there_anew(tmp_path):
    sl.Table.create(tmp_path / "t", schema=SCHEMA).append(rows(1))
    sink = sl.TableSink(tmp_path / "t", app_id=APP, schema=SCHEMA)
    sink.open()
    sink.close()
    assert stored(sl.Table.open(tmp_path / "t")) == [1]


def test_rows_that_do_not_fit_are_refused_and_nothing_moves(table, sink):
    with pytest.raises(sl.SchemaMismatchError):
        sink.write(sl.Batch(data=pa.table({"x": ["y"]}), positions={"orders/0": 1}))
    assert (table.log.refresh().version, markers(table)) == (0, {})


def test_the_marker_of_a_spark_query_or_a_producer_is_another_kind(table):
    table.append(rows(1), txn=sl.SetTransaction(APP, 1))
    with pytest.raises(sl.InvalidInputError, match="another kind"):
        opened(table)
    with pytest.raises(sl.InvalidInputError, match="another kind"):
        opened(table)  # and it is not left claimed


def test_positions_of_kafka_and_of_tables_do_not_mix(table, sink):
    sink.write(batch(1, orders_0=1))
    with pytest.raises(sl.InvalidInputError, match="another kind"):
        sink.write(sl.Batch(data=rows(2), positions={"7b1e4a9c": 5}))
    assert stored(table) == [1]


def test_a_table_whose_markers_expire_is_refused(table):
    change_metadata(table, configuration={EXPIRY: "interval 30 days"})
    with pytest.raises(sl.InvalidInputError, match="allow_marker_expiry"):
        opened(table)
    opened(table, allow_marker_expiry=True).close()


def test_expiry_that_is_set_later_is_noticed_at_the_next_write(table):
    sink = sl.TableSink(table, app_id=APP)
    sink.open()
    sink.write(batch(1, orders_0=1))
    change_metadata(table, configuration={EXPIRY: "interval 30 days"})
    with pytest.raises(sl.InvalidInputError, match="expire"):
        sink.write(batch(2, orders_0=2))
    sink.close()


@pytest.fixture
def expiring():
    """A sink with two positions on a table whose markers expire after 30 days."""
    table = new_table(properties={EXPIRY: "interval 30 days"})
    sink = sl.TableSink(table, app_id=APP, allow_marker_expiry=True)
    sink.open()
    sink.write(batch(1, orders_0=5, orders_1=6))
    yield table, sink
    sink.close()


def test_idle_markers_are_committed_anew_before_half_their_time(expiring):
    table, sink = expiring
    before = dict(table.markers())
    clock_of(table).advance(10 * DAY_S)
    sink.write(batch(2, orders_0=7))
    sink.tend()
    after = table.markers()
    assert markers(table) == {"ingest/orders/0": 7, "ingest/orders/1": 6}
    renewed = after["ingest/orders/1"].last_updated or 0
    assert renewed - (before["ingest/orders/1"].last_updated or 0) == 10 * DAY_S * 1000
    assert stored(table) == [1, 2]


def test_markers_that_are_young_are_left_alone(expiring):
    table, sink = expiring
    clock_of(table).advance(5 * DAY_S)
    sink.tend()
    assert table.log.refresh().version == 1


def test_a_renewed_marker_is_the_one_that_is_expected(expiring):
    table, sink = expiring
    clock_of(table).advance(10 * DAY_S)
    sink.tend()
    sink.write(batch(2, orders_0=6, orders_1=7))
    assert stored(table) == [1, 2]


def test_a_marker_that_was_moved_by_another_owner_is_not_renewed(expiring):
    table, sink = expiring
    clock_of(table).advance(10 * DAY_S)
    other = fresh(table)
    other.append(rows(9), txn=sl.SetTransaction("ingest/orders/1", 50))
    with pytest.raises(sl.FencedError, match="orders/1"):
        sink.tend()
    assert markers(table)["ingest/orders/1"] == 50


def test_nothing_is_renewed_where_markers_do_not_expire(table, sink):
    sink.write(batch(1, orders_0=1))
    clock_of(table).advance(10_000 * DAY_S)
    sink.tend()
    assert table.log.refresh().version == 1


def test_a_moved_marker_fences_until_the_positions_are_read_again(table, sink):
    sink.write(batch(1, orders_0=1))
    fresh(table).append(rows(2), txn=sl.SetTransaction("ingest/orders/0", 2))
    with pytest.raises(sl.FencedError):
        sink.write(batch(2, orders_0=2))
    assert sink.committed() == {"orders/0": 2}
    sink.write(batch(3, orders_0=3))
    assert stored(table) == [1, 2, 3]


def test_a_table_of_other_rows_takes_the_same_sink():
    table = table_of([1, 2])
    sink = opened(table)
    sink.write(batch(3, orders_0=0))
    sink.close()
    assert stored(table) == [1, 2, 3]
