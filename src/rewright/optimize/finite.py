"""What has to be finite where a mask makes a tile simpler, and what is known to be.

Under a mask ``exp(s - m) / l`` is nought where m is a number and l is not nought. A row that a mask leaves nothing of
has no such m and l, and what is made of it is no number, masked or not. So printed code looks whether they are numbers
before it leaves tiles out, or it is known that they are, as for a row of which a causal mask keeps something.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph
from rewright.optimize.constants import closed_value
from rewright.optimize.expressions import Expression, Table
from rewright.optimize.kernel import Kernel, Sweep
from rewright.optimize.planning import Plan
from rewright.optimize.roles import outside
from rewright.optimize.values import identity, index_conditions, under
from rewright.terms.index import Index, Quotient, Remainder, Variable

POLES = ("log", "log_plus_one", "rsqrt", "power")
"""Functions that are infinite at a finite place; a quotient is where its divisor is nought."""
TOTAL = (
    *("add", "subtract", "multiply", "negate", "maximum", "minimum", "exponential", "exponential_minus_one"),
    *("tanh", "logistic", "sine", "cosine", "abs", "sign", "floor", "ceil", "round_nearest_even", "erf", "clamp"),
)
"""Functions that are numbers for all numbers."""
MOST = 1 << 22
"""Pairs of a row and an element of it that a mask is tried on."""
FARTHEST = 8
"""So many stored tensors, each computed from the next one, are looked through."""


def needs(graph: Graph, table: Table, kernel: Kernel, sweep: Sweep, taken: Iterable[Expression]) -> list[Expression]:
    """What has to be finite so that all of ``taken`` is, of what is computed from inputs, which are taken to be.

    These are values of a row, and of an element of the lane: the largest such parts. What has both loops is one only
    where it is read, as products of tiles are made of what is finite. States of the pass itself are known at its end.
    """
    row = kernel.rows.name if kernel.rows is not None else ""
    own = {r.value.number for r in sweep.running}
    single = ({loop.name for loop in kernel.grid} | {row}, {loop.name for loop in kernel.grid} | {sweep.lane.name})
    inputs = set(graph.inputs.values())
    found: dict[int, Expression] = {}
    seen: set[tuple[int, bool]] = set()
    stack = [(e, False) for e in taken]
    while stack:
        e, pole = stack.pop()
        if (e.number, pole) in seen:
            continue
        seen.add((e.number, pole))
        inside = list(outside(e))
        computed = any(x.op == "reduce" or (x.op == "load" and x.tensor not in inputs) for x in inside)
        if not computed or not e.dtype.is_float or e.number in own:
            continue
        whole = any(e.free <= loops for loops in single) and not any(x.number in own for x in inside)
        read = e.op == "load" and e.free <= single[0] | single[1]
        if whole or (read and not isinstance(graph.nodes[e.tensor].op, ops.DotGeneral)):
            value = table.plain("divide", (table.constant(1.0, e.dtype), e)) if pole else e
            found[value.number] = value
        elif e.op != "reduce":
            divides = e.op == "divide" and e.dtype.is_float
            stack += [(a, pole or e.op in POLES or (divides and n == 1)) for n, a in enumerate(e.arguments)]
    return [found[number] for number in sorted(found)]


class Certain:
    """Which values of a plan are numbers for all finite inputs, over the reals."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.table = plan, plan.table
        self.made = {s.tensor: (kernel, s.value) for kernel in plan.kernels for s in kernel.stores}
        self.inputs = set(plan.graph.inputs.values())

    def finite(self, kernel: Kernel, value: Expression) -> bool:
        """Whether a value in a kernel is a number for certain."""
        return _Signs(self, kernel, 0).sign(value) is not None

    def stored(self, tensor: int, depth: int) -> str | None:
        """The sign of a stored tensor; None where it may be no number."""
        if depth > FARTHEST:
            return None
        if tensor in self.made:
            kernel, value = self.made[tensor]
            return _Signs(self, kernel, depth).sign(value)
        if tensor in self.inputs:
            return "any"
        node = self.plan.graph.nodes[tensor]
        plain = isinstance(node.op, (ops.DotGeneral, ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Slice))
        known = plain and all(self.stored(p, depth + 1) is not None for p in node.operands)
        return "any" if known else None


