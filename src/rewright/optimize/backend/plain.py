"""Graphs of AOTAutograd's as kernels are made for: of tensors only, for the sizes of one call, without prims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._inductor import inductor_prims  # noqa: F401  # pyright: ignore[reportUnusedImport]
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta

from rewright.ir.errors import RewrightError

_aten: Any = torch.ops.aten
_prims: Any = torch.ops.prims
_RANDOM = {_aten.rand.default, _aten.randn.default, _aten.randint.default, _aten.randint.low, _aten.randperm.default}
_NUMBERS = (int, float, bool, type(None))
Sizes = tuple[tuple[int, ...] | str, ...]
"""By argument the shape of a tensor, or a number as it is written."""


@dataclass(frozen=True)
class Draw:
    """Random numbers that a graph draws, which depend on none of its tensors."""

    call: Callable[..., torch.Tensor]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    example: torch.Tensor
    """Zeros of their type."""

    def __call__(self) -> torch.Tensor:
        """The next numbers."""
        return self.call(*self.args, **self.kwargs)


@dataclass(frozen=True)
class Plain:
    """A graph of the tensors among some arguments, those that it held, and what it draws, in the order of drawing."""

    module: torch.fx.GraphModule
    tensors: tuple[int, ...]
    """Which arguments these are."""
    held: tuple[torch.Tensor, ...]
    draws: tuple[Draw, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Its arguments by name."""
        return tuple(str(node.target) for node in self.module.graph.nodes if node.op == "placeholder")

    def examples(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """Its arguments, with nothing drawn."""
        return [*(arguments[n] for n in self.tensors), *self.held, *(draw.example for draw in self.draws)]

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What computes the graph, called as the graph that it was made of."""

        if not self.held and not self.draws and self.tensors == tuple(range(len(self.tensors))):
            count = len(self.tensors)
            return lambda *arguments: function(*arguments[:count])

        def called(*arguments: Any) -> Any:
            return function(*[arguments[n] for n in self.tensors], *self.held, *[draw() for draw in self.draws])

        return called


def is_flexible(module: torch.fx.GraphModule) -> bool:
    """Whether a size of an argument or of a result of an operator is a symbol."""
    return any(_has_symbols(node.meta.get("val")) for node in module.graph.nodes)


def _has_symbols(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride(), value.storage_offset()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_symbols, cast("Sequence[Any]", value)))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def sizes_of(arguments: Sequence[Any]) -> Sizes:
    """What all sizes in a graph follow from."""
    return tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else repr(a) for a in arguments)


def plain_graph(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Plain:
    """The graph for the sizes and numbers among these arguments; what is drawn in it becomes an argument.

    Raises RewrightError where an argument is neither a tensor nor a number.
    """
    for number, argument in enumerate(arguments):
        if not isinstance(argument, (torch.Tensor, *_NUMBERS)):
            raise RewrightError(
                f"argument {number} is a {type(argument).__name__}; kernels are for tensors and numbers"
            )
    with torch.no_grad(), preserve_node_meta():
        run = torch.fx.Interpreter(module).run
        made = make_fx(run, _decompositions(), tracing_mode="fake", _allow_non_fake_inputs=True)(*arguments)
    made.graph.eliminate_dead_code()
    places = [node for node in made.graph.nodes if node.op == "placeholder"]
    tensors = tuple(n for n, argument in enumerate(arguments) if isinstance(argument, torch.Tensor))
    for number, node in enumerate(places):
        if number not in tensors:
            made.graph.erase_node(node)
    held = tuple(_take_out_held(made))
    draws = tuple(_take_out_draws(made.graph))
    made.recompile()
    return Plain(made, tensors, held, draws)


def _take_out_held(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Make the tensors that a graph holds its arguments."""
    found: list[torch.Tensor] = []
    for node in [node for node in module.graph.nodes if node.op == "get_attr"]:
        value = getattr(module, str(node.target), None)
        if isinstance(value, torch.Tensor):
            _become_argument(module.graph, node, f"held_{len(found)}")
            found.append(value)
    return found


def _take_out_draws(graph: torch.fx.Graph) -> list[Draw]:
    """Make what is drawn arguments of a graph."""
    found: list[Draw] = []
    for node in [node for node in graph.nodes if node.target in _RANDOM and not node.all_input_nodes]:
        value = node.meta["val"]
        example = torch.zeros(tuple(value.shape), dtype=value.dtype, device=value.device)
        _become_argument(graph, node, f"drawn_{len(found)}")
        found.append(Draw(node.target, node.args, dict(node.kwargs), example))
    return found


def _become_argument(graph: torch.fx.Graph, node: torch.fx.Node, name: str) -> None:
    """Put a new last argument in the place of a node."""
    first = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(first):
        given = graph.placeholder(name)
    given.meta.update(node.meta)
    node.replace_all_uses_with(given)
    graph.erase_node(node)


def _decompositions() -> dict[Any, Callable[..., torch.Tensor]]:
    """Operators of Inductor's and of PyTorch's references, by those of ATen."""
    return {
        _prims.convert_element_type.default: _convert,
        _prims.fma.default: _multiply_add,
        _prims.iota.default: _iota,
    }


def _convert(a: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return a.to(dtype)


def _multiply_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return a * b + c


def _iota(length: int, *, start: int, step: int, dtype: Any, device: Any, requires_grad: bool) -> torch.Tensor:
    return torch.arange(start, start + length * step, step, dtype=dtype, device=device)
