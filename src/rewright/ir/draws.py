"""Random numbers of a captured program: which stream they come from, and which draws give the same ones.

A draw is told by what came before it. Two draws of one shape from one state of a generator give the same numbers,
draws of one stream one after the other give others, and so do draws of different seeds. A draw becomes an input of the
graph, one for all draws that give the same numbers; the graph's metadata has all draws in order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from rewright.ir.graph import Graph

DRAWS = "draws"
"""Metadata with the draws of a graph, in the order of the program."""
START = "start"
"""The state of a generator that nobody set: what it was when the program began."""
_DIGITS = 16


@dataclass(frozen=True)
class Draw:
    """One call for random numbers.

    Its numbers are those of any draw with the same ``value``, if both began with one state: states are told by how
    they came about, from ``start`` or from a seed.
    """

    kind: str
    """``uniform``, ``normal``, ``integers LOW HIGH`` or ``permutation``."""
    before: str
    """The state of the generator that it draws from."""
    value: str
    after: str
    """The state that it leaves behind."""
    place: str = ""
    """The line, the function and the module."""

    @property
    def name(self) -> str:
        """What its numbers are called among the inputs of a graph."""
        return f"random.{self.kind.replace(' ', '_').replace('-', 'm')}.{self.value}"


def digest_of(*parts: object) -> str:
    """A short digest of what tells a state, or numbers, from others."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:_DIGITS]


def draws(graph: Graph) -> tuple[Draw, ...]:
    """The draws of a graph, in the order of the program."""
    text = graph.metadata.get(DRAWS)
    if not text:
        return ()
    lines = cast("list[list[Any]]", json.loads(text))
    return tuple(Draw(*map(str, line)) for line in lines)


def beginnings(found: Iterable[Draw]) -> dict[str, str]:
    """By the state that a draw leaves behind the one that its stream began in: ``start``, or a seed's."""
    roots: dict[str, str] = {}
    for draw in found:
        roots.setdefault(draw.after, roots.get(draw.before, draw.before))
    return roots


def text_of(found: Iterable[Draw]) -> str:
    """Draws as they are kept in metadata."""
    return json.dumps([[draw.kind, draw.before, draw.value, draw.after, draw.place] for draw in found])
