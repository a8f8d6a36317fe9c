"""One call of a trace by itself: its operands become placeholders, and its sizes may be replaced by smaller ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx

from rewright.frontends.torch.lower.nodes import example, is_read, operator_name
from rewright.frontends.torch.lower.sizes import DTYPES
from rewright.ir.errors import UnsupportedOperator

Sizes = Callable[[int], int]
_SEEN_THROUGH = ("aten.detach.default", "aten.alias.default")


@dataclass(frozen=True)
class Leaf:
    """An operand that comes from outside of a cut."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    """Its axes from the widest stride to the narrowest."""
    dtype: torch.dtype

    def __str__(self) -> str:
        turned = "" if self.order == tuple(range(len(self.shape))) else "@" + "".join(map(str, self.order))
        return f"{DTYPES[self.dtype].value}{list(self.shape)}{turned}"

    def empty(self, dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
        """Memory for it, in its order."""
        strides = [1] * len(self.shape)
        inner = 1
        for axis in reversed(self.order):
            strides[axis] = inner
            inner *= max(self.shape[axis], 1)
        return torch.empty_strided(self.shape, strides, dtype=dtype, device=device)


@dataclass(frozen=True)
class Call:
    """A call of a cut; tensors among its arguments are :class:`Value`."""

    target: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass(frozen=True)
class Value:
    """A tensor of a cut: a leaf, by its number, or what a step gives."""

    step: bool
    number: int


@dataclass(frozen=True)
class Cut:
    """A call, after those of the same operands that made some of its operands, as a forward does for its backward."""

    name: str
    leaves: tuple[Leaf, ...]
    steps: tuple[Call, ...]
    read: tuple[int, ...]
    """The results of the last step that something reads."""
    results: tuple[tuple[int, ...], ...]
    """The shapes of all its tensor results."""

    def __str__(self) -> str:
        return "; ".join(self._step(step) for step in self.steps) + (f" -> {list(self.read)}" if self.read else "")

    def _step(self, step: Call) -> str:
        given = [*map(self._argument, step.arguments)]
        given += [f"{key}={self._argument(value)}" for key, value in step.keywords.items()]
        return f"{_title(step.target)}({', '.join(given)})"

    def _argument(self, value: Any) -> str:
        if isinstance(value, Value):
            return f"%{value.number}" if value.step else f"{self.leaves[value.number]}#{value.number}"
        if isinstance(value, list):
            return f"[{', '.join(map(self._argument, cast('list[Any]', value)))}]"
        return repr(value)

    def numbers(self) -> Iterator[int]:
        """All sizes, and the integers among the arguments."""
        for shape in (*(leaf.shape for leaf in self.leaves), *self.results):
            yield from shape
        for step in self.steps:
            yield from _integers([*step.arguments, *step.keywords.values()])

    def resize(self, sizes: Sizes) -> Cut:
        """The same call with other sizes, among shapes and arguments alike."""
        leaves = tuple(Leaf(tuple(map(sizes, leaf.shape)), leaf.order, leaf.dtype) for leaf in self.leaves)
        steps = tuple(
            Call(step.target, tuple(_resize(a, sizes) for a in step.arguments), _resize(step.keywords, sizes))
            for step in self.steps
        )
        return Cut(self.name, leaves, steps, self.read, tuple(tuple(map(sizes, shape)) for shape in self.results))


def cut(node: torch.fx.Node) -> Cut:
    """A call of a trace by itself; raises UnsupportedOperator where an argument of it is nothing that can be drawn."""
    nodes = [*_makers(node), node]
    return _Cutting(nodes).cut()


class _Cutting:
    def __init__(self, nodes: Sequence[torch.fx.Node]) -> None:
        self.nodes = nodes
        self.places = {node: number for number, node in enumerate(nodes)}
        self.leaves: dict[torch.fx.Node, int] = {}
        self.found: list[Leaf] = []

    def cut(self) -> Cut:
        steps = tuple(
            Call(
                node.target,
                tuple(self._argument(a) for a in node.args),
                {key: self._argument(value) for key, value in node.kwargs.items()},
            )
            for node in self.nodes
        )
        last = self.nodes[-1]
        values = example(last)
        several = cast("Sequence[Any]", values) if isinstance(values, (tuple, list)) else (values,)
        shapes = tuple(_numbers(value.shape) for value in several if isinstance(value, torch.Tensor))
        read = tuple(sorted(_read(last))) if isinstance(values, (tuple, list)) else ()
        return Cut(operator_name(last), tuple(self.found), steps, read, shapes)

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            return self._operand(argument)
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in cast("Sequence[Any]", argument)]
        if isinstance(argument, torch.SymInt):
            return _number(argument)
        for kind in (dict, torch.fx.GraphModule, torch.SymFloat, torch.SymBool):
            if isinstance(argument, kind):
                raise UnsupportedOperator(f"an argument of it is a {kind.__name__}")
        return argument

    def _operand(self, node: torch.fx.Node) -> Any:
        if node in self.places:
            return Value(True, self.places[node])
        value = example(node)
        if node.op == "get_attr" and value is None:
            value = _attribute(node)
        if isinstance(value, (list, tuple)):
            raise UnsupportedOperator("an operand of it is a list that another call made")
        if not isinstance(value, torch.Tensor):
            return self._argument(value)
        if node not in self.leaves:
            self.leaves[node] = len(self.found)
            self.found.append(_leaf(value))
        return Value(False, self.leaves[node])


def _attribute(node: torch.fx.Node) -> Any:
    found: Any = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return found


def _leaf(value: torch.Tensor) -> Leaf:
    if value.dtype not in DTYPES or value.layout is not torch.strided:
        raise UnsupportedOperator(f"an operand of it is a tensor of {value.dtype}")
    shape, strides = _numbers(value.shape), _numbers(value.stride())
    order = tuple(sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis)))
    inner = 1
    for axis in reversed(order):
        if shape[axis] == 1:
            continue  # its stride says nothing
        if strides[axis] != inner:  # with gaps or overlaps: row after row
            return Leaf(shape, tuple(range(len(shape))), value.dtype)
        inner *= shape[axis]
    return Leaf(shape, order, value.dtype)


def _makers(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The calls that made operands of a backward out of other operands of it, and what takes their results out.

    A backward is defined on what its forward gave, and on nothing else: a mean that is not the mean of the input means
    nothing to it.
    """
    if "backward" not in operator_name(node):
        return []
    found: dict[torch.fx.Node, None] = {}
    own = set(node.all_input_nodes)
    for operand in node.all_input_nodes:
        chain = [operand]
        while chain[-1].target is operator.getitem or operator_name(chain[-1]) in _SEEN_THROUGH:
            chain.append(cast("torch.fx.Node", chain[-1].args[0]))
        maker = chain[-1]
        if maker.op == "call_function" and own & set(maker.all_input_nodes) and not _changes(maker):
            found |= dict.fromkeys(reversed(chain))
    return list(found)


