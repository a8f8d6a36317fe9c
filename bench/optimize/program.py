"""What a program of the benchmark is: how it is made, at which sizes, and by which other means it can be computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

Size = Literal["tiny", "full", "large"]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Built:
    """A function, or a module, and its arguments; ``sdpa`` and ``flex`` make the same function by these, if they can.

    What stands in ``args`` is all that a call depends on, but for the parameters of a module and numbers. ``exact`` is
    what is taken to float64, where the function itself has no float64.
    """

    function: Function
    args: tuple[Any, ...]
    sdpa: Callable[[], Function] | None = None
    flex: Callable[[], Function] | None = None
    exact: Function | None = None


@dataclass(frozen=True)
class Draw:
    """Random arguments of a program, always the same ones: their dtype, the scale of inputs, and which sizes.

    ``tiny`` sizes are for tests, ``full`` ones take eager PyTorch between 1 and 200 ms on two cores, and ``large``
    ones are for whole models of tens of millions of parameters.
    """

    scale: float = 1.0
    dtype: torch.dtype = torch.float32
    size: Size = "full"
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def pick(self, full: int, tiny: int, large: int | None = None) -> int:
        """The size that is asked for."""
        if self.size == "large":
            return full if large is None else large
        return tiny if self.size == "tiny" else full

    def normal(self, *shape: int) -> torch.Tensor:
        """Inputs: normal numbers whose deviation is the scale."""
        return (torch.randn(shape, generator=self.generator) * self.scale).to(self.dtype)

    def weight(self, *shape: int) -> torch.Tensor:
        """Weights: normal numbers whose deviation is one over the root of the last size, at any scale of inputs."""
        return (torch.randn(shape, generator=self.generator) / math.sqrt(shape[-1])).to(self.dtype)

    def near_one(self, *shape: int) -> torch.Tensor:
        """Gains of norms and the like: one, and a tenth of a normal number."""
        return (1 + 0.1 * torch.randn(shape, generator=self.generator)).to(self.dtype)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Numbers between zero and one, at any scale of inputs."""
        return torch.rand(shape, generator=self.generator).to(self.dtype)

    def integers(self, high: int, *shape: int) -> torch.Tensor:
        """Whole numbers below ``high``, as int64."""
        return torch.randint(high, shape, generator=self.generator)

    def flags(self, share: float, *shape: int) -> torch.Tensor:
        """Conditions of which about so many are true."""
        return torch.rand(shape, generator=self.generator) < share


Build = Callable[[Draw], Built]


@dataclass(frozen=True)
class Program:
    """A program by name and family, and whether its gradient means something."""

    name: str
    family: str
    make: Build
    backward: bool

    def build(
        self, scale: float = 1.0, dtype: torch.dtype = torch.float32, size: Size = "full", device: str = "cpu"
    ) -> Built:
        """The function and its arguments; the same numbers in every call and on every device, rounded to the dtype."""
        with torch.device("cpu"):
            built = self.make(Draw(scale, dtype, size))
        return built if device == "cpu" else _on(device, built)


def _on(device: str, built: Built) -> Built:
    """The program where its arguments and its module are on a device; other forms of it stay where they are made."""
    function = built.function.to(device) if isinstance(built.function, torch.nn.Module) else built.function
    exact = built.exact.to(device) if isinstance(built.exact, torch.nn.Module) else built.exact
    return Built(function, tuple(a.to(device) if isinstance(a, torch.Tensor) else a for a in built.args), exact=exact)


def programs(family: str, *, forward: Sequence[Build] = (), backward: Sequence[Build] = ()) -> tuple[Program, ...]:
    """The programs of a family; a gradient is asked of the second ones too."""
    pairs = [(make, False) for make in forward] + [(make, True) for make in backward]
    return tuple(Program(make.__name__, family, make, with_gradient) for make, with_gradient in pairs)
