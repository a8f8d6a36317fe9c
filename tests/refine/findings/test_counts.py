"""A loss is divided by a count of the rank's own elements, as where ``ignore_index`` leaves some of them out."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

import rewright as rw
from rewright.refine.verdict import Verdict


def compared(*, reduces: bool) -> Verdict:
    """A sum over elements that count, divided by how many these are, on one device and as addends of two ranks."""

    def whole(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": x.sum() / (x > 0).sum()}

    def build(mesh: Any) -> Any:
        def part(x: torch.Tensor) -> dict[str, torch.Tensor]:
            count = (x > 0).sum()
            if reduces:
                dist.all_reduce(count, group=mesh.get_group())
            return {"loss": x.sum() / count}

        return part, (torch.zeros(4, 5),)

    ranks = rw.capture_ranks(build, mesh={"dp": 2})
    return rw.refine(rw.capture(whole, (torch.zeros(8, 5),)), ranks, {"x": "Shard(0)"}, {"loss": "Partial(sum)"})


def test_a_count_of_all_ranks_is_proved() -> None:
    assert compared(reduces=True).status == "proved"


def test_the_count_is_told_and_not_the_sum_that_may_be_addends() -> None:
    verdict = compared(reduces=False)
    assert verdict.status == "refuted"
    first = verdict.findings[0]
    assert first.kind == "missing_reduction"
    assert first.distributed is not None and first.sequential is not None
    assert "count = (x > 0).sum()" in source(first.distributed.file, first.distributed.line)
    assert "x.sum() / (x > 0).sum()" in source(first.sequential.file, first.sequential.line)
    assert first.suggestion is not None and first.suggestion.startswith("insert all_reduce over dp")


def source(file: str, line: int) -> str:
    with open(file, encoding="utf-8") as lines:
        return lines.read().splitlines()[line - 1]
