"""What a program's nodes may be: masks, softmaxes, norms, and programs of ranks that exchange."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.analysis import values
from rewright.analysis.values import Setting, Values, facts_of, facts_of_ranks, values_of_ranks
from rewright.interp.ranks import run
from rewright.ir.dims import symbol
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import UNKNOWN, facts_between
from rewright.ops.functions.record import Direction

F, B = DType.F64, DType.BOOL


def masked_softmax(shape: tuple[int, int], rows_left: bool = True) -> Graph:
    """A softmax of scores under a causal mask, or under one that leaves the first row nothing."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType(shape, F)))
    wide = TensorType(shape, DType.I64)
    row, column = b.add(ops.Iota(wide, 0)), b.add(ops.Iota(wide, 1))
    keeps = b.add(ops.Compare("GE" if rows_left else "GT"), row, column)
    low = b.add(ops.Constant(TensorType(shape, F), (-math.inf,)))
    scores = b.add(ops.Select(), keeps, x, low)
    most = b.add(ops.BroadcastInDim(shape, (0,)), b.add(ops.Reduce("maximum", (1,)), scores))
    powers = b.add(ops.Exponential(), b.add(ops.Subtract(), scores, most))
    total = b.add(ops.BroadcastInDim(shape, (0,)), b.add(ops.Reduce("sum", (1,)), powers))
    b.output("y", b.add(ops.Divide(), powers, total))
    return b.build()


def test_a_causal_softmax_is_a_number() -> None:
    graph = masked_softmax((4, 4))
    found = facts_of(graph)[graph.outputs["y"]]
    assert found.is_finite and found.low == 0 and found.high == 1


def test_a_softmax_of_a_row_without_scores_may_be_nan() -> None:
    graph = masked_softmax((4, 4), rows_left=False)
    assert facts_of(graph)[graph.outputs["y"]].nan


def test_the_largest_of_symbolically_many_masked_scores_may_be_infinite() -> None:
    """Nobody can look at rows without a number of elements; the maximum itself has no axis left that says so."""
    b, kind = GraphBuilder(), TensorType((symbol("b"),), F)
    x = b.input("x", ops.Input("x", kind))
    first = b.add(ops.Constant(TensorType((symbol("b"),), DType.I64), (1,)))
    keeps = b.add(ops.Compare("LT"), b.add(ops.Iota(TensorType((symbol("b"),), DType.I64), 0)), first)
    low = b.add(ops.Constant(kind, (-math.inf,)))
    b.output("y", b.add(ops.Reduce("maximum", (0,)), b.add(ops.Select(), keeps, x, low)))
    graph = b.build()
    assert facts_of(graph, Setting(assumes=True))[graph.outputs["y"]].minus_infinity


def test_a_softmax_under_a_mask_that_is_given_may_be_nan() -> None:
    b = GraphBuilder()
    x, m = (b.input(n, ops.Input(n, TensorType((3, 4), d))) for n, d in (("x", F), ("m", B)))
    low = b.add(ops.Constant(TensorType((3, 4), F), (-math.inf,)))
    scores = b.add(ops.Select(), m, x, low)
    most = b.add(ops.BroadcastInDim((3, 4), (0,)), b.add(ops.Reduce("maximum", (1,)), scores))
    b.output("y", b.add(ops.Subtract(), scores, most))
    graph = b.build()
    assert facts_of(graph)[graph.outputs["y"]].nan


def test_the_root_of_a_mean_of_squares_and_an_epsilon_is_positive() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((3, 4), F)))
    mean = b.add(ops.Reduce("sum", (1,)), b.add(ops.Multiply(), x, x))
    eps = b.add(ops.Constant(TensorType((3,), F), (1e-6,)))
    b.output("y", b.add(ops.Rsqrt(), b.add(ops.Add(), mean, eps)))
    graph = b.build()
    found = facts_of(graph)[graph.outputs["y"]]
    assert found.is_finite and found.is_positive
    anything = facts_of(graph, Setting(floats=UNKNOWN))[graph.outputs["y"]]
    assert anything.nan, "a machine's input may be NaN"


def test_integers_that_do_not_fit_may_be_anything() -> None:
    b = GraphBuilder()
    ids = b.input("ids", ops.Input("ids", TensorType((3,), DType.I32)))
    factor = b.add(ops.Constant(TensorType((3,), DType.I32), (1000003,)))
    b.output("hash", b.add(ops.Multiply(), ids, factor))
    graph = b.build()
    assert facts_of(graph)[graph.outputs["hash"]] == facts_between(-(2**31), 2**31 - 1, whole=True)
    small = facts_of(graph, Setting(given={"ids": facts_between(0, 999, whole=True)}))[graph.outputs["hash"]]
    assert small.high == 999 * 1000003 and small.exact


@pytest.mark.parametrize(("most", "exact"), [(256, True), (257, False)])
def test_whole_numbers_are_exact_as_far_as_a_type_counts(most: int, exact: bool) -> None:
    b = GraphBuilder()
    ids = b.input("ids", ops.Input("ids", TensorType((3,), DType.I64)))
    b.output("y", b.add(ops.Convert(DType.BF16), ids))
    graph = b.build()
    found = facts_of(graph, Setting(given={"ids": facts_between(0, most, whole=True)}))
    assert found[graph.outputs["y"]].exact is exact


