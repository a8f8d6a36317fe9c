"""Kernels that look numbers up, search, write rows of known numbers, and take bits apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rewright as rw

pytest.importorskip("triton")

from rewright.frontends.triton.interpreting import interpreted
from tests.kernel import tables
from tests.kernel.blocks import any_kernel
from tests.kernel.references import normal

Tensor = torch.Tensor
WORDS = torch.tensor([-1, 0x12345678, 7, -(2**31)], dtype=torch.int32)
OTHER_ROWS = (2, 0, 9, 5, 1, 3, 4, 9)
TOKENS = torch.tensor([2, -1, 0, -1])


def padded(x: Tensor) -> Tensor:
    parts = [x[a:b] for a, b in zip(tables.STARTS, tables.STARTS[1:], strict=False)]
    return torch.stack([F.pad(part, (0, 0, 0, 5 - part.shape[0])) for part in parts])


def owners(x: Tensor) -> Tensor:
    return torch.tensor([0, 0, 0, 1, 2, 2, 2, 2, 2]) + x.long()


def reordered(x: Tensor) -> Tensor:
    return torch.stack([x[1], x[4], x[0], x[6], x[5], x[3]])


def of_four_bits(words: Tensor) -> Tensor:
    return ((words[:, None] >> (torch.arange(8, dtype=torch.int32) * 4)) & 15).flatten()


def zeroed(x: Tensor, tokens: Tensor) -> Tensor:
    return torch.where(tokens[:, None] < 0, 0.0, x)


CASES: dict[str, tuple[Any, Any, tuple[Tensor, ...], Any]] = {
    "segments": (padded, tables.pack, (normal(9, 12),), any_kernel(tables.pack, first=1)),
    "a search": (owners, tables.owner, (normal(9),), any_kernel(tables.owner, below=True)),
    "rows of lanes": (
        reordered,
        tables.spread,
        (normal(8, 12),),
        any_kernel(tables.spread, rows=(2, 0, 9, 5, 1, 3, 4, 9)),
    ),
    "bits": (of_four_bits, tables.nibbles, (WORDS,), any_kernel(tables.nibbles, step=3)),
    "a condition as a number": (lambda x: x * 2, tables.counted, (normal(37),), any_kernel(tables.counted, extra=1)),
    "one lane": (lambda x: x * 3, tables.alone, (normal(6),), any_kernel(tables.alone, other=-1)),
    "either": (zeroed, tables.first_or_zero, (normal(4, 12), TOKENS), any_kernel(tables.first_or_zero, kept=True)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_right_one_is_proved(name: str) -> None:
    reference, kernel, args, _ = CASES[name]
    found = rw.kernel(reference, kernel, args)
    assert found.status == "proved", found.reason


@pytest.mark.parametrize("name", CASES)
def test_the_wrong_one_is_not(name: str) -> None:
    reference, _, args, wrong = CASES[name]
    found = rw.kernel(reference, wrong, args)
    races = name == "one lane"  # to write to one place in some order, which happens to be the right one
    assert found.status == ("unknown" if races else "refuted"), found.reason


def test_two_instances_that_write_one_row_are_not_proved_to_be_in_order() -> None:
    def in_order(x: Tensor) -> Tensor:
        return torch.stack([x[1], x[4], x[6], torch.zeros_like(x[0]), x[5], x[3]])

    found = rw.kernel(in_order, any_kernel(tables.spread, rows=(2, 0, 9, 5, 1, 4, 2, 9)), (normal(8, 12),))
    assert found.status == "unknown" and found.runs > 0, found.reason


def test_an_argument_that_is_overwritten_by_another_one_is_no_unchanged_one() -> None:
    def sums(a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def overwriting(b: Tensor, a: Tensor) -> Tensor:  # by other names
        out = torch.empty_like(b)
        tables.overwrite_kernel[(1,)](b, a, out, 8)
        return out

    assert rw.kernel(sums, overwriting, (normal(8), normal(8) + 1)).status != "proved"


def test_casts_are_interpreted_to_the_nearest_number() -> None:
    x = normal(100)
    out = torch.empty_like(x)
    with interpreted():
        tables.rounded_kernel[(7,)](x, out, 100, 16)
    torch.testing.assert_close(out, x.bfloat16().float(), rtol=0, atol=0)


def test_iterations_are_numbers_of_the_kernel() -> None:
    x = normal(4)
    out = torch.empty_like(x)
    with interpreted():
        tables.steps_kernel[(1,)](x, out, 4)
    assert torch.equal(out, x)


def test_a_pointer_that_is_made_of_an_integer_is_no_access_out_of_bounds() -> None:
    def run(x: Tensor) -> Tensor:
        out = torch.empty(1)
        tables.addressed_kernel[(1,)](torch.tensor([x.data_ptr()]), out)
        return out

    found = rw.kernel(lambda x: x[:1], run, (normal(4),))
    assert found.status == "unknown"
