"""What a program flattens before it reads it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.ir.graph import Graph
from rewright.optimize.planning.folding import digit_of, folded_axes, parted_axis
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.proofs import trust
from rewright.terms.index import Index, Variable, quotient, remainder
from tests.optimize.programs import normal

LOOP = Index(0, ((Variable("o"), 1),))
DIGITS = [quotient(LOOP, 6), remainder(quotient(LOOP, 2), 3), remainder(LOOP, 2)]
"""Of a loop of 4 * 3 * 2."""


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_digits_in_any_order_are_the_loop(order: tuple[int, ...]) -> None:
    shape = [(4, 3, 2)[n] for n in order]

    found = folded_axes([DIGITS[n] for n in order], shape, {"o": (0, 23)})

    assert found is not None
    assert [order[axis] for axis in found.axes] == [0, 1, 2] and found.index == LOOP


@pytest.mark.parametrize(
    ("places", "shape", "size"),
    [
        ([quotient(LOOP, 2), remainder(LOOP, 2)], (4, 3), 8),  # the digits of another shape
        ([quotient(LOOP, 3), remainder(LOOP, 3)], (2, 3), 9),  # out of range, where the next row would be read
        ([quotient(LOOP, 3), remainder(LOOP, 2)], (4, 2), 12),  # no digits of one number
        ([LOOP, LOOP], (8, 8), 8),  # a diagonal
    ],
)
def test_what_are_no_digits_stays(places: list[Index], shape: tuple[int, int], size: int) -> None:
    assert folded_axes(places, shape, {"o": (0, size - 1)}) is None


def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), label_smoothing=0.1)


def test_flattened_logits_have_kernels() -> None:
    args = normal(2, 16, 100), torch.randint(0, 100, (2, 16), generator=torch.Generator().manual_seed(1))

    fast = rw.optimize(losses, args, target="torch")

    assert fast.status == "proved", fast.reason
    torch.testing.assert_close(fast(*args), losses(*args))


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (1, 0, 2, 3), (2, 1, 0, 3)])
def test_transposed_axes_are_flattened(order: tuple[int, ...]) -> None:
    """Two of three axes are one in the program's result, so no loop of the kernel is along each of them alone."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        moved = x.permute(order)
        flat = moved.reshape(moved.shape[0], math.prod(moved.shape[1:3]), moved.shape[3])
        return torch.softmax(flat, -1) * y

    x, lengths = normal(4, 3, 2, 10), [(4, 3, 2)[n] for n in order[:3]]
    y = normal(lengths[0], lengths[1] * lengths[2], 1, seed=1)

    fast = rw.optimize(program, (x, y), target="torch")

    assert fast.status == "proved", fast.reason
    torch.testing.assert_close(fast(x, y), program(x, y))


def test_an_index_that_a_digit_is_added_to_is_two_axes() -> None:
    """The channels of a group are those before it and a digit of the loop over what the group has."""
    group, r = Index(0, ((Variable("g"), 1),)), Index(0, ((Variable("r"), 1),))
    ranges = {"g": (0, 3), "r": (0, 104)}
    places = [group * 3 + quotient(r, 35), remainder(r, 35)]

    found = parted_axis(places, (12, 35), ranges)

    assert found is not None
    assert (found.axis, found.step, found.high, found.low) == (0, 3, group, quotient(r, 35))
    assert parted_axis(places, (13, 35), ranges) is None  # three do not divide what is there
    assert parted_axis([group * 2 + quotient(r, 35), remainder(r, 35)], (12, 35), ranges) is None  # a digit of three
    assert parted_axis(places, (12, 35), {**ranges, "g": (0, 4)}) is None  # out of range


def test_group_normalisation_is_statistics_and_a_map() -> None:
    x = normal(2, 12, 7, 5)

    found = rw.optimize(lambda x: F.silu(F.group_norm(x, 4)), (x,), target="torch")

    assert found.status == "proved", found.reason
    assert found.plan is not None and len(found.plan.kernels) == 2
    torch.testing.assert_close(found(x), F.silu(F.group_norm(x, 4)))


def test_a_digit_of_a_digit_is_one() -> None:
    o = Index(0, ((Variable("o"), 1),))
    sizes = {"o": 24}

    def atom(index: Index) -> object:
        return index.terms[0][0]

    assert digit_of(atom(remainder(quotient(o, 2), 3)), sizes) == ("o", 2, 3)
    assert digit_of(atom(quotient(remainder(o, 12), 4)), sizes) == ("o", 4, 3)
    assert digit_of(atom(quotient(o, 5)), sizes) is None  # five do not divide the loop
    assert digit_of(atom(remainder(quotient(o, 2), 5)), sizes) is None
    assert digit_of(atom(quotient(o - 1, 2)), sizes) is None


def test_heads_that_share_keys_are_read_at_a_digit_of_a_batch_of_heads() -> None:
    """Head ``o`` of a batch of two with four heads reads the keys of head ``(o div 2) mod 2``, whatever the batch."""
    table = normal(2, 5)

    def program(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * table[None, :, None].expand(2, 2, 2, 5).reshape(8, 5), -1)

    found = rw.optimize(program, (normal(8, 5, seed=1), table), target="torch")

    assert found.status == "proved" and found.certificate is not None, found.reason
    torch.testing.assert_close(found(normal(8, 5, seed=1), table), program(normal(8, 5, seed=1), table))


def test_another_digit_of_a_batch_of_heads_is_not_proved() -> None:
    def keys(turned: bool) -> Graph:
        def program(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
            spread = table[None, None, :] if turned else table[None, :, None]
            return torch.softmax(x * spread.expand(2, 2, 2, 5).reshape(8, 5), -1)

        return prepare_graph(rw.capture(program, (normal(8, 5, seed=1), normal(2, 5))))

    plan = Planner(keys(False)).plan()
    other = keys(True)
    assert [node.op.name for node in plan.graph.nodes] == [node.op.name for node in other.nodes]

    assert trust(plan).evidence == "proved"
    assert trust(replace(plan, graph=other)).evidence != "proved"
