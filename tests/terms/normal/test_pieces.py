"""What comes in pieces: maxima over them in another order, as keys of head and tail of a sequence, and sums of rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph
from rewright.ops.reference import building as rb
from rewright.rules.library import library
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove
from tests.programs import Builder

PIECES, LENGTH = 4, 4
"""Too many elements to be written out."""
SIZE = PIECES * LENGTH
IN_ORDER = tuple(range(PIECES))


def arranged(b: Builder, x: int, order: Sequence[int]) -> int:
    """The pieces of a tensor in an order."""
    return rb.concatenate(b, [rb.slice_axis(b, x, 0, k * LENGTH, (k + 1) * LENGTH) for k in order], 0)


def largest_sum(first: Sequence[int], second: Sequence[int], columns: int) -> Graph:
    """The maximum over all places of two tensors, pieces of each in an order, that goes over places by columns."""
    b = Builder("pieces")
    x, y = (b.tensor(name, (SIZE,)) for name in "xy")
    both = rb.add(b, arranged(b, x, first), arranged(b, y, second))
    grid = rb.transpose(b, rb.reshape(b, both, (SIZE // columns, columns)), (1, 0))
    b.output("result", rb.reduce(b, "maximum", rb.reshape(b, grid, (SIZE,)), [0]))
    return b.build()


@pytest.mark.parametrize("order", [(0, 3, 1, 2), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("columns", [1, 2, 8])
def test_the_largest_is_the_same_in_any_order(order: tuple[int, ...], columns: int) -> None:
    claim = Claim(largest_sum(order, order, columns), largest_sum(IN_ORDER, IN_ORDER, 1))
    assert prove(claim, seconds=20).status == "proved"


def equal_numbers(left: Graph, right: Graph) -> bool:
    source = np.random.default_rng(0)
    pairs = ({name: source.normal(size=SIZE) for name in "xy"} for _ in range(20))
    return all(np.array_equal(*(run(side, given)["result"] for side in (left, right))) for given in pairs)


@pytest.mark.parametrize("seed", range(30))
def test_pieces_of_two_tensors_that_do_not_belong_together_are_not_proved(seed: int) -> None:
    source = random.Random(seed)
    first, second = ([source.randrange(PIECES) for _ in range(PIECES)] for _ in range(2))
    if seed % 3 == 0:
        first, second = source.sample(IN_ORDER, PIECES), source.sample(IN_ORDER, PIECES)
    sides = largest_sum(first, second, source.choice((1, 2, 4, 8))), largest_sum(IN_ORDER, IN_ORDER, 1)
    assert prove(Claim(*sides), seconds=20).status != "proved" or equal_numbers(*sides)


def sums_of_rows(order: Sequence[int] | None) -> Graph:
    """The sum of every row of a matrix, of one after the other in an order."""
    b = Builder("rows")
    x = b.tensor("x", (3, SIZE))
    if order is None:
        b.output("result", rb.reduce(b, "sum", x, [1]))
        return b.build()
    rows = [rb.reshape(b, rb.slice_axis(b, x, 0, row, row + 1), (SIZE,)) for row in order]
    totals = [rb.broadcast(b, rb.reduce(b, "sum", row, [0]), (1,)) for row in rows]
    b.output("result", rb.concatenate(b, totals, 0))
    return b.build()


@pytest.mark.parametrize(("order", "status"), [((0, 1, 2), "proved"), ((0, 2, 1), "unknown"), ((0, 1, 1), "unknown")])
def test_sums_of_rows_one_by_one(order: tuple[int, ...], status: str) -> None:
    assert prove(Claim(sums_of_rows(order), sums_of_rows(None)), seconds=20).status == status


def test_a_maximum_inside_of_a_sum_that_is_rounded_ends_a_proof() -> None:
    (rule,) = (rule for rule in library() if rule.name == "sharded-softmax")
    outcome = prove(rule.claim(), seconds=20, grade="exact")
    assert outcome.status == "unknown"
    assert "and right is" in outcome.reason  # not that time is used up, or that terms are nested too deeply


@pytest.mark.parametrize("forgotten", [False, True])
def test_the_largest_of_three_sums(forgotten: bool) -> None:
    """Keys of a prompt and of two steps: which of the sums of steps is larger is a case of one side alone."""
    shapes = {"prompt": (8,), "first": (1,), "second": (1,)}

    def scores(b: Builder) -> list[int]:
        sums = [rb.add(b, b.tensor(f"{name}_x", shape), b.tensor(f"{name}_y", shape)) for name, shape in shapes.items()]
        return [rb.scale_by(b, one, 0.3535533905932738) for one in sums]

    b = Builder("at once")
    b.output("result", rb.reduce(b, "maximum", rb.concatenate(b, scores(b), 0), [0]))
    at_once = b.build()
    b = Builder("by cases")
    prompt, *steps = (rb.reduce(b, "maximum", one, [0]) for one in scores(b))
    later = rb.select(b, rb.compare(b, "GE", *steps), *(steps if not forgotten else steps[::-1]))
    b.output("result", rb.binary(b, ops.Maximum(), prompt, later))
    assert (prove(Claim(at_once, b.build())).status == "proved") is not forgotten
