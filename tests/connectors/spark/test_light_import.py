"""Spark imports these packages at every look-up of a data source."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys, {package}
heavy = ("pyarrow", "confluent_kafka", "streamlake", "pandas", "obstore", "msgspec", "numpy")
import pyspark.sql.datasource
before = {{name for name in heavy if name in sys.modules}}
print(sorted(before))
"""


@pytest.mark.parametrize("package", ["pyspark_streamlake", "pyspark_streamlake_kafka"])
def test_the_package_imports_nothing_that_pyspark_does_not(package):
    def loaded(code: str) -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert loaded(LOADED.format(package=package)) == loaded(LOADED.format(package="pyspark"))


def test_without_confluent_kafka_only_the_use_of_the_format_fails():
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "import pyspark_streamlake, pyspark_streamlake_kafka as k\n"
        "source = k.DefaultSource({'kafka.bootstrap.servers': 'x:1', 'subscribe': 'a'})\n"
        "print(source.name())\n"
        "source.streamReader(None)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "streamlake_kafka\n"
    assert "pip install 'streamlake[kafka]'" in ran.stderr
