"""Equations between small programs that read nothing, decided by the numbers that both compute.

    >>> closed(Lemma("", left=half, right=quotient_of_one_and_two, evidence="numbers"))
    ()

Both sides are one tensor where they have one type and one number at every place. What stands in the way of that, and is
taken for granted, is counted up: rounding, the most negative numbers of types for minus infinity, and cut off numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array
from rewright.proof.rewriting.bytes import by_value
from rewright.proof.rewriting.cutting import Evaluated, evaluated
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.parts import splat
from rewright.proof.rewriting.taken import (
    HIGHEST,
    MOST,
    ROOTED,
    ROUNDING,
    Taken,
    are_close,
    as_endless,
    half_step,
    in_order,
    said,
)

_LAID_OUT = (ops.BroadcastInDim, ops.Reshape)
_SMALLEST_INVERSE = 1e-6
_MOST_FILLINGS = 64


@dataclass(frozen=True)
class _Side:
    """One program of a lemma, and its elements."""

    graph: Graph
    found: Evaluated

    @property
    def root(self) -> int:
        (root,) = self.graph.outputs.values()
        return root

    @property
    def value(self) -> Array:
        return self.found.result.value

    @property
    def is_held(self) -> bool:
        """Whether the program only moves constants, and computes nothing."""
        return all(_is_held(self.graph, self.graph.nodes[p]) for p in self.graph.ancestors([self.root]))

    @property
    def number(self) -> float | None:
        """The number that all elements are; None where there are several."""
        first = self.value.reshape(-1)[:1]
        return float(first[0]) if first.size and bool((self.value == first[0]).all()) else None

    def behind_layout(self) -> Node:
        """The last operator that does more than lay out numbers."""
        node = self.graph.nodes[self.root]
        while isinstance(node.op, _LAID_OUT) or _is_float_cast(self.graph, node):
            node = self.graph.nodes[node.operands[0]]
        return node


def closed(lemma: Lemma) -> tuple[Taken, ...] | None:
    """What is taken for granted where both sides, which read nothing, are one tensor; None where they are not one."""
    kind = _type_of(lemma.left)
    if kind is None or kind != _type_of(lemma.right) or not kind.is_static():
        return None
    sides = [_Side(graph, found) for graph in (lemma.left, lemma.right) if (found := evaluated(graph)) is not None]
    if len(sides) < 2 or sides[0].value.shape != sides[1].value.shape:
        return None
    with np.errstate(all="ignore"):
        found = _floats(*sides, kind.dtype) if kind.dtype.is_float else _integers(*sides)
    if found is None:
        return None
    before = [Taken("cut", pair) for side in sides for pair in side.found.cut]
    before += [Taken("folded")] * any(side.found.is_folded for side in sides)
    everything = {*before, *found}
    by_kind = [
        sorted((one for one in everything if one.kind == k), key=lambda one: one.numbers)
        for k in in_order({one.kind for one in everything})
    ]
    return tuple(one for same in by_kind for one in same)


def _type_of(graph: Graph) -> TensorType | None:
    """The type of the only output of a program without inputs."""
    if graph.inputs or len(graph.outputs) != 1:
        return None
    return graph.nodes[next(iter(graph.outputs.values()))].type


def _is_held(graph: Graph, node: Node) -> bool:
    if isinstance(node.op, ops.Constant) or _is_float_cast(graph, node):
        return True
    return isinstance(node.op, ops.TensorOperator) and bool(node.op.moves(len(node.operands)))


def _is_float_cast(graph: Graph, node: Node) -> bool:
    """Whether a node is a cast between float types, which keeps numbers."""
    return (
        isinstance(node.op, ops.Convert)
        and node.op.dtype.is_float
        and graph.nodes[node.operands[0]].type.dtype.is_float
    )


def _integers(left: _Side, right: _Side) -> list[Taken] | None:
    is_known = left.found.result.is_exact and right.found.result.is_exact
    return [] if is_known and np.array_equal(left.value, right.value) else None


def _floats(left: _Side, right: _Side, dtype: DType) -> list[Taken] | None:
    """What is taken for granted where floats are one tensor."""
    if np.isnan(left.value).any() or np.isnan(right.value).any():
        return None
    stands = np.isneginf(left.value) & np.isfinite(right.value)
    masks = _endless(left, right, stands, dtype)
    if masks is None:
        return None
    same = stands | (left.value == right.value)
    are_exact = bool((stands | (left.found.result.is_point & right.found.result.is_point)).all())
    if same.all() and are_exact:
        return masks
    folded = [] if are_exact else [Taken("folded")]
    if not stands.any():
        for law in (_inverse, _root):
            found = law(left, right) or law(right, left)
            if found is not None:
                return [found]
    if same.all():
        return [*masks, *folded]
    numbers = left.number, right.number
    if None not in numbers:
        return _scalars(left, right, folded)
    rest = _tables(left, right, same, dtype, folded)
    return None if rest is None else [*masks, *rest]


def _endless(left: _Side, right: _Side, stands: Array, dtype: DType) -> list[Taken] | None:
    """What numbers stand for minus infinity, which is put in for them; None where one is too high, or was rounded."""
    if not (left.found.result.is_point & right.found.result.is_point)[stands].all():
        return None
    values: list[float] = np.unique(right.value[stands]).tolist()
    fillings = [value for value in values if as_endless(value, dtype) == value]
    if len(fillings) > _MOST_FILLINGS or any(value > HIGHEST for value in fillings):
        return None
    return [Taken("mask")] * bool(values) + [Taken("filling", (value,)) for value in fillings]


def _inverse(quotient: _Side, held: _Side) -> Taken | None:
    """One over numbers, and these inverses in double precision, or one that was rounded to single precision."""
    node = quotient.behind_layout()
    if not isinstance(node.op, ops.Divide) or splat(quotient.graph, node.operands[0]) != 1 or not held.is_held:
        return None
    if np.array_equal(quotient.value, held.value):
        return Taken("inverse")
    divisor, value = splat(quotient.graph, node.operands[1]), held.number
    if divisor is None or value is None or divisor != int(divisor) or abs(value) <= _SMALLEST_INVERSE:
        return None
    return Taken("inverse") if abs(divisor) > 1 and are_close(1.0 / divisor, value) else None


def _root(rooted: _Side, held: _Side) -> Taken | None:
    """A square root of a number, or the root of that, and what double precision makes of it."""
    node, times = rooted.behind_layout(), 0
    while isinstance(node.op, ops.Sqrt):
        node, times = rooted.graph.nodes[node.operands[0]], times + 1
    value = held.number
    simple = node.op.values[0] if isinstance(node.op, ops.Constant) and len(node.op.values) == 1 else None
    if not 1 <= times <= 2 or not held.is_held or value is None or simple is None or value <= 0 or simple <= 0:
        return None
    power = Fraction(value) ** (2**times)
    is_near = abs(power / Fraction(simple) - 1) < Fraction(ROOTED)
    return Taken("root", (value,)) if is_near else None


def _scalars(left: _Side, right: _Side, folded: list[Taken]) -> list[Taken] | None:
    """One number for another one that is not whole, and was rounded."""
    new, old = float(left.value.reshape(-1)[0]), float(right.value.reshape(-1)[0])
    is_broken: Callable[[float], bool] = lambda value: math.isfinite(value) and value != int(value)
    if not is_broken(new) or not is_broken(old) or not are_close(old, new):
        return None
    return [*folded, Taken("scalars", (old, new))]


def _tables(left: _Side, right: _Side, same: Array, dtype: DType, folded: list[Taken]) -> list[Taken] | None:
    """A table for one that was rounded, or for one that is held where the other program computes it."""
    new, old = left.value[~same], right.value[~same]
    if not np.isfinite(new).all() or not np.isfinite(old).all():
        return None
    apart = np.abs(new - old)
    if left.is_held and right.is_held:
        return [Taken("tables")] if (apart <= ROUNDING * np.abs(new)).all() else None
    if right.is_held:
        held = right.value[np.isfinite(right.value)]
        farthest = float(apart.max())
        is_near = farthest <= max(MOST, 4.0 * half_step(dtype)) * float(np.abs(held).max())
        return [Taken("moved", (farthest,))] if is_near else None
    return [*folded, Taken("tables")] if (apart <= ROUNDING * np.abs(new)).all() else None


__all__ = ["Taken", "by_value", "closed", "said"]
