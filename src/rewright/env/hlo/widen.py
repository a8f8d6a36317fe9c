"""A module with every float32 made a float64: what it computes without the rounding, to scale tolerances with."""

from __future__ import annotations

import struct
from dataclasses import replace

from rewright.frontends.hlo.module import LITERAL, SHAPE, SIGNATURE, Computation, Instruction, Module
from rewright.frontends.hlo.shapes import ELEMENTS
from rewright.frontends.hlo.wire import BYTES, Field, Fields, read_fields, write_fields

_F32, _F64 = ELEMENTS["f32"], ELEMENTS["f64"]


def widen_module(program: Module) -> Module:
    """The program in float64; numbers of other dtypes stay."""
    computations = {
        name: replace(own.map_instructions(_instruction), fields=_with_signature(own.fields))
        for name, own in program.computations.items()
    }
    return replace(program, computations=computations, fields=_with_signature(program.fields))


def _with_signature(fields: Fields) -> tuple[Field, ...]:
    return tuple((n, w, _signature(v)) if n == SIGNATURE and isinstance(v, bytes) else (n, w, v) for n, w, v in fields)


def _instruction(_: Computation, instruction: Instruction) -> Instruction:
    return replace(instruction, fields=tuple(_field(entry) for entry in instruction.fields))


def _field(entry: Field) -> Field:
    number, wire, value = entry
    if number == SHAPE and isinstance(value, bytes):
        return number, wire, _shape(value)
    if number == LITERAL and isinstance(value, bytes):
        return number, wire, _literal(value)
    return entry


def _shape(data: bytes) -> bytes:
    out: list[Field] = []
    for number, wire, value in read_fields(data):
        if number == 2 and value == _F32.number:
            value = _F64.number
        elif number == 4 and isinstance(value, bytes):
            value = _shape(value)
        out.append((number, wire, value))
    return write_fields(out)


def _signature(data: bytes) -> bytes:
    """A ProgramShapeProto: parameters, result, names."""
    fields = read_fields(data)
    return write_fields((n, w, _shape(v) if n in (1, 2) and isinstance(v, bytes) else v) for n, w, v in fields)


def _literal(data: bytes) -> bytes:
    out: list[Field] = []
    for number, wire, value in read_fields(data):
        if number == 1 and isinstance(value, bytes):
            value = _shape(value)
        elif number == 10 and isinstance(value, bytes):
            value = _literal(value)
        elif number == _F32.field and isinstance(value, bytes):
            count = len(value) // 4
            value = struct.pack(f"<{count}d", *struct.unpack(f"<{count}f", value))
            number, wire = _F64.field, BYTES
        out.append((number, wire, value))
    return write_fields(out)
