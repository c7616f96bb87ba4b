"""Logs that are torn, garbled, full of holes or cut off: a typed error, never a guess."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def one(n: int) -> pa.Table:
    return pa.table([[n]], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> sl.Table:
    """A table of six versions with checkpoints at 2 and 4."""
    table = sl.Table.create(
        tmp_path / "t", schema=SCHEMA, properties={"delta.checkpointInterval": "2"}
    )
    for n in range(1, 6):
        table.append(one(n))
    return table


@pytest.fixture
def log_dir(table: sl.Table) -> Path:
    return Path(table.url.removeprefix("file://")) / "_delta_log"


def commit(log_dir: Path, version: int) -> Path:
    return log_dir / f"{version:020d}.json"


def read(log_dir: Path) -> list[int | None]:
    return sl.Table.open(log_dir.parent).snapshot().to_arrow()["n"].to_pylist()


def test_there_is_no_table_in_an_empty_folder(tmp_path):
    with pytest.raises(sl.TableNotFoundError, match=r"Table\.create"):
        sl.Table.open(tmp_path)


def test_a_left_over_temporary_file_makes_no_table(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "_commit_0.tmp").write_text("{}")
    with pytest.raises(sl.TableNotFoundError):
        sl.Table.open(tmp_path)


@pytest.mark.parametrize(
    "damage", [b"", b'{"add":{"path":"x"', b"\0" * 400, b"not json\n", b'{"txn":{"appId":7}}\n']
)
def test_a_torn_or_garbled_commit_is_told_by_name(log_dir, damage):
    commit(log_dir, 5).write_bytes(damage)
    with pytest.raises(sl.CorruptTableError, match=r"00005\.json"):
        sl.Table.open(log_dir.parent)


def test_a_commit_cut_off_in_its_last_line_is_corrupt(log_dir):
    whole = commit(log_dir, 5).read_bytes()
    commit(log_dir, 5).write_bytes(whole[:-20])
    with pytest.raises(sl.CorruptTableError):
        sl.Table.open(log_dir.parent)


def test_a_garbled_commit_below_the_checkpoint_does_not_matter(log_dir):
    commit(log_dir, 1).write_bytes(b"garbage")
    assert read(log_dir) == [1, 2, 3, 4, 5]


def test_a_gap_is_an_error(log_dir):
    for checkpoint in log_dir.glob("*checkpoint*"):
        checkpoint.unlink()
    commit(log_dir, 3).unlink()
    with pytest.raises(sl.LogGapError, match="Commit 3"):
        sl.Table.open(log_dir.parent)


def test_a_truncated_log_without_a_checkpoint_is_an_error(log_dir):
    for checkpoint in log_dir.glob("*checkpoint*"):
        checkpoint.unlink()
    commit(log_dir, 0).unlink()
    with pytest.raises(sl.LogTruncatedError, match="cleaned up"):
        sl.Table.open(log_dir.parent)


def test_a_log_cleaned_up_below_its_checkpoint_reads_whole(log_dir):
    for version in range(4):
        commit(log_dir, version).unlink()
    assert read(log_dir) == [1, 2, 3, 4, 5]
    with pytest.raises(sl.LogTruncatedError):
        sl.Table.open(log_dir.parent).snapshot(version=1)


@pytest.mark.parametrize("hint", [b"", b"garbage", b'{"version":99,"size":1}', b'{"version":2}'])
def test_a_stale_missing_or_garbled_hint_changes_nothing(log_dir, hint):
    (log_dir / "_last_checkpoint").write_bytes(hint)
    assert read(log_dir) == [1, 2, 3, 4, 5]


def test_a_missing_hint_changes_nothing(log_dir):
    (log_dir / "_last_checkpoint").unlink()
    assert read(log_dir) == [1, 2, 3, 4, 5]


def test_a_hint_to_a_missing_checkpoint_falls_back_to_what_is_there(log_dir):
    (log_dir / f"{4:020d}.checkpoint.parquet").unlink()
    assert read(log_dir) == [1, 2, 3, 4, 5]


def test_a_corrupt_checkpoint_falls_back_to_an_earlier_one(log_dir):
    (log_dir / f"{4:020d}.checkpoint.parquet").write_bytes(b"PAR1 torn")
    assert read(log_dir) == [1, 2, 3, 4, 5]


def test_a_corrupt_checkpoint_without_a_way_round_is_told_by_name(log_dir):
    for version in range(4):
        commit(log_dir, version).unlink()
    (log_dir / f"{2:020d}.checkpoint.parquet").unlink()
    (log_dir / f"{4:020d}.checkpoint.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(sl.CorruptTableError, match=r"4\.checkpoint\.parquet"):
        sl.Table.open(log_dir.parent)


def test_an_incomplete_multi_part_checkpoint_is_passed_over(log_dir):
    whole = log_dir / f"{4:020d}.checkpoint.parquet"
    shutil.copy(whole, log_dir / f"{5:020d}.checkpoint.0000000001.0000000002.parquet")
    assert read(log_dir) == [1, 2, 3, 4, 5]


def test_a_version_past_the_newest_is_told_with_the_newest(table):
    with pytest.raises(sl.VersionNotFoundError, match="newest version is 5"):
        table.snapshot(version=6)


@pytest.mark.parametrize("version", [-1, True, "1", 1.0])
def test_what_is_no_version_is_refused(table, version):
    with pytest.raises(sl.InvalidInputError, match="whole number"):
        table.snapshot(version=version)


def test_every_version_can_be_read_again(table):
    for version in range(6):
        assert table.snapshot(version=version).to_arrow()["n"].to_pylist() == list(
            range(1, version + 1)
        )


def test_an_unknown_reader_feature_is_refused_by_name(log_dir):
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["teleportation"],
        "writerFeatures": ["teleportation"],
    }
    commit(log_dir, 6).write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(sl.UnsupportedFeatureError, match="teleportation"):
        sl.Table.open(log_dir.parent)


def test_an_unknown_writer_feature_is_read_and_refused_for_writing(log_dir):
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "telepathy"],
    }
    commit(log_dir, 6).write_text(json.dumps({"protocol": protocol}) + "\n")
    table = sl.Table.open(log_dir.parent)
    assert table.snapshot().to_arrow().num_rows == 5
    with pytest.raises(sl.UnsupportedFeatureError, match="telepathy"):
        table.append(one(6))
    assert not commit(log_dir, 7).exists()


@pytest.mark.parametrize("path", ["../secret.parquet", "%2e%2e/secret.parquet", "/etc/passwd"])
def test_a_path_that_leaves_the_table_is_refused(log_dir, path):
    add = {
        "path": path,
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    commit(log_dir, 6).write_text(json.dumps({"add": add}) + "\n")
    with pytest.raises(sl.UnsafePathError):
        sl.Table.open(log_dir.parent).snapshot().to_arrow()


def test_a_table_over_an_existing_one_is_refused(table, tmp_path):
    with pytest.raises(sl.TableExistsError, match="already"):
        sl.Table.create(tmp_path / "t", schema=SCHEMA)
    assert table.snapshot().to_arrow().num_rows == 5
