"""Maxima of masked scores: what is minus infinity under a condition that only the data decides."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.reference import softmax
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove
from tests.programs import Builder

SIZE = 10
"""Too many terms to be written out."""


class Masked(Builder):
    """A program of scores, values and two masks."""

    def __init__(self, size: int = SIZE) -> None:
        super().__init__("masked")
        self.scores, self.values = self.tensor("scores", (size,)), self.tensor("values", (size,))
        self.mask, self.other = (self.tensor(name, (size,), DType.BOOL) for name in ("mask", "other"))

    def infinity_like(self, x: int) -> int:
        return rb.splat_like(self, float("-inf"), x)

    def masked(self, mask: int | None = None) -> int:
        return rb.select(self, self.mask if mask is None else mask, self.scores, self.infinity_like(self.scores))

    def maximum(self, x: int) -> int:
        return rb.reduce(self, "maximum", x, [0], keep=True)

    def exponential(self, x: int) -> int:
        return self.add(ops.Exponential(), x)

    def total(self, x: int) -> int:
        return rb.reduce(self, "sum", x, [0], keep=True)

    def or_else(self, x: int, default: float) -> int:
        """A maximum, or a number where it is one of nothing."""
        empty = rb.compare(self, "EQ", x, self.infinity_like(x))
        return rb.select(self, empty, rb.splat_like(self, default, x), x)


def whole(b: Masked) -> int:
    return b.total(rb.multiply(b, softmax.softmax(b, b.masked(), 0), b.values))


def safe(b: Masked) -> int:
    return b.total(rb.multiply(b, softmax.safe_softmax(b, b.masked(), 0), b.values))


def quotient_last(b: Masked) -> int:
    parts = softmax.exponentials(b, b.masked(), 0)
    return rb.divide(b, b.total(rb.multiply(b, parts.values, b.values)), parts.total)


def of_another_mask(b: Masked) -> int:
    return b.total(rb.multiply(b, softmax.softmax(b, b.masked(b.other), 0), b.values))


def shifted_by_the_maximum_of_all(b: Masked) -> int:
    powers = b.exponential(rb.subtract(b, b.masked(), b.maximum(b.scores)))
    return rb.divide(b, b.total(rb.multiply(b, powers, b.values)), b.total(powers))


def in_blocks(guarded: bool, forgotten: bool = False) -> Callable[[Masked], int]:
    """Two blocks with a maximum each, as flash attention has them; ``forgotten``: one is not scaled."""

    def program(b: Masked) -> int:
        blocks: list[tuple[int, int, int, int]] = []
        for start in (0, SIZE // 2):
            own = rb.slice_axis(b, b.masked(), 0, start, start + SIZE // 2)
            values = rb.slice_axis(b, b.values, 0, start, start + SIZE // 2)
            maximum = b.maximum(own)
            shift = b.or_else(maximum, 0.0) if guarded else maximum
            powers = b.exponential(rb.subtract(b, own, shift))
            blocks.append((maximum, shift, b.total(powers), b.total(rb.multiply(b, powers, values))))
        largest = rb.binary(b, ops.Maximum(), blocks[0][0], blocks[1][0])
        sums: list[int] = []
        for part in (2, 3):
            scaled = [rb.multiply(b, b.exponential(rb.subtract(b, own[1], largest)), own[part]) for own in blocks]
            sums.append(rb.add(b, blocks[0][part] if forgotten else scaled[0], scaled[1]))
        return rb.divide(b, sums[1], sums[0])

    return program


def graph(program: Callable[[Masked], int], size: int = SIZE) -> Graph:
    built = Masked(size)
    built.output("result", program(built))
    return built.build()


def status(left: Callable[[Masked], int], right: Callable[[Masked], int]) -> str:
    return prove(Claim(graph(left), graph(right)), seconds=20).status


def test_the_quotient_leaves_the_sum_of_masked_exponentials() -> None:
    outcome = prove(Claim(graph(whole), graph(quotient_last)), seconds=20)
    assert outcome.status == "proved", outcome.reason


def test_a_softmax_that_is_zero_where_all_is_masked_is_itself_and_no_plain_one() -> None:
    assert status(safe, safe) == "proved"
    assert status(safe, whole) == "unknown"


def test_blocks_are_the_whole_where_no_block_is_taken_from_minus_infinity() -> None:
    assert status(whole, in_blocks(guarded=True)) == "proved"
    # A block of which all is masked is not a number, where the whole is one.
    assert status(whole, in_blocks(guarded=False)) == "unknown"


@pytest.mark.parametrize("wrong", [of_another_mask, in_blocks(guarded=True, forgotten=True)])
def test_what_differs_is_not_proved(wrong: Callable[[Masked], int]) -> None:
    assert status(whole, wrong) == "unknown"


def test_the_shift_need_not_be_by_the_maximum_of_what_is_present() -> None:
    # Of nothing one is 0 / 0, and the other one infinity less infinity: neither is a number.
    assert status(quotient_last, shifted_by_the_maximum_of_all) == "proved"
    assert status(lambda b: b.or_else(b.maximum(b.masked()), 0.0), lambda b: b.maximum(b.masked())) == "unknown"


@pytest.mark.parametrize("kind", ["minimum", "minimum of all", "twice", "minus"])
def test_what_may_be_infinite_is_never_taken_for_a_number(kind: str) -> None:
    def value(b: Masked) -> int:
        maximum = b.maximum(b.masked())
        if kind == "minimum":
            return rb.binary(b, ops.Minimum(), maximum, rb.reduce(b, "minimum", b.values, [0], keep=True))
        if kind == "minimum of all":
            both = rb.concatenate(b, [rb.broadcast(b, maximum, (SIZE,)), b.values], 0)
            return rb.reduce(b, "minimum", both, [0], keep=True)
        return rb.scale_by(b, maximum, 2.0 if kind == "twice" else -1.0)

    def is_infinite(b: Masked) -> int:
        found = value(b)
        infinity = rb.splat_like(b, float("inf" if kind == "minus" else "-inf"), found)
        return rb.select(
            b, rb.compare(b, "EQ", found, infinity), rb.splat_like(b, 1.0, found), rb.splat_like(b, 0.0, found)
        )

    assert differ(graph(is_infinite), graph(never), 0)
    assert status(is_infinite, never) == "unknown"
    assert status(never, is_infinite) == "unknown"


def never(b: Masked) -> int:
    return rb.scale_by(b, b.total(b.values), 0.0)


class Drawn:
    """Random programs of masked scores, and the same with one choice made otherwise."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.choices = [(self.source.randrange(_KINDS), self.source.random(), self.source.random()) for _ in range(9)]

    def edited(self) -> Drawn:
        other = Drawn(0)
        other.choices = list(self.choices)
        for _ in range(self.source.choice([1, 1, 2])):
            place = self.source.randrange(len(self.choices))
            kind, one, another = self.choices[place]
            changed = (
                (self.source.randrange(_KINDS), one, another),
                (kind, another, one),
                (kind, self.source.random(), one),
            )
            other.choices[place] = self.source.choice(changed)
        return other

    def program(self, b: Masked) -> int:
        pool = [b.scores, b.masked(), b.masked(b.other), b.values]
        pool += [rb.broadcast(b, b.maximum(x), (SIZE,)) for x in pool[1:3]]
        for kind, one, another in self.choices:
            x, y = (pool[int(share * len(pool))] for share in (one, another))
            pool.append(_applied(b, kind, x, y))
        return b.maximum(pool[-1]) if self.choices[0][1] < 0.3 else b.total(pool[-1])


