"""The public names of the floor."""

from __future__ import annotations

import streamlake.protocol as floor


def test_the_public_names_are_there_sorted_and_documented():
    def order(name: str) -> tuple[bool, bool, str]:
        return not name.isupper(), not name[0].isupper(), name

    assert floor.__all__ == sorted(floor.__all__, key=order)
    assert all(hasattr(floor, name) for name in floor.__all__)
