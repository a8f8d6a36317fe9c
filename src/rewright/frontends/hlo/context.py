"""What the lowering of one HLO instruction can see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.unknowns import Unknowns
from rewright.ir.errors import RewrightError
from rewright.ir.types import TensorType
from rewright.ops.reference.simplifying import SimplifyingBuilder

T = TypeVar("T")
Value = Any
"""A node position, or a tuple of values; None for a token."""
MOST_INSTRUCTIONS = 500_000
"""Instructions that a module may have once its calls and loops are written out."""


def registering(table: dict[str, T]) -> Callable[..., Callable[[T], T]]:
    """A decorator that enters a function into a table, under some opcodes."""

    def register(*names: str) -> Callable[[T], T]:
        return lambda function: table.update(dict.fromkeys(names, function)) or function

    return register


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
    unmoved: dict[int, int] = field(default_factory=dict[int, int])
    """Gathers whose indices were moved inside, and these indices as they were."""
    between: dict[int, tuple[float, float]] = field(default_factory=dict[int, "tuple[float, float]"])
    """Integers that were moved between two numbers, and these."""

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
