"""Giving numbers to the size symbols of a graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast

from rewright.ir.dims import SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType


def size_symbols(graph: Graph) -> tuple[str, ...]:
    """Names of the size symbols that occur in the types of a graph, sorted."""
    types = {node.type for node in graph.nodes}
    return tuple(sorted({name for tensor in types for name in _symbols(tensor)}))


def with_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with size symbols replaced by numbers, in types and in attributes; every node is checked again.

    Raises RewrightError for a size below one (symbols stand for sizes of at least one), and TypeMismatch where the
    numbers make an operator invalid.
    """
    for name, value in sizes.items():
        if value < 1:
            raise RewrightError(f"size symbol {name!r} cannot be {value}; sizes of a captured program are at least 1")
    builder = GraphBuilder(graph.name)
    for node in graph.nodes:
        builder.add(_replace(node, sizes), *node.operands, span=node.span)
    built = builder.build()
    return dataclasses.replace(
        built, inputs=dict(graph.inputs), outputs=dict(graph.outputs), metadata=dict(graph.metadata)
    )


def solve_sizes(pairs: Iterable[tuple[str, TensorType, tuple[int, ...]]]) -> dict[str, int]:
    """Numbers for size symbols from (name, type, actual shape) of inputs.

    A symbol is read off an axis whose size is a polynomial of degree one in that symbol alone, after the symbols
    already known are replaced. Raises RewrightError where axes contradict each other or a symbol stays open.
    """
    waiting = [(name, size, actual) for name, tensor, shape in pairs for size, actual in _axes(name, tensor, shape)]
    found: dict[str, int] = {}
    progress = True
    while waiting and progress:
        left: list[tuple[str, SizeExpr, int]] = []
        for name, size, actual in waiting:
            known = size.substitute(found)
            if isinstance(known, int):
                _agree(name, size, known, actual)
            elif (solved := _solve(known, actual)) is not None:
                found[solved[0]] = solved[1]
            else:
                left.append((name, size, actual))
        progress = len(left) < len(waiting)
        waiting = left
    if waiting:
        name, size, _ = waiting[0]
        raise RewrightError(
            f"the inputs do not determine size {size} of {name!r}; give an input that shows each symbol"
        )
    return found


def _axes(name: str, tensor: TensorType, shape: tuple[int, ...]) -> Iterable[tuple[SizeExpr, int]]:
    if len(shape) != tensor.rank:
        raise RewrightError(f"input {name!r} needs {tensor.rank} axes ({tensor}) and got shape {list(shape)}")
    return [(s, n) for s, n in zip(tensor.shape, shape, strict=True) if isinstance(s, SizeExpr)]


def _agree(name: str, size: SizeExpr, known: int, actual: int) -> None:
    if known != actual:
        raise RewrightError(f"input {name!r} has an axis of {actual} where size {size} is {known} by other axes")


def _solve(size: SizeExpr, actual: int) -> tuple[str, int] | None:
    """The one symbol of ``size = actual`` where that is linear, with its value."""
    names = size.symbols()
    coefficients = dict(size.terms)
    if len(names) != 1 or any(len(monomial) > 1 for monomial in coefficients):
        return None
    (name,) = names
    if (name,) not in coefficients:  # inside of a rounded quotient, which several sizes share
        return None
    value, rest = divmod(actual - coefficients.get((), 0), coefficients[(name,)])
    if rest or value < 1:
        raise RewrightError(f"no size {name!r} of at least 1 makes {size} equal to {actual}")
    return name, value


def _symbols(tensor: TensorType) -> frozenset[str]:
    return frozenset(name for size in tensor.shape if isinstance(size, SizeExpr) for name in size.symbols())


def _replace(node: Node, sizes: Mapping[str, int]) -> Operator:
    op = node.op
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(cast(Any, op)):
        before = getattr(op, field.name)
        after = substitute_sizes(before, sizes)
        if after is not before:
            changed[field.name] = after
    return cast(Operator, dataclasses.replace(cast(Any, op), **changed)) if changed else op


def substitute_sizes(value: Any, sizes: Mapping[str, int]) -> Any:
    """The value with sizes replaced; the same object where nothing changes."""
    if isinstance(value, SizeExpr):
        return value.substitute(sizes) if value.symbols() & sizes.keys() else value
    if isinstance(value, TensorType):
        shape = substitute_sizes(value.shape, sizes)
        return value if shape is value.shape else value.with_shape(shape)
    if isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        after = tuple(substitute_sizes(item, sizes) for item in items)
        return items if all(a is b for a, b in zip(after, items, strict=True)) else after
    return value
