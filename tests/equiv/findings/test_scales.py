"""Programs that differ on small or on large inputs only, and equal ones that round most there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
import torch.nn.functional as functional

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.equiv.findings.scales import told_apart
from rewright.ir.placement import Mesh, RankProgram
from rewright.refine.relations.known import input_relations
from rewright.refine.twin.twin import Twin, make_twin
from tests.equiv.written_pairs import SAME, Pair

Tensor = torch.Tensor
ROWS = (torch.zeros(3, 8),)


def norm(x: Tensor, place: str) -> Tensor:
    mean = x.square().mean(-1, keepdim=True)
    return x / (torch.sqrt(mean + 1e-6) if place == "below" else torch.sqrt(mean) + 1e-6)


def capped(x: Tensor, lowest: float) -> Tensor:
    return x.clamp(min=lowest, max=7.0) + 1


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (lambda x: norm(x, "below"), lambda x: norm(x, "after"), "eps"),
        (lambda x: capped(x, -7.0), lambda x: capped(x, -8.0), "wrong_constant"),
    ],
)
def test_what_only_shows_at_another_size(
    left: Callable[[Tensor], Tensor], right: Callable[[Tensor], Tensor], kind: str
) -> None:
    verdict = equiv(rw.capture(left, ROWS), rw.capture(right, ROWS))
    assert verdict.status == "refuted"
    assert "times as large" in verdict.reason
    (finding,) = verdict.findings
    assert finding.kind == kind
    assert finding.counterexample is not None


def twin_of(pair: Pair) -> Twin:
    left, right = (rw.capture(lambda *x, side=side: side(*x), pair.arguments) for side in (pair.left, pair.right))
    program = RankProgram((right,), Mesh.of({"rank": 1}), {}, {})
    known = input_relations(left, program, None)
    made = make_twin(left, replace(program, inputs={**known.inferred.first, **known.placements}))
    assert isinstance(made, Twin)
    return made


def _rough(left: Callable[[Tensor], Tensor], right: Callable[[Tensor], Tensor]) -> Pair:
    return Pair(left, right, ROWS)


ROUGH = {
    "exponentials that overflow": _rough(lambda x: x.softmax(-1), lambda x: torch.exp(x) / torch.exp(x).sum(-1, True)),
    "logarithms of zero": _rough(lambda x: x.log_softmax(-1), lambda x: torch.log(x.softmax(-1))),
    "cubes": _rough(lambda x: torch.exp(x**3), lambda x: torch.exp(x * x) ** x),
    "cancellation": _rough(
        lambda x: functional.layer_norm(x.sigmoid(), (8,), eps=1e-20),
        lambda x: functional.layer_norm(x.sigmoid() - 1e12, (8,), eps=1e-20),
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [*SAME, *ROUGH])
def test_rounding_at_another_size_tells_nothing_apart(name: str) -> None:
    assert told_apart(twin_of({**SAME, **ROUGH}[name])) is None
