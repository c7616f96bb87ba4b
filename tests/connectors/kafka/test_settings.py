"""Settings: what is insisted on, what is never shown."""

from __future__ import annotations

import subprocess
import sys

import pytest

import streamlake as sl
import streamlake_kafka
from streamlake_kafka import KafkaSource
from streamlake_kafka.settings import consumer_settings

SECRET = "hunter2-hunter2"  # noqa: S105 (that is the point)
SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    "setting", [{"enable.auto.commit": True}, {"auto.offset.reset": "earliest"}]
)
def test_settings_that_would_move_positions_are_refused(setting: dict[str, str | bool]) -> None:
    with pytest.raises(sl.InvalidInputError, match="behind the sink's back"):
        consumer_settings({**SERVERS, **setting})


def test_settings_of_the_user_win_over_preferences() -> None:
    assert consumer_settings(SERVERS)["isolation.level"] == "read_committed"
    settings = consumer_settings({**SERVERS, "isolation.level": "read_uncommitted"})
    assert settings["isolation.level"] == "read_uncommitted"


def test_secrets_are_not_shown() -> None:
    source = KafkaSource({**SERVERS, "sasl.password": SECRET}, topics=["orders"])
    assert SECRET not in repr(source)
    assert "orders" in repr(source)


@pytest.mark.parametrize("setting", ["no.such.setting", "sasl.password.typo"])
def test_a_setting_that_the_client_does_not_know_is_named_without_secrets(setting: str) -> None:
    source = KafkaSource({**SERVERS, setting: SECRET}, topics=["orders"])
    with pytest.raises(sl.InvalidInputError) as refused:
        source.open(dict)
    source.close()
    assert setting in refused.value.found
    assert "password" not in setting or SECRET not in str(refused.value)


def test_a_source_that_was_not_opened_can_be_closed_but_not_read() -> None:
    source = KafkaSource(SERVERS, topics=["orders"])
    source.close()
    with pytest.raises(sl.InvalidInputError, match="not open"):
        next(source.batches())


def test_the_public_names_are_there_and_sorted() -> None:
    assert streamlake_kafka.__all__ == sorted(streamlake_kafka.__all__)
    assert all(hasattr(streamlake_kafka, name) for name in streamlake_kafka.__all__)


def test_without_the_kafka_client_the_import_names_the_extra() -> None:
    program = "import sys; sys.modules['confluent_kafka'] = None; import streamlake_kafka"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ImportError" in done.stderr
    assert "pip install 'streamlake[kafka]'" in done.stderr
