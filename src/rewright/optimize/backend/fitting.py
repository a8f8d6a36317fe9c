"""Kernels for a graph of AOTAutograd's at all sizes that it keeps open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.backend.captured import Captured
from rewright.optimize.backend.kernels import Call, Fastest, find_fastest
from rewright.optimize.sizes.alike import NotAlike, choose_samples
from rewright.optimize.sizes.fitting import fit_graph, is_at
from rewright.optimize.sizes.inputs import numbers_of


@dataclass(frozen=True)
class Fitted:
    """A graph with symbols for its sizes, and what is fastest for it."""

    module: torch.fx.GraphModule
    graph: Graph
    fastest: Fastest

    @staticmethod
    def of(module: torch.fx.GraphModule, arguments: Sequence[Any], kind: str, options: Mapping[str, Any]) -> Fitted:
        """Kernels for all sizes; raises RewrightError where the graph is not one program at all of them."""
        inputs = _OpenArguments.of(module, arguments)
        samples = choose_samples(inputs.hints, inputs.taken)
        graph = fit_graph(samples, lambda sizes: _graph_of(Captured.of(module, inputs.at(sizes))))
        captured = Captured.of(module, arguments)
        if not _is_captured(graph, captured):
            raise NotAlike("at the sizes that it is called with it is another program")
        fastest = find_fastest(captured, graph, kind, options)
        if fastest.why:
            raise RewrightError(fastest.why)
        return Fitted(module, graph, fastest)

    def call(self, arguments: Sequence[Any]) -> Call | None:
        """What runs for arguments of some sizes; None where the graph is another program at these."""
        captured = Captured.of(self.module, arguments)
        return self.fastest.call(captured) if _is_captured(self.graph, captured) else None


def _graph_of(captured: Captured) -> Graph:
    if captured.graph is None:
        raise NotAlike("it computes nothing")
    return captured.graph


def _is_captured(graph: Graph, captured: Captured) -> bool:
    """Whether a graph with symbols is what was captured, at its sizes."""
    if captured.graph is None or list(captured.graph.inputs) != list(graph.inputs):
        return False
    try:
        sizes = numbers_of(graph, captured.given)
    except RewrightError:
        return False
    return is_at(graph, sizes, captured.graph)


@dataclass(frozen=True)
class _OpenArguments:
    """The arguments of a graph whose sizes are symbols of PyTorch's."""

    arguments: Sequence[Any]
    values: Sequence[Any]
    """What the graph says of each: a tensor or a number, with symbols."""
    hints: Mapping[str, int]
    """The sizes that the arguments have, by symbol."""

    @staticmethod
    def of(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> _OpenArguments:
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
        return _OpenArguments(arguments, values, hints)

    @property
    def taken(self) -> set[int]:
        """All numbers among sizes."""
        tensors = [value for value in self.values if isinstance(value, torch.Tensor)]
        return {size for value in tensors for size in value.shape if isinstance(size, int)}

    def at(self, sizes: Mapping[str, int]) -> list[Any]:
        """Arguments of other sizes, without values."""
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


__all__ = ["Fitted"]
