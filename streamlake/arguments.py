"""Arguments that can't be, told where they are given and not where they are used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from streamlake.errors import InvalidInputError


def check_integer(name: str, value: object, *, least: int) -> None:
    """Refuse what is not an integer of at least ``least``.

    Raises:
        InvalidInputError: It is not; the argument is named.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInputError(
            f"{name} must be an integer of at least {least}.",
            found=repr(value),
            remedy=f"Give a number, as in {name}={max(least, 1)}.",
        )


def check_names(name: str, value: object) -> None:
    """Refuse what is not a sequence of names; one text is not one.

    Raises:
        InvalidInputError: It is not; the argument is named.
    """
    names = value if isinstance(value, Sequence) and not isinstance(value, str) else [None]
    if not all(isinstance(one, str) for one in names):
        raise InvalidInputError(
            f"{name} must be a list of columns' names.",
            found=repr(value),
            remedy=f'Give a list, also for a single one, as in {name}=["id"].',
        )


def names_of(name: str, value: object) -> list[str]:
    """The names that an iterable gives; one text is one name.

    Raises:
        InvalidInputError: It gives something else; the argument is named.
    """
    remedy = f'Give a list, as in {name}=["id"].'
    return [value] if isinstance(value, str) else items_of(name, value, str, remedy=remedy)


def check_text(name: str, value: object, *, remedy: str) -> None:
    """Refuse what is no text.

    Raises:
        InvalidInputError: It is none; the argument is named.
    """
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a string.", found=repr(value), remedy=remedy)


def items_of(name: str, value: object, expected: type, *, remedy: str) -> list[Any]:
    """What an iterable of values of one type gives.

    Raises:
        InvalidInputError: It is no such iterable; the argument is named.
    """
    items = list(value) if isinstance(value, Iterable) else [value]
    if not isinstance(value, Iterable) or not all(isinstance(one, expected) for one in items):
        raise InvalidInputError(
            f"{name} must be a list of {expected.__name__} values.",
            found=repr(value)[:200],
            remedy=remedy,
        )
    return items


def check_type(name: str, value: object, expected: type, *, remedy: str) -> None:
    """Refuse what is not of the expected type; None stands for the default.

    Raises:
        InvalidInputError: It is not; the argument is named.
    """
    if value is not None and not isinstance(value, expected):
        raise InvalidInputError(
            f"{name} must be a {expected.__name__}.", found=repr(value), remedy=remedy
        )


def check_methods(name: str, value: object, methods: Sequence[str], *, remedy: str) -> None:
    """Refuse what lacks one of the methods.

    Raises:
        InvalidInputError: One is missing; the argument and the method are named.
    """
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing:
        raise InvalidInputError(
            f"{name} must have the methods {', '.join(methods)}.",
            found=f"{value!r} without {', '.join(missing)}",
            remedy=remedy,
        )


def check_callable(name: str, value: object) -> None:
    """Refuse what can't be called; None stands for the default.

    Raises:
        InvalidInputError: It can't be; the argument is named.
    """
    if value is not None and not callable(value):
        raise InvalidInputError(
            f"{name} must be a function.", found=repr(value), remedy="Give a function, or None."
        )
