"""One pass over a traced graph: every node is lowered as it is met, aliases and writes included."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
import torch.fx
from torch.utils import _pytree as pytree

from rewright.frontends.torch.lower import decompose, tables
from rewright.frontends.torch.lower.constants import constant
from rewright.frontends.torch.lower.context import Context, Value
from rewright.frontends.torch.lower.nodes import locate, operator_name, shares_memory, writes_a_list
from rewright.frontends.torch.lower.sizes import dim_of, type_of
from rewright.frontends.torch.lower.views import Step, Tensor
from rewright.ir.errors import TypeMismatch, UnsupportedOperator
from rewright.ir.types import SourceSpan
from rewright.ops.reference import building as rb

Spans = Callable[[torch.fx.Node], SourceSpan]
PLACEMENT = frozenset(
    {"device", "layout", "pin_memory", "memory_format", "non_blocking", "dtype", "generator", "out_dtype"}
)
"""Keyword arguments that say where and how a result is stored; its dtype is known from the trace."""


class Walk:
    """Values of the nodes of one graph module; graphs inside it are walked with the same context."""

    def __init__(self, context: Context, spans: Spans, constants: dict[str, int]) -> None:
        self.c = context
        self.spans = spans
        self.constants = constants
        self.values: dict[torch.fx.Node, Any] = {}

    def run(self, module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Any:
        """Lower all nodes; ``arguments`` are the values of the placeholders. Returns what the graph returns."""
        left = iter(arguments)
        result: Any = None
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(left)
            elif node.op == "get_attr":
                self.values[node] = self._attribute(module, node)
            elif node.op == "output":
                result = self._argument(node.args[0])
            else:
                self.values[node] = self._located(node)
        return result

    def _attribute(self, module: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
        found: Any = module
        for part in str(node.target).split("."):
            found = getattr(found, part)
        if isinstance(found, torch.Tensor):
            return Tensor.fresh(constant(self.c.b, found, str(node.target), self.constants))
        return found

    def _argument(self, argument: Any) -> Any:
        """An argument of a traced node with nodes replaced by their values."""
        if isinstance(argument, torch.fx.Node):
            return self.values[argument]
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in cast("Sequence[Any]", argument)]
        if isinstance(argument, dict):
            return {key: self._argument(item) for key, item in cast("Mapping[Any, Any]", argument).items()}
        return argument

    def _located(self, node: torch.fx.Node) -> Any:
        """Lower a node; errors name it and its source line."""
        span = self.spans(node)
        self.c.b.span = span
        self.c.enter(node)
        try:
            result = self._lower(node)
            self._check(node, result)
        except UnsupportedOperator as error:
            raise UnsupportedOperator(locate(node, span, error)) from None
        except TypeMismatch as error:
            raise TypeMismatch(locate(node, span, error)) from None
        return result

    def _lower(self, node: torch.fx.Node) -> Any:
        if node.op != "call_function":
            raise UnsupportedOperator(f"a call of a {node.op} is not flat ATen; trace the module with rewright.capture")
        name = operator_name(node)
        if node.target is operator.getitem:
            container, index = self._argument(node.args[0]), node.args[1]
            return container[index]
        if isinstance(node.target, type) and issubclass(node.target, tuple):
            return tuple(self._argument(argument) for argument in node.args)
        if name in tables.IGNORED:
            return None
        value = node.meta.get("val")
        if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
            return dim_of(value)
        if isinstance(value, (float, torch.SymFloat, torch.SymBool, bool)):
            return value
        return self._operator(node, name)

    def _operator(self, node: torch.fx.Node, name: str) -> Any:
        arguments = [self._argument(argument) for argument in node.args]
        keywords = {k: self._argument(v) for k, v in node.kwargs.items() if k not in PLACEMENT}
        if name in _INLINED:
            return self._inline(arguments[_INLINED[name]], arguments[_INLINED[name] + 1 :])
        if name in tables.VIEWS:
            return self._view(node, name, arguments, keywords)
        if name in tables.WRITES:
            return self._write(tables.WRITES[name], arguments, keywords)
        if name in tables.PURE:
            return self._pure(node, tables.PURE[name], arguments, keywords)
        functional = tables.functional_name(name) if name.count(".") >= 2 else None
        if functional in tables.PURE:
            return self._write(tables.PURE[functional], arguments, keywords)
        return self._decomposed(node, [x for x in self._flat(arguments, node.kwargs) if isinstance(x, Tensor)])

    def _decomposed(self, node: torch.fx.Node, tensors: list[Tensor]) -> Any:
        """An operator without a lowering of its own, by PyTorch's decomposition into others."""
        inner = decompose.decomposition(node)
        if inner is None:
            raise UnsupportedOperator(_NO_LOWERING)
        try:
            return self._inline(inner, tensors)
        except UnsupportedOperator as error:
            if _NO_LOWERING in str(error):
                raise UnsupportedOperator(_NO_LOWERING) from None
            raise

    def _flat(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        return pytree.tree_leaves((arguments, {k: self._argument(v) for k, v in keywords.items()}))

    def _operands(self, arguments: Any) -> Any:
        """Tensors as what they hold now."""
        if isinstance(arguments, Tensor):
            position = arguments.read(self.c.b)
            return Value(position, self.c.b.type(position))
        if isinstance(arguments, list):
            return [self._operands(item) for item in cast("list[Any]", arguments)]
        return arguments

    def _pure(self, node: torch.fx.Node, function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
        operands = self._operands(arguments)
        out = keywords.pop("out", None)
        result = function(self.c, *operands, **{k: self._operands(v) for k, v in keywords.items()})
        if out is not None:
            out.write(self.c.b, result)
            return out
        if isinstance(result, int):
            return Tensor.fresh(result)
        fresh = tuple(None if position is None else Tensor.fresh(position) for position in result)
        if writes_a_list(node):
            for target, value in zip(arguments[0], result, strict=True):
                target.write(self.c.b, value)
            return arguments[0]
        return fresh

    def _write(self, function: Callable[..., int], arguments: list[Any], keywords: dict[str, Any]) -> Tensor:
        """An in-place operator: its result in the dtype and shape of the first operand, seen by all aliases."""
        target: Tensor = arguments[0]
        b = self.c.b
        operands = self._operands(arguments)
        value = function(self.c, *operands, **{k: self._operands(v) for k, v in keywords.items()})
        kind = operands[0].type
        target.write(b, rb.broadcast(b, rb.convert(b, value, kind.dtype), kind.shape))
        return target

    def _view(self, node: torch.fx.Node, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        source: Tensor | None = arguments[0]
        if source is None:  # a result that nothing reads, such as a seed
            return None
        operands = self._operands(arguments)
        steps = tables.VIEWS[name](self.c, *operands, **keywords)
        if steps is None:
            return Tensor.fresh(rb.convert(self.c.b, operands[0].position, self.c.result().dtype))
        if steps and isinstance(steps[0], tuple):
            return tuple(self._seen(node, source, chain) for chain in steps)
        return self._seen(node, source, steps)

    def _seen(self, node: torch.fx.Node, source: Tensor, steps: tuple[Step, ...]) -> Tensor:
        """An alias where the operator gives one, else a tensor of its own."""
        found = source
        for step in steps:
            found = found.view(step)
        return found if shares_memory(node) else Tensor.fresh(found.read(self.c.b))

    def _inline(self, module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Any:
        """Lower a graph inside the graph; its nodes are at the place of the node that calls it."""
        outer, span = self.c.node, self.c.b.span
        inner = Walk(self.c, lambda _: span, self.constants)
        result = inner.run(module, arguments)
        self.c.enter(outer)
        return tuple(cast("list[Any]", result)) if isinstance(result, list) else result

    def _check(self, node: torch.fx.Node, result: object) -> None:
        """The lowered type must be the one that PyTorch found."""
        expected = node.meta.get("val")
        if isinstance(result, tuple) and isinstance(expected, (tuple, list)):
            for part, value in zip(cast("tuple[Any, ...]", result), cast("Sequence[Any]", expected), strict=False):
                self._check_part(part, value)
        else:
            self._check_part(result, expected)

    def _check_part(self, part: Any, expected: Any) -> None:
        if isinstance(part, Tensor) and isinstance(expected, torch.Tensor):
            found, wanted = self.c.b.type(part.read(self.c.b)), type_of(expected)
            if found != wanted:
                raise TypeMismatch(f"PyTorch gives {wanted} and the lowering {found}; this is a bug of the lowering")


_NO_LOWERING = "no lowering exists; rewrite that line with supported operators, or report it"
_INLINED = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4, "wrap_set_grad_enabled": 1, "hints_wrapper": 0}
"""Higher-order operators that only run a graph, and where that graph is among their arguments."""
