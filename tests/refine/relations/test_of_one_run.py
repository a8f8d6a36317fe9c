"""Captures of runs: what one side fixes and the other computes tells nothing where values differ."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw

dist: Any = torch.distributed


def chosen(x: torch.Tensor, labels: torch.Tensor, *, looks: bool) -> dict[str, torch.Tensor]:
    """The sum of the rows that have a label; ``looks`` chooses them by their places."""
    if looks:
        return {"y": x[labels >= 0].sum(0)}
    return {"y": (x * (labels >= 0).unsqueeze(-1)).sum(0)}


def data() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(4, 3), torch.tensor([0, -1, 1, -1])


def ranks(mesh: DeviceMesh) -> Any:
    def own(x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        y = chosen(x, labels, looks=True)["y"]
        dist.all_reduce(y)
        return {"y": y}

    return own, tuple(value.chunk(2)[mesh.get_rank()] for value in data())


def test_labels_of_one_run_do_not_refute_a_program_for_all_labels() -> None:
    program = rw.capture_ranks(ranks, {"dp": 2}, ranks="threads")
    held = {"x": "Shard(0)", "labels": "Shard(0)"}
    free = rw.capture(lambda x, labels: chosen(x, labels, looks=False), data(), run=True)
    found = rw.refine(free, program, relations=held)
    assert found.status == "unknown"
    assert "labels" in found.reason and "run=True" in found.reason

    looked = rw.capture(lambda x, labels: chosen(x, labels, looks=True), data(), run=True)
    assert rw.refine(looked, program, relations={"x": "Shard(0)"}).status == "proved"
