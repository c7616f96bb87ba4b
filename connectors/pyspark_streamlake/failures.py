"""Errors of ours that come out of Spark as text, made whole again."""

from __future__ import annotations

import re

import streamlake as sl

RAISED = re.compile(r"^(?:.*\bstreamlake\.errors\.)(\w+Error): (.*)$", re.MULTILINE)
LABELLED = re.compile(r"^  (where|found|do): (.*)$")


def typed_error(text: str) -> sl.StreamlakeError | None:
    """The error of ours that a traceback in ``text`` ends with; None where there is none.

    Spark carries errors of Python between its processes as text.
    """
    raised = list(RAISED.finditer(text))
    if not raised:
        return None
    kind = getattr(sl, raised[-1][1], sl.StreamlakeError)
    parts: dict[str, str] = {}
    for line in text[raised[-1].end() + 1 :].splitlines():
        labelled = LABELLED.match(line)
        if labelled is None:
            break
        parts["remedy" if labelled[1] == "do" else labelled[1]] = labelled[2]
    error: sl.StreamlakeError = kind(raised[-1][2], **parts)
    return error
