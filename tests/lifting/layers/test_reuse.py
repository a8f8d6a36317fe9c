"""Layers that are lifted like an earlier one: what is found for them is what lifting them alone finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from rewright import ops
from rewright.interp.placing import cut
from rewright.interp.program import run_nodes
from rewright.interp.ranks import run_ranks
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import TensorType
from rewright.lifting.programs import UNKNOWN, Lifted, Lifter
from rewright.refine.relations.inputs import input_values
from tests.lifting.agreement import Arrays, differences
from tests.lifting.evaluate import Meaning
from tests.lifting.random_programs import ranks_program, sequential_program
from tests.programs import F32, I64, Builder

LAYERS = 5


# --- wirings: what the inputs of a layer are --------------------------------------------------------------------------
Wiring = list[dict[str, str | int]]
"""For every layer and input of the program that repeats: the name of an input, or a node of the layer before."""


def wiring(graph: Graph, random: Random) -> Wiring:
    """Most layers are connected alike; one or two may read something else in some place."""
    plan: dict[str, str | int] = {}
    for name, position in graph.inputs.items():
        fits = [p for p, node in enumerate(graph.nodes) if node.type == graph.nodes[position].type]
        real = graph.nodes[position].type.dtype.is_float
        plan[name] = random.choice(["own", "own", "shared", random.choice(fits) if real else "shared"])
    found: Wiring = []
    for layer in range(LAYERS):
        row = {name: f"{name}.{layer}" if how == "own" else how for name, how in plan.items()}
        row = {name: name if how == "shared" else how for name, how in row.items()}
        if random.random() < 0.3:
            odd = random.choice(list(row))
            same = [n for n in graph.inputs if graph.nodes[graph.inputs[n]].type == graph.nodes[graph.inputs[odd]].type]
            row[odd] = row[random.choice(same)]
        found.append(
            row if layer else {name: f"{name}.0" if isinstance(how, int) else how for name, how in row.items()}
        )
    return found


def layered(graph: Graph, plan: Wiring) -> Graph:
    """The program several times, one behind the other; outputs are those of every layer, and all nodes of the last."""
    build = GraphBuilder(graph.name)
    inputs: dict[str, int] = {}
    before: list[int] = []
    for layer, row in enumerate(plan):
        place: list[int] = []
        for node in graph.nodes:
            if not isinstance(node.op, ops.Input):
                place.append(build.add(node.op, *(place[p] for p in node.operands)))
                continue
            source = row[node.op.label]
            if isinstance(source, int):
                place.append(before[source])
                continue
            if source not in inputs:
                inputs[source] = build.input(source, ops.Input(source, node.type))
            place.append(inputs[source])
        before = place
        for name, position in graph.outputs.items():
            build.output(f"{name} of {layer}", place[position])
    for position, node in enumerate(before):
        build.output(f"last {position}", node)
    return build.build()


def origin(name: str) -> str:
    """The input of one layer that an input of some layer was made from."""
    return name.rsplit(".", 1)[0]


def spread(inputs: Arrays, graph: Graph) -> dict[str, NDArray[np.generic]]:
    """Values for the inputs of all layers: real ones differ, whole ones stay, for they may be indices."""
    numbers = np.random.default_rng(0)
    found: dict[str, NDArray[np.generic]] = {}
    for name in graph.inputs:
        value = inputs[origin(name)]
        noise = numbers.uniform(0.9, 1.1, value.shape) if value.dtype.kind == "f" else 1
        found[name] = value * noise if value.dtype.kind == "f" else value
    return found


def is_smooth(graph: Graph) -> bool:
    """Whether rounding cannot decide a value: layers feed one another, and what was far apart may meet."""
    steps = (ops.Sign, ops.Floor, ops.Ceil, ops.RoundNearestEven, ops.Sort, ops.TopK, ops.Compare)
    return not any(
        isinstance(node.op, steps) and graph.nodes[node.operands[0]].type.dtype.is_float for node in graph.nodes
    )


def known(lifted: Lifted, values: Mapping[int, NDArray[np.generic]]) -> dict[int, NDArray[np.generic]]:
    return {position: value for position, value in values.items() if lifted.values[position] != UNKNOWN}


# --- hunts ------------------------------------------------------------------------------------------------------------
def sequential_differences(seed: int) -> tuple[list[str], int]:
    program = sequential_program(seed)
    graph = program.build()[0]
    if not is_smooth(graph):
        return [], 0
    deep = layered(graph, wiring(graph, Random(seed)))
    inputs = spread(program.inputs, deep)
    try:
        with np.errstate(all="ignore"):
            values = run_nodes(deep, inputs)
    except RewrightError:
        return [], 0
    lifter = Lifter(reuse=True)
    lifted = lifter.sequential(deep)
    meaning = Meaning(lifter.algebra.terms, inputs)
    return differences(lifter, lifted, meaning, known(lifted, values)), lifter.steps["reused"]


def rank_differences(seed: int) -> tuple[list[str], int]:
    whole, parallel = ranks_program(seed)
    graph, program = whole.build()[0], parallel.rank_program()
    if not is_smooth(program.graphs[0]):
        return [], 0
    plan = wiring(program.graphs[0], Random(seed))
    straight = [{name: how if isinstance(how, str) else f"{name}.0" for name, how in row.items()} for row in plan]
    sequential = layered(graph, [{n: row.get(n, n) for n in graph.inputs} for row in straight])
    graphs = tuple(layered(g, plan) for g in program.graphs)
    inputs = spread(parallel.inputs, sequential)
    placements: dict[str, Placement] = {name: program.inputs[origin(name)] for name in sequential.inputs}
    deep = RankProgram(graphs, program.mesh, placements, {})
    local = [
        {name: cut(np.asarray(inputs[name]), placements[name].runs[rank]) for name in g.inputs}
        for rank, g in enumerate(graphs)
    ]
    try:
        with np.errstate(all="ignore"):
            executed = run_ranks(graphs, local, keep=[range(len(g)) for g in graphs])
    except RewrightError:
        return [], 0
    lifter = Lifter(reuse=True)
    given = input_values(lifter, sequential, deep, placements, ())
    whole_program = lifter.sequential(sequential, given.sequential)
    before = lifter.steps["reused"]
    lifted = lifter.ranks(graphs, given.ranks)
    reused = lifter.steps["reused"] - before
    meaning = Meaning(lifter.algebra.terms, inputs)
    found: list[str] = []
    for rank, execution in enumerate(executed):
        own = lifted[rank]
        found += [f"rank {rank}: {t}" for t in differences(lifter, own, meaning, known(own, execution.values))]
    complete = lifter.complete(graphs)
    assert not any(UNKNOWN in own.values for own in (whole_program, *complete)), "whoever explains a failure needs all"
    for rank, execution in enumerate(executed):
        found += [f"rank {rank}, complete: {t}" for t in differences(lifter, complete[rank], meaning, execution.values)]
    with np.errstate(all="ignore"):
        values = run_nodes(sequential, inputs)
    return [*found, *differences(lifter, whole_program, meaning, values)], reused


@pytest.mark.sample(2)
@pytest.mark.parametrize("block", range(4))
def test_layers_of_random_programs(block: int) -> None:
    reused = 0
    for seed in range(25 * block, 25 * (block + 1)):
        found, count = sequential_differences(seed)
        assert found == [], f"seed {seed}"
        reused += count
    assert reused > 100


@pytest.mark.sample(2)
@pytest.mark.parametrize("block", range(4))
def test_layers_of_random_programs_of_ranks(block: int) -> None:
    reused = 0
    for seed in range(12 * block, 12 * (block + 1)):
        found, count = rank_differences(seed)
        assert found == [], f"seed {seed}"
        reused += count
    assert reused > 100


# --- layers that look alike and are not -------------------------------------------------------------------------------
Layer = Callable[[Builder, int, int], int]
"""Appends the part of a layer that matters, given its number and the tensor that it starts from."""


class Deep:
    """Four layers, long enough to be recognised, after whatever stands before them."""

    def __init__(self) -> None:
        self.build = Builder("layers")
        self.given: dict[str, NDArray[np.generic]] = {}
        self.x = self.input("x", np.linspace(0.5, 1.5, 4))

    def input(self, name: str, value: NDArray[np.generic]) -> int:
        self.given[name] = value
        return self.build.tensor(name, value.shape, I64 if value.dtype.kind == "i" else F32)

    def lift(self, layer: Layer) -> Deep:
        x = self.x
        for number in range(4):
            x = layer(self.build, number, x)
            for _ in range(15):
                x = self.build.add(ops.Tanh(), x)
            self.build.output(f"layer {number}", x)
        graph = self.build.build()
        lifter = Lifter(reuse=True)
        lifted = lifter.sequential(graph)
        with np.errstate(all="ignore"):
            values = run_nodes(graph, self.given)
        meaning = Meaning(lifter.algebra.terms, self.given)
        self.reused = lifter.steps["reused"]
        self.differences = differences(lifter, lifted, meaning, known(lifted, values))
        self.outputs = [meaning.value(lifter.values[lifted.values[p]]) for p in graph.outputs.values()]
        return self


def test_layers_that_are_alike_are_lifted_once() -> None:
    deep = Deep()
    weights = [deep.input(f"w{n}", np.full(4, 1.0 + n)) for n in range(4)]
    # An input would stand before the weights in a product, and what a layer makes stands behind them.
    deep.x = deep.build.add(ops.Tanh(), deep.x)
    deep.lift(lambda build, number, x: build.add(ops.Multiply(), x, weights[number]))
    assert deep.differences == []
    assert deep.reused >= 3 * 15


def test_one_operand_for_two_is_not_two_operands() -> None:
    """``a - a`` is zero; the next layers subtract two different tensors."""
    deep = Deep()
    left = [deep.input(f"a{n}", np.arange(4.0) + n) for n in range(4)]
    right = [left[0], *(deep.input(f"b{n}", np.arange(4.0) * n) for n in range(1, 4))]

    def layer(build: Builder, number: int, x: int) -> int:
        return build.add(ops.Add(), x, build.add(ops.Subtract(), left[number], right[number]))

    assert deep.lift(layer).differences == []


def test_the_sum_that_cancels_is_not_any_tensor() -> None:
    """``(a + b) - b`` is ``a``; the next layers subtract from a tensor that is no such sum."""
    deep = Deep()
    a, b = deep.input("a", np.arange(4.0)), deep.input("b", np.arange(4.0) * 2)
    total = deep.build.add(ops.Add(), a, b)
    sums = [total, *(deep.input(f"s{n}", np.arange(4.0) * n) for n in range(1, 4))]

    def layer(build: Builder, number: int, x: int) -> int:
        return build.add(ops.Add(), x, build.add(ops.Subtract(), sums[number], b))

    assert deep.lift(layer).differences == []


def test_the_number_one_is_not_any_scalar() -> None:
    """The first layer multiplies by one, which vanishes; the next ones by an input."""
    deep = Deep()
    one = deep.build.add(ops.Constant(TensorType((), F32), (1.0,)))
    scales = [one, *(deep.input(f"s{n}", np.array(1.5 + n)) for n in range(1, 4))]
    assert deep.lift(lambda b, number, x: b.add(ops.Multiply(), x, b.spread(scales[number], x))).differences == []


def test_what_may_be_infinite_does_not_cancel_in_a_later_layer() -> None:
    """``(x + mask) - mask`` is ``x`` only for a finite mask."""
    deep = Deep()
    mask = deep.input("mask", np.arange(4.0))
    low = deep.build.add(ops.Add(), mask, deep.build.full(-float("inf"), mask))
    masks = [mask, mask, low, low]

    def layer(build: Builder, number: int, x: int) -> int:
        return build.add(ops.Subtract(), build.add(ops.Add(), x, masks[number]), masks[number])

    deep.lift(layer)
    assert deep.differences == []
    assert np.isfinite(deep.outputs[1]).all()
    assert np.isnan(deep.outputs[2]).all()


def test_layers_that_test_an_index_of_their_own_are_lifted_once() -> None:
    """What is noted of the first layer's index is noted of those of the others, and none is the others' index."""
    deep = Deep()
    deep.x = deep.build.add(ops.Tanh(), deep.x)

    def layer(build: Builder, number: int, x: int) -> int:
        order = build.add(ops.Sort(0, False, "indices"), x)
        first = build.add(ops.Compare("LT"), order, build.full(2, order))
        return build.add(ops.Select(), first, build.add(ops.Exponential(), x), x)

    deep.lift(layer)
    assert deep.differences == []
    assert deep.reused >= 2 * 15


def test_an_index_that_is_looked_up_in_one_layer_alone() -> None:
    """Only the third layer says that its index lies in a table of two rows; there alone the test is always true."""
    deep = Deep()
    deep.x = deep.build.add(ops.Tanh(), deep.x)
    table = deep.input("table", np.ones((2, 4)))

    def layer(build: Builder, number: int, x: int) -> int:
        index = build.add(ops.Convert(I64), x)
        inside = build.add(ops.Compare("LT"), index, build.full(2, index))
        kept = build.add(ops.Select(), inside, build.add(ops.Exponential(), x), build.full(0.5, x))
        if number == 2:
            build.output("rows", build.take_rows(table, index))
        return kept

    assert deep.lift(layer).differences == []


def test_the_range_of_one_index_is_not_the_range_of_another() -> None:
    """The first layer masks by an index that is looked up, so that its mask is always true; the others do not."""
    deep = Deep()
    ids = [deep.input(f"ids{n}", np.array([0, 1, 2, 2 + n])) for n in range(4)]
    deep.build.output("rows", deep.build.take_rows(deep.input("table", np.ones((3, 4))), ids[0]))

    rows = [deep.input(f"rows{n}", np.arange(4.0) + n) for n in range(4)]

    def layer(build: Builder, number: int, x: int) -> int:
        inside = build.add(ops.Compare("LT"), ids[number], build.full(3, ids[number]))
        build.output(f"kept {number}", build.add(ops.Select(), inside, rows[number], build.full(0.0, x)))
        return x

    assert deep.lift(layer).differences == []
