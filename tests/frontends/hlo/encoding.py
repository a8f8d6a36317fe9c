"""HloModuleProto bytes of a module, for tests of the reader: only the fields that these tests use."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from rewright.frontends.hlo.module import Computation, Instruction, Module, Shape

_ELEMENTS = {"pred": 1, "s32": 4, "s64": 5, "f16": 10, "f32": 11, "tuple": 13, "token": 17}
_DOT = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def blob(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def packed(field: int, values: Iterable[int]) -> bytes:
    return blob(field, b"".join(map(varint, values)))


def shape(value: Shape) -> bytes:
    parts = b"".join(blob(4, shape(part)) for part in value.parts)
    return number(2, _ELEMENTS[value.element]) + packed(3, value.sizes) + parts


def literal(instruction: Instruction) -> bytes:
    values, element = instruction.attributes["literal"], instruction.shape.element
    if element == "f32":
        return blob(8, struct.pack(f"<{len(values)}f", *values))
    if element == "f16":
        return blob(11, struct.pack(f"<{len(values)}e", *values))
    return packed({"pred": 2, "s32": 4, "s64": 5}[element], map(int, values))


def instruction(value: Instruction, ids: dict[str, int], computations: dict[str, int]) -> bytes:
    a = value.attributes
    out = blob(1, value.name.encode()) + blob(2, value.opcode.encode()) + blob(3, shape(value.shape))
    out += number(35, ids[value.name]) + packed(36, (ids[name] for name in value.operands))
    out += packed(38, (computations[name] for name in a["called"]))
    if "parameter" in a:
        out += number(9, a["parameter"])
    if "index" in a:
        out += number(13, a["index"])
    if "literal" in a:
        out += blob(8, literal(value))
    if "dimensions" in a or "iota_dimension" in a:
        out += packed(14, a.get("dimensions", (a.get("iota_dimension"),)))
    if any(name in a for name in _DOT):
        out += blob(30, b"".join(packed(k + 1, a.get(name, ())) for k, name in enumerate(_DOT)))
    out += b"".join(blob(17, number(1, x) + number(2, y) + number(3, z)) for x, y, z in a.get("slice", ()))
    out += b"".join(blob(49, packed(1, group)) for group in a.get("replica_groups") or ())
    if "direction" in a:
        out += blob(63, a["direction"].encode())
    if "custom_call_target" in a:
        out += blob(28, a["custom_call_target"].encode()) + blob(43, a.get("backend_config", "").encode())
    return out


def computation(value: Computation, place: int, computations: dict[str, int]) -> bytes:
    ids = {entry.name: 100 * place + k for k, entry in enumerate(value.instructions)}
    body = b"".join(blob(2, instruction(entry, ids, computations)) for entry in value.instructions)
    return blob(1, value.name.encode()) + body + number(5, place) + number(6, ids[value.root])


def encode(module: Module) -> bytes:
    """The module as a serialised HloModuleProto."""
    places = {name: k + 1 for k, name in enumerate(module.computations)}
    parts = b"".join(blob(3, computation(c, places[name], places)) for name, c in module.computations.items())
    return blob(1, module.name.encode()) + blob(2, module.entry.encode()) + parts + number(6, places[module.entry])
