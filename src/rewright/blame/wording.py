"""A divergence in words: what the ranks should hold, what they hold instead, and the lines of both programs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, cast

from rewright import ops
from rewright.blame.divergence import Divergence, Search
from rewright.blame.places import Place
from rewright.interp.placing import Difference, added_up, compare, cut, ratio
from rewright.ir.graph import Node
from rewright.ir.operator import call_operator


@dataclass(frozen=True)
class Told:
    """The parts of a finding that come from its place; ``places`` are where a repair may be tried, best first."""

    kind: str
    message: str
    expected: str
    found: str
    position: int
    """The sequential node that is told."""
    rank: int
    """The rank that shows it best."""
    shown: Place
    """The place that is told."""
    places: tuple[Place, ...]


class Teller:
    """Describes the divergences of one search."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.holding = search.holding
        self.places = search.places
        self.nodes = search.holding.sequential.nodes

    def tell(self, divergence: Divergence) -> Told:
        """Kind, message and lines of a divergence."""
        told = self._told(divergence)
        # What went wrong may have to be put right where the result is read: a bias that is added before the reduction.
        return replace(told, places=tuple(dict.fromkeys((*told.places, divergence.reader))))

    def _told(self, divergence: Divergence) -> Told:
        position, place = divergence.sequential, divergence.place
        if divergence.cause == "output":
            return self._never_reduced(position, place, "")
        if divergence.cause == "operator":
            partial = self._partial_operand(position, place)
            if partial is not None:
                return self._never_reduced(*partial, self._there(place))
        if divergence.cause == "extra":
            partial = next((at for at in self.places.operands(place) if self.search.is_partial(position, at)), None)
            if partial is not None:
                return self._never_reduced(position, partial, self._there(place))
        worst = self._worst(position, place)
        rank = 0 if worst is None else worst.rank
        node = self._node(place, rank)
        kind, message = self._words(divergence, rank)
        alike = type(node.op) is type(self.nodes[position].op)
        at_reader = divergence.cause == "input" or (divergence.cause in ("missing", "term") and not alike)
        expected, found = self._belonging(position, place), self._found(position, place, rank)
        shown = divergence.reader if at_reader else place
        return Told(kind, message, expected, found, position, rank, shown, (place,))

    def _words(self, divergence: Divergence, rank: int) -> tuple[str, str]:
        """The kind of a finding, and one sentence."""
        wanted, node = self.nodes[divergence.sequential], self._node(divergence.place, rank)
        there, own = where(node), where(wanted)
        match divergence.cause:
            case "missing":
                reader = where(self._node(divergence.reader, rank))
                instead = "" if divergence.other is None else where(self.nodes[divergence.other])
                read = f"the {instead}" if instead else "its operand"
                return "missing_operator", f"on rank {rank} the {reader} reads {read} without the {own}"
            case "term":
                term = "" if divergence.other is None else where(self.nodes[divergence.other])
                return "missing_term", f"the {own} adds the {term}, and the {there} on rank {rank} does not"
            case "extra":
                return "extra_operator", f"rank {rank} has the {own}, and the {there} makes something else of it"
            case "collective":
                return "wrong_collective", f"the {there} reads what is right, and does not give rank {rank} the {own}"
            case "moved":
                return (
                    "wrong_exchange",
                    f"the {there} is part of moving the {own} to other ranks, and it does not arrive",
                )
            case "constant":
                if ops.splat(node.op) is None:
                    return "wrong_constant", f"the numbers of rank {rank} at {node.span} are others than on one device"
                values = f"{_number(node)}, and the sequential program has {_number(wanted)}"
                return "wrong_constant", f"the constant of rank {rank} at {node.span} is {values}"
            case "input":
                name = self.places.label(divergence.place)
                placement = self.holding.program.inputs.get(str(name), "its equation")
                return "wrong_shard", f"rank {rank} holds another part of {name} than {placement} says"
            case "operands":
                return "wrong_value", f"the {there} on rank {rank} takes the operands of the {own} in another order"
            case _:
                how = differences(wanted, node) or "and gives another result"
                return "wrong_value", f"the {there} on rank {rank} takes the operands of the {own}, {how}"

    def _never_reduced(self, position: int, place: Place, reader: str) -> Told:
        """A sum over ranks that is read, or returned, as if it had been added up."""
        source, origin = self.search.origin(position, place)
        end = f"before the {reader} reads it" if reader else "before it is returned"
        summed = where(self.nodes[source])
        partial = f"partial {summed}" if summed.startswith("sum ") else f"partial sum of the {summed}"
        message = f"each rank has a {partial}, and nothing adds them up {end}"
        wanted, held = self._belonging(source, origin), str(self.holding.holds(position, place))
        return Told("missing_reduction", message, wanted, held, source, 0, origin, (place, origin))

    def _partial_operand(self, position: int, place: Place) -> tuple[int, Place] | None:
        """An operand that is a sum over ranks, where it has to be added up; of a quotient the divisor first."""
        node = self.nodes[position]
        order = node.operands[::-1] if isinstance(node.op, ops.Divide) else node.operands
        operands = product(order, self.places.operands(place))
        terms = product(self.places.addends(position), self.places.rank_addends(place))
        return next((pair for pair in (*operands, *terms) if self.search.is_partial(*pair)), None)

    def _node(self, place: Place, rank: int) -> Node:
        return self.places.ranks[rank].nodes[place[rank]]

    def _there(self, place: Place) -> str:
        return where(self._node(place, 0))

    def _belonging(self, position: int, place: Place) -> str:
        """The tensor that belongs there, and the cleanest placement with the shapes that the ranks have."""
        fitting = self.holding.by_shapes(position, place)
        placement = f", {fitting[0]}" if fitting else ""
        return f"{where(self.nodes[position])}{placement}"

    def _worst(self, position: int, place: Place) -> Difference | None:
        """The element that is furthest off."""
        value, local = self.holding.value(position), self.holding.local(place)
        fitting = self.holding.by_shapes(position, place)
        return compare(value, local, fitting[0], self.holding.mesh) if fitting else None

    def _found(self, position: int, place: Place, rank: int) -> str:
        """What a rank holds there: a multiple of the right values, another tensor, or numbers."""
        value, local = self.holding.value(position), self.holding.local(place)
        fitting = self.holding.by_shapes(position, place)
        other = self._other(position, place)
        if not fitting:
            return other or f"a tensor of shape {list(local[rank].shape)}"
        factor = ratio(cut(value, fitting[0].runs[rank]), added_up(local, fitting[0], self.holding.mesh, rank))
        if factor:
            return f"{factor:g} times that on rank {rank}"
        worst = self._worst(position, place)
        if other or worst is None:
            return other
        where = f"[{', '.join(map(str, worst.index))}]" if worst.index else "it"
        return f"{worst.distributed:.6g} for {worst.sequential:.6g} at {where} on rank {rank}"

    def _other(self, position: int, place: Place) -> str:
        """Another sequential tensor that the ranks hold there."""
        for other, node in enumerate(self.nodes):
            if other != position and not isinstance(node.op, ops.Constant) and node.type.rank:
                held = self.holding.holds(other, place)
                if held is not None:
                    return f"{where(node)}, {held}"
        return ""