def _changes(node: torch.fx.Node) -> bool:
    schema: Any = getattr(node.target, "_schema", None)
    return schema is None or bool(schema.is_mutable)


def _read(node: torch.fx.Node) -> set[int]:
    """The results of a call that something takes out."""
    takers = [user for user in node.users if user.target is operator.getitem]
    return {cast("int", user.args[1]) for user in takers if is_read(user)}


def _numbers(sizes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(_number, sizes))


def _number(size: Any) -> int:
    if isinstance(size, torch.SymInt):
        hint = cast("Any", size).node.hint
        if hint is None:
            raise UnsupportedOperator("a size of it is known only when it runs")
        return int(hint)
    return int(size)


def _integers(arguments: Sequence[Any]) -> Iterator[int]:
    for argument in arguments:
        if isinstance(argument, list):
            yield from _integers(cast("list[Any]", argument))
        elif isinstance(argument, int) and not isinstance(argument, bool):
            yield argument


def _resize(argument: Any, sizes: Sizes) -> Any:
    if isinstance(argument, list):
        return [_resize(item, sizes) for item in cast("list[Any]", argument)]
    if isinstance(argument, dict):
        return {key: _resize(item, sizes) for key, item in cast("Mapping[str, Any]", argument).items()}
    return sizes(argument) if isinstance(argument, int) and not isinstance(argument, bool) else argument


def _title(target: Any) -> str:
    return str(target) if hasattr(target, "_schema") else getattr(target, "__name__", str(target))
