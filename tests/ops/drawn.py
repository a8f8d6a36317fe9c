"""Arguments of scalar functions, inside of their domains."""

from __future__ import annotations

import operator

import numpy as np

from rewright.ops.base import Array
from rewright.ops.functions import FUNCTIONS, ScalarFunction

COMPARED = {"NE": operator.ne, "GT": operator.gt, "GE": operator.ge, "LT": operator.lt, "LE": operator.le}
OF_INTEGERS = {"divide_integer", "power_integer"}
POINTS = 24


def is_of_integers(function: ScalarFunction) -> bool:
    """Whether it is a function of integers alone."""
    return function.operands.dtypes == "logical" or function.name in OF_INTEGERS


def arguments(name: str) -> list[Array]:
    """Arguments at 24 points, whole numbers among them; the same ones each time."""
    function = FUNCTIONS[name]
    draws = np.random.default_rng(sum(name.encode()))
    found = draws.normal(scale=2, size=(function.operands.count, 64 * POINTS))
    if is_of_integers(function):
        found = np.round(found * 2)
    found[:, ::3] = np.round(found[:, ::3])
    inside = np.ones(found.shape[1], bool)
    for bound in function.domain.bounds:
        inside &= COMPARED[bound.direction](found[bound.argument], bound.value)
    chosen = list(found[:, inside][:, :POINTS])
    if name == "select":
        return [chosen[0] > 0, *chosen[1:]]
    if is_of_integers(function):
        return [np.abs(x).astype(np.uint8) if name == "not_unsigned" else x.astype(np.int64) for x in chosen]
    return chosen


def values(name: str, operands: list[Array]) -> Array:
    """What numpy computes."""
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name].values.numpy(*operands))
