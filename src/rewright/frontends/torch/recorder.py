"""A recorder under the dispatcher: every operator that runs becomes a node of a flat ATen graph.

It sits below autograd, so that what ``backward`` runs is recorded as what the program itself runs is. Of the tensors
only identities are looked at, and those that nobody announced are constants.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import torch
import torch.fx
from torch import nn
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx._lazy_graph_module import _LazyGraphModule  # pyright: ignore[reportPrivateUsage]
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
    autograd_would_have_decomposed,
)
from torch.utils._pytree import tree_leaves, tree_map_only

from rewright.frontends.torch.alike.numbers import bare
from rewright.frontends.torch.custom import body_of
from rewright.frontends.torch.drawing.generators import Generators
from rewright.frontends.torch.drawing.operators import Drawn, drawn
from rewright.frontends.torch.drawing.recording import drawn_operator
from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.remembering import KnownResults, Result
from rewright.frontends.torch.run.memory import storage_key
from rewright.frontends.torch.scalars import call_with_tensors, has_numbers, read_number
from rewright.ir.errors import CaptureError, UnsupportedOperator

Replacement = Callable[..., Any]
"""What runs instead of an operator, and is recorded; it may give ``NotImplemented``."""

_aten: Any = torch.ops.aten
_prim: Any = torch.ops.prim
_KEYS: Any = torch._C.DispatchKey  # pyright: ignore[reportPrivateUsage]
_ASKS = frozenset({_prim.device.default, _aten.size.default, _aten.stride.default, _aten.storage_offset.default})
"""Operators that ask for what a tensor is, and compute nothing."""


class Recorder(TorchDispatchMode):
    """Notes operators in ``graph``, whose constants are attributes of ``root``."""

    supports_higher_order_operators = True
    kinds = frozenset({torch.Tensor, nn.Parameter, nn.Buffer, FakeTensor})
    """Other classes of tensors are told in operators on these by their own dispatch."""

    def __init__(
        self,
        replacements: Mapping[Any, Replacement],
        known: KnownResults | None = None,
        *,
        custom: bool = True,
        generators: Generators | None = None,
    ) -> None:
        TorchDispatchMode.__init__(self)  # pyright: ignore[reportUnknownMemberType]
        self.graph = torch.fx.Graph()
        self.root = nn.Module()
        self._given = replacements
        self._custom = custom
        """Whether custom operators are what they compute: they may do more, which who runs the record wants done."""
        self.generators = generators
        """What tells random numbers apart; without it operators that draw are recorded as they are."""
        self._run = _run if known is None else known.run
        self._replacements: dict[Any, Replacement | None] = {}
        self._nodes: dict[int, torch.fx.Node] = {}
        self._seen: dict[int, tuple[Any, ...]] = {}
        """Where tensors lay when they were noted."""
        self._held: list[torch.Tensor] = []
        self.assumed: dict[str, None] = {}
        """What the program asserts of numbers that it reads."""

    def create_node(self, *args: Any, **kwargs: Any) -> torch.fx.Node:
        """Add a node to the graph: the one place where nodes are made."""
        return self.graph.create_node(*args, **kwargs)

    def placeholder(self, tensor: torch.Tensor) -> None:
        """Announce an input of the program."""
        self.note(tensor, self.create_node("placeholder", f"input_{len(self._held)}", (), {}))

    def node(self, tensor: torch.Tensor) -> torch.fx.Node:
        """The node that holds a tensor's value; one that was never seen is a constant."""
        return self.known(tensor) or self._of_other(tensor) or self.constant(tensor, tensor)

    def known(self, tensor: torch.Tensor) -> torch.fx.Node | None:
        """The node that holds a tensor's value, if one does; ``x.data = y`` gives x other memory, and no operator."""
        return self._nodes.get(id(tensor)) if self._seen.get(id(tensor)) == _layout(tensor) else None

    def _of_other(self, tensor: torch.Tensor) -> torch.fx.Node | None:
        """The node of the tensor whose memory this one was given; what nodes have of this one stays as it was."""
        before, now = self._seen.get(id(tensor)), _layout(tensor)
        if before is None:
            return None
        aliases = [x for x in self._held if x is not tensor and memory_of(x) == before[0]][:1]
        if isinstance(tensor, FakeTensor):
            _, offset, shape, stride, dtype = before
            kept = Result(shape, stride, dtype, tensor.fake_device, offset, 0 if aliases else None)
            old = kept.make(tensor.fake_mode, aliases)
            for node in self.graph.nodes:
                if "val" in node.meta:
                    node.meta["val"] = tree_map_only(
                        torch.Tensor, lambda x: old if x is tensor else x, node.meta["val"]
                    )
        others = (x for x in reversed(self._held) if x is not tensor and memory_of(x) == now[0])
        return next((self._nodes[id(x)] for x in others if _layout(x) == now), None)

    def note(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        """Note that a node holds a tensor's value."""
        node.meta["val"] = tensor
        self._nodes[id(tensor)] = node
        self._seen[id(tensor)] = _layout(tensor)
        self._held.append(tensor)  # so that its identity is not used again

    def constant(self, tensor: torch.Tensor, value: torch.Tensor) -> torch.fx.Node:
        """A node for a tensor that has a value of its own."""
        name = f"constant_{len(self._held)}"
        setattr(self.root, name, value)
        node = self.create_node("get_attr", name, (), {})
        self.note(tensor, node)
        return node

    def module(self, outputs: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
        """What was recorded, with these results."""
        self.create_node("output", "output", (tuple([self.node(value) for value in outputs]),), {})
        return _LazyGraphModule(self.root, self.graph)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.kinds.issuperset(types):
            return NotImplemented
        kwargs = kwargs or {}
        if func in _ASKS:
            return func(*args, **kwargs)
        if self._custom and (func in _READS or has_numbers(args, kwargs)):
            found = self._number(func, args, kwargs)
            if found is not NotImplemented:
                return found
        replacement = self.replacement(func, args)
        if replacement is not None:
            with self:
                result = replacement(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self.record(_FRESH.get(func, func), args, kwargs)

    def _number(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator gives that reads a number of a tensor, or that is given one; NotImplemented for others."""
        with self:
            if func is _aten._local_scalar_dense.default:
                return read_number(args[0], lambda text: self.assumed.setdefault(text))
            if func is _aten.equal.default:
                return self._equal(*args)
            return call_with_tensors(func, args, kwargs)

    def _equal(self, left: torch.Tensor, right: torch.Tensor) -> Any:
        """Whether two tensors are equal, where each has one known number in all places; NotImplemented elsewhere."""
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        values = [number_of(self.root, self.node(x)) for x in (left, right)]
        if None in values or any(self._is_written(memory_of(x)) for x in (left, right)):
            return NotImplemented
        return values[0] == values[1]

    def _is_written(self, memory: int) -> bool:
        """Whether an operator has written to a memory."""
        given = (x for node in self.graph.nodes if _writes(node.target) for x in node.all_input_nodes)
        return any(isinstance(x.meta.get("val"), torch.Tensor) and memory_of(x.meta["val"]) == memory for x in given)

    def replacement(self, func: Any, args: Sequence[Any]) -> Replacement | None:
        """What to run instead of an operator, if anything."""
        if func not in self._replacements:
            self._replacements[func] = self._given.get(func) or _definition(func) or self._body(func)
        found = self._replacements[func]
        if found is None or func in self._given or isinstance(func, HigherOrderOperator) or self._body(func):
            return found
        return found if autograd_would_have_decomposed(func, tree_leaves(args)) else None

    def _body(self, func: Any) -> Replacement | None:
        return body_of(func) if self._custom else None

    def record(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator, and note it."""
        if self.generators is not None and (what := drawn(func, args, kwargs)) is not None:
            return self.draw(what, lambda: self._run(func, args, kwargs), self.generators)[0]
        inputs = self.inputs(args, kwargs) if _writes(func) else None  # which the operator may change
        if inputs is None:
            result = self._run(func, args, kwargs)
        elif _view(func) is None:
            with _keeping_sizes(func, (args, kwargs)):
                result = func(*args, **kwargs)
        else:
            self.node(args[0]).meta["val"] = args[0].detach()  # as it is before
            result = func(*args, **kwargs)
        if not _is_number(result):
            self.add(func, inputs or self.inputs(args, kwargs), result)
        return result

    def draw(
        self, what: Drawn, run: Callable[[], torch.Tensor], generators: Generators
    ) -> tuple[torch.Tensor, torch.fx.Node]:
        """Run an operator that draws random numbers, and note which they are."""
        result, draw = generators.draw(what.kind, what.generator, what.device, run)
        return result, self.add(drawn_operator(), ((draw.kind, draw.before, draw.value, draw.after), {}), result)

    def inputs(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of an operator with nodes in the place of tensors."""
        return tuple([self._argument(x) for x in args]), {name: self._argument(x) for name, x in kwargs.items()}

    def add(self, func: Any, inputs: tuple[Any, Any], result: Any) -> torch.fx.Node:
        """A node for an operator that ran, and one for each of several results."""
        node = self.create_node("call_function", _view(func) or func, *inputs)
        self._results(node, result)
        return node

    def _results(self, node: torch.fx.Node, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            self.note(result, node)
            return
        node.meta["val"] = result
        several = cast("Sequence[Any]", result) if isinstance(result, (tuple, list)) else ()
        for index, part in enumerate(several):
            if isinstance(part, (torch.Tensor, tuple, list)):
                self._results(self.create_node("call_function", operator.getitem, (node, index), {}), part)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.node(value)
        if isinstance(value, (list, tuple)):
            items = [self._argument(item) for item in cast("Sequence[Any]", value)]
            return items if isinstance(value, list) else tuple(items)
        return bare(value)


def number_of(root: nn.Module, node: torch.fx.Node) -> float | None:
    """The number that a tensor holds in all places, if it was made of that number."""
    if node.op == "get_attr":
        held = getattr(root, str(node.target))
        value = getattr(held, "constant", None) if isinstance(held, FakeTensor) else held
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.dtype.is_complex:
            return None
        with _disable_current_modes():
            return value.item()
    if node.target in _FILLED:
        return _FILLED[node.target]
    if node.target in (_aten.full.default, _aten.full_like.default):
        return node.args[1] if isinstance(node.args[1], int | float) else None
    return number_of(root, cast("torch.fx.Node", node.args[0])) if node.target in _COPIES else None


_FILLED: dict[Any, float] = {
    _aten.ones_like.default: 1.0,
    _aten.ones.default: 1.0,
    _aten.zeros_like.default: 0.0,
    _aten.zeros.default: 0.0,
}
_COPIES = frozenset({_aten.lift_fresh_copy.default, _aten.detach.default, _aten.clone.default, _aten.expand.default})
_READS = frozenset({_aten._local_scalar_dense.default, _aten.equal.default})


def memory_of(tensor: torch.Tensor) -> int:
    """What tells the memory of a tensor from that of others; nought for one without strides."""
    return storage_key(tensor) if tensor.layout is torch.strided else 0


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    if tensor.layout is not torch.strided:
        return (0,)
    return storage_key(tensor), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


@cache
def _view(func: Any) -> Any:
    """The view that an operator makes of the tensor that it is given, as ``t`` for ``t_``: no other alias sees it."""
    if not is_operator(func) or torch.Tag.inplace_view not in func.tags:
        return None
    packet, _, overload = str(func).removeprefix("aten.").partition(".")
    found = getattr(getattr(_aten, packet.removesuffix("_"), None), _OVERLOADS.get(packet, overload), None)
    return found if found is not None and found._schema.returns[0].alias_info is not None else None


def is_operator(func: Any) -> bool:
    """Whether it is an operator with a schema, and no function of functions."""
    return isinstance(func, OpOverload)


@cache
def _writes(func: Any) -> bool:
    return is_operator(func) and func._schema.is_mutable


def _is_number(result: object) -> bool:
    return isinstance(result, (bool, int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool))


@contextmanager
def _keeping_sizes(func: Any, operands: object) -> Generator[None]:
    """Raises CaptureError where an operator changes the size of what it writes to, which nodes before it have."""
    is_named = func.overloadpacket is not _aten.set_  # what sets all of a tensor has no lowering
    before = [(x, x.shape) for x in tree_leaves(operands) if isinstance(x, torch.Tensor)] if is_named else []
    yield
    for tensor, shape in before:
        if tensor.shape != shape:
            line = calling_line(inspect.currentframe()) or "an unknown line"
            advice = "give it a tensor of the size of its result"
            raise CaptureError(f"{func} at {line} changes the size of a tensor that it writes to; {advice}")


_OVERLOADS = {"transpose_": "int"}
"""How views are told from others of the same name, where that is not as their forms in place are."""
_FRESH: dict[Any, Any] = {_aten.lift_fresh.default: _aten.lift_fresh_copy.default}
"""What makes a tensor of the program of a constant: a copy, which the program may write to."""


def _definition(func: Any) -> Replacement | None:
    """What an operator that is defined by others does with them."""
    if func is torch.ops.higher_order.cond:
        return _choose
    if isinstance(func, HigherOrderOperator):
        dense = func.py_kernels.get(_KEYS.CompositeExplicitAutograd)
        if dense is None:
            line = calling_line(inspect.currentframe()) or "an unknown line"
            raise UnsupportedOperator(f"{func} at {line} has no definition by other operators; write it with those")
        return dense
    return func.decompose if func.has_kernel_for_dispatch_key(_KEYS.CompositeImplicitAutograd) else None


def _run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return func(*args, **kwargs)


def _choose(condition: Any, first: Callable[..., Any], second: Callable[..., Any], operands: Sequence[Any]) -> Any:
    return (first if condition else second)(*operands)
