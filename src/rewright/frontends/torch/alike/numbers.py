"""A whole number that each rank has its own of, as PyTorch's operators take one.

Arithmetic gives such numbers again, and a plain one where all ranks agree. Whatever else needs a number that every rank
agrees on (a branch, an index of a list, a text, the size of a tensor) raises :class:`Differ`, also where the program
catches it: then ranks are traced one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn, cast

import torch
import torch.fx
from torch.fx.experimental._constant_symnode import ConstantIntNode

_native: Any = torch._C  # pyright: ignore[reportPrivateUsage]
Arguments = Mapping[torch.fx.Node, tuple[Any, Any]]
"""By node its arguments, by place and by name."""


class Differ(Exception):
    """Ranks differ where one program for all of them would have to say the same."""


class Differences:
    """Whether a program has looked at where ranks differ."""

    def __init__(self) -> None:
        self.why = ""

    def refuse(self, why: str) -> NoReturn:
        """Note it for ever, and raise Differ."""
        self.why = self.why or why
        raise Differ(why)


class Numbers:
    """What a ``torch.SymInt`` holds: one number per rank, which are not all equal."""

    def __init__(self, values: tuple[int, ...], differences: Differences) -> None:
        self.values, self.differences = values, differences

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _ARITHMETIC:
            return partial(self._with, _ARITHMETIC[name])
        if name in _COMPARISONS:
            return partial(self._compared, _COMPARISONS[name])
        return self.differences.refuse(f"the program needs one number for all ranks ({name})")

    def __str__(self) -> str:
        """Raises Differ: a text is one for all ranks."""
        return self.differences.refuse("the program writes down a number that ranks differ in")

    __repr__ = _graph_repr = __str__

    def _with(self, function: Callable[[int, int], int], other: Any) -> Any:
        pairs = zip(self.values, _values(other, len(self.values)), strict=True)
        return node_of(tuple(function(a, b) for a, b in pairs), self.differences)

    def _compared(self, function: Callable[[int, int], bool], other: Any) -> Any:
        found = {function(a, b) for a, b in zip(self.values, _values(other, len(self.values)), strict=True)}
        if len(found) > 1:
            self.differences.refuse("the program goes one way on some ranks, and another way on others")
        return _native._get_constant_bool_symnode(found.pop())

    def neg(self) -> Any:
        """The numbers with the other sign."""
        return node_of(tuple(-value for value in self.values), self.differences)

    def wrap_int(self, number: int) -> Any:
        """A number that all ranks have, beside which these can be computed with."""
        return Numbers((number,) * len(self.values), self.differences)

    def clone(self) -> Numbers:
        """The same."""
        return self

    def is_int(self) -> bool:
        """It is a whole number."""
        return True

    def _no(self) -> bool:
        return False

    is_float = is_bool = is_nested_int = is_symbolic = is_constant = _no

    def maybe_as_int(self) -> None:
        """No rank's number is that of all."""


def number(values: Sequence[int], differences: Differences) -> Any:
    """A number that each rank has its own of; a plain one where all have the same."""
    if len(set(values)) == 1:
        return values[0]
    return torch.SymInt(node_of(tuple(values), differences))


def node_of(values: tuple[int, ...], differences: Differences) -> Any:
    """What a ``torch.SymInt`` holds for these numbers."""
    return ConstantIntNode(values[0]) if len(set(values)) == 1 else Numbers(values, differences)


def nodes_in(values: object) -> Iterator[Numbers]:
    """The numbers that ranks differ in, in arguments of a call."""
    if isinstance(values, (list, tuple)):
        for value in cast("Sequence[object]", values):
            yield from nodes_in(value)
    elif isinstance(values, dict):
        yield from nodes_in(tuple(cast("Mapping[str, object]", values).values()))
    elif isinstance(found := bare(values), Numbers):
        yield found


def bare(value: Any) -> Any:
    """An argument as a node of a graph has it: numbers that ranks differ in, without PyTorch's integer around them."""
    held: Any = value
    return held.node if isinstance(value, torch.SymInt) and isinstance(held.node, Numbers) else value


def at_rank(value: Any, rank: int) -> Any:
    """Arguments of a call as a rank has them."""
    if isinstance(value, (list, tuple)):
        items = [at_rank(item, rank) for item in cast("Sequence[Any]", value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: at_rank(item, rank) for key, item in cast("Mapping[Any, Any]", value).items()}
    found = next(nodes_in(value), None)
    return value if found is None else found.values[rank]


@contextmanager
def arguments_at(rank: int, arguments: Arguments) -> Generator[None]:
    """Nodes with the arguments that they have on a rank, of those with numbers for all ranks."""
    before = [(node, node.args, node.kwargs) for node in arguments]
    for node, (args, kwargs) in arguments.items():
        node.args, node.kwargs = at_rank(args, rank), at_rank(kwargs, rank)
    try:
        yield
    finally:
        for node, args, kwargs in before:
            node.args, node.kwargs = args, kwargs


def _values(other: Any, count: int) -> Sequence[int]:
    if isinstance(other, Numbers):
        return other.values
    return [other if isinstance(other, int) else other.maybe_as_int()] * count


def _divide(a: int, b: int) -> int:
    return a // b


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mod": operator.mod,
    "floordiv": _divide,
    "int_floordiv": _divide,
    "sym_min": min,
    "sym_max": max,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
