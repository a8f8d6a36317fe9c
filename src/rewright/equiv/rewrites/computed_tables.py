"""Tables that one program holds and the other one computes from positions and numbers.

A held table was rounded where it was made, and the longer its angles the more: by how much is what rounding every step
of the other program's computation does to it (:mod:`rewright.proof.rewriting.numbers.rounding`). Within that both are
one table, which is an assumption of the verdict; whole numbers are not rounded, and need none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.equiv.lemmas.building import values_of
from rewright.equiv.rewrites.equal_masks import changing, core, is_whole, laid_out
from rewright.interp.program import run_nodes
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array
from rewright.ops.facts import DIGITS
from rewright.proof.rewriting.numbers.rounding import explains, runs
from rewright.proof.rewriting.numbers.taken import MOST
from rewright.proof.rewriting.parts import copy_nodes, depends_on_inputs
from rewright.refine.rewriting.drafts import Draft

_MOST_ELEMENTS = 1 << 22
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


def with_computed(drafts: Sequence[Draft], most: float = MOST) -> list[Draft]:
    """The programs with tables that only one of the first and another holds as the other computes them.

    All programs but the first are ranks of one program. Where rounding explains more than ``most``, relative to the
    largest element, nothing is taken for one table.
    """
    first, *others = drafts
    changed: list[Draft] = []
    for other in others:
        first = _exchange(first, other.graph, most)
        changed.append(_exchange(other, first.graph, most))
    return [first, *changed]


def _exchange(draft: Draft, other: Graph, most: float) -> Draft:
    """One program with tables as the other one computes them."""
    found = {table.position: table for table in computed(draft.graph, other, most)}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        table = found.get(position)
        return None if table is None else _put(builder, other, table, node)

    return draft.rebuild(make) if found else draft


def _put(builder: GraphBuilder, other: Graph, table: Computed, node: Node) -> int:
    """Append what computes a table in the other program, in the shape and type of the constant."""
    part = remove_dead_nodes(Graph(other.nodes, {}, {"result": table.source}), alone=True)
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
                part = remove_dead_nodes(Graph(other.nodes, {}, {"result": source}), alone=True)
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
    axes = changing(result)
    kept = tuple(slice(None) if axis in axes else slice(1) for axis in range(result.ndim))
    found = [run[kept].reshape(held.shape) for run in runs(part, part.outputs["result"], loose=loose)]
    return bool((explains(held, found, kind.dtype, loose=loose) | (held == core(result))).all())
