"""Peers: who has no form of a program is left out, who fails is noted, and who runs the program itself is not timed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.optimize import ours
from bench.optimize.notes import Notes, read_notes
from bench.optimize.peers import functions
from bench.optimize.program import Built, Function
from bench.optimize.programs import PROGRAMS


def test_a_program_is_called_by_the_peers_that_have_a_form_of_it(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    built = PROGRAMS["grouped"].build(size="tiny")
    assert list(functions(notes, built, ["eager", "sdpa"])) == ["eager", "sdpa"]
    assert list(functions(notes, Built(built.function, built.args), ["eager", "sdpa", "flex"])) == ["eager"]
    assert set(read_notes(notes.path)["first"]) == {"eager", "sdpa"}


def test_a_peer_that_fails_is_a_note_and_others_go_on(tmp_path: Path) -> None:
    def broken() -> Function:
        raise RuntimeError("no such kernel\nand more")

    notes = Notes(tmp_path / "notes")
    assert list(functions(notes, Built(torch.neg, (torch.ones(1),), sdpa=broken), ["sdpa", "eager"])) == ["eager"]
    assert read_notes(notes.path)["failed"] == {"sdpa": "RuntimeError: no such kernel"}


def test_what_runs_the_program_itself_says_so_and_what_was_said_before_does_not_count() -> None:
    found = ours.kernels_alone(Built(torch.neg, (torch.ones(3),)), target="torch", verify=False)
    found.notes.append("nothing was timed")
    assert ours.called(found, (torch.ones(3),))[1] == ""
    result, why = ours.called(found, (torch.ones(4),))
    assert result.tolist() == [-1.0] * 4 and why
    assert ours.called(torch.neg, (torch.ones(3),))[1] == ""


def test_what_is_proved_and_how_much_work_the_plan_does_is_said() -> None:
    found = ours.kernels_alone(PROGRAMS["layer_norm"].build(size="tiny"), target="torch", verify=False)
    facts = ours.facts(found, 0.0)
    assert (facts["status"], facts["kernels"], facts["library"]) == ("proved", 1, 0)
    assert facts["work"]["ratio"] == pytest.approx(facts["work"]["plan"] / facts["work"]["program"])
