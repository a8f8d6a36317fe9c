"""``torch.compile`` with this backend."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

import rewright as rw
from rewright.optimize.backend import backend
from tests.optimize.programs import normal
from tests.versions import of_transformers_5


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
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["torch_dynamo_backends"]["rewright"] == "rewright.optimize.backend:backend"


@of_transformers_5("gives Dynamo warnings")
def test_a_model_of_transformers_runs_on_kernels(caplog: pytest.LogCaptureFixture) -> None:
    transformers = pytest.importorskip("transformers")
    caplog.set_level("INFO", logger="rewright.optimize")
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=50,
        use_cache=False,
    )
    model, tokens = transformers.LlamaForCausalLM(config).eval(), torch.arange(14).reshape(2, 7)
    compiled = torch.compile(model, backend=backend, options={"target": "torch"}, dynamic=False)

    with torch.no_grad():
        torch.testing.assert_close(compiled(tokens).logits, model(tokens).logits)

    assert "kernels, proved" in caplog.text


class Counting(torch.nn.Module):
    """It keeps statistics of what it has seen, and adds to its argument."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = x.clone()
        x.add_(1)
        self.get_buffer("seen").add_(x.sum(0))
        return torch.softmax(self.norm(x), -1) * self.get_buffer("seen"), before


@pytest.mark.parametrize("compiled", [False, True])
def test_what_a_program_writes_is_written(compiled: bool) -> None:
    mine, other = (Counting().requires_grad_(False) for _ in range(2))
    x = normal(5, 4)
    given, expected = x.clone(), x.clone()

    with torch.no_grad():
        if compiled:
            fast = torch.compile(mine, backend=backend, options={"target": "torch"}, dynamic=False)
        else:
            fast = rw.optimize(mine, (x.clone(),), target="torch")
            assert fast.status == "proved", fast.reason
        for _ in range(2):
            torch.testing.assert_close(fast(given), other(expected))

    torch.testing.assert_close(given, expected)
    for a, b in zip(mine.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_model_with_complex_numbers_runs_on_kernels_around_them(caplog: pytest.LogCaptureFixture) -> None:
    transformers = pytest.importorskip("transformers")
    caplog.set_level("INFO", logger="rewright.optimize")
    config = transformers.FNetConfig(hidden_size=16, num_hidden_layers=1, intermediate_size=24, vocab_size=50)
    model, tokens = transformers.FNetModel(config).eval(), torch.arange(14).reshape(2, 7)
    compiled = torch.compile(model, backend=backend, options={"target": "torch"}, dynamic=False)

    with torch.no_grad():
        torch.testing.assert_close(compiled(tokens)[0], model(tokens)[0], atol=1e-5, rtol=1e-4)

    assert "kernels, proved; custom_call at modeling_fnet.py" in caplog.text
    assert "_fft_c2c" in caplog.text
