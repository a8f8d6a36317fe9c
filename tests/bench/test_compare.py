"""The comparison with tests on ranks: its programs are those of the gallery, and its batches are what it says."""

from __future__ import annotations

import torch

from bench.compare import _FILE, CASES, GALLERY, draw, run


def test_every_program_is_in_the_gallery() -> None:
    assert {case.file for case in CASES} <= {match["name"] for match in _FILE.finditer(GALLERY.read_text())}


def test_batches_are_drawn_with_the_labels_that_were_asked_for() -> None:
    plain, padded = (case for case in CASES if case.file == "vocabulary.py")
    args = torch.zeros(6, 16), torch.zeros(6, dtype=torch.long)
    assert draw(plain, args)[1].min() >= 0
    assert (draw(padded, args)[1] == -100).sum() == 1
    assert torch.equal(draw(plain, args)[0], draw(padded, args)[0])


def test_outputs_and_gradients_of_a_step() -> None:
    model = torch.nn.Linear(3, 2)

    def step(model: torch.nn.Module, x: torch.Tensor) -> None:
        model(x).sum().backward()

    found = run(step, (model, torch.ones(4, 3)), backward=False)
    assert found.keys() == {"grad:weight", "grad:bias"}
    assert torch.equal(found["grad:bias"], torch.full((2,), 4.0))
