"""What code reads of a tensor beside its values is a part of a call, and of nothing else a program depends on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rewright as rw
from rewright.optimize.calls.tensors import state_names
from tests.optimize.programs import normal


def with_gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) if x.grad is None else x.grad


def with_offset(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) * (x.storage_offset() + 1)


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

    assert found.status == "proved" and first.status == "fallback" and "may read" in first.reason
    for given in (x, y, x, y):
        torch.testing.assert_close(found(given), program(given))
        torch.testing.assert_close(first(given), program(given))


def test_what_no_code_reads_does_not_matter() -> None:
    found = rw.optimize(plain, (normal(4, 8),), target="torch", floor=False, verify=False, remember=False)
    for given in (part(), written(), inferred(), gradient()):
        torch.testing.assert_close(found(given), plain(given))
    assert found.status == "proved" and not found.notes


def test_state_is_what_neither_type_nor_values_tell() -> None:
    assert state_names(["shape", "T", "softmax", "_version", "grad", "is_inference", "unheard_of"]) == (
        *("_version", "grad", "is_inference"),
    )
