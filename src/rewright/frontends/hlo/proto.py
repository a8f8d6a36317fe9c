"""HloModuleProto (xla/service/hlo.proto), read as a module and written again."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.frontends.hlo.module import Computation, Instruction, Module, called_first
from rewright.frontends.hlo.wire import (
    BYTES,
    VARINT,
    Field,
    Fields,
    integer,
    integers,
    messages,
    pack_integers,
    read_fields,
    string,
    text,
    write_fields,
)
from rewright.ir.errors import RewrightError

_NAME, _OPCODE, _ID, _OPERANDS, _CONTROLS, _CALLED = 1, 2, 35, 36, 37, 38
_EDGES = frozenset({_NAME, _OPCODE, _ID, _OPERANDS, _CONTROLS, _CALLED})
_SCHEDULE = 7


def read(proto: bytes) -> Module:
    """The module in a serialised HloModuleProto; raises RewrightError where it is none."""
    fields = read_fields(proto)
    raw = list(messages(fields, 3))
    names = {integer(entry, 5): string(entry, 1) for entry in raw}
    if not raw or len(set(names.values())) != len(raw):
        raise RewrightError("the module has no computations with names of their own; write it as HloModuleProto")
    computations = {names[integer(entry, 5)]: _computation(entry, names) for entry in raw}
    entry_name = names.get(integer(fields, 6)) or string(fields, 2)
    if entry_name not in computations:
        raise RewrightError("the module has no entry computation; write it again")
    rest = tuple(entry for entry in fields if entry[0] not in (1, 2, 3, 6, _SCHEDULE))
    return Module(string(fields, 1), computations, entry_name, rest)


def _computation(fields: Fields, names: Mapping[int, str]) -> Computation:
    raw = list(messages(fields, 2))
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


def _instruction(fields: Fields, own: Mapping[int, str], names: Mapping[int, str]) -> Instruction:
    return Instruction(
        string(fields, _NAME),
        string(fields, _OPCODE),
        tuple(own[number] for number in integers(fields, _OPERANDS)),
        tuple(entry for entry in fields if entry[0] not in _EDGES),
        tuple(names[number] for number in integers(fields, _CALLED)),
        tuple(own[number] for number in integers(fields, _CONTROLS)),
    )


def write(module: Module, unique: bool = True) -> bytes:
    """The serialised HloModuleProto; instructions and computations are numbered in order of use.

    ``unique`` gives another name to an instruction that is called as one of another computation, as XLA wants it.
    """
    order = called_first(module.computations, module.entry)
    numbers = {name: place + 1 for place, name in enumerate(order)}
    own: dict[tuple[str, str], int] = {}
    for name in order:
        for instruction in module.computations[name].instructions:
            own[name, instruction] = len(own) + 1
    taken: set[str] = set()
    out: list[Field] = [text(1, module.name), text(2, module.entry)]
    for name in order:
        out.append((3, BYTES, _write_computation(module.computations[name], numbers, own, taken if unique else set())))
    out.append((6, VARINT, numbers[module.entry]))
    out += module.fields
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
        entry += pack_integers(_OPERANDS, [own[name, operand] for operand in instruction.operands])
        entry += pack_integers(_CONTROLS, [own[name, control] for control in instruction.controls])
        entry += pack_integers(_CALLED, [numbers[called] for called in instruction.called])
        out.append((2, BYTES, write_fields(entry)))
    out += [*computation.fields, (5, VARINT, numbers[name]), (6, VARINT, own[name, computation.root])]
    return write_fields(out)
