"""Every node of every program: the lifted value, evaluated by the meaning of terms, is what execution gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from rewright import ops
from rewright.interp.program import run_nodes
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import TensorType
from rewright.lifting.programs import Lifter
from rewright.lifting.terms.forms import Forms
from tests.lifting.agreement import rank_differences, sequential_differences
from tests.lifting.evaluate import Meaning
from tests.lifting.random_programs import ranks_program, sequential_program
from tests.programs import ALL, BOOL, F32, I64, Builder

INFINITY = float("inf")


def random_inputs(graph: Graph, **given: object) -> dict[str, NDArray[np.generic]]:
    numbers = np.random.default_rng(0)
    found: dict[str, NDArray[np.generic]] = {}
    for name, position in graph.inputs.items():
        kind = graph.nodes[position].type
        shape = tuple(int(str(n)) for n in kind.shape)
        found[name] = numbers.standard_normal(shape) if kind.dtype.is_float else numbers.integers(0, 12, shape)
    return found | {name: np.asarray(value) for name, value in given.items()}


def built(program: Callable[[Builder], None]) -> Graph:
    build = Builder("program")
    program(build)
    return build.build()


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("name", ALL)
def test_programs_written_by_hand(name: str, world: int) -> None:
    sizes = {"mlp": {"inner": 12}, "attention": {"heads": 12}, "sequence_parallel_norm": {"tokens": 12, "inner": 12}}
    sequential, program = ALL[name](world, **sizes.get(name, {}))  # type: ignore[call-arg]
    inputs = random_inputs(sequential)
    assert sequential_differences(sequential, inputs) == []
    assert rank_differences(sequential, program, inputs) == []


@pytest.mark.parametrize(("low", "high"), [(-4, 4), (-3, 3), (2, -4), (5, -6), (-1, 2), (-2, 0), (1, -3)])
def test_padding_that_cuts_more_than_there_is_leaves_filling(low: int, high: int) -> None:
    def program(build: Builder) -> None:
        filling = build.tensor("c", ())
        build.output("y", build.add(ops.Pad((low,), (high,), (0,)), build.tensor("x", (3,)), filling))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph)) == []


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 0), (2, 0), (0, 2), (1, 1), (3, 4), (-1, 2), (2, -1)])
@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_padding_between_elements(size: int, inner: int, low: int, high: int) -> None:
    if size == 0 and low + high < 0:
        return

    def program(build: Builder) -> None:
        filling = build.tensor("c", ())
        x = build.tensor("x", (2, size))
        build.output("y", build.add(ops.Pad((0, low), (1, high), (1, inner)), x, filling))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph)) == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("block", range(5))
def test_random_programs(block: int) -> None:
    for seed in range(30 * block, 30 * (block + 1)):
        program = sequential_program(seed)
        assert sequential_differences(program.build()[0], program.inputs) == [], f"seed {seed}"


@pytest.mark.sample(3)
@pytest.mark.parametrize("block", range(5))
def test_random_programs_of_ranks(block: int) -> None:
    """Collectives at random places, mostly wrong ones: what each rank holds is still described exactly."""
    for seed in range(16 * block, 16 * (block + 1)):
        whole, program = ranks_program(seed)
        found = rank_differences(whole.build()[0], program.rank_program(), program.inputs)
        assert found == [], f"seed {seed}"


@pytest.mark.parametrize("block", range(2))
def test_random_programs_of_ranks_whose_sums_are_looked_up(block: int) -> None:
    for seed in range(20 * block, 20 * (block + 1)):
        whole, program = ranks_program(seed)
        found = rank_differences(whole.build()[0], program.rank_program(), program.inputs, Forms(products=True))
        assert found == [], f"seed {seed}"


@pytest.mark.parametrize("block", range(2))
def test_random_programs_of_ranks_whose_exponentials_are_quotients(block: int) -> None:
    for seed in range(10 * block, 10 * (block + 1)):
        whole, program = ranks_program(seed)
        forms = Forms(products=True, quotients=True)
        assert rank_differences(whole.build()[0], program.rank_program(), program.inputs, forms) == [], seed


@pytest.mark.parametrize("seed", [1308, 1772])
def test_collectives_on_what_has_no_common_digits(seed: int) -> None:
    """What a member holds is a function of all operands then."""
    whole, program = ranks_program(seed)
    assert rank_differences(whole.build()[0], program.rank_program(), program.inputs) == []


# --- one operator, two meanings ---------------------------------------------------------------------------------------
def test_integers_divide_otherwise_than_reals() -> None:
    def program(build: Builder) -> None:
        x, y = build.tensor("x", (4,), I64), build.tensor("y", (4,), I64)
        build.output("whole", build.add(ops.Divide(), x, y))
        build.output("real", build.add(ops.Divide(), *(build.add(ops.Convert(F32), v) for v in (x, y))))

    assert sequential_differences(built(program), {"x": np.array([5, 7, 3, 1]), "y": np.array([2, 3, 2, 2])}) == []


@pytest.mark.parametrize("least", [1, 2, 3])
def test_multiples_of_integers_and_a_number_are_integers(least: int) -> None:
    """``3 i - 1`` where ``i`` is one is 2; taken for three times ``i - 1/3`` it would be no integer underneath."""

    def program(build: Builder) -> None:
        ids = build.tensor("ids", (4,), I64)
        one, zero, three = (build.add(ops.Constant(TensorType((4,), I64), (n,))) for n in (1, 0, 3))
        number = build.add(ops.Subtract(), build.add(ops.Multiply(), ids, three), one)
        chosen = build.add(ops.Select(), build.add(ops.Compare("EQ"), ids, one), number, zero)
        bound = build.add(ops.Constant(TensorType((4,), I64), (least,)))
        build.output("y", build.add(ops.Compare("GE"), chosen, bound))

    assert sequential_differences(built(program), {"ids": np.array([0, 1, 2, 1])}) == []


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("bound", [0, 1])
def test_a_one_hot_row_of_which_some_places_are_masked(direction: str, bound: int) -> None:
    def program(build: Builder) -> None:
        kind = TensorType((4, 3), I64)
        ids = build.add(ops.BroadcastInDim((4, 3), (0,)), build.tensor("ids", (4,), I64))
        place, number = build.add(ops.Iota(kind, 1)), build.add(ops.Constant(kind, (bound,)))
        hot = build.add(ops.Convert(F32), build.add(ops.Compare("EQ"), ids, place))
        zero = build.add(ops.Constant(TensorType((4, 3), F32), (0.0,)))
        build.output("y", build.add(ops.Select(), build.add(ops.Compare(direction), place, number), hot, zero))

    assert sequential_differences(built(program), {"ids": np.array([0, 1, 2, 5])}) == []


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE"])
def test_a_mask_over_rows_that_are_numbered_by_two_axes(direction: str) -> None:
    def program(build: Builder) -> None:
        x = build.add(ops.Reshape((4, 3)), build.tensor("x", (2, 2, 3)))
        row, column = (build.add(ops.Iota(TensorType((4, 3), I64), axis)) for axis in (0, 1))
        test = build.add(ops.Compare(direction), row, column)
        lowest = build.add(ops.Constant(TensorType((4, 3), F32), (-INFINITY,)))
        build.output("y", build.add(ops.Exponential(), build.add(ops.Select(), test, x, lowest)))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph), Forms(quotients=True)) == []


def test_powers_of_integers_are_integers() -> None:
    def program(build: Builder) -> None:
        x, y = build.tensor("x", (3,), I64), build.tensor("y", (3,), I64)
        build.output("whole", build.add(ops.Power(), x, y))
        build.output("real", build.add(ops.Power(), *(build.add(ops.Convert(F32), v) for v in (x, y))))

    assert sequential_differences(built(program), {"x": np.array([5, 7, 1]), "y": np.array([-2, 3, -1])}) == []


def test_not_of_truth_values_and_of_integers() -> None:
    def program(build: Builder) -> None:
        x = build.tensor("x", (3,), BOOL)
        build.output("not", build.add(ops.Not(), x))
        build.output("complement", build.add(ops.Not(), build.add(ops.Convert(I64), x)))

    assert sequential_differences(built(program), {"x": np.array([True, False, True])}) == []


def test_a_repeated_row_is_not_a_repeated_column() -> None:
    """Under an operator without a law, the axis that an operand does not read is remembered."""

    def program(build: Builder) -> None:
        x = build.tensor("x", (3,))
        for axis in (0, 1):
            square = build.add(ops.BroadcastInDim((3, 3), (axis,)), x)
            windows = build.add(ops.ReduceWindow("sum", (2, 2), (1, 1), ((0, 0), (0, 0))), square)
            build.output(f"along {axis}", windows)

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph)) == []


# --- infinities -------------------------------------------------------------------------------------------------------
def lifted_outputs(graph: Graph, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, tuple[object, object]]:
    """Every output as it is lifted and as it is executed."""
    lifter = Lifter()
    lifted = lifter.sequential(graph)
    meaning = Meaning(lifter.algebra.terms, inputs)
    values = run_nodes(graph, inputs)
    found = {name: meaning.value(lifter.values[lifted.values[p]]) for name, p in graph.outputs.items()}
    return {name: (found[name], values[p]) for name, p in graph.outputs.items()}


def test_infinities_do_not_cancel() -> None:
    """(x + mask) - mask is x only where the mask is finite, be the mask a constant or computed."""

    def program(build: Builder) -> None:
        x, ids = build.tensor("x", (2,)), build.tensor("ids", (2,), I64)
        low = build.full(-INFINITY, x)
        keep = build.add(ops.Compare("LT"), ids, build.full(3, ids))
        masks = {
            "constant": build.add(ops.Constant(TensorType((2,), F32), (0.0, -INFINITY))),
            "everywhere": low,
            "computed": build.add(ops.Select(), keep, build.full(0.0, x), low),
        }
        for name, mask in masks.items():
            build.output(name, build.add(ops.Subtract(), build.add(ops.Add(), x, mask), mask))
        chosen = build.add(ops.Select(), keep, x, low)
        build.output("itself", build.add(ops.Subtract(), chosen, chosen))
        top = build.spread(build.reduce(chosen, 0, kind="maximum"), x)
        build.output("shifted", build.add(ops.Exponential(), build.add(ops.Subtract(), chosen, top)))

    for name, (lifted, executed) in lifted_outputs(
        built(program), {"x": np.array([0.5, 2.0]), "ids": np.array([1, 5])}
    ).items():
        np.testing.assert_allclose(np.asarray(lifted), np.asarray(executed), err_msg=name)


def test_what_may_be_infinite_is_added_as_often_as_it_occurs() -> None:
    """The largest of masked scores is a number: twice it is not it."""

    def program(build: Builder) -> None:
        x, m = build.tensor("x", (3, 4)), build.tensor("m", (3, 4), I64)
        scores = build.add(ops.Select(), build.add(ops.Compare("LT"), m, build.full(6, m)), x, build.full(-INFINITY, x))
        top = build.reduce(scores, 1, kind="maximum")
        build.output("twice", build.add(ops.Add(), top, top))
        build.output("thrice", build.add(ops.Add(), build.add(ops.Multiply(), top, build.full(2.0, top)), top))
        build.output("with x", build.add(ops.Add(), x, build.add(ops.Add(), scores, x)))

    graph = built(program)
    mask = np.array([[0, 9, 0, 9], [0, 1, 2, 3], [9, 8, 7, 0]])
    assert sequential_differences(graph, random_inputs(graph, m=mask)) == []


# --- guards and look-ups ----------------------------------------------------------------------------------------------
def look_up(build: Builder, data: int, ids: int) -> int:
    return build.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), data, ids)


def test_a_look_up_says_nothing_of_elements_that_it_does_not_read() -> None:
    """Three of five indices are looked up in a table of four rows; the others may be anything."""

    def program(build: Builder) -> None:
        ids, x = build.tensor("ids", (5,), I64), build.tensor("x", (5,))
        build.output("rows", look_up(build, build.tensor("t", (4,)), build.add(ops.Slice((0,), (3,), (1,)), ids)))
        small = build.add(ops.Compare("LT"), ids, build.full(4, ids))
        build.output("small", build.add(ops.Select(), small, x, build.full(0.0, x)))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph, ids=[0, 1, 2, 7, 8])) == []


def test_a_sum_of_indicators_says_nothing_either() -> None:
    def program(build: Builder) -> None:
        ids = build.tensor("ids", (5,), I64)
        build.output("rows", look_up(build, build.tensor("t", (4,)), build.add(ops.Slice((0,), (3,), (1,)), ids)))
        where = TensorType((5, 4), I64)
        wide = build.add(ops.BroadcastInDim((5, 4), (0,)), ids)
        hot = build.add(ops.Convert(F32), build.add(ops.Compare("EQ"), wide, build.add(ops.Iota(where, 1))))
        build.output("count", build.reduce(hot, 1))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph, ids=[0, 1, 2, 7, 8])) == []


def test_guards_inside_a_table_that_is_read_at_an_index() -> None:
    """A test of ids around a look-up does not decide a test of ids inside of the table, which is read elsewhere."""

    def program(build: Builder) -> None:
        ids, j = build.tensor("ids", (4,), I64), build.tensor("j", (4,), I64)
        x, y = build.tensor("x", (4,)), build.tensor("y", (4,))
        few = build.add(ops.Compare("LT"), ids, build.full(3, ids))
        table = build.add(ops.Maximum(), build.add(ops.Select(), few, x, build.full(0.0, x)), y)
        some = build.add(ops.Compare("LT"), ids, build.full(5, ids))
        build.output("read", build.add(ops.Select(), some, look_up(build, table, j), build.full(0.0, x)))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph, ids=[0, 6, 2, 4], j=[3, 2, 2, 1])) == []


def test_a_look_up_in_a_look_up() -> None:
    def program(build: Builder) -> None:
        ids, x = build.tensor("ids", (4,), I64), build.tensor("x", (8,))
        few = build.add(ops.Compare("LT"), ids, build.full(3, ids))
        own = build.add(ops.Select(), few, ids, build.full(0, ids))
        twice = look_up(build, look_up(build, x, own), own)
        build.output("own", build.add(ops.Select(), few, twice, build.full(0.0, twice)))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph, ids=[0, 1, 2, 3])) == []


def test_reading_a_sum_with_a_constant() -> None:
    def program(build: Builder) -> None:
        ids, x = build.tensor("ids", (4,), I64), build.tensor("x", (8,))
        build.output("read", look_up(build, build.add(ops.Add(), x, build.full(3.0, x)), ids))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph, ids=[0, 7, 2, 3])) == []


def of_ranks(
    world: int,
    program: Callable[[Builder, int], None],
    shapes: dict[str, tuple[tuple[int, ...], str]],
    sequential: Callable[[Builder], None],
) -> tuple[Graph, RankProgram]:
    mesh = Mesh((("tp", world),))
    graphs = tuple(built(lambda b, rank=rank: program(b, rank)) for rank in range(world))
    return built(sequential), RankProgram(graphs, mesh, {n: place(s, mesh, (t,)) for n, (s, t) in shapes.items()}, {})


def test_a_guard_that_falls_away_inside_of_a_sum_leaves_the_number_of_addends() -> None:
    """Every rank counts its own ids; together they count all of them."""

    def count(build: Builder, rank: int | None) -> None:
        ids, w = build.tensor("ids", (5,), I64), build.tensor("w", ())
        build.output("rows", look_up(build, build.tensor("t", (12,)), ids))
        wide = build.spread(w, ids)
        if rank is not None:
            test = build.add(ops.Compare("GE" if rank else "LT"), ids, build.full(6, ids))
            wide = build.add(ops.Select(), test, wide, build.full(0.0, wide))
        total = build.reduce(wide, 0)
        build.output("total", total if rank is None else build.all_reduce(total, 2))

    shapes = {"ids": ((5,), "Replicate()"), "w": ((), "Replicate()"), "t": ((12,), "Replicate()")}
    sequential, program = of_ranks(2, count, shapes, lambda build: count(build, None))
    assert rank_differences(sequential, program, random_inputs(sequential)) == []


def test_ids_that_two_ranks_count_are_counted_twice() -> None:
    """Ranges that overlap, closed by a tanh, and then a test of the same ids."""

    def program(build: Builder, rank: int) -> None:
        ids, x = build.tensor("ids", (5,), I64), build.tensor("x", (5,))
        own = build.add(ops.Compare("LT"), ids, build.full((4, 6)[rank], ids))
        total = build.all_reduce(build.add(ops.Select(), own, x, build.full(0.0, x)), 2)
        total = build.add(ops.Tanh(), total)
        few = build.add(ops.Compare("LT"), ids, build.full(3, ids))
        build.output("output", build.add(ops.Select(), few, total, build.full(0.0, total)))

    shapes = {"ids": ((5,), "Replicate()"), "x": ((5,), "Replicate()")}
    sequential, ranks = of_ranks(2, program, shapes, _inputs_only)
    assert rank_differences(sequential, ranks, random_inputs(sequential, ids=[0, 1, 2, 4, 5])) == []


def _inputs_only(build: Builder) -> None:
    build.tensor("ids", (5,), I64)
    build.output("output", build.tensor("x", (5,)))


def test_a_rank_without_rows_adds_nothing() -> None:
    """Five rows over four ranks: the last one has none."""

    def product(build: Builder, rows: int, world: int) -> None:
        y = build.matmul(build.tensor("x", (2, rows)), build.tensor("w", (rows, 3)))
        build.output("output", build.all_reduce(y, world) if world > 1 else y)

    shapes = {"x": ((2, 5), "Shard(1)"), "w": ((5, 3), "Shard(0)")}
    sequential, program = of_ranks(
        4, lambda b, rank: product(b, (2, 2, 1, 0)[rank], 4), shapes, lambda b: product(b, 5, 1)
    )
    assert rank_differences(sequential, program, random_inputs(sequential)) == []


def test_a_partial_maximum_is_never_added_up() -> None:
    def program(build: Builder, rank: int) -> None:
        top = build.reduce(build.tensor("x", (2, 3)), 1, kind="maximum")
        build.output("sum", build.all_reduce(top, 2))
        build.output("largest", build.all_reduce(top, 2, "maximum"))
        build.output("smallest", build.all_reduce(top, 2, "minimum"))

    shapes = {"x": ((2, 6), "Shard(1)")}
    sequential, ranks = of_ranks(
        2, program, shapes, lambda b: b.output("largest", b.reduce(b.tensor("x", (2, 6)), 1, kind="maximum"))
    )
    assert rank_differences(sequential, ranks, random_inputs(sequential)) == []


def test_a_tensor_without_elements() -> None:
    def program(build: Builder) -> None:
        empty = build.add(ops.Constant(TensorType((0,), F32), ()))
        build.output("output", build.add(ops.Concatenate(0), build.tensor("x", (3,)), empty))

    graph = built(program)
    assert sequential_differences(graph, random_inputs(graph)) == []
