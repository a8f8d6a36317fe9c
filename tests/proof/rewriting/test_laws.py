"""Laws: both sides agree when they are executed, and where something is missing that a law needs, it says nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.digest import digest
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType
from rewright.ops.base import Array
from rewright.ops.facts import REAL, facts_between
from rewright.proof.rewriting.laws import LAWS, follows
from rewright.proof.rewriting.lemma import Lemma
from tests.proof.rewriting import choice_parts as choices
from tests.proof.rewriting import order_parts as orders
from tests.proof.rewriting import place_parts as places
from tests.proof.rewriting.law_parts import I64, ROWS, SIZE, F, Part, Small, Write, small

ROW = (ROWS, SIZE)

HOLD: dict[str, tuple[Write, ...]] = {
    "growing": (
        choices.softmax,
        choices.shifted,
        choices.scaled,
        choices.of_other_digits,
        choices.among_equal,
        choices.of_error_functions,
    ),
    "orders": (
        orders.clamped,
        orders.clamped_from_below,
        orders.bounded_twice,
        orders.largest_size,
        orders.largest_size_turned,
    ),
    "fillings": (choices.filled_with_zero, choices.filled_below, choices.all_kept, choices.groups),
    "places": (
        places.weights,
        places.beside_their_row,
        places.as_floats,
        places.selected,
        places.selected_by_truths,
        places.multiplied,
    ),
    "rows": (
        places.logarithms,
        places.turned_and_scaled,
        places.products,
        places.summed,
        places.more_rows,
        places.as_bytes,
    ),
    "picked": (choices.picked, choices.picked_of_vector),
}
FAIL: dict[str, tuple[Write, ...]] = {
    "growing": (
        choices.decreasing,
        choices.of_any_sign,
        choices.by_zero,
        choices.by_infinity,
        choices.along_the_row,
        choices.subtracted_from,
        choices.other_axis,
        choices.no_function,
        choices.of_integers,
    ),
    "orders": (orders.between_broken_numbers, orders.of_two, orders.in_two_orders),
    "fillings": (
        choices.filled_above,
        choices.filled_with_nan,
        choices.scores_of_any_sign,
        choices.scores_that_may_be_nan,
        choices.fewer_kept,
        choices.marked_with_zero,
        choices.given_mask,
        choices.bits_turned,
        choices.filled_with_a_byte,
        choices.marked_with_a_byte,
    ),
    "places": (
        places.repeated,
        places.halved,
        places.into_ones,
        places.rows_that_start_anew,
        places.weights_in_other_digits,
        places.twos,
        places.times_infinity,
        places.beyond_the_row,
        places.selected_beyond_the_row,
        places.other_than_zero,
    ),
    "rows": (
        places.out_of_range,
        places.any_places,
        places.as_truths,
        places.over_places,
        places.at_two_places,
        places.wrapped_rows,
    ),
    "picked": (choices.of_another, choices.sorted_places, choices.picked_as_truths),
}
HOLDING = [(law, write) for law, parts in HOLD.items() for write in parts]
FAILING = [(law, write) for law, parts in FAIL.items() for write in parts]
TWO_AT_MOST = (choices.filled_with_zero, choices.filled_below, choices.groups)
"""Parts that keep two elements of a row."""


def inputs(part: Small, seed: int) -> dict[str, Array]:
    """Small whole numbers, many of them equal, and infinities where they are allowed; equal rows for the first seed."""
    rng, found = np.random.default_rng(seed), dict[str, Array]()
    for name, position in part.graph.inputs.items():
        kind, known = part.graph.nodes[position].type, part.given[name]
        low = 1 if known.is_positive else -2
        value = rng.integers(low, low + 4, [int(str(n)) for n in kind.shape]).astype(float)
        value = np.full_like(value, low) if not seed else value
        some = rng.random(value.shape) < 0.2
        value[some & (seed % 2 == 1) & known.plus_infinity] = math.inf
        value[some & (seed % 4 == 2) & known.minus_infinity] = -math.inf
        found[name] = value
    return found


def lemma(part: Small, left: Graph) -> Lemma:
    return Lemma("part", left, part.graph, "law", given=tuple(part.given.items()))


@pytest.mark.parametrize("k", [0, 1, 2, SIZE])
@pytest.mark.parametrize(("law", "write"), HOLDING, ids=lambda value: getattr(value, "__name__", value))
def test_both_sides_agree(law: str, write: Write, k: int) -> None:
    part = small(write, k)
    made = part.made(law)
    if k == SIZE and write in TWO_AT_MOST:
        assert made is None
        return
    assert made is not None and digest(made) != digest(part.graph)
    assert follows(law, lemma(part, made))
    for seed in range(12):
        given = inputs(part, seed)
        with np.errstate(all="ignore"):
            before, after = run(part.graph, given)["result"], run(made, given)["result"]
        np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.parametrize(("law", "write"), FAILING, ids=lambda value: getattr(value, "__name__", value))
def test_what_a_law_needs_is_missing(law: str, write: Write) -> None:
    part = small(write)
    assert part.made(law) is None
    assert all(
        not follows(name, lemma(part, other)) for name in LAWS for other in (small(places.weights).graph, part.graph)
    )


def test_no_number_is_the_largest_either_way() -> None:
    part = small(choices.of_other_digits)
    made = part.made("growing")
    assert made is not None
    x = np.array([[1, math.nan, 3, math.nan], [math.nan] * 4, [0, 0, math.inf, math.nan]])
    np.testing.assert_array_equal(run(made, {"x": x})["result"], run(part.graph, {"x": x})["result"])


@pytest.mark.parametrize(("law", "write"), HOLDING, ids=lambda value: getattr(value, "__name__", value))
def test_another_left_side_does_not_follow(law: str, write: Write) -> None:
    part = small(write)
    made = part.made(law)
    assert made is not None
    assert not follows(law, lemma(part, part.graph))
    assert not any(follows(name, lemma(part, made)) for name in (*LAWS, "none") if name != law)
    other = small(write, 1).made(law)
    assert other is not None and not follows(law, lemma(part, other))


@pytest.mark.parametrize(
    "write", [choices.filled_with_zero, choices.filled_below, choices.scaled, places.selected, places.multiplied]
)
def test_what_is_not_given_is_not_known(write: Write) -> None:
    """An input of which nothing is given may be anything, infinite for example."""
    part = small(write)
    (law,) = (law for law, own in HOLDING if own is write)
    made = part.made(law)
    assert made is not None
    assert not follows(law, replace(lemma(part, made), given=()))


def test_an_input_that_is_computed_is_none() -> None:
    """What a law sees behind an input would hold in no program that has something else there."""
    part = small(choices.softmax)
    made = part.made("growing")
    assert made is not None
    inner = {"x": 0, "p": 1}
    posed = replace(part.graph, inputs=inner)
    assert not follows("growing", replace(lemma(part, made), right=posed))
    assert not follows("growing", replace(lemma(part, made), right=replace(part.graph, inputs={"y": 0})))


def test_a_side_of_other_types_does_not_follow() -> None:
    part = small(choices.picked)
    made = part.made("picked")
    assert made is not None
    nodes = list(part.graph.nodes)
    nodes[-1] = replace(nodes[-1], type=TensorType((ROWS, 1), F))
    assert not follows("picked", replace(lemma(part, made), right=replace(part.graph, nodes=tuple(nodes))))


def test_what_comes_from_other_ranks_does_not_follow() -> None:
    def write(b: Part) -> int:
        return b.values(b.of(ops.Exponential(), b.of(ops.AllReduce("sum", ((0, 1),)), b.read("x"))))

    part = small(write)
    made = part.made("growing")
    assert made is not None and not follows("growing", lemma(part, made))


def test_a_law_looks_at_the_program_that_it_is_given() -> None:
    """Whether a place may be repeated is not known where the choice that gave it is outside."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType(ROW, F)))
    p = b.input("p", ops.Input("p", TensorType((ROWS, 2), I64)))
    rows = ops.Gather((), (1,), (0,), (0,), (1,), 2, (1, 1))
    b.output("result", b.add(rows, x, p))
    assert Small(b.build(), {"x": REAL, "p": facts_between(0, 3, whole=True)}).made("picked") is None


def test_rows_without_elements_are_left_alone() -> None:
    """Nothing can be read there."""

    def grown(b: Part) -> int:
        return b.values(b.of(ops.Exponential(), b.read("x", (ROWS, 0))))

    def multiplied(b: Part) -> int:
        marks = b.marks(b.chosen(b.read("x", (ROWS, 0))), F, (ROWS, 0))
        return b.of(ops.Multiply(), b.read("y", (ROWS, 0)), marks)

    for law, write in (("growing", grown), ("places", multiplied)):
        assert small(write, 0).made(law) is None
