"""``torch.compile`` with this backend."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

from rewright.optimize.backend import backend
from tests.optimize.programs import normal


class Block(torch.nn.Module):
    """One layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.RMSNorm(16)
        self.project = torch.nn.Linear(16, 48)
        self.out = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(self.norm(x)).view(1, 9, 3, 2, 8).permute(2, 0, 3, 1, 4)
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(a.transpose(1, 2).reshape(1, 9, 16))


def test_a_block_runs_on_kernels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    module, x = Block().eval(), normal(1, 9, 16)
    compiled = torch.compile(module, backend=backend, options={"target": "torch"})

    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x))

    assert "kernels, proved" in caplog.text


def test_the_backend_has_a_name_when_it_is_installed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["torch_dynamo_backends"]["rewright"] == "rewright.optimize.backend:backend"
