"""Scalar functions on Python numbers, and the number system of IEEE floats.

Integers and truth values are Python's own in every number system; what differs is what a float element is:
Python's floats here, fractions in :mod:`rewright.interp.rationals`, fifty digits in :mod:`rewright.interp.decimals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewright.ops.functions import FUNCTIONS

Value = Any
Function = Callable[..., Value]


def is_special(value: Value) -> bool:
    """Whether a value is infinite or not a number."""
    return isinstance(value, float) and not math.isfinite(value)


def convert(dtype: str, value: Value, real: Callable[[Value], Value]) -> Value:
    """A value in another dtype: ``real`` makes a float element of an integer; floats are truncated to integers."""
    if dtype == "i1":
        return value != 0
    if dtype.startswith(("i", "ui")):
        return int(value)
    return real(value) if isinstance(value, int) else value


EXACT: dict[str, Function] = {f.name: f.values.exact for f in FUNCTIONS.values() if f.values.exact is not None}
"""Functions that map fractions to fractions."""


def is_exact(function: str) -> bool:
    """Whether fractions have fractions as values of a function in every number system: no division, root or limit."""
    return function in EXACT or function.startswith("convert_")


def divide(left: float, right: float) -> float:
    """The IEEE quotient."""
    if right:
        return left / right
    return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1.0, right)


@dataclass(frozen=True)
class Floats:
    """IEEE double precision, one element at a time."""

    def literal(self, value: float | int | bool) -> Value:
        """Python's own number."""
        return value

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The value as numpy computes it, up to the last bits of transcendental functions."""
        if function.startswith("convert_"):
            return self._convert(function.removeprefix("convert_"), arguments[0])
        if function in _BY_ZERO and isinstance(arguments[1], int) and not arguments[1]:
            return -1 if function == "divide_integer" else arguments[0]
        if function in EXACT:
            return EXACT[function](*arguments)
        with np.errstate(all="ignore"):
            return float(FUNCTIONS[function].values.numpy(*(np.asarray(float(a)) for a in arguments)))

    def _convert(self, dtype: str, value: Value) -> Value:
        """What is no number, or has no end, becomes zero as an integer, though nothing says so."""
        undefined = is_special(value) and dtype.startswith(("i", "ui")) and dtype != "i1"
        return 0 if undefined else convert(dtype, value, float)


_BY_ZERO = ("divide_integer", "remainder")
"""A machine makes something of an integer and zero: all bits set, for which -1 stands, and the integer itself."""
