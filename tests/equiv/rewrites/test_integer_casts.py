"""Codes of quantised tensors that are held as integers on one side and as floats on the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.equiv.rewrites.integer_casts import without_casts
from rewright.ops import Convert
from tests.equiv.rewriting import alone

Tensor = torch.Tensor
Layer = Callable[[Tensor, Tensor], Tensor]
ARGUMENTS = torch.zeros(3, 8), torch.zeros(1)


def floats(x: Tensor, s: Tensor) -> Tensor:
    return (x / s).round().clamp(-128, 127) * s


def held(dtype: torch.dtype) -> Layer:
    return lambda x, s: torch.round(x * (1 / s)).clamp(min=-128).clamp(max=127).to(dtype).float() * s


def cut_off(x: Tensor, s: Tensor) -> Tensor:
    return (x / s).clamp(-128, 127).to(torch.int8).float() * s


def from_zero(x: Tensor, s: Tensor) -> Tensor:
    return (x / s).round().clamp(0, 127).to(torch.uint8).float() * s


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int64], ids=str)
def test_what_was_rounded_is_held_as_an_integer(dtype: torch.dtype) -> None:
    verdict = equiv(rw.capture(floats, ARGUMENTS), rw.capture(held(dtype), ARGUMENTS))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


def test_a_type_that_does_not_hold_them_is_no_proof() -> None:
    unsigned = rw.capture(held(torch.uint8), ARGUMENTS)
    assert equiv(rw.capture(floats, ARGUMENTS), unsigned, explain=False).status != "proved"


@pytest.mark.parametrize("other", [cut_off, from_zero])
def test_other_codes(other: Layer) -> None:
    graphs = (rw.capture(layer, ARGUMENTS) for layer in (floats, other))
    assert equiv(*graphs, explain=False).status == "refuted"


def test_what_has_a_fraction_is_cut_off() -> None:
    for layer, count in ((cut_off, 2), (held(torch.int8), 0)):
        kept = alone(without_casts, rw.capture(layer, ARGUMENTS))
        assert sum(isinstance(node.op, Convert) for node in kept.nodes) == count
