"""Equations between small programs that stand in the place of one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewright.ir.digest import digest
from rewright.ir.expression import expression
from rewright.ir.graph import Graph
from rewright.ops.facts import UNKNOWN, Facts

Given = tuple[tuple[str, Facts], ...]
"""By input of a lemma what all elements of it may be; the checker reads that off the program."""


@dataclass(frozen=True)
class Lemma:
    """Two small programs over the same inputs, and how it is known that they compute the same.

    ``x / x == 1`` holds where ``x`` is above zero, which ``given`` says. An input may be read by one side alone.
    """

    name: str
    left: Graph
    """What is put in."""
    right: Graph
    """What was there."""
    evidence: str
    places: tuple[tuple[str, str], ...] = ()
    """Source lines of both sides, wherever it was used."""
    given: Given = ()

    @property
    def key(self) -> str:
        """A digest of what it says."""
        return key_of(self.left, self.right, self.given)

    @property
    def statement(self) -> str:
        """What it says, as an equation over the inputs of both sides."""
        return " == ".join(expression(side, next(iter(side.outputs))) for side in (self.left, self.right))

    @property
    def is_closed(self) -> bool:
        """Whether neither side reads anything."""
        return not self.left.inputs and not self.right.inputs

    def facts(self, side: Graph) -> Mapping[str, Facts]:
        """What is given of the inputs of one side."""
        known = dict(self.given)
        return {name: known.get(name, UNKNOWN) for name in side.inputs}


def key_of(left: Graph, right: Graph, given: Given = ()) -> str:
    """A digest of the statement that two programs compute the same."""
    return digest(left) + digest(right) + "".join(f"{name}: {facts}" for name, facts in given)
