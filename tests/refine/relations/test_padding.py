"""Rows of ranks that no tensor of the sequential program has: a vocabulary of 7 that is padded to 8, over two ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import rewright as rw
from rewright.ir.errors import Refused, RewrightError
from rewright.ir.placement import RankProgram
from rewright.proof.checker import audit

STATED = {"w": "concat([w@0, w@1[0:3, :]], axis=0)", "w@1[3:4, :]": "any"}
TOLD = "w@1[3:4, 0:4] may hold anything, and nothing is said of what becomes of it"


class Head(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(rows, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w.t()


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0]


def step(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    loss = torch.logsumexp(model(x), -1).sum()
    loss.backward()
    return {"loss": loss}


def on_ranks(masks: bool) -> RankProgram:
    def parallel(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = model(x)
        if masks:
            logits = logits.masked_fill(torch.arange(4) + 4 * dist.get_rank() >= 7, float("-inf"))
        total: Any = Sum.apply(torch.exp(logits).sum(-1))
        loss = torch.log(total).sum()
        loss.backward()
        return {"loss": loss}

    return rw.capture_ranks(lambda _: (parallel, (Head(4), torch.zeros(2, 4))), mesh={"tp": 2})


SEQUENTIAL = rw.capture(step, (Head(7), torch.zeros(2, 4)))


def test_padding_that_is_masked_is_proved_whatever_it_holds() -> None:
    program = on_ranks(masks=True)
    verdict = rw.refine(SEQUENTIAL, program, STATED, audit=True)
    assert verdict.status == "proved", verdict.reason
    assert TOLD in verdict.assumptions
    assert str(verdict.relation["grad:w"]) == "grad:w = concat([grad:w@0, grad:w@1[0:3, :]], axis=0)"
    assert verdict.certificate is not None
    audit(verdict.certificate, SEQUENTIAL, program)


def test_padding_that_is_read_is_refuted() -> None:
    assert rw.refine(SEQUENTIAL, on_ranks(masks=False), STATED).status == "refuted"


def test_a_certificate_has_to_say_what_it_leaves_open() -> None:
    program = on_ranks(masks=True)
    found = rw.refine(SEQUENTIAL, program, STATED).certificate
    assert found is not None
    silent = replace(found, assumptions=tuple(text for text in found.assumptions if text != TOLD))
    with pytest.raises(Refused, match="may hold anything"):
        audit(silent, SEQUENTIAL, program)


def test_a_part_that_is_left_out_has_to_be_named() -> None:
    with pytest.raises(RewrightError, match='say "w@1\\[3:4, :\\]" = "any"'):
        rw.refine(SEQUENTIAL, on_ranks(masks=True), {"w": STATED["w"]})


@pytest.mark.parametrize("key", ["w@5[3:4, :]", "v@1[0:1]", "w@1[9:10, :]", "w@1[1, :]"])
def test_a_part_that_does_not_exist_is_an_error(key: str) -> None:
    with pytest.raises(RewrightError):
        rw.refine(SEQUENTIAL, on_ranks(masks=True), {"w": STATED["w"], key: "any"})
