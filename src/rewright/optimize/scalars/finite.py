"""What has to be finite where a mask makes a tile simpler, and what is known to be.

Under a mask ``exp(s - m) / l`` is zero where m is a number and l is not zero. A row that a mask leaves nothing of
has no such m and l, and what is made of it is no number, masked or not. So printed code looks whether they are numbers
before it leaves tiles out, or it is known that they are, as for a row of which a causal mask keeps something.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ops.facts import UNKNOWN, Facts, join, meet, of_dtype, of_values
from rewright.ops.functions.intervals import reduce_facts
from rewright.optimize.kernel import Kernel, Sweep
from rewright.optimize.planning.plan import Plan
from rewright.optimize.scalars.expressions import Expression, Table, unreduced_parts
from rewright.optimize.scalars.facts import MASK, Known, facts_of_call, reals
from rewright.optimize.scalars.values import Chosen, index_conditions
from rewright.terms.index import Index, Quotient, Remainder, Variable

MOST = 1 << 22
"""Pairs of a row and an element of it that a mask is tried on."""
MOST_CONDITIONS = 3
"""Up to this many conditions, all their values are tried."""
NONE: Chosen = MappingProxyType({})
FARTHEST = 8
"""So many stored tensors, each computed from the next one, are looked through."""


def needs(
    graph: Graph, table: Table, kernel: Kernel, sweep: Sweep, taken: Iterable[Expression]
) -> list[Expression] | None:
    """What has to be finite so that all of ``taken`` is, of what is computed from inputs, which are taken to be.

    These are values of a row, and of an element of the lane: the largest such parts. What has both loops is one only
    where it is read, as products of tiles are made of what is finite. States of the pass itself are known at its end.
    None where a function of an element of the tile may be undefined though its arguments are real: to look at it would
    take the tile itself.
    """
    row = kernel.rows.name if kernel.rows is not None else ""
    own = {r.value.number for r in sweep.running}
    single = ({loop.name for loop in kernel.grid} | {row}, {loop.name for loop in kernel.grid} | {sweep.lane.name})
    inputs = set(graph.inputs.values())
    found: dict[int, Expression] = {}
    seen: set[tuple[int, bool]] = set()
    defined = Known(defined=True)
    stack = [(e, False) for e in taken]
    while stack:
        e, pole = stack.pop()
        if (e.number, pole) in seen:
            continue
        seen.add((e.number, pole))
        inside = list(unreduced_parts(e))
        computed = any(x.op == "reduce" or (x.op == "load" and x.tensor not in inputs) for x in inside)
        if not computed or not e.dtype.is_float or e.number in own:
            continue
        whole = any(e.free <= loops for loops in single) and not any(x.number in own for x in inside)
        read = e.op == "load" and e.free <= single[0] | single[1]
        if whole or (read and not isinstance(graph.nodes[e.tensor].op, ops.DotGeneral)):
            value = table.plain("divide", (table.constant(1.0, e.dtype), e)) if pole else e
            found[value.number] = value
        elif e.op not in ("reduce", "load"):
            poles = _poles(e, [defined.facts(a) for a in e.arguments])
            if poles is None:
                return None
            stack += [(a, pole or n in poles) for n, a in enumerate(e.arguments)]
    return [found[number] for number in sorted(found)]


def _poles(e: Expression, operands: Sequence[Facts]) -> Collection[int] | None:
    """The arguments that must not be zero for a function of real numbers to be one; None where that is not enough."""
    operands = [reals(known) for known in operands]
    for poles in ((), *((n,) for n in range(len(operands)))):
        given = [replace(known, zero=known.zero and n not in poles) for n, known in enumerate(operands)]
        if facts_of_call(e, given).is_finite:
            return poles
    return None


class Certain:
    """Which values of a plan are numbers for all finite inputs, over the reals."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.made = {s.tensor: (kernel, s.value) for kernel in plan.kernels for s in kernel.stores}
        self.inputs = set(plan.graph.inputs.values())

    def finite(self, kernel: Kernel, value: Expression) -> bool:
        """Whether a value in a kernel is a number for certain."""
        return _Masked(self, kernel, 0).facts(value).is_finite

    def stored(self, tensor: int, depth: int) -> Facts:
        """What a tensor in memory may be: by the program, and by the kernel or the operator that computes it."""
        node, is_made = self.plan.graph.nodes[tensor], tensor in self.made
        known = UNKNOWN if is_made and isinstance(node.op, ops.Input) else self.plan.tensors[tensor]
        if (known.is_finite and not known.zero) or depth > FARTHEST:
            return known
        if is_made:
            kernel, value = self.made[tensor]
            return meet(known, _Masked(self, kernel, depth).facts(value))
        assert isinstance(node.op, ops.TensorOperator)
        types = [self.plan.graph.nodes[p].type for p in node.operands]
        own = node.op.facts([self.stored(p, depth + 1) for p in node.operands], types, node.type)
        return meet(known, own) if node.operands else known


