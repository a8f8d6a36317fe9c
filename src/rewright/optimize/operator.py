"""An optimised program as one operator of PyTorch, which ``torch.export`` and ``torch.compile`` keep as a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from rewright.frontends.torch.eager.operators import TORCH
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.calls.dispatch import Leaves, arguments_by_name, leaves_of
from rewright.optimize.calls.results import PLAIN, UPDATED, Place
from rewright.optimize.running.operators import Types, register

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized

Operator = Callable[..., Any]


def register_operator(found: Optimized, name: str) -> Operator:
    """The program with its own signature, whose work is one call of ``torch.ops.<namespace>.<name>``.

    Of a graph it is that operator, which takes the inputs in order. Raises RewrightError where there are no kernels,
    for a name that is none, and for a program that no operator can be: one that writes to its arguments, returns their
    memory, or reads parameters of a module that it is not.
    """
    if found.runner is None or found.captured is None:
        raise RewrightError(f"there are no kernels to register ({found.reason}); use the program itself")
    graph, device = found.captured, "cpu" if found.device is None else found.device.type
    if written := [output for output in graph.outputs if output.startswith(UPDATED)]:
        own = written[0].removeprefix(UPDATED)
        raise RewrightError(f"the program writes to {own}, which an operator cannot; register a part that computes")
    program = None if found.calls is None else ProgramByOperator(found)
    try:
        operator = register(name, tuple(graph.inputs), tuple(graph.outputs), found.run, types_of(graph), device)
    except ValueError as error:
        raise RewrightError(str(error)) from None
    if program is None:
        return operator
    program.operator = operator
    return program


class ProgramByOperator(torch.nn.Module):
    """A program with its own signature, by an operator; a module that it stands for is its child ``program``."""

    operator: Operator

    def __init__(self, found: Optimized) -> None:
        """Raises RewrightError where a result is memory of an input, or a parameter is out of reach."""
        super().__init__()
        calls, graph = found.calls, found.captured
        assert calls is not None and graph is not None
        results = next(iter(calls.known.values()))[0].results
        assert results is not None
        if results.shares:
            raise RewrightError("the program returns memory of its inputs, which an operator cannot; return a copy")
        is_module = isinstance(found.original, torch.nn.Module)
        self.program = found.original if is_module else None
        self._function = None if is_module else found.original
        self._results, self._example = results, calls.example
        self._inputs, self._outputs = tuple(graph.inputs), tuple(graph.outputs)
        for name, value in self._example.items():
            if value is not torch.Tensor and not isinstance(value, PLAIN):
                raise RewrightError(
                    f"{name} is a {type(value).__name__}, which may change; pass its tensors and numbers"
                )
        for name in self._inputs:
            if name not in self._example:
                self._parameter(name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the program returns; raises RewrightError where an argument without a tensor is not the example's."""
        target = self._function if self.program is None else self.program
        given = self._given(leaves_of(arguments_by_name(target, args, kwargs)))
        made = self.operator(*[given[name] if name in given else self._parameter(name) for name in self._inputs])
        values = dict(zip(self._outputs, made if len(self._outputs) > 1 else (made,), strict=True))
        leaves = [_result(leaf, values) if isinstance(leaf, Place) else leaf for leaf in self._results.leaves]
        return self._results.build(leaves)

    def _given(self, leaves: Leaves) -> Leaves:
        """The arguments, which are those of the example but for values of tensors."""
        if leaves.keys() != self._example.keys():
            other = min(leaves.keys() ^ self._example.keys())
            raise RewrightError(f"{other} is given in the example or the call alone; optimize the program for it")
        for name, known in self._example.items():
            value = leaves[name]
            if known is not torch.Tensor and (type(value) is not type(known) or repr(value) != repr(known)):
                raise RewrightError(f"{name} was {known!r} and is {value!r}; optimize the program for it")
        return leaves

    def _parameter(self, name: str) -> torch.Tensor:
        """A parameter or buffer of the program."""
        if not isinstance(self.program, torch.nn.Module):
            raise RewrightError(f"the program reads {name} of a module that it is not; optimize that module")
        owner, _, own = name.rpartition(".")
        value = getattr(self.program.get_submodule(owner), own, None)
        if not isinstance(value, torch.Tensor):
            raise RewrightError(f"{name} is no parameter or buffer of the program; make it one")
        return value


def _result(place: Place, values: Mapping[str, torch.Tensor]) -> torch.Tensor:
    value = values[place.value]
    return value if value.dtype == place.dtype else value.to(place.dtype)


def types_of(graph: Graph) -> Types:
    """Shapes and dtypes of the outputs, from inputs whose sizes may be symbols of PyTorch's."""
    shapes = [graph.nodes[position].type.shape for position in graph.inputs.values()]
    outputs = [graph.nodes[position].type for position in graph.outputs.values()]

    def types(tensors: Sequence[torch.Tensor]) -> list[tuple[Sequence[Any], torch.dtype]]:
        sizes = _sizes(shapes, tensors)
        return [([_number(size, sizes) for size in kind.shape], TORCH[kind.dtype]) for kind in outputs]

    return types


def _sizes(shapes: Sequence[Sequence[Dim]], tensors: Sequence[torch.Tensor]) -> dict[str, Any]:
    """Sizes by symbol, read off the first axis that is a multiple of it."""
    found: dict[str, Any] = {}
    for shape, tensor in zip(shapes, tensors, strict=True):
        for size, actual in zip(shape, tensor.shape, strict=True):
            if isinstance(size, SizeExpr) and len(size.terms) == 1:
                ((monomial, count),) = size.terms
                if len(monomial) == 1:
                    found.setdefault(monomial[0], actual if count == 1 else actual // count)
    return found


def _number(size: Dim, sizes: Mapping[str, Any]) -> Any:
    if isinstance(size, int):
        return size
    total: Any = 0
    for monomial, count in size.terms:
        product: Any = count
        for symbol in monomial:
            product = product * sizes[symbol]
        total = total + product
    return total
