"""What a marker may be."""

from __future__ import annotations

import pytest
from hypothesis import given

from strategies import text, versions
from streamlake.errors import InvalidInputError
from streamlake.protocol import MAX_INT64, SetTransaction, validate_marker


@given(text.filter(bool), versions)
def test_any_name_with_a_version_from_zero_to_int64_is_a_marker(app_id, version):
    validate_marker(SetTransaction(app_id, version))


@pytest.mark.parametrize("app_id", ["", None, 7, b"app", "\ud800"])
def test_an_app_id_that_is_no_text_is_refused(app_id):
    with pytest.raises(InvalidInputError, match="app_id"):
        validate_marker(SetTransaction(app_id, 1))


@pytest.mark.parametrize("version", [-1, MAX_INT64 + 1, True, 1.0, "1", None])
def test_a_version_that_is_no_int64_from_zero_is_refused(version):
    with pytest.raises(InvalidInputError, match="int64") as caught:
        validate_marker(SetTransaction("app", version))
    assert caught.value.found == repr(version)