def _applied(b: Masked, kind: int, x: int, y: int) -> int:
    if kind < 4:
        return rb.binary(b, (ops.Subtract(), ops.Add(), ops.Maximum(), ops.Multiply())[kind], x, y)
    if kind == 4:
        return b.exponential(x)
    if kind == 5:
        return rb.select(b, b.mask, x, y)
    if kind == 6:
        return rb.select(b, rb.compare(b, "EQ", x, b.infinity_like(x)), rb.splat_like(b, 0.0, x), y)
    if kind == 7:
        return rb.broadcast(b, b.maximum(x), (SIZE,))
    if kind == 8:
        return rb.select(b, rb.compare(b, "GE", x, y), x, b.values)
    if kind == 9:
        return rb.binary(b, ops.Minimum(), x, y)
    if kind == 10:
        return rb.broadcast(b, rb.reduce(b, "minimum", x, [0], keep=True), (SIZE,))
    return rb.scale_by(b, x, -1.0 if kind == 11 else 2.0)


_KINDS = 13


def inputs(source: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Numbers with all and none masked by either mask, and with masks at random."""
    nothing, everything = np.zeros(SIZE, bool), np.ones(SIZE, bool)
    masks = [nothing, everything, *(source.random(SIZE) < 0.5 for _ in range(3))]
    for mask, other in itertools.product(masks, masks):
        numbers = {name: source.normal(size=SIZE) for name in ("scores", "values")}
        yield {**numbers, "mask": mask, "other": other}


def differ(left: Graph, right: Graph, seed: int) -> bool:
    with np.errstate(all="ignore"):
        for given in inputs(np.random.default_rng(seed)):
            pair = [run(side, given)["result"] for side in (left, right)]
            if not np.allclose(*pair, rtol=1e-9, atol=1e-9, equal_nan=True):
                return True
    return False


def hunt(seed: int) -> tuple[bool, bool]:
    """Whether a random pair is proved, and whether numbers tell it apart."""
    first = Drawn(seed)
    sides = graph(first.program), graph(first.edited().program)
    if prove(Claim(*sides), seconds=2).status != "proved":
        return False, False
    return True, differ(*sides, seed)


@pytest.mark.parametrize("start", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_no_pair_is_proved_that_numbers_or_their_absence_tell_apart(start: int) -> None:
    found = {seed: hunt(seed) for seed in range(start, start + (60 if start == 0 else 2000))}
    assert [seed for seed, (_, wrong) in found.items() if wrong] == []
    assert sum(proved for proved, _ in found.values()) >= 5
