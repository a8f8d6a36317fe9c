"""What rounding makes of a table that is computed step by step, seen on several runs.

    >>> explains(held, runs(graph, root), DType.F32)

A machine rounds every operation to the type of its result, functions by more than one step. So a table that another
program holds is what this one computes where it lies as near as runs lie to each other whose steps are moved at random
by as much as rounding may move them. Types shorter than single precision are computed in single precision and rounded
to the nearest number, so that they explain no more than the elements that end up between two of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator
from rewright.ops.facts import DIGITS

_RUNS = 8
_TIMES = 8.0
"""Every operation of a run may be off by this many half steps."""


def runs(graph: Graph, root: int, *, loose: bool = False) -> list[Array]:
    """A node of a program that reads nothing: without noise, as a machine may round short types, and then with it.

    With ``loose`` operations in short types may be off as well. Raises what the execution raises.
    """
    wanted = sorted(graph.ancestors([root]))
    return [_run(graph, wanted, np.random.default_rng(n), _TIMES if n else 0.0, loose) for n in range(_RUNS + 1)]


def _run(graph: Graph, wanted: Sequence[int], draws: np.random.Generator, times: float, loose: bool) -> Array:
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for position in wanted:
            node = graph.nodes[position]
            assert isinstance(node.op, TensorOperator)
            found = np.asarray(node.op.execute([values[p] for p in node.operands], np.float64))
            is_moved = isinstance(node.op, ops.Negate) or node.op.moves(len(node.operands))
            values[position] = found if is_moved else _move(found, node.type.dtype, draws, times, loose)
    return values[wanted[-1]]


def _move(found: Array, dtype: DType, draws: np.random.Generator, times: float, loose: bool) -> Array:
    """A result moved by what rounding may do to it; whole numbers that the type counts to stay what they are."""
    digits = DIGITS.get(dtype)
    if digits is None or found.dtype.kind != "f":
        return found
    computed = digits if loose else max(digits, DIGITS[DType.F32])
    moved = found * (1.0 + draws.uniform(-1.0, 1.0, found.shape) * times * 2.0**-computed)
    kept = np.where((found == np.round(found)) & (np.abs(found) < 2.0**digits), found, moved)
    return kept if computed == digits else _nearest(kept, digits)


def _nearest(value: Array, digits: int) -> Array:
    """The nearest numbers with a number of binary digits, ties to even."""
    fraction, exponent = np.frexp(value)
    return np.ldexp(np.round(np.ldexp(fraction, digits)), exponent - digits)


def explains(held: Array, computed: Sequence[Array], dtype: DType, *, loose: bool = False) -> Array:
    """Where a held table is no farther from the first run than the other runs are, once it is rounded to its type."""
    ideal, *others = computed
    with np.errstate(invalid="ignore"):
        spread = np.fmax.reduce([np.abs(other - ideal) for other in others])
        digits = DIGITS.get(dtype, DIGITS[DType.F32])
        if digits < DIGITS[DType.F32] and not loose:
            return (_nearest(ideal - spread, digits) <= held) & (held <= _nearest(ideal + spread, digits))
        own = 2.0**-digits * np.abs(np.where(np.isfinite(held), held, 0.0))
        return np.abs(held - ideal) <= spread + 2.0 * own
