import pytest

import streamlake as sl
from streamlake.cli.kafka_config import SECRETS, kafka_settings


def test_an_option_goes_before_the_file(tmp_path):
    file = tmp_path / "kafka.conf"
    file.write_text("# for the demo\n\nclient.id = file\nsasl.password=a=b\n")
    found = kafka_settings("h:1", ["client.id=option"], file)
    assert found == {"bootstrap.servers": "h:1", "client.id": "option", "sasl.password": "a=b"}


def test_a_value_is_taken_from_the_environment():
    found = kafka_settings("h:1", ["sasl.password=${PW}"], None, environ={"PW": "hidden"})
    assert found["sasl.password"] == "hidden"


def test_a_variable_that_is_not_set_is_told():
    with pytest.raises(sl.InvalidInputError, match=r"PW of client\.id is not set"):
        kafka_settings("h:1", ["client.id=${PW}"], None, environ={})


@pytest.mark.parametrize("key", sorted(SECRETS))
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(key):
    with pytest.raises(sl.InvalidInputError) as caught:
        kafka_settings("h:1", [f"{key}=hunter2"], None)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(sl.InvalidInputError, match="can't be read"):
        kafka_settings("h:1", None, tmp_path / "none.conf")
