"""Programs as a whole: outputs, gradients and state of PyTorch and of JAX beside their captured graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import rewright as rw
from rewright.frontends.torch.lower.walk import Walk
from rewright.frontends.validation import record
from rewright.frontends.validation.record import EQUAL, Validation, join_validations, validation_note, validation_of
from rewright.frontends.validation.store import Outcome, Store
from rewright.ir.errors import CaptureError

X = torch.zeros(3, 4)


def said(program: object, *args: torch.Tensor, **options: Any) -> str:
    found = validation_of(rw.capture(program, args, **options))
    assert found is not None
    return found.program


def test_gradients_and_updated_state_are_compared() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    graph = rw.capture(step, (X,))
    assert {name.split(":")[0] for name in graph.outputs} == {"output", "grad", "updated"}
    assert said(step, X) == EQUAL


def test_a_program_that_holds_a_large_tensor_is_not_run() -> None:
    """The tensor is an input of the graph, and was drawn for the graph alone."""
    table = torch.arange(300 * 256).view(300, 256).cos()
    assert said(lambda x: x * table, torch.zeros(300, 256)) == "it holds large tensors that are none of its inputs"


def test_a_write_that_the_lowering_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y[0] = 0
        return y

    lowered = Walk._operator

    def forgets(self: Walk, call: Any) -> Any:
        return None if call.operator == "aten.fill_.Tensor" else lowered(self, call)

    monkeypatch.setattr(Walk, "_operator", forgets)
    with pytest.raises(CaptureError, match=r"output at .*test_programs.py:.* the capture is not the program: PyTorch"):
        rw.capture(program, (X,))


def test_a_program_that_keeps_state_of_its_own_is_not_said_to_differ() -> None:
    calls: list[int] = []

    def program(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * len(calls)

    assert said(program, X) == "it is another program the second time, and keeps state of its own"


def test_a_large_program_is_not_run() -> None:
    assert said(lambda x, y: x @ y, torch.zeros(512, 512), torch.zeros(512, 512)) == "it is large"


def test_weights_are_drawn_and_the_module_keeps_its_own() -> None:
    model = nn.Linear(4, 4)
    before = model.weight.clone()
    assert said(model, X, backward=False) == EQUAL
    assert model.weight.dtype is torch.float32 and torch.equal(model.weight, before)


def test_what_the_program_prints_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        print("once")
        return x.exp()

    assert said(program, X) == EQUAL
    assert capsys.readouterr().out == "once\n"


def test_jax_is_run_beside_its_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    from rewright.frontends.jax import validation

    monkeypatch.setattr(validation, "open_store", lambda framework: Store(tmp_path / "validated.txt", framework))

    def loss(w: Any, x: Any) -> Any:
        return (jax.numpy.tanh(x @ w) ** 2).sum()

    args = (jax.numpy.ones((3, 3)), jax.numpy.ones((2, 3)))
    found = validation_of(rw.capture(loss, args, backward=True))
    assert found == Validation(difference=found.difference if found else 0.0, program=EQUAL)
    right = validation.run

    def wrong(*given: Any) -> Any:
        return {name: value + (name == "grad:w") for name, value in right(*given).items()}

    monkeypatch.setattr(validation, "run", wrong)
    (tmp_path / "validated.txt").unlink()
    with pytest.raises(CaptureError, match=r"grad:w at .*: the capture is not the program: XLA gives"):
        rw.capture(loss, args, backward=True)


def test_a_verdict_says_what_was_checked() -> None:
    first, second = (rw.capture(f, (X,)) for f in (lambda x: x + x, lambda x: 2 * x))
    verdict = rw.equiv(first, second)
    assert verdict.validation == (
        "capture checked: 2 distinct calls on 6 draws each, largest difference 0e+00; whole program run: equal"
    )
    bare = [rw.capture(f, (X,), validate=False) for f in (lambda x: x + x, lambda x: 2 * x)]
    assert rw.equiv(*bare).validation.startswith("the capture was not checked: ")


def test_records_of_several_captures_are_joined() -> None:
    one, other = (
        Validation(("a", "b"), 1e-16, program=EQUAL),
        Validation(("b", "c"), 2e-16, (("d", "why"),), "it is large"),
    )
    assert join_validations((one, other)) == Validation(("a", "b", "c"), 2e-16, (("d", "why"),), "it is large")
    assert validation_note(()).startswith("the capture was not checked")
    assert str(join_validations((one, other))) == (
        "capture checked: 3 distinct calls on 6 draws each, largest difference 2e-16; not checked: d (why); whole "
        "program not run: it is large"
    )
    assert len(record.KINDS) == 6


def test_a_store_forgets_what_is_damaged_and_what_another_framework_said(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "validated.txt"
    store = Store(path, "torch 1")
    assert store.get("call") is None
    store.put("call", Outcome(1e-16))
    store.put("other", Outcome(None, "why"))
    store.save()
    path.write_text("[1, 2\n{}\n" + path.read_text() + '["key", "no number", ""]')
    assert Store(path, "torch 1").get("call") == Outcome(1e-16)
    assert Store(path, "torch 1").get("other") == Outcome(None, "why")
    assert Store(path, "torch 2").get("call") is None


def test_a_choice_among_equals_is_no_difference() -> None:
    def program(x: torch.Tensor) -> Any:
        return (x * 0).topk(2)

    found = said(program, torch.zeros(3, 64))
    assert found == EQUAL or found.startswith("it orders or chooses elements")
