"""Equations between small programs that read nothing, decided by the numbers that both compute.

    >>> compare_closed(Lemma("", left=half, right=quotient_of_one_and_two, evidence="numbers"))
    ()

Both sides are one tensor where they have one type and one number at every place. What stands in the way of that, and is
taken for granted, is counted up: rounding, the most negative numbers of types for minus infinity, and cut off numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.numbers.bytes import by_value
from rewright.proof.rewriting.numbers.cutting import Evaluated, evaluate
from rewright.proof.rewriting.numbers.rounding import explains, runs
from rewright.proof.rewriting.numbers.taken import (
    HIGHEST,
    MOST,
    ROOTED,
    ROUNDING,
    Taken,
    are_close,
    as_infinity,
    half_step,
    in_order,
    taken_sentences,
)

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
        while isinstance(node.op, ops.View) or _is_float_cast(self.graph, node):
            node = self.graph.nodes[node.operands[0]]
        return node


def compare_closed(lemma: Lemma) -> tuple[Taken, ...] | None:
    """What is taken for granted where both sides, which read nothing, are one tensor; None where they are not one."""
    kind = _type_of(lemma.left)
    if kind is None or kind != _type_of(lemma.right):
        return None
    sides = [side if kind.is_static() else _of_one_element(side, kind.dtype) for side in (lemma.left, lemma.right)]
    mine, other = (None if side is None else evaluate(side) for side in sides)
    if mine is None or other is None:
        return None
    left, right = (_Side(side, found) for side, found in zip(sides, (mine, other), strict=True) if side is not None)
    with np.errstate(all="ignore"):
        found = _floats(left, right, kind.dtype) if kind.dtype.is_float else _integers(left, right)
    if found is None:
        return None
    before = [Taken("cut", pair) for one in (mine, other) for pair in one.cut]
    before += [Taken("folded")] * (mine.is_folded or other.is_folded)
    return in_order([*before, *found])


def _type_of(graph: Graph) -> TensorType | None:
    """The type of the only output of a program without inputs."""
    if graph.inputs or len(graph.outputs) != 1:
        return None
    return graph.nodes[next(iter(graph.outputs.values()))].type


def _of_one_element(graph: Graph, dtype: DType) -> Graph | None:
    """The number that all elements of a program are, as a program, whatever its sizes; None where it computes any."""
    (root,) = graph.outputs.values()
    node = graph.nodes[root]
    while isinstance(node.op, ops.View):
        node = graph.nodes[node.operands[0]]
    if not isinstance(node.op, ops.Constant) or ops.splat(node.op) is None:
        return None
    builder = GraphBuilder(graph.name)
    builder.output("result", builder.add(ops.Constant(TensorType((), dtype), node.op.values[:1])))
    return builder.build()


def _is_held(graph: Graph, node: Node) -> bool:
    if isinstance(node.op, ops.Constant) or _is_float_cast(graph, node):
        return True
    return isinstance(node.op, TensorOperator) and bool(node.op.moves(len(node.operands)))


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
    masks = _infinities(left, right, stands, dtype)
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


def _infinities(left: _Side, right: _Side, stands: Array, dtype: DType) -> list[Taken] | None:
    """What numbers stand for minus infinity, which is put in for them; None where one is too high, or was rounded."""
    if not (left.found.result.is_point & right.found.result.is_point)[stands].all():
        return None
    values: list[float] = np.unique(right.value[stands]).tolist()
    fillings = [value for value in values if as_infinity(value, dtype) == value]
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
    inverse, value = quotient.number, held.number
    if inverse is None or value is None or abs(inverse) <= _SMALLEST_INVERSE or not math.isfinite(inverse):
        return None
    whole = round(1.0 / inverse)
    is_whole = abs(whole) > 1 and 1.0 / whole == inverse
    return Taken("inverse") if is_whole and are_close(inverse, value) else None


def _root(rooted: _Side, held: _Side) -> Taken | None:
    """A square root of a number, or the root of that, and what double precision makes of it."""
    node, times = rooted.behind_layout(), 0
    while isinstance(node.op, ops.Sqrt):
        node, times = rooted.graph.nodes[node.operands[0]], times + 1
    root, value = rooted.number, held.number
    if not 1 <= times <= 2 or not held.is_held or root is None or value is None:
        return None
    if not (0 < root < math.inf and 0 < value < math.inf):
        return None
    is_near = abs((Fraction(value) / Fraction(root)) ** (2**times) - 1) < Fraction(ROOTED)
    return Taken("root", (value,)) if is_near else None


def _scalars(left: _Side, right: _Side, folded: list[Taken]) -> list[Taken] | None:
    """One number for another one that is not whole, and was rounded."""
    new, old = float(left.value.reshape(-1)[0]), float(right.value.reshape(-1)[0])
    if not _is_broken(new) or not _is_broken(old) or not are_close(old, new):
        return None
    return [*folded, Taken("scalars", (old, new))]


def _is_broken(value: float) -> bool:
    return math.isfinite(value) and value != int(value)


def _tables(left: _Side, right: _Side, same: Array, dtype: DType, folded: list[Taken]) -> list[Taken] | None:
    """A table for one that was rounded, or for one that is held where the other program computes it."""
    new, old = left.value[~same], right.value[~same]
    if not np.isfinite(new).all() or not np.isfinite(old).all():
        return None
    apart = np.abs(new - old)
    if left.is_held and right.is_held:
        return [Taken("tables")] if (apart <= ROUNDING * np.abs(new)).all() else None
    if right.is_held:
        return _move(left, right, same, dtype)
    return [*folded, Taken("tables")] if (apart <= ROUNDING * np.abs(new)).all() else None


def _move(left: _Side, right: _Side, same: Array, dtype: DType) -> list[Taken] | None:
    """How far a held table is from what is computed; None where that is more than rounding makes of it."""
    step, new, old = half_step(dtype), left.value[~same], right.value[~same]
    apart = np.abs(new - old)
    is_whole = left.found.result.is_point[~same] & (new == np.round(new)) & (np.abs(new) * step <= 1)
    if (apart > 4.0 * step * np.abs(old))[is_whole].any():
        return None  # whole numbers are not rounded on the way
    farthest, held = float(apart.max()), right.value[np.isfinite(right.value)]
    is_near = farthest <= max(MOST, 4.0 * step) * float(np.abs(held).max())
    return [Taken("moved", (farthest,))] if is_near and _is_rounded(left, right, dtype, ~same) else None


def _is_rounded(computed: _Side, held: _Side, dtype: DType, where: Array) -> bool:
    """Whether rounding explains how far a held table is from what is computed."""
    try:
        found = [run[where] for run in runs(computed.graph, computed.root)]
    except (RewrightError, ArithmeticError, ValueError, MemoryError):
        return False
    return bool(explains(held.value[where], found, dtype).all())


__all__ = ["Taken", "by_value", "compare_closed", "taken_sentences"]