class _Masked(Known):
    """What the values of one kernel may be, with what masks make of them; ``chosen`` are conditions that are known."""

    def __init__(
        self, certain: Certain, kernel: Kernel, depth: int, chosen: Chosen = NONE, whole: _Masked | None = None
    ) -> None:
        super().__init__()
        self.certain, self.kernel, self.depth = certain, kernel, depth
        self.chosen = chosen
        self.whole = self if whole is None else whole
        """Where no condition is known."""
        loops = (*kernel.grid, *(x for x in (kernel.rows, kernel.features) if x is not None))
        self.sizes = {loop.name: loop.count for loop in (*loops, *(sweep.lane for sweep in kernel.sweeps))}

    def computed(self, e: Expression) -> Facts:
        return of_values([self.chosen[e]]) if e in self.chosen else super().computed(e)

    def applied(self, e: Expression, operands: Sequence[Facts]) -> Facts:
        if e.op in ("add", "subtract"):
            pairs = zip(e.arguments, operands, strict=True)
            operands = [MASK if self._may_be_a_mask(a) else known for a, known in pairs]
        return facts_of_call(e, operands)

    def read(self, e: Expression) -> Facts:
        return self.certain.stored(e.tensor, self.depth + 1) if e.tensor >= 0 else of_dtype(e.dtype)

    def _may_be_a_mask(self, e: Expression) -> bool:
        """Whether a value is read from an input and added as it is, as masks with infinities in them are."""
        while e.op.startswith("convert_"):
            e = e.arguments[0]
        is_input = e.op == "load" and e.tensor in self.certain.inputs
        return is_input and bool(e.free)

    def reduced(self, e: Expression) -> Facts:
        """What a reduction may be, by what masks make of its body: a maximum needs one element that is kept."""
        if self is not self.whole:
            return self.whole.facts(e)
        bound, (body,) = e.bound, e.arguments
        assert bound is not None
        self.sizes[bound.index] = bound.count
        conditions = index_conditions([body])
        if len(conditions) > MOST_CONDITIONS:
            return super().reduced(e)
        ways: dict[tuple[bool, ...], Facts] = {}
        for values in itertools.product((False, True), repeat=len(conditions)):
            chosen = dict(zip(conditions, values, strict=True))
            ways[values] = _Masked(self.certain, self.kernel, self.depth, chosen, self).facts(body)
        found = reduce_facts(bound.kind, join(*ways.values()), bound.size, e.dtype)
        adds = bound.kind == "sum" and found.is_nonnegative
        kept = {v for v, known in ways.items() if (known.is_positive if adds else known.is_finite)}
        is_limited = adds or bound.kind in ("maximum", "minimum")
        if found.nan or not is_limited or not kept or not self._somewhere(bound.index, conditions, kept):
            return found
        if adds:
            return replace(found, zero=False)
        least, most = found.minus_infinity, found.plus_infinity
        is_least = bound.kind == "minimum"
        return replace(found, minus_infinity=least and is_least, plus_infinity=most and not is_least)

    def _somewhere(self, lane: str, conditions: list[Expression], kept: set[tuple[bool, ...]]) -> bool:
        """Whether every row has an element at which the conditions have one of these lists of values."""
        if len(kept) == 1 << len(conditions):
            return True
        rows = sorted(frozenset[str]().union(*(c.free for c in conditions)) - {lane})
        if any(name not in self.sizes for name in rows):
            return False
        size = self.sizes[lane]
        shape = [self.sizes[name] for name in rows]
        places: dict[str, Any] = {
            n: np.arange(s).reshape([-1 if n == r else 1 for r in rows]) for n, s in zip(rows, shape, strict=True)
        }
        every = math.prod(shape)
        if every > MOST:
            return False
        near = [np.clip(p + d, 0, size - 1) for n, p in places.items() for d in (0, size - self.sizes[n])]
        tried = [np.int64(0), np.int64(size - 1), *near]
        if every * size <= MOST:
            tried = [np.int64(n) for n in range(size)]
        found = np.zeros(shape, bool)
        for place in tried:
            known = [_truth(c, {**places, lane: place}) for c in conditions]
            for values in kept:
                found |= np.logical_and.reduce(
                    [np.broadcast_to(k == v, shape) for k, v in zip(known, values, strict=True)]
                )
            if found.all():
                return True
        return False


def _truth(e: Expression, places: Mapping[str, Any]) -> Any:
    """The values of a condition on indices at places."""
    if e.op == "constant":
        return np.asarray(e.value)
    if e.op == "index":
        assert e.index is not None
        return _place(e.index, places)
    found = [_truth(a, places) for a in e.arguments]
    if e.op.startswith("convert_"):
        return found[0]
    if e.op in ("at_least_zero", "is_zero"):
        return found[0] >= 0 if e.op == "at_least_zero" else found[0] == 0
    return ~found[0] if e.op == "not" else found[0] & found[1] if e.op == "and" else found[0] | found[1]


def _place(index: Index, places: Mapping[str, Any]) -> Any:
    assert isinstance(index.constant, int)
    total: Any = np.asarray(index.constant)
    for atom, factor in index.terms:
        assert isinstance(factor, int)
        if isinstance(atom, Variable):
            value = places[atom.name]
        else:
            assert isinstance(atom, (Quotient, Remainder)) and isinstance(atom.divisor, int)
            inner = _place(atom.numerator, places)
            value = inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
        total = total + value * factor
    return total


__all__ = ["Certain", "needs"]
