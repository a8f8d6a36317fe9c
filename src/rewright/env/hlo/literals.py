"""Constants whose values a text left out (``constant({...})``): nothing is known of them, as of a parameter.

XLA's parser makes values up for them, others each time, and says nothing: so they are looked for in the text, and
become parameters at the end of the entry. What is proved then holds for all values, and what is tested was run with
random ones.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rewright.env.hlo.program import PARAMETER, SHAPE, Computation, Instruction, Program
from rewright.env.hlo.wire import BYTES, VARINT, Field, read_fields, text, write_fields
from rewright.ir.errors import RewrightError

_ELIDED = re.compile(r"constant\(\s*\{\s*\.\.\.\s*\}")
_NAMED = re.compile(r"([\w.\-]+)\s*=\s*[^=\n]*?constant\(\s*\{\s*\.\.\.\s*\}")
_PROGRAM_SHAPE = 4


def with_parameters(source: str, program: Program) -> tuple[Program, tuple[str, ...]]:
    """The program of an HLO text with its elided constants as parameters, and their names.

    Raises RewrightError where one is no constant of the entry.
    """
    names = list(dict.fromkeys(_NAMED.findall(source)))
    if len(_NAMED.findall(source)) != len(_ELIDED.findall(source)):
        raise RewrightError("the text has elided constants ({...}) without names; print it with its large constants")
    if not names:
        return program, ()
    main = program.main
    for computation in program.computations.values():
        inside = [n for n in names if n in computation.instructions and _is_constant(computation, n)]
        if inside and computation.name != main.name:
            raise RewrightError(
                f"the values of constant {inside[0]:.60} in {computation.name:.60} are elided ({{...}}); "
                "print the module with its large constants"
            )
    missing = [n for n in names if n not in main.instructions or not _is_constant(main, n)]
    if missing:
        raise RewrightError(f"the values of {missing[0]:.60} are elided ({{...}}); print it with its large constants")
    return _entered(program, names), tuple(names)


def _is_constant(computation: Computation, name: str) -> bool:
    return computation.instructions[name].opcode == "constant"


def _entered(program: Program, names: list[str]) -> Program:
    main = program.main
    instructions = dict(main.instructions)
    first = len(main.parameters())
    for place, name in enumerate(names, first):
        own = instructions[name]
        fields: tuple[Field, ...] = ((SHAPE, BYTES, own.shape), (PARAMETER, VARINT, place))
        instructions[name] = Instruction(name, "parameter", (), fields, (), own.controls)
    added = [(name, main.instructions[name].shape) for name in names]
    fields = tuple(_with_shapes(entry, added) for entry in main.fields)
    whole = replace(main, instructions=instructions, fields=fields)
    host = tuple(_with_shapes(entry, added) for entry in program.fields)
    return replace(program.with_computation(whole), fields=host)


def _with_shapes(entry: Field, added: list[tuple[str, bytes]]) -> Field:
    """A ProgramShapeProto with more parameters; any other field as it is."""
    number, wire, value = entry
    if number != _PROGRAM_SHAPE or not isinstance(value, bytes):
        return entry
    found = read_fields(value)
    # Names are given for all parameters, or for none.
    named = any(own[0] == 3 for own in found) or not any(own[0] == 1 for own in found)
    found += [(1, BYTES, shape) for _, shape in added]
    found += [text(3, name) for name, _ in added] if named else []
    return number, wire, write_fields(sorted(found, key=lambda own: own[0]))
