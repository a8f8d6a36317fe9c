"""Meshes of many ranks are captured in part: what was not captured is named, and what is not alike is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from zoo.steps import both_ways, pair

DEGREE = 20


def mean(x: torch.Tensor) -> torch.Tensor:
    return x.mean(0)


def ranks(change: Callable[[int, torch.Tensor], torch.Tensor]) -> Callable[[DeviceMesh], Any]:
    """Every rank takes its rows of a tensor that all hold, and all add up; some rank may do something else."""

    def build(mesh: DeviceMesh) -> Any:
        rank = mesh.get_rank()

        def program(x: torch.Tensor) -> torch.Tensor:
            part = change(rank, x[2 * rank : 2 * rank + 2]).sum(0) / x.shape[0]
            dist.all_reduce(part)
            return part

        return program, (torch.randn(2 * DEGREE, 3),)

    return build


def verdict(change: Callable[[int, torch.Tensor], torch.Tensor], **how: Any) -> Any:
    program = rw.capture_ranks(ranks(change), {"dp": DEGREE}, **how)
    return rw.refine(rw.capture(mean, (torch.randn(2 * DEGREE, 3),)), program)


def test_some_ranks_speak_for_all() -> None:
    found = verdict(lambda rank, x: x)
    assert found.status == "proved", found.reason
    assert any("of 20 ranks those numbered 0, 1, 10, 19 were captured" in text for text in found.assumptions)


def test_every_rank_is_captured_where_that_is_wanted() -> None:
    found = verdict(lambda rank, x: x, all_ranks=True)
    assert found.status == "proved"
    assert not any("captured" in text for text in found.assumptions)


@pytest.mark.parametrize("odd", [0, 1, 10, 19])
def test_a_rank_of_those_captured_that_does_something_else(odd: int) -> None:
    found = verdict(lambda rank, x: 2 * x if rank == odd else x)
    assert found.status == "refuted"
    assert not any("captured" in text for text in found.assumptions)


def test_a_wrong_rank_that_is_not_captured_is_what_the_verdict_assumes_away() -> None:
    def odd(rank: int, x: torch.Tensor) -> torch.Tensor:
        return 2 * x if rank == 7 else x

    assert any("affine" in text for text in verdict(odd).assumptions)
    assert verdict(odd, all_ranks=True).status == "refuted"


@pytest.mark.slow
def test_a_step_with_tensor_parallelism_and_sharded_data() -> None:
    step = pair({"dp": 8, "tp": 4}, both_ways)
    sequential, program = rw.capture(*step.sequential()), rw.capture_ranks(step.parallel, step.mesh)
    found = rw.refine(sequential, program, relations=step.relations)
    assert found.status == "proved", found.reason
    assert any("of 32 ranks" in text for text in found.assumptions)
