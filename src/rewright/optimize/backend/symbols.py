"""The sizes that a graph of AOTAutograd's keeps open, and arguments of other sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rewright.optimize.sizes.alike import NotAlike


@dataclass(frozen=True)
class OpenArguments:
    """The arguments of a graph whose sizes are symbols of PyTorch's."""

    arguments: Sequence[Any]
    values: Sequence[Any]
    """What the graph says of each: a tensor or a number, with symbols."""
    hints: Mapping[str, int]
    """The sizes that the arguments have, by symbol that is open."""
    fixed: Mapping[str, int]
    """Those that stay as they are."""

    @staticmethod
    def of(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> OpenArguments:
        """Read the symbols, and their numbers; raises NotAlike where one is no size of its own."""
        places = [node for node in module.graph.nodes if node.op == "placeholder"]
        values = [node.meta.get("val") for node in places]
        hints: dict[str, int] = {}
        names: set[str] = set()
        for value, argument in zip(values, arguments, strict=True):
            is_tensor = isinstance(value, torch.Tensor)
            pairs = zip(value.shape, argument.shape, strict=True) if is_tensor else [(value, argument)]
            for size, number in pairs:
                names |= _symbols(size)
                if isinstance(size, torch.SymInt) and _expression(size).is_Symbol:
                    hints[str(_expression(size))] = int(number)
        if names != set(hints):
            raise NotAlike(f"{sorted(names - set(hints))[0]} is a size of no tensor by itself")
        return OpenArguments(arguments, values, hints, {})

    @property
    def taken(self) -> set[int]:
        """All numbers among sizes."""
        tensors = [value for value in self.values if isinstance(value, torch.Tensor)]
        numbers = {int(n) for value in tensors for n in value.shape if not isinstance(n, torch.SymInt)}
        return numbers | set(self.fixed.values())

    def last(self) -> set[str]:
        """The symbols that are sizes of last axes."""
        return {s for value in self.values if isinstance(value, torch.Tensor) for s in _symbols([*value.shape, 1][-2])}

    def without(self, names: Collection[str]) -> OpenArguments:
        """The same with numbers for some symbols."""
        hints = {name: size for name, size in self.hints.items() if name not in names}
        fixed = {name: size for name, size in self.hints.items() if name in names}
        return OpenArguments(self.arguments, self.values, hints, {**self.fixed, **fixed})

    def at(self, sizes: Mapping[str, int]) -> list[Any]:
        """Arguments of other sizes, without values."""
        sizes = {**self.fixed, **sizes}
        return [_at(value, argument, sizes) for value, argument in zip(self.values, self.arguments, strict=True)]


def _at(value: Any, argument: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, torch.Tensor):
        shape, strides = ([_number(n, sizes) for n in numbers] for numbers in (value.shape, value.stride()))
        return torch.empty_strided(shape, strides, dtype=value.dtype, device=argument.device)
    return _number(value, sizes) if isinstance(value, torch.SymInt) else argument


def _number(size: Any, sizes: Mapping[str, int]) -> int:
    if not isinstance(size, torch.SymInt):
        return int(size)
    expression = _expression(size)
    return int(expression.xreplace({s: sizes[str(s)] for s in expression.free_symbols}))


def _symbols(size: Any) -> set[str]:
    return {str(s) for s in _expression(size).free_symbols} if isinstance(size, torch.SymInt) else set()


def _expression(size: Any) -> Any:
    return size.node.expr


__all__ = ["OpenArguments"]
