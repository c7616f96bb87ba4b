"""The peers, and how many random tables they are shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_spark import DeltaSpark, PeerMissingError, started
from peers.random_tables import RandomTable, random_table

TIMEOUT_S = 1_800


def pytest_addoption(parser):
    parser.addoption("--tables", type=int, default=200, help="random tables to make")
    parser.addoption("--seed", type=int, default=1, help="seed of the first of them")


def pytest_collection_modifyitems(items):
    """One test reads hundreds of tables."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    """Delta on Spark; skipped where it can't be installed, but for continuous integration."""
    try:
        with started() as peer:
            yield peer
    except PeerMissingError as error:
        if os.environ.get("CI"):
            pytest.fail(f"no Delta on Spark: {error}", pytrace=False)
        pytest.skip(f"no Delta on Spark: {error}")


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> range:
    """The seeds of this run's random tables."""
    first = request.config.getoption("--seed", default=1)
    return range(first, first + request.config.getoption("--tables", default=200))


@pytest.fixture(scope="session")
def our_tables(seeds: range, tmp_path_factory: pytest.TempPathFactory) -> list[RandomTable]:
    """Random tables that streamlake wrote."""
    folder: Path = tmp_path_factory.mktemp("ours")
    return [random_table(folder / f"{seed}", seed) for seed in seeds]
