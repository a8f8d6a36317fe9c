"""Rows that sorts have put in order: both sides agree when they are executed, and what does not fit is left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from rewright import ops
from rewright.analysis.values import Setting, facts_of
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import REAL, Facts, facts_between
from rewright.proof.rewriting.laws import LAWS, apply_to, follows
from rewright.proof.rewriting.laws.signs import Signs
from rewright.proof.rewriting.lemma import Lemma

I64, F = DType.I64, DType.F64
ROUTES, GROUPS, WIDTH = 10, 3, 2


@dataclass(frozen=True)
class Parts:
    """Routes sorted by the group that they name; one number past the last group names none."""

    b: GraphBuilder
    ids: int
    x: int
    order: int
    sorted_ids: int

    def constant(self, value: float, dtype: DType = I64, *shape: int) -> int:
        return self.b.add(ops.Constant(TensorType(shape or (ROUTES,), dtype), (value,)))

    def spread(self, x: int, shape: tuple[int, ...], *axes: int) -> int:
        return self.b.add(ops.BroadcastInDim(shape, axes), x)

    def iota(self, shape: tuple[int, ...], axis: int) -> int:
        return self.b.add(ops.Iota(TensorType(shape, I64), axis))

    def rows(self, table: int, at: int) -> int:
        """Whole rows of a table."""
        shape = self.b.type(table).shape
        op = ops.Gather(tuple(range(1, len(shape))), (0,), (), (), (0,), 1, (1, *shape[1:]))
        return self.b.add(op, table, at)

    def write(self, base: int, at: int, updates: int, kind: str = "sum") -> int:
        """Rows that are added to others, or written over them."""
        windows = tuple(range(1, len(self.b.type(updates).shape)))
        return self.b.add(ops.Scatter(kind, windows, (0,), (), (), (0,), 1), base, at, updates)  # pyright: ignore[reportArgumentType]

    def sums(self, x: int, *axes: int, kind: str = "sum") -> int:
        return self.b.add(ops.Reduce(kind, axes), x)  # pyright: ignore[reportArgumentType]

    def inverse(self) -> int:
        return self.b.add(ops.Sort(0, False, "indices"), self.order)

    def taken(self) -> int:
        """The rows in order."""
        return self.rows(self.x, self.order)

    def ends(self, *, low: int = GROUPS - 1, high: int = 0, of: int | None = None) -> int:
        """How many routes name each group or one before."""
        both = (GROUPS, ROUTES)
        ids = self.spread(self.sorted_ids if of is None else of, both, 1)
        hits = self.b.add(ops.Compare("EQ"), ids, self.iota(both, 0))
        counts = self.sums(self.b.add(ops.Convert(I64), hits), 1)
        return self.b.add(ops.ReduceWindow("sum", (GROUPS,), (1,), ((low, high),)), counts)

    def groups(self, ends: int, direction: str = "LE") -> int:
        """How many groups end at or in front of every row."""
        both = (ROUTES, GROUPS)
        compare = ops.Compare(direction)  # pyright: ignore[reportArgumentType]
        test = self.b.add(compare, self.spread(ends, both, 1), self.iota(both, 0))
        return self.sums(self.b.add(ops.Convert(I64), test), 1)

    def own(self, x: int, groups: int) -> int:
        """Rows times the number of their group, as one product for each group."""
        shape = (ROUTES, GROUPS, WIDTH)
        here = self.b.add(ops.Compare("EQ"), self.spread(groups, shape, 0), self.iota(shape, 1))
        scaled = self.b.add(ops.Multiply(), self.spread(x, shape, 0, 2), self.constant(2.0, F, *shape))
        return self.sums(self.b.add(ops.Select(), here, scaled, self.constant(0.0, F, *shape)), 1)


Write = Callable[[Parts], int]


def small(write: Write, low: float = 0) -> tuple[Graph, Mapping[str, Facts]]:
    b = GraphBuilder("small")
    ids = b.input("ids", ops.Input("ids", TensorType((ROUTES,), I64)))
    x = b.input("x", ops.Input("x", TensorType((ROUTES, WIDTH), F)))
    order = b.add(ops.Sort(0, False, "indices"), ids)
    b.output("y", write(Parts(b, ids, x, order, b.add(ops.Sort(0, False, "values"), ids))))
    return b.build(), {"ids": facts_between(low, GROUPS, whole=True), "x": REAL}


def rewritten(graph: Graph, given: Mapping[str, Facts]) -> Graph:
    return apply_to(graph, LAWS["unsorted"](graph, facts_of(graph, Setting(given=given, assumes=True))))


def _back(p: Parts, x: int) -> int:
    return p.rows(x, p.inverse())


def squares_put_back(p: Parts) -> int:
    x = p.taken()
    return _back(p, p.b.add(ops.Multiply(), x, x))


def products_of_groups(p: Parts) -> int:
    return _back(p, p.own(p.taken(), p.groups(p.ends())))


def products_of_groups_counted_before_sorting(p: Parts) -> int:
    return _back(p, p.own(p.taken(), p.groups(p.ends(of=p.ids))))


def counts_by_adding(p: Parts) -> int:
    counts = p.write(p.constant(0, I64, GROUPS), p.sorted_ids, p.constant(1))
    ends = p.b.add(ops.ReduceWindow("sum", (GROUPS,), (1,), ((GROUPS - 1, 0),)), counts)
    return _back(p, p.own(p.taken(), p.groups(ends)))


def put_back_by_adding(p: Parts) -> int:
    return p.write(p.constant(0.0, F, ROUTES, WIDTH), p.order, p.b.add(ops.Exponential(), p.taken()))


def put_in_order_by_writing(p: Parts) -> int:
    there = p.write(p.constant(0.0, F, ROUTES, WIDTH), p.inverse(), p.x)
    return _back(p, p.b.add(ops.Multiply(), there, p.taken()))


def read_at_a_list_of_places(p: Parts) -> int:
    return p.rows(p.b.add(ops.Negate(), p.taken()), p.rows(p.iota((ROUTES,), 0), p.inverse()))


def largest(p: Parts) -> int:
    return p.sums(p.b.add(ops.Abs(), p.taken()), 0, kind="maximum")


def outer_product(p: Parts) -> int:
    own = p.own(p.taken(), p.groups(p.ends()))
    return p.b.add(ops.DotGeneral((), (), (0,), (0,)), own, p.taken())


def beside_each_other(p: Parts) -> int:
    x = p.taken()
    both = p.b.add(ops.Concatenate(1), x, p.b.add(ops.Negate(), x))
    return p.sums(p.b.add(ops.Multiply(), both, both), 0)


def added_by_pairs(p: Parts) -> int:
    at = p.b.add(ops.Divide(), p.order, p.constant(2))
    return p.write(p.constant(0.0, F, ROUTES // 2, WIDTH), at, p.taken())


HOLD: tuple[Write, ...] = (
    squares_put_back,
    products_of_groups,
    products_of_groups_counted_before_sorting,
    counts_by_adding,
    put_back_by_adding,
    put_in_order_by_writing,
    read_at_a_list_of_places,
    largest,
    outer_product,
    beside_each_other,
    added_by_pairs,
)


def ids_of(seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Ties, empty groups, no routes to any, all routes to one."""
    draws = np.random.default_rng(seed)
    kinds = (np.full(ROUTES, GROUPS), np.zeros(ROUTES), draws.integers(1, 2, ROUTES), np.arange(ROUTES) % 2 * GROUPS)
    return kinds[seed].astype(np.int64) if seed < len(kinds) else draws.integers(0, GROUPS + 1, ROUTES)


