"""One pass over a traced graph: every node is lowered as it is met, aliases and writes included."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
import torch.fx
from torch.utils import _pytree as pytree

from rewright.frontends.aten import tables
from rewright.frontends.aten.collectives import pending_result
from rewright.frontends.aten.context import Context, NotCovered
from rewright.frontends.aten.lowering import NO_LOWERING, Lowering, locate
from rewright.frontends.aten.pooling import FIRST_ONLY
from rewright.frontends.aten.tables import is_known
from rewright.frontends.aten.views import Tensor
from rewright.frontends.torch.lower import decompose
from rewright.frontends.torch.lower.calls import FxCall
from rewright.frontends.torch.lower.constants import constant
from rewright.frontends.torch.lower.foreign import foreign, is_foreign
from rewright.frontends.torch.lower.nodes import is_read, schema
from rewright.frontends.torch.lower.sizes import dim_of
from rewright.ir.errors import RewrightError, TypeMismatch, UnsupportedOperator
from rewright.ir.types import SourceSpan
from rewright.ops.reference import building as rb

Spans = Callable[[torch.fx.Node], SourceSpan]


class Walk:
    """Values of the nodes of one graph module; graphs inside it are walked with the same context."""

    def __init__(self, context: Context, spans: Spans, constants: dict[str, int], opaque: bool = False) -> None:
        self.c = context
        self.opaque = opaque
        """Whether a call without a lowering becomes an opaque one."""
        self.lowering = Lowering(context)
        self.spans = spans
        self.constants = constants
        self.values: dict[torch.fx.Node, Any] = {}
        self.asserted: list[int] = []
        """With ``opaque``, what is not zero where the program raises no error of its own."""
        self.in_flight: dict[int, int] = {}
        """By what is in memory before a collective is waited for, its result."""

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
            elif not self._is_trial(node):
                self.values[node] = self.lowered_at(node)
        return result

    def _is_trial(self, node: torch.fx.Node) -> bool:
        """Whether a call computes, of fresh memory, what nothing reads.

        So DTensor of PyTorch 2.11 finds shapes, with dtypes that tensors do not have here.
        """
        operator, operands = FxCall(node).operator, node.all_input_nodes
        is_fresh = any(p not in self.values for p in operands) if operands else operator in _ALLOCATIONS
        return is_fresh and not operator.startswith(_COLLECTIVES) and not is_read(node)

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
        if isinstance(argument, torch.SymInt):
            return dim_of(argument)
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in cast("Sequence[Any]", argument)]
        if isinstance(argument, dict):
            return {key: self._argument(item) for key, item in cast("Mapping[Any, Any]", argument).items()}
        return argument

    def lowered_at(self, node: torch.fx.Node) -> Any:
        """The value of a node, lowered at its line; errors name it and its source line."""
        span = self.spans(node)
        self.c.b.span = span
        call = FxCall(node)
        try:
            return self._lowered(call)
        except (UnsupportedOperator, TypeMismatch) as error:
            raise UnsupportedOperator(locate(call, span, error)) from None

    def _lowered(self, call: FxCall) -> Any:
        """The result of a call, of the type that was captured; one without a lowering may be opaque."""
        if not self.opaque:
            return self._lower(call)
        if call.operator.startswith(_COLLECTIVES):  # an opaque call has its result, and this one gives it to who waits
            raise UnsupportedOperator("it exchanges values with other ranks, or waits for what they send")
        arguments, keywords = self._argument(call.node.args), self._argument(call.node.kwargs)
        is_complex = is_foreign((arguments, keywords)) and call.node.target is not operator.getitem
        try:
            if not is_complex:
                return self._lower(call)
        except (UnsupportedOperator, TypeMismatch) as error:
            try:
                return foreign(self.c.b, call.node, arguments, keywords)
            except UnsupportedOperator:
                raise error from None
        return foreign(self.c.b, call.node, arguments, keywords)

    def _lower(self, call: FxCall) -> Any:
        node, name = call.node, call.operator
        if node.op != "call_function":
            raise UnsupportedOperator(f"a call of a {node.op} is not flat ATen; trace the module with rewright.capture")
        if node.target is operator.getitem:
            container, index = self._argument(node.args[0]), node.args[1]
            return container[index]
        if isinstance(node.target, type) and issubclass(node.target, tuple):
            return tuple(self._argument(argument) for argument in node.args)
        if name in tables.IGNORED:
            if self.opaque and name in tables.ASSERTIONS:
                self._assert(self._argument(node.args[0]), tables.ASSERTIONS[name])
            return None
        value = node.meta.get("val")
        if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
            return dim_of(value)
        if isinstance(value, (float, torch.SymFloat, torch.SymBool, bool)):
            return value
        return self._operator(call)

    def _assert(self, value: Any, is_zero: bool) -> None:
        """Note what the program asserts of a tensor; of a number it was known while the program was traced."""
        if isinstance(value, Tensor):
            position = value.read(self.c.b)
            zero = rb.splat_like(self.c.b, 0, position)
            self.asserted.append(rb.compare(self.c.b, "EQ", position, zero) if is_zero else position)

    def _operator(self, call: FxCall) -> Any:
        arguments = [self._argument(argument) for argument in call.node.args]
        keywords = {key: self._argument(value) for key, value in call.node.kwargs.items()}
        if call.operator in _INLINED:
            place = _INLINED[call.operator]
            return self._inline(arguments[place], arguments[place + 1 :])
        if not is_known(call.operator) or _reads_more(call):
            return self._decompose(call, _tensors((arguments, keywords)))
        try:
            result = self.lowering.lower(call, arguments, keywords)
            self.lowering.check(call, result)
        except (UnsupportedOperator, TypeMismatch) as error:
            is_view = call.operator in tables.VIEWS  # what a decomposition gives may be none
            if (is_view or self.opaque) and not isinstance(error, NotCovered):
                raise
            return self._otherwise(call, _tensors((arguments, keywords)), error)
        return self._communicate(call, arguments, result)

    def _otherwise(self, call: FxCall, tensors: list[Tensor], error: RewrightError) -> Any:
        """A call that its own lowering refuses, by PyTorch's decomposition; the error where that is refused too."""
        try:
            return self._decompose(call, tensors)
        except (UnsupportedOperator, TypeMismatch):
            raise error from None

    def _communicate(self, call: FxCall, arguments: list[Any], result: Any) -> Any:
        """The result; of a collective that may be read before it is waited for, what is in its memory until then."""
        if not call.operator.startswith(_COLLECTIVES):
            return result
        if call.operator == _WAIT:
            waited: Tensor = arguments[0]
            value = self.in_flight.get(waited.read(self.c.b))
            if value is None:
                return result
            waited.write(self.c.b, value)
            return waited
        if schema(call.node).is_mutable or not all(map(_only_waits, call.node.users)):
            before = self.c.enter(call)
            for tensor in pytree.tree_leaves(result):
                value = tensor.read(self.c.b)
                position = pending_result(self.c, value)
                self.in_flight[position] = value
                tensor.write(self.c.b, position)
            self.c.leave(before)
        return result

    def _decompose(self, call: FxCall, tensors: list[Tensor]) -> Any:
        """An operator without a lowering of its own, by PyTorch's decomposition into others."""
        inner = decompose.decomposition(call.node, defined=not self.opaque)
        if inner is None:
            raise UnsupportedOperator(NO_LOWERING)
        try:
            result = self._inline(inner, tensors)
        except UnsupportedOperator as error:
            if NO_LOWERING in str(error):
                raise UnsupportedOperator(NO_LOWERING) from None
            raise
        if schema(call.node).is_mutable:
            self.lowering.assign(tensors[0], result)
            return tensors[0]
        return result

    def _inline(self, module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Any:
        """Lower a graph inside the graph; its nodes are at the place of the node that calls it."""
        span = self.c.b.span
        inner = Walk(self.c, lambda _: span, self.constants, self.opaque)
        result = inner.run(module, arguments)
        self.asserted += inner.asserted
        return tuple(cast("list[Any]", result)) if isinstance(result, list) else result


def _tensors(operands: object) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(operands) if isinstance(x, Tensor)]


def _reads_more(call: FxCall) -> bool:
    """Whether results of an operator are read that its lowering has not."""
    readers = call.node.users if call.operator in FIRST_ONLY else ()
    return any((user.target is not operator.getitem or user.args[1] != 0) and is_read(user) for user in readers)


_INLINED = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4, "wrap_set_grad_enabled": 1, "hints_wrapper": 0}
"""Higher-order operators that only run a graph, and where that graph is among their arguments."""


_COLLECTIVES = "_c10d_functional"
_ALLOCATIONS = ("aten.empty.memory_format", "aten.empty_strided.default")
_WAIT = "_c10d_functional.wait_tensor.default"
_SEEN_THROUGH = "_c10d_functional._wrap_tensor_autograd.default"


def _only_waits(reader: torch.fx.Node) -> bool:
    """Whether a reader of a collective's result reads nothing before it was waited for."""
    name = FxCall(reader).operator if reader.op == "call_function" else ""
    if reader.target is operator.getitem or name == _SEEN_THROUGH:
        return all(map(_only_waits, reader.users))
    return name == _WAIT
