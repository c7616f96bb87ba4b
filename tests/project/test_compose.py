"""The compose file, as far as it can be checked without a Docker engine."""

import shlex

import pytest
import typer
import yaml
from typer.core import TyperGroup

from documentation import ROOT
from streamlake.cli import app

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()


@pytest.mark.parametrize("name", [name for name in SERVICES if "ports" in SERVICES[name]])
def test_ports_are_published_on_this_machine_only(name):
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_is_pinned_or_built_here(name):
    image, _, tag = SERVICES[name]["image"].partition(":")
    assert tag
    assert tag != "latest"
    assert image != "streamlake" or SERVICES[name]["build"]["dockerfile"] == "docker/Dockerfile"


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_waits_for_is_there_and_can_tell(name):
    for other, how in SERVICES[name].get("depends_on", {}).items():
        healthy = how["condition"] == "service_healthy"
        assert not healthy or "healthcheck" in SERVICES[other], other


def test_there_are_two_workers():
    assert SERVICES["spark-worker"]["deploy"]["replicas"] == 2


def test_the_bridge_is_typed_as_the_command_line_takes_it():
    program, name, *options = shlex.split(SERVICES["bridge"]["command"])
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    given = group.commands[name].make_context(name, options).params
    assert program == "streamlake"
    assert given["table"].startswith("s3://lake/")
    assert "spark.master=spark://spark-master:7077" in given["spark_conf"]


def test_what_the_image_copies_is_there_and_not_ignored():
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    lines = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY")]
    for name in [name for line in lines for name in line]:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in kept