UNNAMED = "output"
"""What captures call the result of a program that gives it no name."""


def describe_output(name: str) -> str:
    """An output in a sentence: ``the output``, or ``output loss``."""
    return "the output" if name == UNNAMED else f"output {name}"


def where(node: Node) -> str:
    """A node by its operator and line, or by its name."""
    if isinstance(node.op, ops.Input):
        return f"input {node.op.label}"
    return f"{call_operator(node.op)} {'in' if node.span.scope else 'at'} {node.span}"


def describe_node(node: Node) -> str:
    """A node by its operator and line."""
    return f"{call_operator(node.op)} at {node.span}"


_OF_SIZES = ("shape", "tensor", "start", "limit", "low", "high", "slice_sizes", "sizes", "groups")
"""Attributes that may differ because a rank has only a part."""


def differences(wanted: Node, node: Node) -> str:
    """The attributes in which two operators differ, in words."""
    names = [field.name for field in fields(cast(Any, wanted.op)) if field.name not in _OF_SIZES]
    values = [(name, getattr(node.op, name), getattr(wanted.op, name)) for name in names]
    return ", ".join(f"with {name} {own} and not {other}" for name, own, other in values if own != other)


def _number(node: Node) -> str:
    value = ops.splat(node.op)
    return "another table" if value is None else f"{value:g}"
