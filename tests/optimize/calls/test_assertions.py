"""What a program asserts of its values: where that does not hold, it runs itself and raises its own error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import rewright as rw
from rewright.optimize.backend import backend
from rewright.optimize.scalars.domains import without_assertions
from tests.optimize.programs import normal
from tests.versions import since

X = normal(5, 7)
CLASSES = torch.tensor([0, 1, 6, 2, 2])


def by_classes(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return functional.one_hot(i, 7).sum(0) * torch.softmax(x, -1)


def asserting(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    torch._assert_async((i < 7).all(), "too large")
    return torch.softmax(x * 2, -1)


def inverse(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.linalg.inv(x[:, :5]) * i, -1)


WRONG: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "class": (by_classes, (CLASSES + 1, X)),
    "negative class": (by_classes, (CLASSES - 1, X)),
    "own": (asserting, (CLASSES + 1, X)),
    "singular": (inverse, (CLASSES, torch.ones(5, 7))),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("door", ["optimize", pytest.param("compile", marks=since("2.13", "drops assertions itself"))])
def test_the_programs_own_error_is_raised(what: str, door: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="rewright.optimize")
    program, wrong = WRONG[what]
    found: Any
    if door == "optimize":
        found = rw.optimize(program, (CLASSES, X), target="torch")
        assert found.status == "proved", found.reason
    else:
        torch.compiler.reset()
        found = torch.compile(program, backend=backend, options={"target": "torch"})

    with torch.no_grad():
        torch.testing.assert_close(found(CLASSES, X), program(CLASSES, X))
        with pytest.raises(RuntimeError):
            program(*wrong)
        with pytest.raises(RuntimeError):
            found(*wrong)
        torch.testing.assert_close(found(CLASSES, X), program(CLASSES, X))

    if door == "compile":
        assert "kernels, proved" in caplog.text


def test_what_is_asserted_is_no_result() -> None:
    graph = rw.capture(by_classes, (CLASSES, X), guards_queries=True, opaque=True)

    assert list(graph.outputs) == ["output", "asserted:0"]
    plain = without_assertions(graph)
    assert list(plain.outputs) == ["output"] and len(plain) < len(graph)
    assert list(rw.capture(by_classes, (CLASSES, X)).outputs) == ["output"]


def test_negative_places_to_add_to_are_none() -> None:
    """``index_add`` and ``index_copy`` take no index that counts from the end, as ``index_fill`` does."""
    y, minus = normal(5, 7, seed=1), torch.tensor([0, 1, 2, 3, -1])
    for name in ("index_add", "index_copy"):
        found = rw.optimize(lambda i, x, name=name: getattr(x, name)(0, i, y).exp(), (minus.abs(), X), target="torch")
        assert found.status == "proved", found.reason
        with pytest.raises((RuntimeError, IndexError)):
            found(minus, X)
