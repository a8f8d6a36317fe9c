"""No mutant of one side is proved unless it computes the same: wrong proofs are the worst bug."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

from rewright import ops
from rewright.equiv.engine import equiv
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node, validate
from tests.equiv.decoders import PLAIN, captured

TINY = PLAIN.but(layers=1, sequence=6, batch=1, window=3)
OTHER = TINY.but(attention="plain", mask="where", rotary="split", norm="power", repeat="index")


def changed(node: Node) -> Iterator[Node]:
    """The node with one small thing changed; types stay."""
    op = node.op
    if isinstance(op, ops.Constant) and len(op.values) == 1 and op.values[0] not in (0.0, True, False):
        factor = 1.001 if node.type.dtype.is_float else 1
        moved = op.values[0] * factor if node.type.dtype.is_float else int(op.values[0]) + 1
        yield dataclasses.replace(node, op=dataclasses.replace(op, values=(moved,)))
    if isinstance(op, ops.Compare):
        swapped = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}.get(op.direction)
        if swapped:
            yield dataclasses.replace(node, op=ops.Compare(swapped))
    if isinstance(op, ops.Subtract | ops.Divide | ops.Concatenate) and len(set(node.operands)) == 2:
        yield dataclasses.replace(node, operands=node.operands[::-1])
    if isinstance(op, ops.Cosine | ops.Sine):
        yield dataclasses.replace(node, op=ops.Sine() if isinstance(op, ops.Cosine) else ops.Cosine())
    if isinstance(op, ops.Negate):
        yield dataclasses.replace(node, op=ops.Abs())
    if isinstance(op, ops.Reduce) and op.kind == "sum":
        yield dataclasses.replace(node, op=dataclasses.replace(op, kind="maximum"))
    if isinstance(op, ops.Logistic):
        yield dataclasses.replace(node, op=ops.Tanh())
    if isinstance(op, ops.Slice):
        for axis, (start, limit) in enumerate(zip(op.start, op.limit, strict=True)):
            if isinstance(start, int) and isinstance(limit, int) and start > 0:
                starts = (*op.start[:axis], start - 1, *op.start[axis + 1 :])
                limits = (*op.limit[:axis], limit - 1, *op.limit[axis + 1 :])
                yield dataclasses.replace(node, op=dataclasses.replace(op, start=starts, limit=limits))


def mutants(graph: Graph) -> Iterator[Graph]:
    for position, node in enumerate(graph.nodes):
        for other in changed(node):
            mutant = dataclasses.replace(graph, nodes=(*graph.nodes[:position], other, *graph.nodes[position + 1 :]))
            try:
                validate(mutant)
            except RewrightError:
                continue
            yield mutant


def outputs(graph: Graph) -> np.ndarray:
    source = np.random.default_rng(5)
    inputs: dict[str, np.ndarray] = {}
    for name in sorted(graph.inputs):
        kind = graph.nodes[graph.inputs[name]].type
        shape = tuple(int(str(n)) for n in kind.shape)
        inputs[name] = source.standard_normal(shape) if kind.dtype.is_float else source.integers(0, 29, shape)
    return next(iter(run(graph, inputs).values()))


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
def test_no_mutant_is_proved_that_computes_something_else(part: int) -> None:
    left, right = captured(TINY), captured(OTHER)
    expected = outputs(left)
    np.testing.assert_allclose(outputs(right), expected, rtol=1e-9, atol=1e-9)
    wrong = refuted = 0
    for mutant in list(mutants(right))[part::6]:
        try:
            found = outputs(mutant)
        except RewrightError:
            continue  # it reads out of range
        verdict = equiv(left, mutant, audit=False, explain=False)
        if not np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True):
            wrong += 1
            refuted += verdict.status == "refuted"
            assert verdict.status != "proved"
    assert refuted >= 0.7 * wrong > 2
