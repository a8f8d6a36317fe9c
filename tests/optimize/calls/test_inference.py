"""Programs that are optimised in inference mode, whose tensors do not count how often they are written."""

from __future__ import annotations

import logging

import pytest
import torch

import rewright as rw
from rewright.optimize.backend import backend
from tests.optimize.programs import normal


def test_what_a_call_writes_to_its_arguments_is_written() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2).softmax(-1)

    x = normal(4, 6)
    with torch.inference_mode():
        found = rw.optimize(program, (x.clone(),), target="torch")
        ours, theirs = x.clone(), x.clone()
        torch.testing.assert_close(found(ours), program(theirs))

    assert found.status == "proved", found.reason
    torch.testing.assert_close(ours, theirs)


def test_a_model_made_there_has_kernels_outside_too() -> None:
    with torch.inference_mode():
        model, x = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU()), normal(4, 6)
    with torch.no_grad():
        found = rw.optimize(model, (x,), target="torch")
        torch.testing.assert_close(found(x), model(x))

    assert found.status == "proved", found.reason


def test_a_tensor_made_there_that_a_program_holds_may_be_written_unseen() -> None:
    with torch.inference_mode():
        count = torch.zeros(3)
        found = rw.optimize(lambda x: x + count.add_(1), (normal(3),), target="torch")

    assert found.status == "fallback"
    assert "made in inference mode" in found.reason


def test_a_compiled_graph_has_kernels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rewright.optimize")
    torch.compiler.reset()
    compiled = torch.compile(lambda x: torch.softmax(x, -1), backend=backend, options={"target": "torch"})

    with torch.inference_mode():
        x = normal(4, 6)
        torch.testing.assert_close(compiled(x), torch.softmax(x, -1))

    assert "kernels, proved" in caplog.text
