"""What Inductor generates for CUDA is proved equal to the program, and changes of its source are refuted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rewright as rw
from rewright.cli.main import run as command
from rewright.ir.errors import RewrightError
from tests.kernel.references import normal

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

from rewright.kernel.inductor import inductor


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + torch.cat((-x[..., 8:], x[..., :8]), -1) * sin


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (64,), w, b)


def gradients(x: Tensor, w: Tensor, g: Tensor) -> tuple[Tensor, ...]:
    given = [t.detach().requires_grad_() for t in (x, w)]
    return torch.autograd.grad(F.layer_norm(given[0], (32,), given[1]), given, g)


def in_place(x: Tensor, y: Tensor) -> Tensor:
    return x.add_(y).mul_(2)


PERCEPTRON = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
HEAD = nn.Linear(8, 4)


def two_modules(x: Tensor) -> Tensor:
    return HEAD(PERCEPTRON(x).relu())


def step(x: Tensor, y: Tensor) -> Tensor:
    loss = F.mse_loss(HEAD(x), y)
    loss.backward()
    return loss


ROWS = {"x": {0: "n"}}
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], Any]] = {
    "layer_norm": (layer_norm, (normal(8, 64), normal(64), normal(64)), ROWS),
    "rotary": (rotary, (normal(2, 4, 8, 16), normal(8, 16), normal(8, 16)), {"x": {0: "b"}}),
    "perceptron": (PERCEPTRON, (normal(4, 16),), {"input": {0: "n"}}),
    "two_modules": (two_modules, (normal(4, 16),), None),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (normal(4, 40),), ROWS),
    "pooling": (lambda x: F.max_pool2d(x, 2), (normal(1, 2, 6, 6),), None),
    "in_place": (in_place, (normal(8, 10), normal(8, 10) + 1), None),
    "gradients": (gradients, (normal(8, 32), normal(32), normal(8, 32) + 1), {"x": {0: "n"}, "g": {0: "n"}}),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.unaudited("some proofs have no certificate")
def test_what_inductor_generates_is_the_program(name: str) -> None:
    function, args, dynamic = PROGRAMS[name]
    found = rw.kernel(function, "inductor", args, dynamic=dynamic, explain=False)

    assert found.status == "proved", found.reason
    assert found.runs > 0
    if dynamic:
        assert any(text.startswith("Inductor compiled for sizes with") for text in found.assumptions)


@pytest.mark.unaudited("each output is proved by itself")
@pytest.mark.long
def test_gradients_that_are_left_in_parameters_are_compared() -> None:
    found = rw.kernel(step, "inductor", (normal(6, 8), normal(6, 4)), explain=False)

    assert found.status == "proved", found.reason
    assert found.graphs is not None and "grad:weight" in found.graphs[0].outputs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1e-05", "1e-02"),
        ("64.0", "63.0"),
        ("xindex < xnumel", "xindex < xnumel - 1"),
        ("64*x0", "63*x0"),
    ],
)
def test_a_changed_source_is_not_proved(before: str, after: str) -> None:
    function, args, _ = PROGRAMS["layer_norm"]

    def edit(source: str) -> str:
        assert before in source
        return source.replace(before, after)

    found = rw.kernel(function, inductor(function, args, edit=edit), args, explain=False)
    assert found.status == "refuted", found.reason


@pytest.mark.parametrize(
    ("before", "after"), [("(-8) + x0", "(-7) + x0"), ("8 + 16*x5", "7 + 16*x5"), ("tmp7 < tmp8", "tmp7 <= tmp8")]
)
def test_a_changed_place_is_not_proved(before: str, after: str) -> None:
    function, args, _ = PROGRAMS["rotary"]

    def edit(source: str) -> str:
        assert before in source
        return source.replace(before, after)

    found = rw.kernel(function, inductor(function, args, edit=edit), args, explain=False)
    assert found.status != "proved"


def test_torch_is_as_it_was() -> None:
    before = torch.cuda.is_available, torch.cuda.get_device_properties
    inductor(lambda x: x.relu(), (normal(4),))

    assert (torch.cuda.is_available, torch.cuda.get_device_properties) == before
    compiled = torch.compile(lambda x: x.relu() + 1, backend="aot_eager")
    assert compiled(normal(4)).shape == (4,)


def test_numbers_that_are_drawn_are_refused() -> None:
    with pytest.raises(RewrightError, match="draws random numbers"):
        inductor(lambda x: F.dropout(x, 0.5, True), (normal(4, 4),))


FILE = """
import torch
from tests.kernel.references import normal


def program():
    return lambda x: torch.relu(x) * 2, (normal(4, 5),)


def drawn():
    return lambda x: torch.nn.functional.dropout(x, 0.5, True), (normal(4, 5),)
"""


def test_the_command_compiles_the_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "claims.py"
    file.write_text(FILE)

    assert command(["kernel", "--inductor", f"{file}:program", "--symbolic", "x=n,m"]) == 0
    capsys.readouterr()
    for words in (["kernel", "--inductor", f"{file}:drawn"], ["kernel", f"{file}:program"]):
        assert command(words) == 3
        assert capsys.readouterr().err.count("\n") == 1
    assert command(["kernel", "--inductor", f"{file}:program", f"{file}:program"]) == 3
