"""Programs that differ where a label is left out, and nowhere else: that label is the finding."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F

import rewright as rw
from rewright.refine.verdict import Verdict

SHAPES = (6, 16), (6,)


def whole(logits: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"loss": F.cross_entropy(logits, target)}


def verdict_of(*, ignores: bool, shift: int = 0) -> Verdict:
    """A loss over a vocabulary that two ranks share, with or without labels that do not count."""

    def build(mesh: Any) -> Any:
        group = mesh.get_group()

        def part(logits: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
            start = dist.get_rank(group) * logits.size(-1) + shift
            counts = target != -100
            labels = torch.where(counts, target, 0) if ignores else target
            mask = (labels < start) | (labels >= start + logits.size(-1))
            local = torch.where(mask, 0, labels - start)
            picked = logits.gather(-1, local.unsqueeze(-1)).squeeze(-1)
            picked = torch.where(mask, 0.0, picked)
            dist.all_reduce(picked, group=group)
            total = logits.exp().sum(-1)
            dist.all_reduce(total, group=group)
            losses = total.log() - picked
            if ignores:
                return {"loss": torch.where(counts, losses, 0.0).sum() / counts.sum()}
            return {"loss": losses.mean()}

        return part, (torch.zeros(6, 8), torch.zeros(6, dtype=torch.long))

    sequential = rw.capture(whole, (torch.zeros(SHAPES[0]), torch.zeros(SHAPES[1], dtype=torch.long)))
    relations = {"logits": "Shard(1)", "target": "Replicate()"}
    return rw.refine(sequential, rw.capture_ranks(build, mesh={"tp": 2}), relations=relations)


def test_a_label_that_only_one_side_leaves_out_is_named() -> None:
    verdict = verdict_of(ignores=False)
    assert verdict.status == "refuted"
    (finding,) = verdict.findings
    assert finding.kind == "ignored_label"
    assert finding.message.startswith("the programs agree but where target is -100: one device leaves these elements")
    assert "cross entropy at test_labels.py:" in finding.message
    assert finding.sequential is not None
    assert finding.distributed is not None
    assert finding.counterexample is not None


def test_what_differs_for_other_labels_too_is_no_matter_of_that_label() -> None:
    verdict = verdict_of(ignores=True, shift=1)
    assert verdict.status == "refuted"
    assert all(finding.kind != "ignored_label" for finding in verdict.findings)


def test_with_the_label_left_out_nothing_differs() -> None:
    assert verdict_of(ignores=True).status != "refuted"