@pytest.mark.parametrize("write", HOLD)
def test_both_sides_agree(write: Write) -> None:
    graph, given = small(write)
    made = rewritten(graph, given)
    live = [node.op for node in made.nodes[: made.outputs["y"] + 1]]
    assert made.nodes[made.outputs["y"]] != graph.nodes[graph.outputs["y"]] or len(live) != len(graph.nodes)
    for seed in range(20):
        inputs = {"ids": ids_of(seed), "x": np.random.default_rng(seed).normal(size=(ROUTES, WIDTH))}
        np.testing.assert_allclose(run(made, inputs)["y"], run(graph, inputs)["y"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("write", HOLD)
def test_nothing_is_in_order_any_more(write: Write) -> None:
    graph, given = small(write)
    made = rewritten(graph, given)
    assert not any(isinstance(made.nodes[p].op, ops.Sort) for p in made.ancestors([made.outputs["y"]]))


# --- what does not fit ------------------------------------------------------------------------------------------------
def weighted_by_place(p: Parts) -> int:
    weights = p.b.add(ops.Convert(F), p.iota((ROUTES, WIDTH), 0))
    return _back(p, p.b.add(ops.Multiply(), p.taken(), weights))


def weighted_by_other_rows(p: Parts) -> int:
    return _back(p, p.b.add(ops.Multiply(), p.taken(), p.x))


def put_back_in_falling_order(p: Parts) -> int:
    return p.rows(p.taken(), p.b.add(ops.Sort(0, True, "indices"), p.order))


def put_back_by_another_order(p: Parts) -> int:
    other = p.b.add(ops.Sort(0, False, "indices"), p.b.add(ops.Negate(), p.ids))
    return p.rows(p.taken(), p.b.add(ops.Sort(0, False, "indices"), other))


def added_in_falling_order(p: Parts) -> int:
    falling = p.b.add(ops.Sort(0, True, "indices"), p.ids)
    return p.write(p.constant(0.0, F, ROUTES, WIDTH), falling, p.taken())


def added_by_another_order(p: Parts) -> int:
    other = p.b.add(ops.Sort(0, False, "indices"), p.b.add(ops.Negate(), p.ids))
    return p.write(p.constant(0.0, F, ROUTES, WIDTH), other, p.taken())


def added_at_places_in_order(p: Parts) -> int:
    return p.write(p.constant(0.0, F, ROUTES, WIDTH), p.inverse(), p.taken())


def read_in_order_again(p: Parts) -> int:
    return p.rows(p.taken(), p.order)


def one_after_the_other(p: Parts) -> int:
    window = ops.ReduceWindow("sum", (ROUTES, 1), (1, 1), ((ROUTES - 1, 0), (0, 0)))
    return _back(p, p.b.add(window, p.taken()))


def half_of_the_rows(p: Parts) -> int:
    half = p.b.add(ops.Slice((0, 0), (ROUTES // 2, WIDTH), (1, 1)), p.taken())
    return p.sums(half, 0)


def the_last_one_stays(p: Parts) -> int:
    at = p.b.add(ops.Divide(), p.order, p.constant(2))
    return p.write(p.constant(0.0, F, ROUTES // 2, WIDTH), at, p.taken(), "replace")


def beginnings_for_ends(p: Parts) -> int:
    return _back(p, p.own(p.taken(), p.groups(p.ends(low=0, high=GROUPS - 1))))


def ends_that_are_below(p: Parts) -> int:
    return _back(p, p.own(p.taken(), p.groups(p.ends(), "LT")))


def groups_of_other_numbers(p: Parts) -> int:
    other = p.b.add(ops.Remainder(), p.b.add(ops.Add(), p.ids, p.constant(1)), p.constant(2))
    return _back(p, p.own(p.taken(), p.groups(p.ends(of=other))))


def groups_of_pairs(p: Parts) -> int:
    """Counts over two axes, of which nothing is known."""
    both = (GROUPS, ROUTES, 2)
    hits = p.b.add(ops.Compare("EQ"), p.spread(p.sorted_ids, both, 1), p.iota(both, 0))
    counts = p.sums(p.b.add(ops.Convert(I64), hits), 1, 2)
    ends = p.b.add(ops.ReduceWindow("sum", (GROUPS,), (1,), ((GROUPS - 1, 0),)), counts)
    return _back(p, p.own(p.taken(), p.groups(ends)))


def counts_in_short_integers(p: Parts) -> int:
    """Counts that would wrap, were there more rows."""
    counts = p.write(p.constant(0, DType.I8, GROUPS), p.sorted_ids, p.constant(1, DType.I8))
    ends = p.b.add(ops.ReduceWindow("sum", (GROUPS,), (1,), ((GROUPS - 1, 0),)), counts)
    return _back(p, p.own(p.taken(), p.groups(p.b.add(ops.Convert(I64), ends))))


def written_over_something(p: Parts) -> int:
    return _back(p, p.write(p.x, p.inverse(), p.x))


FAIL: tuple[Write, ...] = (
    weighted_by_place,
    weighted_by_other_rows,
    put_back_in_falling_order,
    put_back_by_another_order,
    added_in_falling_order,
    added_by_another_order,
    added_at_places_in_order,
    read_in_order_again,
    one_after_the_other,
    half_of_the_rows,
    the_last_one_stays,
    beginnings_for_ends,
    ends_that_are_below,
    groups_of_other_numbers,
    groups_of_pairs,
    counts_in_short_integers,
    written_over_something,
)


@pytest.mark.parametrize("write", FAIL)
def test_what_depends_on_the_order_keeps_it(write: Write) -> None:
    graph, given = small(write)
    made = rewritten(graph, given)
    for seed in range(8):
        inputs = {"ids": ids_of(seed), "x": np.random.default_rng(seed).normal(size=(ROUTES, WIDTH))}
        np.testing.assert_allclose(run(made, inputs)["y"], run(graph, inputs)["y"], rtol=1e-12, atol=1e-12)
    assert any(isinstance(made.nodes[p].op, ops.Sort) for p in made.ancestors([made.outputs["y"]]))


def test_numbers_below_zero_are_counted_in_no_group() -> None:
    """Routes to group -1 stand in front of all others, and no end counts them."""
    graph, given = small(products_of_groups, low=-1)
    made = rewritten(graph, given)
    inputs = {"ids": np.arange(ROUTES) % (GROUPS + 2) - 1, "x": np.ones((ROUTES, WIDTH))}
    np.testing.assert_array_equal(run(made, inputs)["y"], run(graph, inputs)["y"])
    assert any(isinstance(made.nodes[p].op, ops.Sort) for p in made.ancestors([made.outputs["y"]]))
    assert replace(given["ids"], low=0) == small(products_of_groups)[1]["ids"]


# --- rows that are repeated -------------------------------------------------------------------------------------------
def _of_pairs(write: Callable[[Parts, int], int], times: int, shift: int = 0) -> Graph:
    def made(p: Parts) -> int:
        numbers = p.iota((ROUTES,), 0)
        if shift:
            numbers = p.b.add(ops.Add(), numbers, p.constant(shift))
        return write(p, p.b.add(ops.Divide(), numbers, p.constant(times)))

    return small(made)[0]


def repeated(p: Parts, at: int) -> int:
    table = p.b.add(ops.Slice((0, 0), (ROUTES // 2, WIDTH), (1, 1)), p.x)
    return p.rows(table, at)


def added(p: Parts, at: int) -> int:
    return p.write(p.constant(0.0, F, ROUTES // 2, WIDTH), at, p.x)


@pytest.mark.parametrize("write", [repeated, added])
def test_rows_that_are_repeated_need_no_indices(write: Callable[[Parts, int], int]) -> None:
    graph = _of_pairs(write, 2)
    made = apply_to(graph, LAWS["repeating"](graph, facts_of(graph)))
    inputs = {"ids": ids_of(9), "x": np.random.default_rng(0).normal(size=(ROUTES, WIDTH))}
    np.testing.assert_allclose(run(made, inputs)["y"], run(graph, inputs)["y"], rtol=1e-12, atol=1e-12)
    kinds = ops.Gather | ops.Scatter
    assert not any(isinstance(made.nodes[p].op, kinds) for p in made.ancestors([made.outputs["y"]]))


@pytest.mark.parametrize("write", [repeated, added])
@pytest.mark.parametrize(("times", "shift"), [(3, 0), (5, 0), (2, -1)])
def test_other_numbers_of_rows_stay_looked_up(write: Callable[[Parts, int], int], times: int, shift: int) -> None:
    graph = _of_pairs(write, times, shift)
    made = apply_to(graph, LAWS["repeating"](graph, facts_of(graph)))
    kinds = ops.Gather | ops.Scatter
    assert any(isinstance(made.nodes[p].op, kinds) for p in made.ancestors([made.outputs["y"]]))


# --- whole numbers from nought on -------------------------------------------------------------------------------------
def choice(direction: str, limit: int, least: int, turned: bool = False) -> Graph:
    """``where(index direction limit, 8, index - least)``, or with both results exchanged."""
    b = GraphBuilder("choice")
    index = b.input("index", ops.Input("index", TensorType((ROUTES,), I64)))

    def constant(value: int) -> int:
        return b.add(ops.Constant(TensorType((ROUTES,), I64), (value,)))

    test = b.add(ops.Compare(direction), index, constant(limit))  # pyright: ignore[reportArgumentType]
    results = [constant(8), b.add(ops.Subtract(), index, constant(least))]
    b.output("y", b.add(ops.Select(), test, *(results[::-1] if turned else results)))
    return b.build()


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (choice("LT", 4, 4), True),
        (choice("LT", 5, 4), True),
        (choice("LT", 3, 4), False),
        (choice("GT", 4, 4), False),
        (choice("GE", 4, 4, turned=True), True),
        (choice("GE", 3, 4, turned=True), False),
        (choice("LT", 4, 4, turned=True), False),
        (choice("NE", 4, 4), False),
    ],
)
def test_a_choice_leaves_out_what_would_be_below_zero(graph: Graph, expected: bool) -> None:
    given = {"index": facts_between(0, 9, whole=True)}
    signs = Signs(graph, facts_of(graph, Setting(given=given, assumes=True)))
    assert signs.is_nonnegative(graph.outputs["y"]) is expected
    values = run(graph, {"index": np.arange(ROUTES) % 10})["y"]
    assert not expected or values.min() >= 0


# --- groups that are counted by marks ---------------------------------------------------------------------------------
def routed(*added: int) -> Graph:
    """Two places of every row are chosen, as many places as rows; how often each is, by marks that are added up."""
    b = GraphBuilder("routed")
    rows, chosen = 3, 2
    x = b.input("x", ops.Input("x", TensorType((rows, rows), F)))
    at = b.add(ops.TopK(chosen, "indices"), x)
    no, yes = (
        b.add(ops.Constant(TensorType(s, DType.BOOL), (v,))) for s, v in (((rows, rows), 0), ((rows, chosen), 1))
    )
    marks = b.add(ops.Scatter("replace", (), (1,), (0,), (0,), (1,), 2), no, at, yes)
    counts = b.add(ops.Reduce("sum", added), b.add(ops.Convert(I64), marks))
    ends = b.add(ops.ReduceWindow("sum", (rows,), (1,), ((rows - 1, 0),)), counts)
    ids, both = b.add(ops.Reshape((rows * chosen,)), at), (rows * chosen, rows)
    here = b.add(ops.BroadcastInDim(both, (1,)), ends), b.add(ops.Iota(TensorType(both, I64), 0))
    groups = b.add(ops.Reduce("sum", (1,)), b.add(ops.Convert(I64), b.add(ops.Compare("LE"), *here)))
    order = b.add(ops.Sort(0, False, "indices"), ids)
    back = b.add(ops.Sort(0, False, "indices"), order)
    b.output("y", b.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), groups, back))
    return b.build()


@pytest.mark.parametrize(("added", "fits"), [((0,), True), ((1,), False)])
def test_marks_of_a_choice_count_its_places_where_all_rows_are_added_up(added: tuple[int, ...], fits: bool) -> None:
    graph = routed(*added)
    made = apply_to(graph, LAWS["unsorted"](graph, facts_of(graph)))
    for seed in range(10):
        inputs = {"x": np.random.default_rng(seed).integers(0, 3, (3, 3)).astype(float)}
        np.testing.assert_array_equal(run(made, inputs)["y"], run(graph, inputs)["y"])
    sorts = any(isinstance(made.nodes[p].op, ops.Sort) for p in made.ancestors([made.outputs["y"]]))
    assert sorts is not fits


# --- lemmas -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("write", HOLD)
def test_only_what_the_law_makes_follows(write: Write) -> None:
    graph, given = small(write)
    made = rewritten(graph, given)
    made = replace(made, outputs={"y": made.outputs["y"]})
    lemma = Lemma("part", made, graph, "law unsorted", given=tuple(given.items()))
    assert follows("unsorted", lemma)
    assert not follows("unsorted", replace(lemma, left=graph))
    assert not follows("repeating", lemma)
    spoilt = [
        position
        for position in made.ancestors([made.outputs["y"]])
        if isinstance(made.nodes[position].op, ops.Constant | ops.Reduce | ops.Iota | ops.Exponential | ops.Abs)
    ]
    for position in spoilt:
        node = made.nodes[position]
        other = ops.Constant(node.type, (7.0 if node.type.dtype.is_float else 7,))
        nodes = (*made.nodes[:position], replace(node, op=other, operands=()), *made.nodes[position + 1 :])
        assert not follows("unsorted", replace(lemma, left=replace(made, nodes=nodes)))


def test_groups_of_numbers_of_which_nothing_is_given_do_not_follow() -> None:
    graph, given = small(products_of_groups)
    made = rewritten(graph, given)
    lemma = Lemma("part", made, graph, "law unsorted", given=tuple(given.items()))
    assert follows("unsorted", lemma) and not follows("unsorted", replace(lemma, given=()))
