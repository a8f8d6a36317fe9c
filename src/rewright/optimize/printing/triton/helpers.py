"""Scalar functions that Triton has not, or not with the accuracy of float32 near zero, as functions of a module."""

from __future__ import annotations

from rewright.ops.functions import FUNCTIONS

_HELPERS = [f.code.triton for f in FUNCTIONS.values() if f.code.triton is not None and f.code.triton.source]


def needed_helpers(text: str) -> str:
    """The functions that a module uses, to be put before it."""
    return "".join(f"{one.source}\n" for one in _HELPERS if f"{one.text.partition('(')[0]}(" in text)
