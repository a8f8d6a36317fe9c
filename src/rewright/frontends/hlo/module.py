"""An HLO module as computations of named instructions: what every form of it is read into, and written from.

Numbers of instructions and computations differ between modules that XLA writes, names do not: so names identify them
here, and numbers are given when a module is written. All else is kept as the fields of HloModuleProto, byte for byte,
and decoded when it is asked for: an instruction that nobody looks at costs nothing. Attributes go by their names in
HLO text: ``dimensions``, ``lhs_contracting_dims``, ``direction`` and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from rewright.frontends.hlo.attributes import read_attribute
from rewright.frontends.hlo.frames import Frames, read_frames
from rewright.frontends.hlo.order import needed_first
from rewright.frontends.hlo.shapes import Shape, read_literal, read_shape
from rewright.frontends.hlo.sharding import Sharding, of_message
from rewright.frontends.hlo.wire import (
    BYTES,
    Field,
    blob,
    first,
    integer,
    message,
    messages,
    read_fields,
    string,
    text,
    write_fields,
)
from rewright.ir.errors import RewrightError
from rewright.ir.types import SourceSpan

SHAPE, METADATA, LITERAL, PARAMETER, TUPLE_INDEX = 3, 7, 8, 9, 13
"""Fields of HloInstructionProto."""
SIGNATURE = 4
"""The ProgramShapeProto of a computation, and of a module."""
ASSIGNMENT, FRAMES = 15, 17
"""Fields of HloModuleProto: its devices, and the stack frames of its instructions."""
_LARGEST = 1 << 62
EFFECTS = frozenset({"infeed", "outfeed", "send", "send-done", "recv", "recv-done", "rng-get-and-update-state"})
"""Operators that do something besides giving a value."""


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``operands``, ``controls`` and ``called`` are names, ``fields`` all that edges do not say."""

    name: str
    opcode: str
    operands: tuple[str, ...]
    fields: tuple[Field, ...]
    called: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()

    @cached_property
    def own_fields(self) -> tuple[Field, ...]:
        """The fields, but where it comes from."""
        return tuple(entry for entry in self.fields if entry[0] != METADATA)

    @property
    def meaning(self) -> tuple[object, ...]:
        """All that the instruction computes with, names and operands and where it comes from aside."""
        return self.opcode, self.called, self.own_fields

    @cached_property
    def shape_proto(self) -> bytes:
        """The serialised ShapeProto."""
        return blob(self.fields, SHAPE)

    @cached_property
    def shape(self) -> Shape:
        """The shape; raises RewrightError where it is none."""
        return read_shape(self.shape_proto)

    @property
    def parameter(self) -> int:
        """The number of a parameter."""
        return integer(self.fields, PARAMETER)

    @cached_property
    def literal(self) -> tuple[float, ...] | None:
        """The values of a constant in row-major order; None where the module has none, or none that are read."""
        return read_literal(blob(self.fields, LITERAL), self.shape)

    @property
    def label(self) -> str:
        """What the program that it was compiled from calls it (``op_name``)."""
        return string(message(self.fields, METADATA), 2)

    @property
    def has_effect(self) -> bool:
        """Whether it does something besides giving a value."""
        stated = self.opcode == "custom-call" and self.attribute("custom_call_has_side_effect")
        return self.opcode in EFFECTS or bool(stated)

    def attribute(self, name: str) -> Any:
        """An attribute by its name in text; None where it is absent. Raises RewrightError where it is malformed."""
        return read_attribute(self.fields, name)

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """A list of integers among the attributes; raises RewrightError for numbers out of range."""
        value = self.attribute(name)
        found = tuple(default) if value is None else cast("tuple[int, ...]", value)
        if any(abs(item) >= _LARGEST for item in found):
            raise RewrightError(f"attribute {name} of {self.name} is {found!r:.40}, out of range")
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer among the attributes; raises RewrightError where it is absent without default, or out of range."""
        value = self.attribute(name)
        found = default if value is None else value
        if found is None or abs(found) >= _LARGEST:
            raise RewrightError(
                f"attribute {name} of {self.name} is {found!r:.40} and no integer; print the module again"
            )
        return found

    def word(self, name: str, default: str = "") -> str:
        """A text among the attributes."""
        value = self.attribute(name)
        return default if value is None else str(value)

    def columns(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Of ``slice`` all starts, limits and strides; of ``padding`` what is added below, above and between."""
        rows: Sequence[tuple[int, int, int]] = self.attribute(name) or ()
        return tuple(a for a, _, _ in rows), tuple(b for _, b, _ in rows), tuple(c for _, _, c in rows)

    def rename(self, names: Mapping[str, str], calls: Mapping[str, str]) -> Instruction:
        """The instruction with other names for itself, for what it reads, and for what it calls, as far as given."""
        operands, controls = (tuple(names.get(n, n) for n in own) for own in (self.operands, self.controls))
        called = tuple(calls.get(name, name) for name in self.called)
        return replace(self, name=names.get(self.name, self.name), operands=operands, controls=controls, called=called)

    def with_field(self, number: int, wire: int, value: int | bytes) -> Instruction:
        """The instruction with another value of one field."""
        rest = tuple(entry for entry in self.fields if entry[0] != number)
        return replace(self, fields=(*rest, (number, wire, value)))


