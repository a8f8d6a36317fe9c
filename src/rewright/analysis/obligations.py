"""What must hold for the proof of a program to be about what a machine computes: obligations that no fact discharges.

A proof is over the real numbers. Where an operator is not defined on them (the logarithm of a negative number), where
infinities meet (a row that a mask leaves nothing of), where an integer may wrap, or a whole number is rounded, the
program computes something else than the proof says. Each such place is an :class:`Obligation`, unless the analysis of
values shows that it does not occur.

Why nothing is asked of an operator that only passes an infinity on: a mask's minus infinity is a limit of real numbers,
all such operators are continuous there, so an equation between programs that holds for all real numbers holds at the
limit too. The operators that are not continuous at infinities (comparisons of two of them, choices among them) state
that they do not meet any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.analysis.places import is_never_defined
from rewright.analysis.values import REALS, Assumed, Setting, values_of_ranks
from rewright.ir.graph import Graph, Node

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Obligation:
    """What must hold at a node; ``program`` counts the programs that were asked about."""

    program: int
    position: int
    node: Node
    condition: str
    is_violated: bool = False
    """Whether it certainly does not hold, whatever the inputs are."""

    def __str__(self) -> str:
        return sentence(self.node, self.condition)


def sentence(node: Node, condition: str) -> str:
    """A condition of a node, in words."""
    return _sentence(node.op.name, condition, [str(node.span)])


def obligations(
    graphs: Sequence[Graph], alone: Setting = REALS, of_ranks: Setting = REALS, taken: Sequence[Assumed] = ()
) -> list[Obligation]:
    """The obligations of the first program alone, and of the others, which are ranks that run together.

    ``taken`` is what is assumed of the nodes of each program, if of any.
    """
    found: list[Obligation] = []
    for first, group, setting, known in (
        (0, graphs[:1], alone, taken[:1]),
        (1, graphs[1:], of_ranks, taken[1:]),
    ):
        for rank, values in enumerate(values_of_ranks(group, replace(setting, assumes=True), known)):
            if values.open:
                live = _observe(group[rank])
                nodes = group[rank].nodes
                found += [
                    Obligation(first + rank, p, nodes[p], c, is_never_defined(group[rank], values.facts, p))
                    for p, c in values.open.items()
                    if p in live
                ]
    return found


def _observe(graph: Graph) -> frozenset[int]:
    """The nodes that an output, or another rank, depends on."""
    met = (position for position, node in enumerate(graph.nodes) if isinstance(node.op, ops.Collective))
    return graph.ancestors([*graph.outputs.values(), *met])


def sentences(found: Iterable[Obligation]) -> tuple[str, ...]:
    """Obligations in words, those of one condition in one sentence that names a few of the places."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in found:
        places = groups.setdefault((one.node.op.name, one.condition), [])
        if str(one.node.span) not in places:
            places.append(str(one.node.span))
    return tuple(_sentence(name, condition, places) for (name, condition), places in groups.items())


def _sentence(name: str, condition: str, places: Sequence[str]) -> str:
    more = f" and {len(places) - _SHOWN} more places" if len(places) > _SHOWN else ""
    return f"{name} at {', '.join(places[:_SHOWN])}{more}: {condition}"
