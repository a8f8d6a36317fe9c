"""What all ranks of a large mesh have, from some of them: everything alike but numbers that are affine in coordinates.

The ranks of a mesh run one program. Their copies differ in numbers that count up along a mesh axis: where a shard
starts, which ranks are a group. Those are fitted from the first rank and its neighbour along every axis, and the fit is
compared with ranks that it was not made from: the last ones of every axis, the last of all, and one between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, cast

from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Mesh

Coordinates = tuple[int, ...]
T = TypeVar("T")
_Build = Callable[[Coordinates], Any]

LARGEST = 16
"""Meshes of more ranks are captured in part."""


class NotAffine(Exception):
    """Values of ranks that differ in more than numbers that are affine in mesh coordinates."""


def first_ranks(mesh: Mesh) -> list[Coordinates]:
    """The coordinates of the first rank and of its neighbour along every axis."""
    axes = [axis for axis, (_, size) in enumerate(mesh.axes) if size > 1]
    origin = (0,) * len(mesh.axes)
    return [origin, *((*origin[:axis], 1, *origin[axis + 1 :]) for axis in axes)]


def other_ranks(mesh: Mesh) -> list[Coordinates]:
    """The coordinates of ranks that a fit is compared with."""
    sizes = [size for _, size in mesh.axes]
    origin = (0,) * len(sizes)
    ends = [(*origin[:axis], size - 1, *origin[axis + 1 :]) for axis, size in enumerate(sizes)]
    last, between = tuple(size - 1 for size in sizes), tuple(size // 2 for size in sizes)
    known = set(first_ranks(mesh))
    return [place for place in dict.fromkeys([*ends, last, between]) if place not in known]


def fit(values: Mapping[Coordinates, T], mesh: Mesh) -> Callable[[Coordinates], T]:
    """The value at any coordinates, from those of :func:`first_ranks`; raises NotAffine where they differ otherwise."""
    origin, *neighbours = first_ranks(mesh)
    axes = [place.index(1) for place in neighbours]
    built = _fit(values[origin], [values[place] for place in neighbours], axes)
    return (lambda _: values[origin]) if built is None else cast("Callable[[Coordinates], T]", built)


def _fit(first: Any, others: Sequence[Any], axes: Sequence[int]) -> _Build | None:
    """How to build a value at coordinates; None where it is the same everywhere."""
    if any(type(other) is not type(first) for other in others):
        raise NotAffine(f"{type(first).__name__} on some ranks and {type(others[0]).__name__} on others")
    if not isinstance(first, Graph | Node) and all(other == first for other in others):
        return None
    if isinstance(first, int | float | Fraction) and not isinstance(first, bool):
        return _number(first, others, axes)
    if isinstance(first, Graph):
        return _graph(first, others, axes)
    if isinstance(first, Node):
        return _node(first, others, axes)
    if isinstance(first, tuple):
        return _sequence(cast("tuple[Any, ...]", first), others, axes)
    if isinstance(first, dict):
        table = cast("dict[Any, Any]", first)
        keys = tuple(table)
        if any(tuple(other) != keys for other in others):
            raise NotAffine("tables with other names")
        parts = _sequence(tuple(table.values()), [tuple(other.values()) for other in others], axes)
        return None if parts is None else lambda place: dict(zip(keys, parts(place), strict=True))
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return _fields(first, others, axes)
    raise NotAffine(f"{first!r} on some ranks only")


def _number(first: Any, others: Sequence[Any], axes: Sequence[int]) -> _Build:
    try:
        slopes = [(axis, Fraction(other) - Fraction(first)) for axis, other in zip(axes, others, strict=True)]
        start, kind = Fraction(first), cast("type[Any]", type(first))
    except (ValueError, OverflowError):
        raise NotAffine("a number that is none on some ranks") from None
    return lambda place: kind(start + sum(slope * place[axis] for axis, slope in slopes))


def _sequence(first: tuple[Any, ...], others: Sequence[tuple[Any, ...]], axes: Sequence[int]) -> _Build | None:
    if any(len(other) != len(first) for other in others):
        raise NotAffine("lists of other lengths")
    parts = [_fit(item, [other[k] for other in others], axes) for k, item in enumerate(first)]
    if all(part is None for part in parts):
        return None
    pairs = list(zip(first, parts, strict=True))
    return lambda place: tuple([item if part is None else part(place) for item, part in pairs])


def _fields(first: Any, others: Sequence[Any], axes: Sequence[int]) -> _Build | None:
    names = [field.name for field in dataclasses.fields(first) if field.init]
    parts = {name: _fit(getattr(first, name), [getattr(o, name) for o in others], axes) for name in names}
    varying = {name: part for name, part in parts.items() if part is not None}
    if not varying:
        return None
    return lambda place: dataclasses.replace(first, **{name: part(place) for name, part in varying.items()})


def _node(first: Node, others: Sequence[Node], axes: Sequence[int]) -> _Build | None:
    """A node; where in the source it comes from does not count."""
    if any((other.operands, other.type) != (first.operands, first.type) for other in others):
        raise NotAffine(f"another {first.op.name} on some ranks")
    op = _fit(first.op, [other.op for other in others], axes)
    return None if op is None else lambda place: dataclasses.replace(first, op=op(place))


def _graph(first: Graph, others: Sequence[Graph], axes: Sequence[int]) -> _Build | None:
    """A program; only some of its nodes are built anew for a rank."""
    if any((other.inputs, other.outputs) != (first.inputs, first.outputs) for other in others):
        raise NotAffine("other inputs or outputs on some ranks")
    if any(len(other) != len(first) for other in others):
        raise NotAffine("programs of other lengths")
    parts = [_fit(node, [other.nodes[k] for other in others], axes) for k, node in enumerate(first.nodes)]
    varying = [(k, part) for k, part in enumerate(parts) if part is not None]

    def build(place: Coordinates) -> Graph:
        nodes = list(first.nodes)
        for position, part in varying:
            nodes[position] = part(place)
        return dataclasses.replace(first, nodes=tuple(nodes))

    return build if varying else None


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, in programs all but where in the source they come from."""
    try:
        return _fit(left, [right], [0]) is None
    except NotAffine:
        return False
