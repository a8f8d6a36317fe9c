"""An HLO module as computations of named instructions, to be edited and written as HloModuleProto again.

Numbers of instructions and computations differ between modules that XLA writes, names do not: so names identify them
here, and numbers are given when a program is written. Fields of xla/service/hlo.proto that nothing here looks at are
kept byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from rewright.env.hlo.wire import (
    BYTES,
    VARINT,
    Field,
    integer,
    integers,
    packed,
    read_fields,
    string,
    text,
    write_fields,
)
from rewright.ir.errors import RewrightError

SHAPE, METADATA, LITERAL, PARAMETER, FUSION_KIND, TUPLE_INDEX = 3, 7, 8, 9, 11, 13
_NAME, _OPCODE, _ID, _OPERANDS, _CONTROLS, _CALLED = 1, 2, 35, 36, 37, 38
_EDGES = frozenset({_NAME, _OPCODE, _ID, _OPERANDS, _CONTROLS, _CALLED})
_SCHEDULE = 7
EFFECTS = frozenset({"infeed", "outfeed", "send", "send-done", "recv", "recv-done", "rng-get-and-update-state"})
"""Operators that do something besides giving a value."""
_HAS_SIDE_EFFECT = 65


class Cycle(RewrightError):
    """Instructions that read each other in a circle."""


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
    def meaning(self) -> tuple[object, ...]:
        """All that the instruction computes with, names and operands and where it comes from aside."""
        return self.opcode, self.called, tuple(entry for entry in self.fields if entry[0] != METADATA)

    @cached_property
    def shape(self) -> bytes:
        """The serialised ShapeProto."""
        found = next((value for number, _, value in self.fields if number == SHAPE), b"")
        return found if isinstance(found, bytes) else b""

    @property
    def parameter(self) -> int:
        """The number of a parameter."""
        return integer(self.fields, PARAMETER)

    @property
    def has_effect(self) -> bool:
        """Whether it does something besides giving a value."""
        return self.opcode in EFFECTS or (self.opcode == "custom-call" and bool(integer(self.fields, _HAS_SIDE_EFFECT)))

    def with_field(self, number: int, wire: int, value: int | bytes) -> Instruction:
        """The instruction with another value of one field."""
        rest = tuple(entry for entry in self.fields if entry[0] != number)
        return replace(self, fields=(*rest, (number, wire, value)))


@dataclass(frozen=True)
class Computation:
    """Instructions by name, operands before those that read them."""

    name: str
    instructions: Mapping[str, Instruction]
    root: str
    fields: tuple[Field, ...] = ()

    @cached_property
    def signature(self) -> bytes:
        """The serialised ProgramShapeProto, without the names of the parameters."""
        shape = next((value for number, _, value in self.fields if number == 4), b"")
        return write_fields(entry for entry in read_fields(shape if isinstance(shape, bytes) else b"") if entry[0] != 3)

    @cached_property
    def users(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the instructions that read each instruction."""
        found: dict[str, list[str]] = {name: [] for name in self.instructions}
        for name, instruction in self.instructions.items():
            for operand in dict.fromkeys(instruction.operands):
                found[operand].append(name)
        return {name: tuple(users) for name, users in found.items()}

    def parameters(self) -> list[Instruction]:
        """The parameters by number."""
        return sorted((i for i in self.instructions.values() if i.opcode == "parameter"), key=lambda i: i.parameter)


@dataclass(frozen=True)
class Program:
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

    def with_computation(self, computation: Computation) -> Program:
        """The program with a computation added or replaced."""
        return replace(self, computations={**self.computations, computation.name: computation})


# --- reading


def read(proto: bytes) -> Program:
    """The program in a serialised HloModuleProto; raises RewrightError where it is none."""
    fields = read_fields(proto)
    raw = [read_fields(value) for number, _, value in fields if number == 3 and isinstance(value, bytes)]
    names = {integer(entry, 5): string(entry, 1) for entry in raw}
    if not raw or len(set(names.values())) != len(raw):
        raise RewrightError("the module has no computations with names of their own; write it as HloModuleProto")
    computations = {names[integer(entry, 5)]: _computation(entry, names) for entry in raw}
    entry_name = names.get(integer(fields, 6)) or string(fields, 2)
    if entry_name not in computations:
        raise RewrightError("the module has no entry computation; write it again")
    rest = tuple(entry for entry in fields if entry[0] not in (1, 2, 3, 6, _SCHEDULE))
    return Program(string(fields, 1), computations, entry_name, rest)


def _computation(fields: list[Field], names: Mapping[int, str]) -> Computation:
    raw = [read_fields(value) for number, _, value in fields if number == 2 and isinstance(value, bytes)]
    own = {integer(entry, _ID): string(entry, _NAME) for entry in raw}
    name = string(fields, 1)
    if len(set(own.values())) != len(raw):
        raise RewrightError(f"two instructions of {name:.60} have one name; write the module again")
    try:
        instructions = {own[integer(entry, _ID)]: _instruction(entry, own, names) for entry in raw}
        root = own[integer(fields, 6)]
    except KeyError as error:
        raise RewrightError(f"{name:.60} refers to {error}, which does not exist; write the module again") from None
    rest = tuple(entry for entry in fields if entry[0] not in (1, 2, 5, 6))
    return Computation(name, instructions, root, rest)


