"""What programs make of one byte is a table of 256 numbers: masks, shifts and choices are one function or are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.equiv.rewrites.byte_tables import with_tables
from rewright.interp.program import run
from rewright.ir.graph import Graph
from tests.equiv.rewriting import alone

Code = Callable[[torch.Tensor], torch.Tensor]


def program(low: Code, high: Code, dtype: torch.dtype) -> Graph:
    """A product with codes of which two lie in a byte."""

    def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ torch.stack([low(w).float(), high(w).float()], -1).flatten(-2).T

    return rw.capture(layer, (torch.zeros(3, 8), torch.zeros(5, 4, dtype=dtype)))


def status(one: tuple[Code, Code], other: tuple[Code, Code], dtype: torch.dtype) -> str:
    return equiv(program(*one, dtype), program(*other, dtype), explain=False).status


def first(w: torch.Tensor) -> torch.Tensor:
    return w & 15


def second(w: torch.Tensor) -> torch.Tensor:
    return w >> 4


def signed(w: torch.Tensor) -> torch.Tensor:
    return ((w & 15) ^ 8) - 8


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (first, lambda w: (w & 240) >> 4, "proved"),
        (first, lambda w: (w & 240).float() / 16, "proved"),
        (first, lambda w: ((w & 240).float() / 16 + 0.25).round(), "proved"),
        (first, lambda w: ((w & 240).float() / 16).square().sqrt(), "proved"),
        (first, lambda w: ((w & 240).float() / 16 + 0.75).round(), "refuted"),
        (lambda w: w % 16, lambda w: w // 16, "proved"),
        (lambda w: w - (w // 16) * 16, second, "proved"),
        (first, lambda w: (w & 224) >> 4, "refuted"),
        (first, lambda w: w >> 3, "refuted"),
        (lambda w: w & 7, second, "refuted"),
        (second, first, "refuted"),
        (first, lambda w: (w.int() + 1 & 255) >> 4, "refuted"),
    ],
)
def test_nibbles_of_unsigned_bytes(low: Code, high: Code, expected: str) -> None:
    assert status((first, second), (low, high), torch.uint8) == expected


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("low", "expected"),
    [
        (lambda w: (w << 4) >> 4, "proved"),
        (lambda w: torch.where(w & 15 > 7, (w & 15) - 16, w & 15), "proved"),
        (lambda w: (w & 15).float() - 16 * (w & 15 >= 8).float(), "proved"),
        (lambda w: (w.int() + 8) % 16 - 8, "proved"),
        (lambda w: (w << 4) >> 3, "refuted"),
        (lambda w: torch.where(w & 15 > 8, (w & 15) - 16, w & 15), "refuted"),
        (lambda w: w & 15, "refuted"),
        (lambda w: (w.int() + 8) % 16 - 7, "refuted"),
    ],
)
def test_nibbles_with_a_sign(low: Code, expected: str) -> None:
    assert status((signed, second), (low, second), torch.int8) == expected


def test_a_byte_read_with_a_sign() -> None:
    cases = (
        (lambda w: (w ^ 128).to(torch.int8), lambda w: w.to(torch.int16) - 128, "proved"),
        (lambda w: w.to(torch.int8), lambda w: torch.where(w > 127, w.float() - 256, w.float()), "proved"),
        (lambda w: (-w).neg(), lambda w: w.float(), "proved"),
        (lambda w: w ^ 128, lambda w: w.to(torch.int16) - 128, "refuted"),
    )
    for one, other, expected in cases:
        assert status((one, one), (other, other), torch.uint8) == expected


def test_zero_points_are_numbers_that_are_added() -> None:
    """Before the cast, after it, and outside of the product."""

    def inside(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ ((w & 15).float() - 8).T

    def before(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ ((w % 16).to(torch.int8) - 8).float().T

    def outside(zero: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        return lambda x, w: x @ (w % 16).float().T - zero * x.sum(-1, keepdim=True)

    args = torch.zeros(3, 8), torch.zeros(5, 8, dtype=torch.uint8)
    for other, expected in ((before, "proved"), (outside(8), "proved"), (outside(7), "refuted")):
        assert equiv(rw.capture(inside, args), rw.capture(other, args), explain=False).status == expected


def test_codes_are_looked_up_in_a_table() -> None:
    """As 4-bit floats are: what the table holds at a code is a function of the byte."""
    levels = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    other = levels + 2e-4 * (torch.arange(16) == 3)

    def at(table: torch.Tensor) -> Code:
        return lambda w: table[(w & 15).long()]

    def written(w: torch.Tensor) -> torch.Tensor:
        small, size = w & 7, (w & 7).float()
        size = torch.where(small < 4, size / 2, torch.where(small < 6, size - 2, torch.where(small == 6, 4.0, 6.0)))
        return torch.where((w & 8) > 0, -size, size)

    for table, expected in ((levels, "proved"), (other, "refuted")):
        assert status((written, second), (at(table), second), torch.uint8) == expected


def test_the_highest_digit_is_one_of_the_number() -> None:
    for places, expected in ((7, "proved"), (6, "refuted")):
        highest = (lambda w: w > 127), second
        assert status(highest, ((lambda w, places=places: w >> places), second), torch.uint8) == expected


def test_what_only_rounding_makes_a_whole_number_is_no_table() -> None:
    """In double precision the one is ``w > 0`` as a float, over the reals it is not."""

    def saturated(w: torch.Tensor) -> torch.Tensor:
        return (w.float() * 100).tanh()

    graph = program(saturated, lambda w: torch.where(w > 3, w.float(), -torch.inf).exp(), torch.uint8)
    assert any(node.op.name == "tanh" for node in alone(with_tables, graph).nodes)


def test_functions_compute_what_they_computed() -> None:
    """Also where rounding, a division by zero or a number that does not fit is no business of a table."""

    def odd(w: torch.Tensor) -> torch.Tensor:
        halves = (w.float() / 3 + w.float() * 0.5 - (w & 3).float() * 0.25).clamp(-20, 30)
        return halves + (w // 7).float() + torch.where(w > 5, w - 3, w * 2).float() + ((w.int() * 1000) >> 2).float()

    for dtype in (torch.int8, torch.uint8):
        codes = torch.arange(256, dtype=torch.int16).to(dtype).reshape(4, 64)
        graph = rw.capture(odd, (codes,))
        other = alone(with_tables, graph)
        before, after = (run(g, {"w": codes.numpy()})["output"] for g in (graph, other))
        assert (before == after).all()
