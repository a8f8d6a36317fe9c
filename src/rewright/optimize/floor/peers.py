"""The whole program without our kernels: by eager PyTorch, and by Inductor where it is installed and has a compiler."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from rewright.frontends.torch.eager.operators import TORCH, tensor_of
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.calls.dispatch import Calls, arguments_by_name
from rewright.optimize.calls.results import UPDATED
from rewright.optimize.floor.parts import Eager
from rewright.optimize.running.building import compiler

Call = Callable[[], Any]
"""The program on the arguments that it is timed on."""


@dataclass(frozen=True)
class Example:
    """A program, and arguments to time it on: its own where they have values, else random ones."""

    graph: Graph
    original: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]
    """The inputs of the graph by name."""
    device: torch.device
    """Where a graph runs, which does not say so itself."""

    @staticmethod
    def of(
        graph: Graph,
        program: Any,
        calls: Calls | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        device: torch.device,
    ) -> Example:
        """What a program, captured as a graph, is timed on; raises RewrightError where it cannot run."""
        if calls is None:
            return Example(graph, None, (), {}, drawn(graph, device), device)
        tensors = calls.tensors(args, kwargs)
        if all(_has_values(t) for t in tensors.values()):
            return Example(graph, program, tuple(args), dict(kwargs), tensors, device)
        if not isinstance(program, torch.fx.GraphModule):
            raise RewrightError("its arguments have no values")
        given = tensors | drawn(graph, device)
        names = arguments_by_name(program, args, kwargs)
        return Example(graph, program, tuple(given[name] for name in names), {}, given, device)

    def by_eager(self) -> Call:
        """The program as it is; a graph operator by operator."""
        if self.original is None:
            given = given_tensors(self.graph, self.tensors)
            function = graph_by("eager", self.graph, given, self.device)
            return lambda: function(*given)
        original = self.original
        return lambda: original(*self.args, **self.kwargs)

    def by_inductor(self) -> tuple[Callable[..., Any], Call]:
        """What Inductor makes of the program, and a call of it."""
        if self.original is None:
            given = given_tensors(self.graph, self.tensors)
            function = graph_by("inductor", self.graph, given, self.device)
            return function, lambda: function(*given)
        compiled = compile_program(self.original, self.args)
        return compiled, lambda: compiled(*self.args, **self.kwargs)

    @contextmanager
    def unchanged(self) -> Generator[None]:
        """What the program writes to its inputs is undone at the end."""
        names = [name.removeprefix(UPDATED) for name in self.graph.outputs if name.startswith(UPDATED)]
        before = {name: self.tensors[name].detach().clone() for name in names}
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in before.items():
                    self.tensors[name].copy_(value)


def drawn(graph: Graph, device: torch.device) -> dict[str, torch.Tensor]:
    """Random inputs of a graph, integers zero or one."""
    from rewright.optimize.running.checking import draw  # which needs the engine of proofs

    found = draw(graph, 1.0, 0)
    kinds = {name: TORCH[graph.nodes[position].type.dtype] for name, position in graph.inputs.items()}
    return {name: tensor_of(v).to(device, kinds[name]) for name, v in found.items()}


def _has_values(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and tensor.device.type != "meta"


def given_tensors(graph: Graph, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """The inputs of a graph in order; raises RewrightError where one is missing or of another type."""
    found: list[torch.Tensor] = []
    for name, position in graph.inputs.items():
        kind, value = graph.nodes[position].type, inputs.get(name)
        if value is None:
            raise RewrightError(f"input {name!r} has no value; give a tensor of type {kind} under that name")
        if tuple(value.shape) != tuple(kind.shape) or value.dtype != TORCH[kind.dtype]:
            raise RewrightError(f"input {name!r} must be a tensor of type {kind}; optimize the program for other sizes")
        found.append(value.detach())
    return found


def graph_by(
    peer: str, graph: Graph, given: Sequence[torch.Tensor], device: torch.device
) -> Callable[..., Sequence[torch.Tensor]]:
    """A graph by torch's calls, or by what Inductor makes of them for such tensors."""
    eager = Eager(graph, device=device)
    return eager if peer == "eager" else compile_graph(eager, given)


def has_inductor() -> bool:
    """Whether there is what Inductor needs on a CPU."""
    return importlib.util.find_spec("torch._inductor") is not None and compiler() is not None


def compile_graph(function: Callable[..., Any], given: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """A function of tensors by Inductor, for such tensors and without guards; raises as :func:`compile_program`."""
    _check_views(given)
    with torch.no_grad():
        return _by_inductor(make_fx(function)(*given), given)


def compile_program(program: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """A program by Inductor; a graph of Dynamo's, which has guards already, for such arguments.

    Raises RewrightError for arguments that Inductor reads wrongly.
    """
    _check_views(args)
    if not isinstance(program, torch.fx.GraphModule):
        return cast("Any", torch).compile(program)
    return _by_inductor(deepcopy(program), args)  # which may change what it is given


def are_read_wrongly(arguments: object) -> bool:
    """Whether there is a view among arguments whose elements are those in memory negated or conjugated.

    Inductor (of PyTorch 2.13) reads these as they are in memory.
    """
    tensors = (leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor))
    return any(tensor.is_neg() or tensor.is_conj() for tensor in tensors)


def _check_views(arguments: object) -> None:
    if are_read_wrongly(arguments):
        raise RewrightError(
            "an argument is a view of negated or conjugated memory, which Inductor reads as it lies there"
        )


def _by_inductor(module: torch.fx.GraphModule, given: Sequence[Any]) -> Callable[..., Any]:
    """A graph by Inductor, for these sizes; what it keeps on disk is only looked at where a capture with sizes goes on.

    Sizes of tensors that it is not told of are symbols to it, whatever the capture takes for given.
    """
    from torch._guards import TracingContext, tracing
    from torch._inductor.compile_fx import compile_fx
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    context = TracingContext.try_get()  # within Dynamo, whose arguments are of its own mode
    if context is None:
        mode = FakeTensorMode(shape_env=ShapeEnv(assume_static_by_default=True))
        context = TracingContext(mode)
        given = [mode.from_tensor(x, static_shapes=True) if isinstance(x, torch.Tensor) else x for x in given]
    with tracing(context):
        return cast("Callable[..., Any]", compile_fx(module, list(given)))
