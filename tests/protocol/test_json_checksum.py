"""The checksum of _last_checkpoint: PROTOCOL.md's example and rules, and what is refused."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlake.protocol import json_checksum
from streamlake.protocol.json_checksum import canonical_json

EXAMPLE = (
    b'{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], '
    b'{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
)
BY_SPARK = b'{"version":3,"size":7,"sizeInBytes":15600,"numOfAddFiles":5,"checksum":"anything"}'
TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def test_the_example_of_the_protocol_comes_out_as_it_says():
    assert canonical_json(EXAMPLE) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6",'
        '"k1"+"k3"+2+"k5"+2="v7"'
    )
    assert json_checksum(EXAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"b":{"y":null,"x":"https://delta.io"},"a":10}',
         '"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null'),
        ('{"a":[null,"hi ho",2.71]}', '"a"+0=null,"a"+1="hi%20ho","a"+2=2.71'),
        ('{"n":1.50,"e":1E+2,"t":true,"f":false}', '"e"=1E+2,"f"=false,"n"=1.50,"t"=true'),
        ('{"ä~":"~-._/"}', '"%C3%A4~"="~-._%2F"'),
        ("{}", ""),
    ],
)  # fmt: skip
def test_the_rules_of_canonical_form(text, canonical):
    assert canonical_json(text.encode()) == canonical


@given(st.dictionaries(TEXTS, VALUES, max_size=4), TEXTS)
def test_order_white_space_and_the_checksum_itself_do_not_count(value, checksum):
    value.pop("checksum", None)
    plain = json.dumps(value).encode()
    turned = {"checksum": checksum, **dict(reversed(value.items()))}
    assert json_checksum(json.dumps(turned, indent=2).encode()) == json_checksum(plain)


@pytest.mark.parametrize(
    "data",
    [b"", b"[1]", b"7", b'{"a":1,"a":1}', b'{"a":NaN}', b"\xff", b"[" * 100_000,
     b'{"a":' * 200 + b"1" + b"}" * 200, b'{"a":"\\ud800"}'],
)  # fmt: skip
def test_what_is_no_object_with_unique_keys_is_refused(data):
    with pytest.raises(msgspec.DecodeError):
        json_checksum(data)


def test_any_other_number_gives_another_checksum():
    assert json_checksum(BY_SPARK) != json_checksum(BY_SPARK.replace(b"15600", b"15601"))
