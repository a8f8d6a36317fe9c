"""Sums that ranks take in other steps than the model does: right where the same elements are added, as often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict

_dist: Any = dist
Tensor = torch.Tensor
Model = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Program:
    """A function of rows and a matrix; what ranks compute of their rows before and after they are added up."""

    model: Model
    own: Model
    after: Callable[[Tensor], Tensor]
    rows: int = 4


def same(x: Tensor) -> Tensor:
    return x


def refined(program: Program) -> Verdict:
    w = torch.zeros(6, 6)

    def parallel(mesh: DeviceMesh) -> Any:
        def rank(x: Tensor, w: Tensor) -> Tensor:
            total = program.own(x, w).clone()
            _dist.all_reduce(total, group=mesh.get_group())
            return program.after(total)

        return rank, (torch.zeros(program.rows // 2, 6), w)

    def sequential(x: Tensor, w: Tensor) -> Tensor:
        return program.model(x, w)

    model = rw.capture(sequential, (torch.zeros(program.rows, 6), w))
    given = {"x": "Shard(0)", "w": "Replicate()"}
    expected = {"output": "Replicate()"}
    return rw.refine(model, rw.capture_ranks(parallel, {"dp": 2}), given, expected, audit=True)


RIGHT = {
    "a sum of sums": Program(lambda x, w: x.sum((0, 1)), lambda x, w: x.sum(1).sum(0), same),
    "a mean of means": Program(lambda x, w: x.mean(), lambda x, w: x.mean(1).mean(0) / 2, same),
    "rows one by one": Program(lambda x, w: x.sum((0, 1)), lambda x, w: x[0].sum() + x[1].sum(), same),
    "rows added first": Program(lambda x, w: x.sum((0, 1)), lambda x, w: (x[0] + x[1]).sum(), same),
    "columns one by one": Program(lambda x, w: (x * x).sum(), lambda x, w: sum((x * x).sum(0).unbind(0)), same),  # type: ignore[arg-type, return-value]
    "one row each": Program(lambda x, w: x.sum(1).exp().mean(0), lambda x, w: x.sum(1).exp()[0] / 2, same, rows=2),
    "summed, then multiplied": Program(lambda x, w: (x @ w).sum(0).tanh(), lambda x, w: x.sum(0) @ w, torch.tanh),
    "multiplied, then summed": Program(lambda x, w: (x.sum(0) @ w).tanh(), lambda x, w: (x @ w).sum(0), torch.tanh),
    "sums of two tensors": Program(
        lambda x, w: (x + w[:1]).sum().exp(), lambda x, w: x.sum() + 2 * w[0].sum(), torch.exp
    ),
}

WRONG = {
    "one axis only": Program(lambda x, w: x.sum((0, 1)), lambda x, w: x.sum(1)[0], same),
    "a mean over another count": Program(lambda x, w: x.mean(), lambda x, w: x.mean(1).mean(0) / 4, same),
    "one row twice": Program(lambda x, w: x.sum((0, 1)), lambda x, w: x[0].sum() + x[0].sum(), same),
    "another axis": Program(lambda x, w: (x @ w).sum(0).tanh(), lambda x, w: x.sum(0) @ w.T, torch.tanh),
    "a mean for a sum": Program(lambda x, w: (x.sum(0) @ w).tanh(), lambda x, w: (x @ w).mean(0), torch.tanh),
    "squares of sums": Program(lambda x, w: (x * x).sum(), lambda x, w: x.sum(0).square().sum(), same),
    "an addend that all ranks have": Program(
        lambda x, w: (x.sum() + w.sum()).exp(), lambda x, w: x.sum() + w.sum(), torch.exp
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", RIGHT)
def test_sums_in_other_steps(name: str) -> None:
    verdict = refined(RIGHT[name])
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize("name", WRONG)
def test_other_sums(name: str) -> None:
    assert refined(WRONG[name]).status == "refuted"
