"""A step: outputs and gradients of arguments, and of parameters where the program is a module."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.optimize import outputs
from bench.optimize.gradients import error, gradients_of, measure
from bench.optimize.notes import Notes, read_notes
from bench.optimize.program import Built
from bench.optimize.programs import PROGRAMS
from bench.optimize.times import Wanted


def test_a_step_gives_the_outputs_and_the_gradients_of_what_is_floating() -> None:
    built = Built(lambda x, n: x.square() * n, (torch.tensor([3.0]), torch.tensor([2])))
    (result, gradient) = gradients_of(built)()
    assert (result.item(), gradient.item()) == (18.0, pytest.approx(12.0 / 7))
    assert not built.args[0].requires_grad


def test_a_module_has_gradients_of_its_parameters() -> None:
    layer = torch.nn.Linear(3, 2)
    found = gradients_of(Built(layer, (torch.ones(1, 3),)))()
    assert [tuple(t.shape) for t in found] == [(1, 2), (1, 3), (2, 3), (2,)]


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")  # of PyTorch 2.11
def test_a_step_is_timed_and_compared_with_float64(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    measure(notes, PROGRAMS["lora"], Wanted(torch.float32, "tiny", ["eager"], 2, 5.0))
    row = read_notes(notes.path)
    assert (row["times"]["eager"]["runs"], row["doing"]) == (2, "the end")
    assert row["error 1"]["eager"] < 1e-6


@pytest.mark.parametrize("name", [p.name for p in PROGRAMS.values() if p.backward])
def test_gradients_are_what_they_are_in_float64(name: str) -> None:
    built = PROGRAMS[name].build(size="tiny")
    found, exact = gradients_of(built)(), gradients_of(outputs.in_double(built))()
    assert len(found) >= 2
    assert error(found, exact) < 2e-5
