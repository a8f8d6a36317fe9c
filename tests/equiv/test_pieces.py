"""Certificates in pieces: what they prove, what is refused, and what is in a file."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.cli.main import run as command
from rewright.equiv.pieces import PIECES, Piece, PiecewiseCertificate, Use, audit, follows
from rewright.frontends.files import save
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_with_places
from rewright.optimize.proving.composing import Composed, Known, compose_proof
from rewright.optimize.proving.pieces import prove_piece
from rewright.optimize.proving.refusal import NotComposed
from rewright.proof.checker import OtherPrograms, Refused

LAYERS = 4


def layers(x: torch.Tensor, weights: list[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    """Attention with a residual, so many times, with weights of its own each time."""
    for w in weights:
        scores = ((x @ w) @ x.transpose(-1, -2) / 2).masked_fill(~mask, float("-inf"))
        x = x + torch.softmax(scores, -1) @ x
    return x


def arguments() -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
    return torch.zeros(2, 6, 4), [torch.zeros(4, 4) for _ in range(LAYERS)], torch.zeros(6, 6, dtype=torch.bool)


@cache
def proof() -> Composed:
    program = rw.capture(layers, arguments())
    ready, made = prepare_with_places(program)
    return compose_proof(prove_piece, program, Planner(ready).plan(), made, 20.0)


def test_layers_that_repeat_are_proved_once_and_the_checker_confirms_their_uses() -> None:
    found = proof()

    joined = audit(found.certificate, found.program, found.written)

    assert joined.uses == len(found.certificate.uses)
    assert joined.pieces < joined.uses
    assert found.certificate.assumptions


def test_a_plan_that_computes_something_else_has_no_proof() -> None:
    program = rw.capture(layers, arguments())
    other = rw.capture(lambda x, weights, mask: layers(x, weights[::-1], mask), arguments())
    ready, made = prepare_with_places(other)

    assert len(program.nodes) == len(other.nodes)
    with pytest.raises(NotComposed):
        compose_proof(prove_piece, program, Planner(ready).plan(), made, 5.0)


def test_what_was_proved_for_one_plan_needs_no_second_proof_and_proves_nothing_else() -> None:
    known = Known({digest(p.left) + digest(p.right): p for p in proof().certificate.pieces})
    program = rw.capture(layers, arguments())
    other = rw.capture(lambda x, weights, mask: layers(x, weights[::-1], mask), arguments())

    ready, made = prepare_with_places(program)
    again = compose_proof(
        prove_piece, program, Planner(ready).plan(), made, 5.0, 0.0, known
    )  # no time for anything new
    assert audit(again.certificate, again.program, again.written).uses == len(again.certificate.uses)

    ready, made = prepare_with_places(other)
    with pytest.raises(NotComposed):
        compose_proof(prove_piece, program, Planner(ready).plan(), made, 5.0, 0.0, known)


def test_what_is_assumed_is_said_of_the_names_of_the_program() -> None:
    def program(tokens: torch.Tensor, table: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.softmax(table[tokens] @ w, -1) @ w, -1)

    args = torch.zeros(2, 3, dtype=torch.long), torch.zeros(50, 4), torch.zeros(4, 4)
    ready, made = prepare_with_places(graph := rw.capture(program, args, guards_queries=True))

    found = compose_proof(prove_piece, graph, Planner(ready).plan(), made, 5.0)

    assert any("x0" in text or "x1" in text for text in found.certificate.assumptions)
    joined = audit(found.certificate, found.program, found.written)
    assert any("values of tokens lie in" in text for text in joined.assumptions)
    assert not any("x0" in text or "x1" in text for text in joined.assumptions)


def changed(number: int, **fields: object) -> PiecewiseCertificate:
    """The certificate with one use that says something else."""
    found = proof().certificate
    uses = list(found.uses)
    uses[number] = replace(uses[number], **fields)  # type: ignore[arg-type]
    return replace(found, uses=tuple(uses))


def refused(certificate: PiecewiseCertificate) -> str:
    found = proof()
    with pytest.raises(Refused) as error:
        follows(certificate, found.program, found.written)
    return str(error.value)


def test_uses_that_do_not_follow_are_refused() -> None:
    uses = proof().certificate.uses
    last = len(uses) - 1
    use = uses[last]
    (name, mine, other), *rest = use.leaves

    assert "no piece" in refused(changed(last, piece=99))
    assert "something else" in refused(changed(last, left=use.left - 1))
    assert "something else" in refused(changed(last, right=use.right - 1))
    assert "not known to be equal" in refused(changed(last, leaves=((name, mine, other - 1), *rest)))
    assert "not known to be equal" in refused(changed(last, leaves=((name, use.left, use.right), *rest)))
    assert "not the inputs" in refused(changed(last, leaves=tuple(rest)))
    assert "not the inputs" in refused(changed(last, leaves=(*use.leaves, use.leaves[0])))


def test_values_of_other_layers_do_not_stand_for_those_of_a_layer() -> None:
    """The weights of the first layer in the place of those of the second one: both are known, and not what is read."""
    found = proof().certificate
    repeated = next(use.piece for n, use in enumerate(found.uses) if use.piece in {u.piece for u in found.uses[:n]})
    alike = [n for n, use in enumerate(found.uses) if use.piece == repeated]
    first, second = found.uses[alike[0]], found.uses[alike[-1]]

    assert "something else" in refused(changed(alike[-1], leaves=first.leaves))
    assert "something else" in refused(changed(alike[-1], left=first.left, leaves=second.leaves))


def test_a_use_that_is_left_out_is_missed() -> None:
    found, (output,) = proof(), proof().program.outputs.values()
    kept = tuple(use for use in found.certificate.uses if use.left != output)

    assert "output" in refused(replace(found.certificate, uses=kept))
    assert "not known to be equal" in refused(replace(found.certificate, uses=found.certificate.uses[1:]))


def swapped(graph: Graph) -> Graph:
    """A program with two of its nodes for one another, of which it then computes something else."""
    return replace(graph, outputs={name: p - 1 for name, p in graph.outputs.items()})


def test_pieces_whose_sides_differ_are_refused() -> None:
    found = proof().certificate
    for number, piece in enumerate(found.pieces[:3]):
        others = (
            replace(piece, right=swapped(piece.right)),
            replace(piece, left=swapped(piece.left)),
            Piece(piece.left, swapped(piece.right)),
        )
        for other in others:
            pieces = (*found.pieces[:number], other, *found.pieces[number + 1 :])
            with pytest.raises(RewrightError):
                audit(replace(found, pieces=pieces), proof().program, proof().written)


def test_other_programs_are_told_apart() -> None:
    found = proof()
    with pytest.raises(OtherPrograms):
        audit(found.certificate, found.program, found.program)
    with pytest.raises(OtherPrograms):
        audit(found.certificate, found.written, found.written)


def test_a_file_is_read_again_and_one_that_was_changed_is_refused(tmp_path: Path) -> None:
    found = proof()
    path, left, right = (tmp_path / name for name in ("c.json", "left.json", "right.json"))
    found.certificate.save(path)
    save(found.program, left)
    save(found.written, right)

    again = PIECES.load(path)
    assert isinstance(again, PiecewiseCertificate)
    assert again.uses == found.certificate.uses
    audit(again, found.program, found.written)
    assert command(["audit", str(path), "--left", str(left), "--right", str(right)]) == 0
    assert command(["audit", str(path), "--left", str(left), "--right", str(left)]) == 3

    entries = json.loads(path.read_text())
    entries["uses"] = entries["uses"][:-1]
    path.write_text(json.dumps(entries))
    assert command(["audit", str(path), "--left", str(left), "--right", str(right)]) != 0
    path.write_text(json.dumps({**entries, "uses": [[0, -1, 0, []]]}))
    assert command(["audit", str(path), "--left", str(left), "--right", str(right)]) == 3


def test_a_use_of_a_piece_is_about_nodes_that_exist() -> None:
    found = proof().certificate
    for position in (-1, 10**6):
        refused(replace(found, uses=(*found.uses, Use(0, position, position, found.uses[0].leaves))))
