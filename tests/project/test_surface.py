"""The public surface: one flat namespace, complete, sorted, documented, light."""

import builtins
import collections.abc
import importlib.metadata
import inspect
import pickle
import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path
from types import ModuleType

import pytest

import streamlake as sl
from streamlake import errors
from streamlake.log.committing.transaction import ENGINE_INFO

ROOT = Path(__file__).parents[2]
ERRORS = [value for value in vars(errors).values() if inspect.isclass(value)]


def test_all_lists_every_public_name_once():
    names = [
        name
        for name, value in vars(sl).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    ]
    assert sorted(sl.__all__) == sorted([*names, "__version__"])


@pytest.mark.parametrize(
    "name", [name for name in sl.__all__ if inspect.isclass(getattr(sl, name))]
)
def test_a_public_class_and_its_public_methods_have_docstrings(name):
    public = getattr(sl, name)
    bare = [
        method
        for method, value in inspect.getmembers(public, inspect.isfunction)
        if not method.startswith("_") and not inspect.getdoc(value)
    ]
    assert inspect.getdoc(public)
    assert bare == []


@pytest.mark.parametrize("public", [sl.Table, sl.Snapshot])
def test_the_types_in_signatures_are_public(public):
    methods = inspect.getmembers(public, inspect.isroutine)
    told = " ".join(
        str(hint)
        for name, method in methods
        if not name.startswith("_")
        for hint in inspect.get_annotations(method).values()
    )
    own = {*sl.__all__, *dir(collections.abc), *dir(typing), *dir(builtins), "PathLike"}
    assert set(re.findall(r"(?<![\w.])[A-Z]\w*", told)) <= own


def test_every_error_is_public_and_drawn_in_the_tree():
    drawn = errors.__doc__ or ""
    assert {error.__name__ for error in ERRORS} <= set(sl.__all__)
    assert [error.__name__ for error in ERRORS if error.__name__ not in drawn] == []


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_survives_pickling_whole(error):
    raised = error("what", where="where", found="found", remedy="remedy")
    back = pickle.loads(pickle.dumps(raised))  # noqa: S301 -- our own bytes
    assert type(back) is error
    assert str(back) == str(raised)
    assert vars(back) == vars(raised)


def modules_after(statement: str) -> set[str]:
    """The top-level modules in a fresh interpreter that ran ``statement``."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_streamlake_imports_no_engine():
    heavy = {"pyspark", "confluent_kafka", "pandas", "typer", "rich"}
    assert modules_after("import streamlake") & heavy == set()


@pytest.mark.parametrize("package", ["pyspark_streamlake", "pyspark_streamlake_kafka"])
def test_what_spark_imports_at_every_look_up_is_light(package):
    heavy = {"confluent_kafka", "pyarrow", "streamlake", "typer", "rich"}
    assert modules_after(f"import {package}") & heavy == set()


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sl.__version__ == project["version"]
    assert f"streamlake/{project['version']}" == ENGINE_INFO
    assert importlib.metadata.version("streamlake") == project["version"]
