"""The properties of every axis, from denotations."""

from __future__ import annotations

import torch

import rewright as rw
from rewright import ops
from rewright.optimize.scalars.properties import properties
from tests.optimize.programs import PROGRAMS, normal


def test_a_product_sums_over_one_axis_and_keeps_the_others() -> None:
    graph = rw.capture(lambda a, b: a @ b, (normal(3, 4), normal(4, 5)))

    left, right = (properties(graph)[p] for p in graph.inputs.values())

    assert [axis.uses for axis in left.axes] == [{"parallel"}, {"sum"}]
    assert [axis.uses for axis in right.axes] == [{"sum"}, {"parallel"}]


def test_a_softmax_has_two_reduce_dependencies_and_broadcasts_them() -> None:
    graph = rw.capture(lambda x: torch.softmax(x, -1), (normal(3, 4),))
    found = properties(graph)

    (x,) = graph.inputs.values()
    assert "maximum" in found[x].axes[1].uses
    spread = [found[p] for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.BroadcastInDim)]
    assert [[axis.broadcast for axis in p.axes] for p in spread] == [[False, True]] * 2
    exponentials = [found[p] for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Exponential)]
    assert exponentials[0].facts.low == 0


def test_a_soft_cap_bounds_what_it_caps() -> None:
    graph = rw.capture(lambda x: torch.tanh(x / 50) * 50, (normal(3),))

    (output,) = graph.outputs.values()
    facts = properties(graph)[output].facts

    assert (facts.low, facts.high, facts.is_finite) == (-50, 50, True)


def test_a_mask_may_be_infinite() -> None:
    program, args = PROGRAMS["causal"]()
    graph = rw.capture(program, args)

    masks = [p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Select)]
    facts = properties(graph)[masks[0]].facts

    assert facts.minus_infinity and not facts.plus_infinity and facts.high == 0
