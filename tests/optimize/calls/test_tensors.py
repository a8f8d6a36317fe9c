"""What code reads of a tensor beside its values is a part of a call, and of nothing else a program depends on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.optimize.calls.asking import Asking
from tests.optimize.programs import normal


def with_gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) if x.grad is None else x.grad


def with_offset(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * float(x.storage_offset() + 1)


def with_version(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * (2.0 if x._version else 1.0)


def with_inference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * (2.0 if x.is_inference() else 1.0)


def with_storage(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * float(x.untyped_storage().nbytes())


def plain(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.T, -1).T


def gradient() -> torch.Tensor:
    x = normal(4, 8)
    x.grad = torch.ones(4, 8)
    return x


def written() -> torch.Tensor:
    return normal(4, 8).add_(1.0)


def inferred() -> torch.Tensor:
    with torch.inference_mode():
        return normal(4, 8) * 1.0


def part() -> torch.Tensor:
    return normal(5, 8)[1:]


@pytest.mark.parametrize(
    ("program", "other"),
    [
        (with_gradient, gradient),
        (with_offset, part),
        (with_version, written),
        (with_inference, inferred),
        (with_storage, part),
    ],
)
def test_a_tensor_in_another_state_is_another_call(
    program: Callable[[torch.Tensor], torch.Tensor], other: Callable[[], torch.Tensor]
) -> None:
    """And where that is the first call, nothing is captured, as a capture would not have it."""
    x, y = normal(4, 8), other()
    found = rw.optimize(program, (x,), target="torch", floor=False, verify=False, remember=False)
    first = rw.optimize(program, (y,), target="torch", floor=False, verify=False, remember=False)

    assert found.status == "proved" and first.status == "fallback" and "the program reads" in first.reason
    for given in (x, y, x, y):
        torch.testing.assert_close(found(given), program(given))
        torch.testing.assert_close(first(given), program(given))


def test_what_no_code_reads_does_not_matter() -> None:
    found = rw.optimize(plain, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    for given in (part(), written(), inferred(), gradient()):
        torch.testing.assert_close(found(given), plain(given))
    assert found.status == "proved" and not found.notes


def aligned(x: torch.Tensor) -> torch.Tensor:
    """As libraries ask for the alignment of memory, on versions of PyTorch that need it."""
    return torch.softmax(x, -1) * (1.0 if torch.__version__ > "1" or x.data_ptr() % 16 == 0 else 2.0)


def test_what_is_not_asked_does_not_matter_where_code_names_it() -> None:
    found = rw.optimize(aligned, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    assert found.status == "proved"


def by_text(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * (getattr(x, "storage" + "_offset")() + 1)


def under_a_mode(x: torch.Tensor) -> torch.Tensor:
    hidden: Any = torch
    with hidden._C.DisableTorchFunction():
        return torch.softmax(x, -1) * float(x.storage_offset() + 1)


def passed_on(x: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """As functions of PyTorch are that modes see, and that call what they are given."""
    given: Any = torch.overrides
    if given.has_torch_function((x,)):
        return given.handle_torch_function(passed_on, (x,), x, function)
    return function(x)


def in_a_callback(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * passed_on(x, lambda y: y * 0.0 + float(y.storage_offset() + 1))


@pytest.mark.parametrize("program", [by_text, under_a_mode, in_a_callback])
def test_no_question_is_hidden(program: Callable[[torch.Tensor], torch.Tensor]) -> None:
    found = rw.optimize(program, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    for given in (part(), normal(4, 8), part()):
        torch.testing.assert_close(found(given), program(given))


def test_asking_tells_attributes_and_methods_from_operations() -> None:
    x = normal(4, 8)
    with Asking() as asking:
        _ = x.shape, x.T, x.softmax(-1), x._version, x.grad, x.is_inference(), torch.is_inference(x), x.numel()
    assert asking.names == {"_version", "grad", "is_inference"}


def with_text(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * (2.0 if len(repr(x)) > 10_000 else 1.0)


def test_an_unheard_of_question_is_refused() -> None:
    found = rw.optimize(with_text, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    assert found.status == "fallback" and "it asks a tensor for __repr__" in found.reason


def branching(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) if x.sum() > 0 else x


def test_what_stops_a_run_is_told_with_the_line_of_the_program() -> None:
    found = rw.optimize(branching, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    assert found.status == "fallback" and "stopped at test_tensors.py:" in found.reason


def by_identity(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * float(hash(x) % 7)


def test_an_identity_is_another_one_in_each_call() -> None:
    found = rw.optimize(by_identity, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    assert found.status == "fallback" and "calls builtins.hash" in found.reason