class _Signs:
    """Signs of the values of one kernel: ``positive``, ``no less`` than nought, ``any``; None for perhaps no number."""

    def __init__(self, certain: Certain, kernel: Kernel, depth: int) -> None:
        self.certain, self.table, self.depth = certain, certain.table, depth
        loops = (*kernel.grid, *(x for x in (kernel.rows, kernel.features) if x is not None))
        self.sizes = {loop.name: loop.size for loop in (*loops, *(sweep.lane for sweep in kernel.sweeps))}
        self.known: dict[int, str | None] = {}

    def sign(self, e: Expression) -> str | None:
        """The sign of a value."""
        if e.number not in self.known:
            self.known[e.number] = self._sign(e)
        return self.known[e.number]

    def _sign(self, e: Expression) -> str | None:
        if not e.dtype.is_float:
            return "any"
        number = float(e.value) if e.op == "constant" else closed_value(e)
        if number is not None:
            return _of(number) if math.isfinite(number) else None
        if e.op == "load":
            return self.certain.stored(e.tensor, self.depth + 1)
        if e.op == "reduce":
            return self._reduced(e)
        if e.op == "select":
            return _weakest([self.sign(a) for a in e.arguments[1:]])
        signs = [self.sign(a) for a in e.arguments]
        if None in signs or (e.op in ("add", "subtract") and any(map(self._may_be_a_mask, e.arguments))):
            return None
        if e.op.startswith("convert_"):
            return signs[0] if e.arguments[0].dtype.is_float else "any"
        if e.op in ("divide", *POLES):
            if signs[-1 if e.op == "divide" else 0] != "positive":
                return None
            return "any" if e.op in ("log", "log_plus_one") else "positive" if e.op != "divide" else signs[0]
        if e.op == "sqrt":
            return signs[0] if signs[0] != "any" else None
        if e.op not in TOTAL:
            return None
        if e.op in ("exponential", "logistic"):
            return "positive"
        if e.op in ("add", "multiply", "minimum", "maximum"):
            positive = e.op == "add" and "positive" in signs and "any" not in signs
            return "positive" if positive else _weakest(signs)
        return "no less" if e.op == "abs" or (e.op == "multiply" and e.arguments[0] is e.arguments[1]) else "any"

    def _may_be_a_mask(self, e: Expression) -> bool:
        """Whether a value is read from an input and added as it is, as masks with infinities in them are."""
        while e.op.startswith("convert_"):
            e = e.arguments[0]
        return e.op == "load" and e.tensor in self.certain.inputs and bool(e.free)

    def _reduced(self, e: Expression) -> str | None:
        """The sign of a reduction, by what masks make of its body: a maximum needs one element that is kept."""
        bound, (body,) = e.bound, e.arguments
        assert bound is not None
        if bound.kind not in ("sum", "maximum", "minimum"):
            return None
        self.sizes[bound.index] = bound.size
        conditions = index_conditions([body])
        if len(conditions) > 3:
            return None
        signs: dict[tuple[bool, ...], str | None] = {}
        for values in itertools.product((False, True), repeat=len(conditions)):
            taken: list[Expression] = []
            found = under(self.table, body, dict(zip(conditions, values, strict=True)), taken)
            if any(self.sign(t if t.op != "divide" else t.arguments[1]) is None for t in taken):
                return None
            if any(t.op == "divide" and self.sign(t.arguments[1]) != "positive" for t in taken):
                return None
            neutral = found.op == "constant" and found.value == identity(bound.kind)
            signs[values] = "no less" if neutral else self.sign(found)
            if signs[values] is None:
                return None
            if neutral and bound.kind != "sum":
                signs[values] = "nothing"
        kept = {v for v, sign in signs.items() if sign == "positive" or (bound.kind != "sum" and sign != "nothing")}
        everywhere = len(kept) == len(signs) or (bool(kept) and self._somewhere(bound.index, conditions, kept))
        if bound.kind != "sum":
            return "any" if everywhere else None
        return "positive" if everywhere and "any" not in signs.values() else _weakest(list(signs.values()))

    def _somewhere(self, lane: str, conditions: list[Expression], kept: set[tuple[bool, ...]]) -> bool:
        """Whether every row has an element at which the conditions have one of these lists of values."""
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


def _of(value: float) -> str:
    return "positive" if value > 0 else "no less" if value == 0 else "any"


def _weakest(signs: list[str | None]) -> str | None:
    if None in signs:
        return None
    return next((s for s in ("any", "no less") if s in signs), "positive")


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
