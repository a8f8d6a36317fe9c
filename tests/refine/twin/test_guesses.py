"""Placements that are read off values: one draw may leave open which it is."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw

dist: Any = torch.distributed
EXPERTS = 2


def chosen(x: torch.Tensor, padding: torch.Tensor, router: torch.Tensor, group: Any = None) -> dict[str, torch.Tensor]:
    """How many rows choose any expert: of few whole numbers many are equal."""
    hot = F.one_hot(torch.softmax(x @ router, -1).argmax(-1), EXPERTS) * ~padding.unsqueeze(-1)
    counts = hot.sum(0)
    if group is not None:
        dist.all_reduce(counts, group=group)
    return {"total": counts.sum(-1)}


def parts(mesh: DeviceMesh) -> tuple[Any, tuple[Any, ...]]:
    router = torch.zeros(4, EXPERTS)
    return chosen, (torch.zeros(2, 1, 4), torch.zeros(2, 1, dtype=torch.bool), router, mesh.get_group("tp"))


def test_whole_numbers_that_fit_two_placements_on_one_draw_refute_nothing() -> None:
    padding = torch.zeros(4, 2, dtype=torch.bool)
    sequential = rw.capture(chosen, (torch.zeros(4, 2, 4), padding, torch.zeros(4, EXPERTS)))
    program = rw.capture_ranks(parts, {"dp": 2, "tp": 2})
    split = ["Shard(1)", "Shard(0)"]
    held = {"x": split, "padding": split, "router": ["Replicate()", "Replicate()"]}
    for expect in ({"*": ["Shard(0)", "Replicate()"]}, None):
        found = rw.refine(sequential, program, relations=held, expect=expect)
        assert found.status != "refuted", found.reason
