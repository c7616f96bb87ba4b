import pytest

import streamlake as sl
from streamlake.cli.engine import Engine, choose_engine, java_version


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Put a ``java`` that says a version where JAVA_HOME points."""

    def install(told):
        program = tmp_path / "bin" / "java"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    return install


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no Java runtime present", None),
    ],
)
def test_the_version_is_what_java_says(java, told, version):
    java(told)
    assert java_version() == version


def test_spark_is_the_default_where_java_is_new_enough(java):
    java('openjdk version "17.0.1"')
    assert choose_engine(None).engine is Engine.SPARK


def test_without_java_the_default_is_local_and_says_what_spark_needs(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    choice = choose_engine(None)
    assert choice.engine is Engine.LOCAL
    assert "install Java 17" in choice.reason


def test_spark_with_an_old_java_is_refused_with_what_to_do(java):
    java('java version "1.8.0_402"')
    with pytest.raises(sl.InvalidInputError, match="can't run here"):
        choose_engine(Engine.SPARK)


def test_local_needs_nothing_and_gives_no_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert choose_engine(Engine.LOCAL).reason == ""
