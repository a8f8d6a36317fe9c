"""Captures that were believed: lowerings that were wrong on both sides of a proof, and programs that resist a check.

Before captures were checked, each of the first of these ended in a verdict that PyTorch contradicts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rewright as rw
from rewright.frontends.aten import tables
from rewright.frontends.torch.validation import calls
from rewright.frontends.validation.record import EQUAL, validation_of
from rewright.frontends.validation.store import Store, open_store
from rewright.ir.errors import CaptureError

X = torch.zeros(3, 4)
Program = Callable[..., Any]


def status(left: Program, right: Program, *args: torch.Tensor) -> str:
    """The verdict, or why a capture was refused."""
    try:
        return rw.equiv(rw.capture(left, args), rw.capture(right, args)).status
    except CaptureError as error:
        return str(error).split(": ")[1]


REFUSED = "the capture is not the program"


def test_variances_of_other_corrections_are_not_equal() -> None:
    """``correction=0.5`` was read as 0, so that the two were proved equal."""
    assert status(lambda x: x.var(1, correction=0.5), lambda x: x.var(1, correction=0), X) in ("refuted", REFUSED)


def test_integer_steps_are_those_of_pytorch() -> None:
    """The last one was rounded: the wrong pair was proved and the right one refuted."""

    def steps(x: torch.Tensor) -> torch.Tensor:
        return torch.linspace(0, 10, 4, dtype=torch.long) * x

    assert status(steps, lambda x: torch.tensor([0, 3, 6, 9]) * x, X) in ("refuted", REFUSED)
    assert status(steps, lambda x: torch.tensor([0, 3, 6, 10]) * x, X) in ("proved", REFUSED)


def test_classes_after_the_first_that_is_none_do_not_count() -> None:
    """They were counted by the captured program: 1.65 where PyTorch gives 0.60."""
    targets = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 1], [1, 0, 2, 3]])
    assert status(F.multilabel_margin_loss, F.multilabel_margin_loss, X, targets) in ("proved", REFUSED)


def test_one_wrong_lowering_on_both_sides_hides_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``refine`` lowers both programs by the same table, so that they agreed about what neither of them computes."""
    monkeypatch.setattr(calls, "open_store", lambda framework: Store(tmp_path / "validated.txt", framework))
    monkeypatch.setitem(tables.PURE, "aten.exp.default", tables.PURE["aten.sin.default"])
    with pytest.raises(CaptureError, match=r"operator aten\.exp\.default at test_validated_captures\.py:[0-9]+: "):
        rw.capture_ranks(lambda _: (lambda x: x.exp(), (X,)), {"dp": 2})


def test_a_program_that_runs_only_once_is_captured() -> None:
    """Calling it again must not be what refuses it."""
    left = [1]

    def program(x: torch.Tensor) -> torch.Tensor:
        left.pop()
        return x.exp()

    found = validation_of(rw.capture(program, (X,)))
    assert found is not None
    assert found.program == "it does not run on numbers that are drawn: pop from empty list"


def test_a_program_that_looks_at_its_dtypes_is_not_said_to_differ() -> None:
    """It is run in float64 and declared in float32, and another branch is no other capture."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return x.exp() if x.dtype is torch.float32 else x.sin()

    found = validation_of(rw.capture(program, (X,)))
    assert found is not None
    assert found.program == EQUAL


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    open_store.cache_clear()
    try:
        assert validation_of(rw.capture(lambda x: x.exp(), (X,))) is not None
    finally:
        open_store.cache_clear()


def test_what_was_checked_of_another_lowering_is_not_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A line of the cache belongs to the sources that it was written by."""
    from rewright.frontends.validation import store

    path = tmp_path / "validated.txt"
    known = Store(path, "torch")
    assert known.get("call") is None
    known.put("call", store.Outcome(0.0))
    known.save()
    monkeypatch.setattr(store, "lowerings_digest", lambda: "of other sources")
    assert Store(path, "torch").get("call") is None


def test_hooks_counters_and_modes_of_a_module_are_left_as_they_were() -> None:
    """The check runs the module a second time, on numbers of its own."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = validation_of(rw.capture(model, (X,)))
    assert found is not None
    assert found.program == EQUAL
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_order_that_is_left_open_is_an_assumption() -> None:
    """``topk(sorted=False)`` gives three elements in any order: its captures were refused as wrong."""
    scores = torch.randn(5, 8)

    def spread(x: torch.Tensor) -> torch.Tensor:
        values, places = torch.topk(x, 3, dim=-1, sorted=False)
        return torch.zeros_like(x).scatter(1, places, values)

    graph = rw.capture(spread, (scores,))
    record = validation_of(graph)
    assert record is not None
    assert record.program == EQUAL
    assert "gives the largest element first, an order that sorted=False leaves open" in graph.metadata["assumptions"]
    assert "sorted" not in rw.capture(lambda x: x.topk(1, sorted=False)[0], (scores,)).metadata.get("assumptions", "")


def test_a_program_that_reads_an_open_order_is_refused() -> None:
    """Its first element is the largest one only as the graph has it."""
    with pytest.raises(CaptureError, match="reads the order of what it gives, which sorted=False leaves open"):
        rw.capture(lambda x: x.topk(3, sorted=False).values[:, 0], (torch.randn(5, 8),))
    rw.capture(lambda x: x.topk(3).values[:, 0], (torch.randn(5, 8),))


def test_factors_and_ends_of_integers_are_cut_off() -> None:
    """PyTorch's own decompositions multiply integers by 0.6, and count from 4.9 to -3.2; its kernels do not."""
    x, y, z = torch.ones(2, 2, dtype=torch.long), torch.ones(3, 2, 2, dtype=torch.long), torch.tensor(4.9)
    for program, args in (
        (lambda a, b: torch.addbmm(a, b, b, beta=0.6, alpha=1.9), (x, y)),
        (lambda a: torch.linspace(a, -3.2, 50, dtype=torch.long), (z,)),
        (lambda a: torch.linspace(1, a, 50), (z,)),
    ):
        record = validation_of(rw.capture(program, args))
        assert record is not None
        assert record.program == EQUAL
        assert record.skipped == ()