@dataclass(frozen=True)
class Computation:
    """Instructions by name, in any order."""

    name: str
    instructions: Mapping[str, Instruction]
    root: str
    fields: tuple[Field, ...] = ()

    @cached_property
    def signature(self) -> bytes:
        """The serialised ProgramShapeProto, without the names of the parameters."""
        return write_fields(entry for entry in read_fields(blob(self.fields, SIGNATURE)) if entry[0] != 3)

    @cached_property
    def users(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the instructions that read each instruction."""
        found: dict[str, list[str]] = {name: [] for name in self.instructions}
        for name, instruction in self.instructions.items():
            for operand in dict.fromkeys(instruction.operands):
                found[operand].append(name)
        return {name: tuple(users) for name, users in found.items()}

    @cached_property
    def in_order(self) -> tuple[Instruction, ...]:
        """All instructions, operands before those that read them; raises Cycle, and RewrightError for a missing one."""
        return tuple(self.instructions[name] for name in toposort(self.instructions, self.instructions))

    def parameters(self) -> list[Instruction]:
        """The parameters by number; raises RewrightError where one is missing."""
        own = (i for i in self.instructions.values() if i.opcode == "parameter")
        found = sorted(own, key=lambda i: i.parameter)
        if [i.parameter for i in found] != list(range(len(found))):
            raise RewrightError(f"the parameters of {self.name} are not numbered from 0; print the module again")
        return found

    def map_instructions(self, change: Callable[[Computation, Instruction], Instruction]) -> Computation:
        """The computation with every instruction changed."""
        return replace(self, instructions={name: change(self, i) for name, i in self.instructions.items()})

    def result(self) -> Instruction:
        """The instruction whose value the computation gives."""
        return self.instructions[self.root]

    def source(self, instruction: Instruction) -> Shape:
        """The shape of the first operand: what a bitcast means depends on both layouts."""
        if not instruction.operands or instruction.operands[0] not in self.instructions:
            raise RewrightError(f"{instruction.name:.60} reads nothing; print the module again")
        return self.instructions[instruction.operands[0]].shape

    def is_plain_bitcast(self, instruction: Instruction) -> bool:
        """Whether an instruction is a bitcast between elements of one type."""
        return instruction.opcode == "bitcast" and self.source(instruction).element == instruction.shape.element


@dataclass(frozen=True)
class Module:
    """Computations by name; ``fields`` are those of the module that are about it as a whole."""

    name: str
    computations: Mapping[str, Computation]
    entry: str
    fields: tuple[Field, ...] = field(default=(), repr=False)

    @property
    def main(self) -> Computation:
        """The entry computation."""
        return self.computations[self.entry]

    @cached_property
    def size(self) -> int:
        """Number of instructions in all computations."""
        return sum(len(computation.instructions) for computation in self.computations.values())

    @cached_property
    def frames(self) -> Frames:
        """Where in the user's program instructions were written."""
        return read_frames(message(self.fields, FRAMES))

    @property
    def devices(self) -> tuple[int, int] | None:
        """Replicas and partitions, where the module was compiled for a device assignment."""
        assignment = message(self.fields, ASSIGNMENT)
        replicas, partitions = integer(assignment, 1), integer(assignment, 2)
        return (replicas, partitions) if replicas > 0 and partitions > 0 else None

    @property
    def shardings(self) -> tuple[Sharding, ...] | None:
        """Of the parameters, where the module says that it was partitioned by them."""
        return None if self.result_sharding is None else tuple(map(of_message, messages(self.fields, 14)))

    @property
    def result_sharding(self) -> Sharding | None:
        """The same of the result."""
        return None if first(self.fields, 12) is None else of_message(message(self.fields, 12))

    def with_computation(self, computation: Computation) -> Module:
        """The module with a computation added or replaced."""
        return replace(self, computations={**self.computations, computation.name: computation})

    def map_instructions(self, change: Callable[[Computation, Instruction], Instruction]) -> Module:
        """The module with every instruction changed."""
        return replace(self, computations={name: c.map_instructions(change) for name, c in self.computations.items()})

    def computation(self, name: str) -> Computation:
        """A computation by name; raises RewrightError for one that does not exist."""
        if name not in self.computations:
            raise RewrightError(f"the module has no computation {name!r:.60}; print the whole module")
        return self.computations[name]

    def callee(self, instruction: Instruction, place: int = 0) -> Computation:
        """A computation that an instruction calls; raises RewrightError where it calls fewer."""
        if place >= len(instruction.called):
            count = len(instruction.called)
            raise RewrightError(f"{instruction.name:.60} calls {count} computations; print the module again")
        return self.computation(instruction.called[place])

    def span(self, instruction: Instruction) -> SourceSpan:
        """Where in the user's program an instruction was written."""
        return self.frames.span(message(instruction.fields, METADATA))


def signature(parameters: Mapping[str, bytes], result: bytes) -> Field:
    """The field of a computation or a module with the shapes of its parameters, by their names, and of its result."""
    shapes: list[Field] = [(1, BYTES, shape) for shape in parameters.values()]
    return SIGNATURE, BYTES, write_fields([*shapes, (2, BYTES, result), *(text(3, name) for name in parameters)])


def toposort(instructions: Mapping[str, Instruction], roots: Iterable[str]) -> list[str]:
    """Names of what the roots need, operands first; raises Cycle."""

    def needs(name: str) -> Sequence[str]:
        own = instructions.get(name)
        if own is None:
            raise RewrightError(f"an instruction reads {name!r:.60}, which does not exist; print the whole module")
        return [*own.operands, *(c for c in own.controls if c in instructions)] if own.controls else own.operands

    return needed_first(roots, needs, "would read its own result, in a circle")


def called_first(computations: Mapping[str, Computation], entry: str) -> list[str]:
    """Names of the computations that one needs, those that are called before those that call them; raises Cycle."""

    def needs(name: str) -> Sequence[str]:
        if name not in computations:
            raise RewrightError(f"the computation {name:.60} is called and does not exist; write the module again")
        return [called for i in computations[name].instructions.values() for called in i.called]

    return needed_first([entry], needs, "calls itself; write the module again")