def rank(kind: str) -> Graph:
    """A rank that adds up exponentials with the other one, and takes the logarithm."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((4,), F)))
    total = b.add(ops.Reduce("sum", (0,)), b.add(ops.Exponential(), x))
    every = b.add(ops.AllReduce(kind, ((0, 1),)), total)  # type: ignore[arg-type]
    b.output("y", b.add(ops.Log(), every))
    return b.build()


def test_what_ranks_receive_is_known_from_what_is_sent() -> None:
    for found in facts_of_ranks([rank("sum"), rank("sum")]):
        assert found[-1].is_finite
    alone = facts_of(rank("sum"))
    assert alone[-1].nan, "of what another rank sends nothing is known"


@st.composite
def programs(draw: st.DrawFn) -> Graph:
    """Random elementwise programs of two inputs, with infinities among their constants."""
    b = GraphBuilder()
    kind = TensorType((3,), F)
    known = [b.input(n, ops.Input(n, kind)) for n in ("x", "y")]
    known += [b.add(ops.Constant(kind, (v,))) for v in (-math.inf, 0.0, 2.0, 1e-5)]
    unary = (ops.Exponential, ops.Log, ops.Sqrt, ops.Rsqrt, ops.Abs, ops.Negate, ops.Tanh, ops.Floor, ops.Sign)
    binary = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Maximum, ops.Minimum, ops.Power)
    for _ in range(draw(st.integers(2, 8))):
        if draw(st.booleans()):
            known.append(b.add(draw(st.sampled_from(unary))(), draw(st.sampled_from(known))))
        else:
            op = draw(st.sampled_from(binary))()
            known.append(b.add(op, draw(st.sampled_from(known)), draw(st.sampled_from(known))))
    b.output("out", known[-1])
    return b.build()


def values_of(graph: Graph, inputs: Sequence[float]) -> dict[int, np.ndarray]:
    given = {name: np.full((3,), value) for name, value in zip(("x", "y"), inputs, strict=True)}
    return run(graph, given, keep=range(len(graph.nodes))).values


@settings(max_examples=150)
@given(graph=programs(), x=st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0]), y=st.sampled_from([0.0, -2.0, 1.5]))
def test_every_value_of_a_run_lies_in_its_facts(graph: Graph, x: float, y: float) -> None:
    found = facts_of(graph, Setting(is_rounded=True))
    for position, value in values_of(graph, (x, y)).items():
        for element in value.reshape(-1).tolist():
            assert found[position].contains(element), f"%{position} {graph.nodes[position].op}: {found[position]}"


def layered(masked: Sequence[bool], constant: float = 1.0) -> Graph:
    """Softmaxes in a row, of which some are of masked scores."""
    b, shape = GraphBuilder(), (4, 4)
    x = b.input("x", ops.Input("x", TensorType(shape, F)))
    scale = b.add(ops.Constant(TensorType(shape, F), (constant,)))
    for is_masked in masked:
        scores = b.add(ops.Multiply(), x, scale)
        if is_masked:
            mask = b.input(f"m{x}", ops.Input(f"m{x}", TensorType(shape, B)))
            scores = b.add(ops.Select(), mask, scores, b.add(ops.Constant(TensorType(shape, F), (-math.inf,))))
        most = b.add(ops.BroadcastInDim(shape, (0,)), b.add(ops.Reduce("maximum", (1,)), scores))
        powers = b.add(ops.Exponential(), b.add(ops.Subtract(), scores, most))
        total = b.add(ops.BroadcastInDim(shape, (0,)), b.add(ops.Reduce("sum", (1,)), powers))
        x = b.add(ops.Add(), x, b.add(ops.Divide(), powers, total))
    b.output("y", x)
    return b.build()


@pytest.mark.parametrize("masked", [(False, False, False), (False, True, False), (True, False, True)])
@pytest.mark.parametrize("other", [1.0, -2.0, math.inf])
def test_what_is_taken_from_an_earlier_layer_or_rank_is_what_is_computed(
    masked: Sequence[bool], other: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = [layered(masked), layered(masked), layered(masked, other), layered(masked[::-1])]
    found = values_of_ranks(graphs, Setting(assumes=True))
    monkeypatch.setattr(values, "looks_around", bool)  # a node is true: nothing is looked up
    for graph, own in zip(graphs, found, strict=True):
        alone = Values(graph, Setting(assumes=True))
        facts = [alone.step(position) for position in range(len(graph.nodes))]
        assert [own.facts[position] for position in range(len(graph.nodes))] == facts
        assert (own.open, own.wraps) == (alone.open, alone.wraps)


SPECIAL = (-math.inf, -2.0, -1.0, 0.0, 1.0, 2.5, math.inf, math.nan)


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("value", SPECIAL[:-1])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_chosen_by_a_comparison_meets_it(direction: Direction, value: float, is_first: bool) -> None:
    """Of ``where(x < c, x, 3)``, and of ``where(x < c, 3, x)``, which elements there may be."""
    b, kind = GraphBuilder(), TensorType((len(SPECIAL),), F)
    x = b.input("x", ops.Input("x", kind))
    three, c = (b.add(ops.Constant(kind, (v,))) for v in (3.0, value))
    sides = (x, three) if is_first else (three, x)
    b.output("y", b.add(ops.Select(), b.add(ops.Compare(direction), x, c), *sides))
    graph = b.build()

    facts = facts_of(graph, Setting(floats=UNKNOWN))[graph.outputs["y"]]

    found = run(graph, {"x": np.array(SPECIAL)}).outputs["y"]
    assert all(facts.contains(float(element)) for element in found)
    if math.isinf(value) and direction in ("GT", "LT", "NE") and is_first:
        assert not facts.contains(value)
    if direction == "EQ" and not is_first and (value == 0 or math.isinf(value)):
        assert not facts.contains(value)
