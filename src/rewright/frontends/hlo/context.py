"""What the lowering of one HLO instruction can see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rewright import ops
from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.unknowns import Unknowns
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.graph import Graph
from rewright.ir.types import TensorType
from rewright.ops.reference.simplifying import SimplifyingBuilder

Value = Any
"""A node position, or a tuple of values; None for a token."""
_MOVES = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice, ops.Convert)
IN_RANGE = "gathers, scatters and dynamic slices stay in range, where HLO would move or drop what does not"
MOST_INSTRUCTIONS = 500_000
"""Instructions that a module may have once its calls and loops are written out."""


@dataclass
class Context:
    """The builder, the module, and which of its devices the program is for.

    Devices are numbered replica by replica, and partition by partition within one.
    """

    b: SimplifyingBuilder
    module: Module
    unknowns: Unknowns
    replicas: int
    partitions: int
    device: int
    assumptions: dict[str, None] = field(default_factory=dict[str, None])
    call: Callable[[str, Sequence[Value]], Value] = lambda name, arguments: None
    """Lowers a computation on arguments."""
    wraps: bool = False
    """Whether sums of unsigned 32-bit numbers wrap around."""
    count: int = 0
    no_numbers: dict[int, None] = field(default_factory=dict[int, None])
    """Stand-ins for constants that are not numbers."""
    between: dict[int, tuple[float, float]] = field(default_factory=dict[int, "tuple[float, float]"])
    """Integers that were moved between two numbers, and these."""

    def no_number(self, kind: TensorType) -> int:
        """A stand-in for a constant that is not a number; whoever reads it in the end has no meaning."""
        position = self.unknowns.make("not a number", f"not a number #{len(self.no_numbers)}", kind)
        self.no_numbers[position] = None
        return position

    def is_no_number(self, position: int) -> bool:
        """Whether a node is such a stand-in, spread or moved."""
        node = self.b.node(position)
        while isinstance(node.op, _MOVES):
            position = node.operands[0]
            node = self.b.node(position)
        return position in self.no_numbers

    def check_numbers(self, graph: Graph) -> None:
        """Raise UnsupportedOperator where a constant that is not a number is read by the finished graph."""
        names = {cast("ops.Input", self.b.node(position).op).label for position in self.no_numbers}
        places = {position for name, position in graph.inputs.items() if name in names}
        reached = set(places)
        where = ""
        for position, node in enumerate(graph.nodes):
            if reached & set(node.operands):
                reached.add(position)
                where = where or (f" at {node.span}" if node.span.file else "")
        if places:
            raise UnsupportedOperator(f"a constant that is not a number{where} has no meaning over the reals")

    def step(self) -> None:
        """Count an instruction; raises RewrightError where a module is too long when it is written out."""
        self.count += 1
        if self.count > MOST_INSTRUCTIONS:
            raise RewrightError(
                f"the module has more than {MOST_INSTRUCTIONS:,} instructions with its loops written out; unroll fewer"
            )

    def assume(self, sentence: str) -> None:
        """Note what is taken for granted of the program."""
        self.assumptions[sentence] = None

    def type(self, instruction: Instruction) -> TensorType:
        """The type of the result of an instruction."""
        return instruction.shape.type()

    @property
    def is_whole(self) -> bool:
        """Whether the program is for one device, which holds whole tensors."""
        return self.replicas * self.partitions == 1

    @property
    def replica(self) -> int:
        """Number of the replica."""
        return self.device // self.partitions

    @property
    def partition(self) -> int:
        """Number of the partition."""
        return self.device % self.partitions
