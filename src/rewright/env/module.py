"""An HLO module of ours: the proto that XLA compiles, seen as named instructions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property

from rewright.env.cost import Cost, cost_of
from rewright.env.hlo.editing import remove_dead_code, with_entry
from rewright.frontends.hlo.module import Computation, Instruction, Module, toposort
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.reading import lower
from rewright.frontends.hlo.shapes import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph


class HloModule:
    """A serialised HloModuleProto, or the program to be written as one.

    ``late`` says that XLA's passes are behind it, so that it is compiled as it is; ``entrance`` is a module of the same
    signature that XLA imports in its place.
    """

    def __init__(self, source: bytes | Module, late: bool = False, entrance: bytes | None = None) -> None:
        self._source = source
        self.late = late
        self.entrance = entrance

    @cached_property
    def proto(self) -> bytes:
        """The serialised HloModuleProto."""
        return self._source if isinstance(self._source, bytes) else write(self._source)

    @property
    def has_program(self) -> bool:
        """Whether it was made of a program, whose proto is written on demand."""
        return isinstance(self._source, Module)

    @cached_property
    def program(self) -> Module:
        """The computations, to be read and edited; raises RewrightError where the proto is none."""
        return read(self._source) if isinstance(self._source, bytes) else self._source

    @cached_property
    def cost(self) -> Cost:
        """What the module costs, estimated."""
        return cost_of(self.program)

    def __repr__(self) -> str:
        return f"HloModule({self.name!r:.60}, {self.instruction_count} instructions)"

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the bytes: equal for equal modules with equal names."""
        return hashlib.sha256(self.proto + (b"late" if self.late else b"")).hexdigest()

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.program.name

    @property
    def instruction_count(self) -> int:
        """Number of instructions in all computations."""
        return self.program.size

    @property
    def computation_count(self) -> int:
        """Number of computations."""
        return len(self.program.computations)

    def parameter_shapes(self) -> list[Shape]:
        """The shapes of the arrays that the module takes, tuples flattened."""
        return [leaf for p in self.program.main.parameters() for leaf in p.shape.leaves()]

    def result_shapes(self) -> list[Shape]:
        """The shapes of the arrays that the module gives."""
        return list(self.program.main.result().shape.leaves())

    def graph(self) -> Graph:
        """The module in the IR; raises UnsupportedOperator for an operator without a lowering."""
        program = lower(self.program, 1)
        if not isinstance(program, Graph):
            raise RewrightError(f"{self.name:.60} is a program of several devices; lower it with rw.load")
        return program

    def pruned(self) -> HloModule:
        """The module without dead code."""
        return self.replaced(remove_dead_code(self.program))

    def replaced(self, program: Module) -> HloModule:
        """The module with another program, at the same stage."""
        return HloModule(program, self.late, self.entrance)


def assemble_module(
    everything: Mapping[str, Computation], cut: Mapping[str, Instruction], root: str, title: str
) -> HloModule:
    """The module of some instructions, parameters among them; ``everything`` holds the computations that they call."""
    names = [i.name for i in sorted((i for i in cut.values() if i.opcode == "parameter"), key=lambda i: i.parameter)]
    order = toposort(cut, [*names, root])
    main = Computation(title, {name: cut[name] for name in order}, root)
    return HloModule(write(remove_dead_code(with_entry(Module(title, everything, title), main))))
