"""Where statements on tiles are put: loop indices as tiles, values that have names, and guards of loads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel, Running
from rewright.optimize.planning.plan import Plan
from rewright.optimize.printing.statements import Name, Scalar, Statement
from rewright.optimize.scalars.expressions import Table
from rewright.optimize.scalars.finite import Certain

BLOCK_ROWS, BLOCK_LANES = Name("BM"), Name("BN")
"""Rows and lanes of a tile, which are fixed when a kernel is compiled."""
UPCAST, DESCRIPTORS = Name("UPCAST"), Name("DESCRIPTORS")
"""Whether operands are widened (in the interpreter), and whether tiles are read through tensor descriptors."""
FIRST, BEGIN, ROWS, LANES = Name("first"), Name("begin"), Name("row"), Name("lane")
"""The first row of the block, the first element of the tile, and all rows and elements of it as vectors."""


@dataclass(frozen=True, slots=True)
class Way:
    """Where a loop index runs in a tile: along which axis, from where on, and over how many elements."""

    axis: int
    start: Scalar
    block: Scalar


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The tensor descriptors of a sweep: statements that make them, before its loops, and their names."""

    statements: list[Statement] = field(default_factory=list[Statement])
    names: dict[object, str] = field(default_factory=dict[object, str])


@dataclass(frozen=True)
class Block:
    """Statements, and what is known where they are."""

    statements: list[Statement] = field(default_factory=list[Statement])
    places: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    """Loop indices as broadcastable tiles."""
    guards: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    """For a loop that may run over its end, the condition that it does not."""
    names: dict[int, Scalar] = field(default_factory=dict[int, Scalar])
    ways: dict[str, Way] = field(default_factory=dict[str, Way])
    """For a loop that is an axis of the tile, which."""
    descriptors: Descriptors | None = None
    """Those of the sweep, where its tiles may be read through such."""

    def add(self, *statements: Statement) -> None:
        """Put statements at the end."""
        self.statements.extend(statements)

    @property
    def body(self) -> tuple[Statement, ...]:
        """All statements."""
        return tuple(self.statements)

    def inner(self) -> Block:
        """A copy that puts statements in the same place, and whose values are forgotten at its end."""
        known = (dict(self.places), dict(self.guards), dict(self.names), dict(self.ways))
        return Block(self.statements, *known, self.descriptors)

    def nested(self) -> Block:
        """A copy for the statements of a loop or a choice."""
        return replace(self.inner(), statements=[])


@dataclass(frozen=True)
class Context:
    """The lowering of one kernel."""

    plan: Plan
    kernel: Kernel
    certain: Certain
    """What values of the plan are finite for certain."""
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """First and last value of every loop index."""
    states: dict[int, str] = field(default_factory=dict[int, str])
    """The variable of every state."""
    done: list[Running] = field(default_factory=list[Running])
    """The reductions of the sweeps before."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.plan.graph

    @property
    def table(self) -> Table:
        """The table of expressions."""
        return self.plan.table

    def fresh(self, stem: str) -> str:
        """A new name."""
        return f"{stem}{next(self.numbers)}"

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return tuple(s for s in self.graph.nodes[tensor].type.shape if isinstance(s, int))

    def is_huge(self, tensor: int) -> bool:
        """Whether its elements are more than 32 bits number."""
        return math.prod(self.shape(tensor)) >= 1 << 31


def has_16_bits(graph: Graph) -> bool:
    """Whether the device may round a product and a sum once, which a program in 16 bits does not show.

    Elsewhere a score that is not rounded would be compared with a maximum that is: off by as much as scores are.
    """
    return any(node.type.dtype in (DType.F16, DType.BF16) for node in graph.nodes)


def padded_size(size: int) -> int:
    """The size of a tile that holds this many elements."""
    return max(16, 1 << (size - 1).bit_length())
