"""Tables that one program holds and the other one computes from positions and numbers.

A held table was rounded where it was made, and the longer its angles the more: by how much is what rounding every step
of the other program's computation does to it. Within that both are one table, which is an assumption of the verdict;
whole numbers are not rounded, and need none. Types shorter than single precision are computed in single precision and
rounded to the nearest number, so that they explain no more than the elements that end up between two of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.equiv.building import copy_nodes, depends_on_inputs, pruned, values_of
from rewright.equiv.masks import changing, core, is_whole, laid_out
from rewright.equiv.precision import DIGITS
from rewright.interp.program import execute, run_nodes
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator
from rewright.proof.rewriting.numbers.taken import MOST
from rewright.refine.rewriting.drafts import Draft

_MOST_ELEMENTS = 1 << 22
_RUNS = 8
_TIMES = 8.0
"""By so many steps of rounding every operation of a run may be off, since functions are rounded by more than one."""
LOOSE = math.inf
"""For ``most``: whatever rounding every step to its declared type explains is one table, which proves nothing."""


@dataclass(frozen=True)
class Computed:
    """A table of one program that another one computes."""

    position: int
    """The constant."""
    source: int
    """The node of the other program that computes it."""
    apart: float
    """How far both are apart at most."""
    is_exact: bool
    """Whether nothing on the way is rounded."""
    denied: bool = False
    """Whether the other program computes where it does not hold."""


@dataclass
class _Rounded:
    """Float results as a machine may compute them; whole numbers stay what they are."""

    draws: np.random.Generator
    times: float
    """How many half steps of its type an operation may be off."""
    loose: bool = False
    """Whether that holds for short types too; else they are rounded to the nearest from single precision."""

    def read(self, value: Array, tensor: TensorType) -> Array:
        """Inputs as they are."""
        return value

    def apply(self, op: TensorOperator, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
        """The result of an operator, moved by what rounding may do to it."""
        found = op.execute(operands, np.float64)
        digits = DIGITS.get(op.infer(types).dtype)
        is_moved = isinstance(op, ops.Negate) or op.moves(len(operands))
        if digits is None or found.dtype.kind != "f" or is_moved:
            return found
        computed = digits if self.loose else max(digits, DIGITS[DType.F32])
        moved = found * (1.0 + self.draws.uniform(-1.0, 1.0, found.shape) * self.times * 2.0**-computed)
        kept = np.where((found == np.round(found)) & (np.abs(found) < 2.0**digits), found, moved)
        return kept if computed == digits else _nearest(kept, digits)


def _nearest(value: Array, digits: int) -> Array:
    """The nearest numbers of so many binary digits, ties to even."""
    fraction, exponent = np.frexp(value)
    return np.ldexp(np.round(np.ldexp(fraction, digits)), exponent - digits)


def with_computed(drafts: Sequence[Draft], most: float = MOST) -> list[Draft]:
    """The programs with tables that only one of the first and another holds as the other computes them.

    All programs but the first are ranks of one program. Where rounding explains more than ``most``, relative to the
    largest element, nothing is taken for one table.
    """
    first, *others = drafts
    changed: list[Draft] = []
    for other in others:
        first = _exchanged(first, other.graph, most)
        changed.append(_exchanged(other, first.graph, most))
    return [first, *changed]


def _exchanged(draft: Draft, other: Graph, most: float) -> Draft:
    """One program with tables as the other one computes them."""
    found = {table.position: table for table in computed(draft.graph, other, most)}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        table = found.get(position)
        return None if table is None else _put(builder, other, table, node)

    return draft.rebuilt(make) if found else draft


def _put(builder: GraphBuilder, other: Graph, table: Computed, node: Node) -> int:
    """Append what computes a table in the other program, in the shape and type of the constant."""
    part = pruned(Graph(other.nodes, {}, {"result": table.source}), alone=True)
    made = laid_out(part, values_of(part, part.outputs.values())[part.outputs["result"]], _array(node), node)
    places: dict[int, int] = {}
    copy_nodes(builder, made, range(len(made.nodes)), places)
    place = places[made.outputs["result"]]
    return builder.add(ops.Not(), place) if table.denied else place


def computed(graph: Graph, other: Graph, most: float = MOST) -> Iterator[Computed]:
    """The tables of a program that another one computes."""
    known = {node.op for node in other.nodes if isinstance(node.op, ops.Constant)}
    held = {p: _array(node) for p, node in enumerate(graph.nodes) if _is_table(node) and node.op not in known}
    if not held:
        return
    ideal = _candidates(other)
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for position, value in ideal.items():
        by_shape.setdefault(core(value).shape, []).append(position)
    for position, value in held.items():
        kind, own = graph.nodes[position].type, core(value)
        for denied in (False, True) if own.dtype.kind == "b" else (False,):
            wanted = ~own if denied else own
            near = [(_apart(wanted, core(ideal[p])), p) for p in by_shape.get(wanted.shape, ())]
            apart, source = min(near, default=(np.inf, -1))
            within = np.isfinite(apart) and apart <= max(most, 4.0 * _step(kind)) * _scale(wanted)
            if within:
                part = pruned(Graph(other.nodes, {}, {"result": source}), alone=True)
                everything = run_nodes(part, {})
                is_exact = apart == 0.0 and all(is_whole(value) for value in everything.values())
                if is_exact or _explains(wanted, part, everything[part.outputs["result"]], kind, loose=most == LOOSE):
                    yield Computed(position, source, apart, is_exact, denied)
                    break


def _is_table(node: Node) -> bool:
    return isinstance(node.op, ops.Constant) and len(set(node.op.values)) > 1 and node.type.rank > 0


def _array(node: Node) -> Array:
    assert isinstance(node.op, ops.Constant)
    return node.op.execute([], np.float64)


def _candidates(graph: Graph) -> dict[int, Array]:
    """Tensors that are computed from nothing but numbers."""
    depends = depends_on_inputs(graph)
    wanted = [
        p
        for p, node in enumerate(graph.nodes)
        if not depends[p]
        and not isinstance(node.op, ops.Constant | ops.Collective)
        and node.type.is_static()
        and 1 < int(np.prod([int(str(n)) for n in node.type.shape], dtype=np.int64)) <= _MOST_ELEMENTS
    ]
    return values_of(graph, wanted)


def _apart(a: Array, b: Array) -> float:
    """The farthest that two arrays of one shape are apart; infinite where their infinities differ."""
    if (a.dtype.kind == "f") is not (b.dtype.kind == "f") or (a.dtype.kind == "b") is not (b.dtype.kind == "b"):
        return np.inf
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite]):
        return np.inf
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0))


def _scale(value: Array) -> float:
    wide = value.astype(np.float64)
    return float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))


def _step(kind: TensorType) -> float:
    """Half a step of a float type, relative to the number."""
    return 2.0 ** -DIGITS.get(kind.dtype, DIGITS[DType.F32])


def _explains(held: Array, part: Graph, result: Array, kind: TensorType, *, loose: bool) -> bool:
    """Whether a held table is what a program computes, but for the rounding of every step and of the table itself."""
    if held.dtype.kind != "f":
        return False
    root, axes = part.outputs["result"], changing(result)
    # One run without any noise, for what rounding to short types makes of the table.
    runs = [_Rounded(np.random.default_rng(run), _TIMES if run else 0.0, loose) for run in range(_RUNS + 1)]
    found: list[Array] = []
    for semantics in runs:
        moved = execute(part, {}, semantics, [root]).values[root]
        kept = moved[tuple(slice(None) if axis in axes else slice(1) for axis in range(moved.ndim))]
        found.append(kept.reshape(held.shape))
    return bool((_within(held, found, kind, loose=loose) | (held == core(result))).all())


def _within(held: Array, runs: Sequence[Array], kind: TensorType, *, loose: bool) -> Array:
    """Where elements are no farther from those of the first run than those of the others, when they are rounded."""
    ideal, *others = runs
    with np.errstate(invalid="ignore"):
        spread = np.fmax.reduce([np.abs(other - ideal) for other in others])
        digits = DIGITS.get(kind.dtype, DIGITS[DType.F32])
        if digits < DIGITS[DType.F32] and not loose:
            return (_nearest(ideal - spread, digits) <= held) & (held <= _nearest(ideal + spread, digits))
        own = _step(kind) * np.abs(np.where(np.isfinite(held), held, 0.0))
        return np.abs(held - ideal) <= spread + 2.0 * own
