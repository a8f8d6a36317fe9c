"""What a program runs as without gradients: as it was compiled, or by eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from rewright.optimize.backend import inferring
from rewright.optimize.backend.inferring import COMPILED, EAGER, Inference, has_own_tensors
from rewright.optimize.backend.known import Known
from rewright.optimize.remembered.cache import key_of_text

Call = Callable[..., Any]
X = torch.arange(6.0)


def seconds(monkeypatch: pytest.MonkeyPatch, compiled: float, eager: float) -> None:
    """What the clock says of both."""

    def timed(calls: Mapping[str, Call], notes: list[str]) -> dict[str, float]:
        return {COMPILED: compiled, EAGER: eager}

    monkeypatch.setattr(inferring, "timed", timed)


def said(name: str, ran: list[str], call: Call) -> Call:
    """A call that notes that it ran."""

    def saying(*arguments: Any) -> Any:
        ran.append(name)
        return call(*arguments)

    return saying


def made(ran: list[str], compiled: Call, eager: Call, *, is_flexible: bool = False, key: str = "") -> Inference:
    calls = said(COMPILED, ran, compiled), said(EAGER, ran, eager)
    return Inference(*calls, Known(key and key_of_text(key)), is_flexible=is_flexible or bool(key))


@pytest.mark.parametrize(("eager", "kept"), [(0.5, EAGER), (0.99, COMPILED), (2.0, COMPILED)])
def test_the_faster_one_runs_from_the_second_call_on(eager: float, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, 1.0, eager)
    ran: list[str] = []
    program = made(ran, torch.exp, torch.exp)
    for _ in range(3):
        torch.testing.assert_close(program(X), X.exp())
    assert ran[0] == COMPILED
    assert ran[-2:] == [kept, kept]


def test_a_program_that_writes_to_its_arguments_is_never_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, 1.0, 0.1)
    ran: list[str] = []
    x = torch.zeros(3)
    program = made(ran, lambda x: x.add_(1), lambda x: x.add_(1))
    for _ in range(3):
        program(x)
    assert ran == [COMPILED] * 3
    assert x.tolist() == [3.0] * 3


def test_what_gives_something_else_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of two programs that draw random numbers in different orders."""
    seconds(monkeypatch, 1.0, 0.1)
    ran: list[str] = []
    program = made(ran, torch.rand_like, torch.rand_like)
    state = torch.random.get_rng_state()
    program(X), program(X)
    assert ran[-1] == COMPILED
    torch.random.set_rng_state(state)
    expected = torch.rand_like(X), torch.rand_like(X), torch.rand_like(X)
    torch.random.set_rng_state(state)
    found = program(X), program(X), program(X)
    for one, other in zip(found, expected, strict=True):  # what was timed drew no numbers
        assert torch.equal(one, other)


def test_few_sizes_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, 1.0, 0.5)
    ran: list[str] = []
    program = made(ran, torch.exp, torch.exp, is_flexible=True)
    for length in range(1, 9):
        program(X[:1].expand(length)), program(X[:1].expand(length))
    ran.clear()
    program(X[:1].expand(9)), program(X[:1].expand(9))
    assert ran == [EAGER, EAGER]


def test_an_error_is_the_programs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, 1.0, 0.5)

    def fails(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("of the program")

    program = made([], torch.exp, fails)
    torch.testing.assert_close(program(X), X.exp())
    torch.testing.assert_close(program(X), X.exp())


def test_tensors_of_a_graphs_own() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.calls

    assert has_own_tensors(torch.fx.symbolic_trace(Counting()))
    assert not has_own_tensors(torch.fx.symbolic_trace(lambda x: x + 1))


def test_what_was_faster_is_kept_for_its_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for length, eager in ((3, 0.5), (4, 2.0)):
        seconds(monkeypatch, 1.0, eager)
        program = made([], torch.exp, torch.exp, key="a program")
        program(X[:length]), program(X[:length])

    def never(*_: object) -> dict[str, float]:
        raise AssertionError("it is timed again")

    monkeypatch.setattr(inferring, "timed", never)
    ran: list[str] = []
    program = made(ran, torch.exp, torch.exp, key="a program")
    for length in (3, 4, 3, 4):
        program(X[:length])
    assert ran == [COMPILED, COMPILED, EAGER, COMPILED]


@pytest.mark.parametrize("damaged", ["eager", ["eager"], {"((6,),)": "another"}, None])
def test_a_note_that_says_nothing_is_none(damaged: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seconds(monkeypatch, 1.0, 2.0)
    Known(key_of_text("a program")).keep(damaged)
    ran: list[str] = []
    program = made(ran, torch.exp, torch.exp, key="a program")
    for _ in range(3):
        torch.testing.assert_close(program(X), X.exp())
    assert ran[-1] == COMPILED
