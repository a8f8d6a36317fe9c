"""What is returned lies in memory as eager's results do: fresh, views of arguments, or of one another."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import rewright as rw
from tests.optimize.programs import normal

Pair = namedtuple("Pair", "first second")


@dataclass
class Found:
    """Of a class that PyTorch cannot take apart by itself."""

    value: torch.Tensor
    count: int


def mutated(x: torch.Tensor) -> Any:
    x.mul_(2)
    return x, torch.softmax(x, -1), x[1:]


def views(x: torch.Tensor) -> Any:
    y = torch.softmax(x, -1)
    return x.t(), x[1:, ::2], x.view(-1), y, y.t(), y[0], x.detach(), y


def strides(x: torch.Tensor) -> Any:
    y = torch.softmax(x, -1)
    return y.t().clone(), y.t().contiguous(), y.sum(0, keepdim=True).expand(3, -1), y.exp().t(), y.reshape(2, 2, 8)


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "mutated": mutated,
    "views": views,
    "strides": strides,
    "copies": lambda x: (torch.softmax(x, -1), x.clone(), x * 1, x + 0, x.contiguous(), x.to(torch.float32)),
    "named tuple": lambda x: Pair(torch.softmax(x, -1), x),
    "dataclass": lambda x: [Found(torch.softmax(x, -1), 3), {"a": None}],
}


def memory(returned: Any, x: torch.Tensor) -> list[Any]:
    """Of every returned tensor the strides, the offset, and which of the others, and of the arguments, it shares."""
    if isinstance(returned, list):
        returned = tuple(r.value for r in returned if isinstance(r, Found))
    tensors = [x, *returned]
    places = [t.untyped_storage().data_ptr() for t in tensors]
    return [
        (t.shape, t.stride(), t.storage_offset(), t.dtype, [n for n, p in enumerate(places) if p == places[k]], t is x)
        for k, t in enumerate(tensors)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_lie_in_memory_as_eagers_do(name: str) -> None:
    program = PROGRAMS[name]
    found = rw.optimize(program, (normal(4, 8),), target="torch", verify=False)
    assert found.status == "proved", found.reason

    with torch.no_grad():
        x, other = normal(4, 8), normal(4, 8)
        mine, theirs = found(x), program(other)
    assert not found.notes and type(mine) is type(theirs)
    torch.testing.assert_close(x, other)
    assert memory(mine, x) == memory(theirs, other)
    if name == "dataclass":
        assert mine[0].count == 3 and mine[1] == {"a": None}
    else:
        for one, same in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one, same)


def test_channels_last_stays() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, 1)

    x = normal(2, 4, 3, 5).contiguous(memory_format=torch.channels_last)
    found = rw.optimize(program, (x,), target="torch", verify=False)

    for value in (x, x.contiguous(), x.transpose(2, 3).contiguous().transpose(2, 3)):
        torch.testing.assert_close(found(value), program(value), check_stride=True)
    assert not found.notes


def test_one_tensor_as_two_arguments_runs_on_kernels_where_nothing_is_written() -> None:
    def program(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.softmax(a - 2 * b, -1)

    x = normal(4, 8)
    found = rw.optimize(program, (x, x.clone()), target="torch", verify=False)

    torch.testing.assert_close(found(x, x), program(x, x))
    assert not found.notes


def floors(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="floor")


def looked_up(rows: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return table[rows.long().abs() % 3] * 2


@pytest.mark.parametrize("program", [floors, looked_up])
def test_results_lie_as_they_do_where_their_stand_ins_lie_otherwise(program: Any) -> None:
    """The fake tensors of PyTorch have other strides here."""
    args = normal(5, 4).t(), normal(4, 5, seed=1).abs() + 0.5
    found = rw.optimize(program, args, target="torch")
    assert found.status == "proved", found.reason

    ours, theirs = found(*args), program(*args)

    assert not found.notes
    assert ours.stride() == theirs.stride()
    torch.testing.assert_close(ours, theirs)