def _instruction(fields: list[Field], own: Mapping[int, str], names: Mapping[int, str]) -> Instruction:
    return Instruction(
        string(fields, _NAME),
        string(fields, _OPCODE),
        tuple(own[number] for number in integers(fields, _OPERANDS)),
        tuple(entry for entry in fields if entry[0] not in _EDGES),
        tuple(names[number] for number in integers(fields, _CALLED)),
        tuple(own[number] for number in integers(fields, _CONTROLS)),
    )


# --- writing


def write(program: Program, unique: bool = True) -> bytes:
    """The serialised HloModuleProto; instructions and computations are numbered in order of use.

    ``unique`` gives another name to an instruction that is called as one of another computation, as XLA wants it.
    """
    order = list(called_first(program))
    numbers = {name: place + 1 for place, name in enumerate(order)}
    own: dict[tuple[str, str], int] = {}
    for name in order:
        for instruction in program.computations[name].instructions:
            own[name, instruction] = len(own) + 1
    taken: set[str] = set()
    out: list[Field] = [text(1, program.name), text(2, program.entry)]
    for name in order:
        out.append((3, BYTES, _write_computation(program.computations[name], numbers, own, taken if unique else set())))
    out.append((6, VARINT, numbers[program.entry]))
    out += program.fields
    return write_fields(out)


def _write_computation(
    computation: Computation, numbers: Mapping[str, int], own: Mapping[tuple[str, str], int], taken: set[str]
) -> bytes:
    name = computation.name
    out: list[Field] = [text(1, name)]
    for instruction in computation.instructions.values():
        title = instruction.name
        while title in taken:
            title += ".again"
        taken.add(title)
        entry: list[Field] = [text(_NAME, title), text(_OPCODE, instruction.opcode)]
        entry += instruction.fields
        entry.append((_ID, VARINT, own[name, instruction.name]))
        entry += packed(_OPERANDS, [own[name, operand] for operand in instruction.operands])
        entry += packed(_CONTROLS, [own[name, control] for control in instruction.controls])
        entry += packed(_CALLED, [numbers[called] for called in instruction.called])
        out.append((2, BYTES, write_fields(entry)))
    out += [*computation.fields, (5, VARINT, numbers[name]), (6, VARINT, own[name, computation.root])]
    return write_fields(out)


def called_first(program: Program) -> Iterator[str]:
    """Names of the computations that the entry needs, those that are called before those that call them."""
    done: dict[str, bool] = {}
    stack = [program.entry]
    while stack:
        name = stack[-1]
        if done.get(name):
            stack.pop()
            continue
        if name not in program.computations:
            raise RewrightError(f"the computation {name:.60} is called and does not exist; write the module again")
        instructions = program.computations[name].instructions.values()
        waiting = [c for i in instructions for c in i.called if not done.get(c)]
        if waiting and name in done:
            raise Cycle(f"the computation {name:.60} calls itself; write the module again")
        if waiting:
            done[name] = False
            stack.extend(reversed(waiting))
        else:
            done[name] = True
            stack.pop()
            yield name


def imported(program: Program, other: Program, prefix: str) -> tuple[Program, str]:
    """A program with the computations of another under a prefix, and the name that the entry of the other has there."""
    names = {name: f"{prefix}.{name}" for name in other.computations}
    for name, computation in other.computations.items():
        instructions = {
            n: replace(i, called=tuple(names[c] for c in i.called)) for n, i in computation.instructions.items()
        }
        program = program.with_computation(replace(computation, name=names[name], instructions=instructions))
    return program, names[other.entry]


# --- order and dead code


def pruned(program: Program) -> Program:
    """The program without dead code, instructions and computations in order; raises Cycle."""
    slim = {name: prune(computation) for name, computation in program.computations.items()}
    kept = replace(program, computations=slim)
    return replace(kept, computations={name: slim[name] for name in called_first(kept)})


def prune(computation: Computation) -> Computation:
    """A computation without dead code, operands first; parameters and what has effects stay. Raises Cycle."""
    roots = [computation.root, *(i.name for i in computation.instructions.values() if i.has_effect)]
    order = ordered(computation.instructions, roots)
    live = set(order)
    unused = [i.name for i in computation.parameters() if i.name not in live]
    kept = {name: computation.instructions[name] for name in (*unused, *order)}
    for name, instruction in kept.items():
        if any(control not in live for control in instruction.controls):
            kept[name] = replace(instruction, controls=tuple(c for c in instruction.controls if c in kept))
    return replace(computation, instructions=kept)


def ordered(instructions: Mapping[str, Instruction], roots: Iterable[str]) -> list[str]:
    """Names of what the roots need, operands first; raises Cycle."""
    order: list[str] = []
    state: dict[str, bool] = {}
    for root in roots:
        stack = [root]
        while stack:
            name = stack[-1]
            if state.get(name):
                stack.pop()
                continue
            if name not in instructions:
                raise RewrightError(f"{name:.60} is read and does not exist; write the module again")
            instruction = instructions[name]
            waiting = [o for o in instruction.operands if not state.get(o)]
            waiting += [c for c in instruction.controls if c in instructions and not state.get(c)]
            if not waiting:
                state[name] = True
                order.append(name)
                stack.pop()
            elif name in state:
                raise Cycle(f"{name:.60} would read its own result")
            else:
                state[name] = False
                stack.extend(reversed(waiting))
    return order
