"""Certificates of programs whose short integers may not fit are about what they count up to, and audits check that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.audit import audit
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.engine import equiv
from rewright.equiv.inputs.weights import WeightMap
from rewright.equiv.pieces import Piece, why_not
from rewright.equiv.preparing import prepare_pair
from rewright.ir.digest import digest
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.proof.checker import OtherPrograms, Refused
from rewright.proof.checker import audit as check_core
from rewright.refine.engine import answer

Layer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def program(layer: Layer, dtype: torch.dtype = torch.int8) -> Graph:
    return rw.capture(layer, (torch.zeros(3, 8), torch.zeros(5, 8, dtype=dtype)))


def alone(graph: Graph) -> RankProgram:
    return RankProgram((graph,), Mesh.of({"rank": 1}), {}, {})


def cast_first(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ (w.float() - 8).T


def cast_last(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ (w - 8).float().T


def in_steps(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x[:, :4] @ (w[:, :4] - 8).float().T + x[:, 4:] @ (w[:, 4:] - 8).float().T


def proof_without_end(left: Graph, right: Graph) -> EquivalenceCertificate:
    """What the engine writes down of programs whose integers have no end."""
    ready = prepare_pair(left, alone(right), WeightMap(), None)
    verdict = answer(ready.left, ready.right, counts=False)
    assert verdict.status == "proved"
    core = verdict.certificate
    assert core is not None
    fields = {name: getattr(core, name) for name in core.__dataclass_fields__}
    return EquivalenceCertificate(**fields, left=digest(left), right=(digest(right),), taken=ready.assumptions)


def test_a_certificate_covers_what_counts_from_the_other_end(tmp_path: Path) -> None:
    left, right = program(cast_last), program(in_steps)
    found = equiv(left, right).certificate
    assert isinstance(found, EquivalenceCertificate)
    found.save(tmp_path / "proof.json")
    again = EquivalenceCertificate.load(tmp_path / "proof.json")
    assert isinstance(again, EquivalenceCertificate)
    assert audit(again, left, alone(right)).core.equations


def test_a_proof_about_integers_without_end_is_refused() -> None:
    left, right = program(cast_last), program(cast_first)
    with pytest.raises(Refused):
        audit(proof_without_end(left, right), left, alone(right))


def test_the_checker_refuses_ranks_that_are_equal_without_an_end_alone() -> None:
    left, right = program(cast_last), alone(program(cast_first))
    found = answer(left, right, counts=False).certificate
    assert found is not None
    with pytest.raises(OtherPrograms):
        check_core(found, left, right)
    assert check_core(found, left, right, counts=False).equations


def test_bounds_of_weights_are_stated_and_checked(tmp_path: Path) -> None:
    """The codes of a checkpoint leave room for the zero point; a certificate says so, and other codes are refused."""
    left, right = program(cast_last), program(cast_first)
    codes = {"w": torch.arange(40, dtype=torch.int8).reshape(5, 8) % 16}
    verdict = equiv(left, right, (codes, codes))
    assert verdict.status == "proved"
    assert "w holds numbers from 0 to 15, as the values that were given do" in verdict.assumptions
    found = verdict.certificate
    assert isinstance(found, EquivalenceCertificate)
    found.save(tmp_path / "proof.json")
    again = EquivalenceCertificate.load(tmp_path / "proof.json")
    assert isinstance(again, EquivalenceCertificate)
    assert audit(again, left, alone(right)).core.equations
    other = {"w": codes["w"].numpy() - 8}
    with pytest.raises(OtherPrograms, match="other values of 'w'"):
        audit(again, left, alone(right), (other, {}))
    for ranges in ({}, {"w": (0.0, 127.0)}, {"w": (-128.0, 127.0)}, {**again.ranges, "x": (0.0, 1.0)}):
        with pytest.raises(Refused):
            audit(replace(again, ranges=ranges), left, alone(right))


def test_bounds_are_those_of_the_tensor_that_both_programs_have() -> None:
    """The map makes the left codes of right ones that fill their type, under the same name."""

    def from_far(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ (w.float() + 108).T

    def near(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ (w + 8).float().T

    theirs = torch.full((5, 8), 125, dtype=torch.int8)
    values = {"w": theirs - 100}, {"w": theirs}
    assert equiv(program(from_far), program(near), values, {"left:w": "w - 100"}, explain=False).status != "proved"


def test_a_piece_has_to_count_alike() -> None:
    assert "cast before" in str(why_not(Piece(program(cast_last), program(cast_first)), None, 5.0))
    assert why_not(Piece(program(cast_last), program(cast_last)), None, 5.0) is None
