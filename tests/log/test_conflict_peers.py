"""Another engine's commits in between: delta-rs as the winner, and as the one that comes second."""

from collections.abc import Callable

import deltalake
import pyarrow as pa
import pytest

import conflict_cells
import streamlake as sl
from conflict_cells import Operation
from streamlake.testing import TableBuilder

Peer = deltalake.DeltaTable


@pytest.fixture(params=["WriteSerializable", "Serializable"])
def table(request, tmp_path):
    base = TableBuilder(tmp_path / "t").schema(conflict_cells.SCHEMA).partitioned_by("p")
    properties = conflict_cells.properties(request.param)
    table = base.properties(properties).build()
    conflict_cells.fill(table)
    return table


def new_rows(partition: str = "a") -> pa.Table:
    return conflict_cells.data([(partition, 50)])


def merge(peer: Peer) -> None:
    merger = peer.merge(new_rows(), "t.p = s.p AND t.n = s.n", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


# delta-rs does not say which of its appends are blind, so all count as if they had read the table.
WINNERS: dict[str, Callable[[Peer], object]] = {
    "append": lambda peer: deltalake.write_deltalake(peer, new_rows(), mode="append"),
    "delete": lambda peer: peer.delete("p = 'a'"),
    "update": lambda peer: peer.update({"n": "n + 1"}, predicate="p = 'a'"),
    "merge": merge,
    "optimize": lambda peer: peer.optimize.compact(),
    "overwrite": lambda peer: deltalake.write_deltalake(
        peer, new_rows(), mode="overwrite", predicate="p = 'a'"
    ),
    "metadata": lambda peer: peer.alter.set_table_properties({"delta.appendOnly": "false"}),
}


def commit_after(table: sl.Table, winner: str, loser: Operation, partition: str):
    staged = conflict_cells.stage(table, loser, partition, overlap=partition == "a")
    WINNERS[winner](Peer(table.url.removeprefix("file://")))
    try:
        table.log.commit(staged)
    except sl.CommitConflictError as error:
        return type(error)
    return None


@pytest.mark.parametrize("winner", WINNERS)
def test_its_change_of_rows_that_were_read_conflicts(table, winner):
    error = commit_after(table, winner, "update", "a")
    if winner == "metadata":
        assert error is sl.MetadataChangedError
    elif winner == "optimize":
        assert error is sl.ConcurrentDeleteDeleteError
    elif winner == "delete":
        assert error is sl.ConcurrentDeleteReadError
    else:
        assert error is sl.ConcurrentAppendError


@pytest.mark.parametrize("winner", sorted(set(WINNERS) - {"metadata", "optimize"}))
def test_its_change_of_other_rows_does_not_conflict(table, winner):
    assert commit_after(table, winner, "update", "b") is None


@pytest.mark.parametrize("winner", WINNERS)
def test_an_append_goes_on_whatever_it_did(table, winner):
    assert commit_after(table, winner, "append", "a") is None


def test_a_read_holds_over_its_compaction(table):
    snapshot = table.snapshot()
    Peer(table.url.removeprefix("file://")).optimize.compact()
    assert table.confirm_read(snapshot).version > snapshot.version + 1


def test_its_delete_passes_over_our_append_to_another_partition(table):
    peer = Peer(table.url.removeprefix("file://"))
    table.append(new_rows("b"))
    peer.delete("p = 'a'")
    assert conflict_cells.rows_of(table) == [("b", 3), ("b", 4), ("b", 50)]


def test_it_may_not_remove_what_we_removed(table):
    peer = Peer(table.url.removeprefix("file://"))
    table.log.commit(conflict_cells.stage(table, "delete", "a", overlap=True))
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        peer.delete("p = 'a'")


def test_it_may_remove_other_rows(table):
    peer = Peer(table.url.removeprefix("file://"))
    table.log.commit(conflict_cells.stage(table, "delete", "a", overlap=True))
    peer.delete("p = 'b'")
    assert conflict_cells.rows_of(table) == []


def test_a_constraint_that_it_added_stops_an_append_which_was_staged_before(table):
    staged = conflict_cells.stage(table, "append", "a", overlap=True)
    Peer(table.url.removeprefix("file://")).alter.add_constraint({"small": "n < 1000"})
    with pytest.raises(sl.MetadataChangedError, match=r"small \(n < 1000\) is new"):
        table.log.commit(staged)
