"""What stands for a tensor in a capture answers as the tensor does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import nn

import rewright as rw

Program = Callable[[torch.Tensor], torch.Tensor]


def as_parameter(x: torch.Tensor) -> torch.Tensor:
    return x * (2.0 if isinstance(x, nn.Parameter) else 3.0)


def as_buffer(x: torch.Tensor) -> torch.Tensor:
    return x * (2.0 if isinstance(x, nn.Buffer) else 3.0)


def by_attribute(x: torch.Tensor) -> torch.Tensor:
    gain: float = getattr(x, "gain", 3.0)
    return x * gain


def with_gain(x: torch.Tensor) -> torch.Tensor:
    vars(x)["gain"] = 2.0
    return x


TENSORS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x,
    "parameter": lambda x: nn.Parameter(x, requires_grad=False),
    "leaf": lambda x: x.requires_grad_(),
    "buffer": lambda x: nn.Buffer(x),
    "attribute": with_gain,
    "parameter with an attribute": lambda x: with_gain(nn.Parameter(x)),
}


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("program", [as_parameter, as_buffer, by_attribute])
def test_class_and_attributes_are_those_of_what_is_given(program: Program, kind: str) -> None:
    """A stand-in without them made both captures the wrong program, and the wrong one was proved equal."""
    x = TENSORS[kind](torch.randn(4, 8))
    factor = float((program(x) / x)[0, 0].detach())
    given = rw.capture(program, (x,))
    for other in (2.0, 3.0):
        status = rw.equiv(given, rw.capture(lambda x, other=other: x * other, (x,))).status
        assert status == ("proved" if other == round(factor) else "refuted")


class Gained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(with_gain(torch.ones(8)))
        with_gain(self.scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return as_buffer(self.scale) * by_attribute(self.scale) * x


def test_buffers_of_a_module_keep_theirs() -> None:
    x = torch.randn(4, 8)
    found = rw.optimize(Gained(), (x,), target="torch", remember=False)
    torch.testing.assert_close(found(x), 4.0 * x)


def test_calls_with_another_class_or_attribute_are_told_apart() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(by_attribute(as_parameter(as_buffer(x))), -1)

    given = [kind(torch.randn(4, 8)) for kind in TENSORS.values()]
    with torch.no_grad():
        found = rw.optimize(program, (given[0],), target="torch", verify=False, remember=False)
        for x in given:
            torch.testing.assert_close(found(x), program(x))
    assert found.status == "proved", found.reason
