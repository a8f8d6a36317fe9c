"""What a rule matches and what it makes of it: the graph that was proved is the graph that is matched."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.rules import Rule, floats, natural, operator, rule, size
from rewright.rules.evidence import through_matcher
from rewright.rules.instances import sample
from rewright.rules.library import library
from rewright.rules.matcher import matches, rewrite_match
from rewright.rules.pattern import apply, concat, dot

n, m, k = size("n"), size("m"), size("k")
s, e, s2, e2 = natural("s"), natural("e"), natural("s2"), natural("e2")
BY_NAME = {entry.name: entry for entry in library()}


def program(dtype: DType = DType.BF16) -> Graph:
    """Two slices in a row, then a function that is none of the rule's business."""
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((10,), dtype)))
    first = builder.add(ops.Slice((2,), (9,), (1,)), x)
    second = builder.add(ops.Slice((1,), (4,), (1,)), first)
    builder.output("y", builder.add(ops.Tanh(), second))
    return builder.build()


def test_a_match_binds_sizes_and_inputs() -> None:
    (match,) = matches(BY_NAME["slice-slice"], program())
    assert match.sizes == {"n": 10, "s": 2, "e": 9, "s2": 1, "e2": 4}
    assert match.inputs == {"A": 0}
    assert match.floats is DType.BF16


def test_the_right_side_takes_the_place_of_the_match() -> None:
    before = program(DType.F32)
    (match,) = matches(BY_NAME["slice-slice"], before)
    after = rewrite_match(before, match)
    assert [node.op for node in after.nodes][1:] == [ops.Slice((3,), (6,), (1,)), ops.Tanh()]
    x = np.arange(10.0)
    np.testing.assert_allclose(run(after, {"x": x})["y"], np.tanh(x[3:6]))


def test_an_operator_variable_stands_for_any_elementwise_operator() -> None:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((3, 2), DType.F32)))
    y = builder.input("y", ops.Input("y", TensorType((4, 2), DType.F32)))
    builder.output("z", builder.add(ops.Erf(), builder.add(ops.Concatenate(0), x, y)))
    before = builder.build()
    (match,) = matches(BY_NAME["function-of-concat"], before)
    after = rewrite_match(before, match)
    assert sorted(node.op.name for node in after.nodes) == ["concatenate", "erf", "erf", "input", "input"]


def test_a_condition_that_fails_is_no_match() -> None:
    builder = GraphBuilder()
    x, y = (builder.input(name, ops.Input(name, TensorType((4,), DType.F32))) for name in "xy")
    both = builder.add(ops.Concatenate(0), x, y)
    builder.output("inside", builder.add(ops.Slice((0,), (3,), (1,)), both))
    builder.output("across", builder.add(ops.Slice((2,), (6,), (1,)), both))
    graph = builder.build()
    assert [match.outputs for match in matches(BY_NAME["slice-of-first-part"], graph)] == [(graph.outputs["inside"],)]


def test_one_input_is_one_node() -> None:
    twice = rule("twice", "A + A = 2 A", floats("A", n) + floats("A", n), floats("A", n) * 2.0)
    builder = GraphBuilder()
    x, y = (builder.input(name, ops.Input(name, TensorType((4,), DType.F32))) for name in "xy")
    builder.output("same", builder.add(ops.Add(), x, x))
    builder.output("other", builder.add(ops.Add(), x, y))
    assert [match.outputs for match in matches(twice, builder.build())] == [(2,)]


def test_a_parameter_that_the_left_side_leaves_open_is_no_match() -> None:
    split = BY_NAME["split-k"]
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((2, 6), DType.F32)))
    y = builder.input("y", ops.Input("y", TensorType((6, 3), DType.F32)))
    builder.output("z", builder.add(ops.DotGeneral((), (), (1,), (0,)), x, y))
    assert list(matches(split, builder.build())) == []


def test_several_results_are_matched_together() -> None:
    a, b = floats("A", m, k), floats("B", k, n)
    c = floats("C", k, n)
    fused = dot(a, concat(1, b, c))
    pair = rule(
        "pair", "two products at once",
        [fused.slice((0, 0), (m, n)), fused.slice((0, n), (m, 2 * n))], [dot(a, b), dot(a, c)],
    )  # fmt: skip
    result = through_matcher(pair, _instance(pair))
    assert result.difference is None
    assert result.compared > 0


@pytest.mark.parametrize("name", ["pad-pad", "strided-slice-of-slice", "fused-projections", "row-parallel"])
def test_rules_are_tested_through_the_matcher(name: str) -> None:
    result = through_matcher(BY_NAME[name], _instance(BY_NAME[name]))
    assert result.difference is None


def test_a_pattern_operator_has_one_type() -> None:
    f = operator("f", 2)
    both = apply(f, floats("A", n), floats("B", n))
    assert both.type == TensorType((n,), DType.F32)


def _instance(entry: Rule):
    source = random.Random(3)
    while True:
        found = sample(entry, source)
        if found is not None:
            return found
