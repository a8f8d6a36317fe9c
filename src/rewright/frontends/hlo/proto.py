"""HloModuleProto (xla/service/hlo.proto) as a module; only fields that change what a program means are read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from rewright.frontends.hlo.devices import iota_groups, mesh_of_message, part_of_message
from rewright.frontends.hlo.frames import Frame, Frames, is_backward
from rewright.frontends.hlo.layouts import TILED, row_major
from rewright.frontends.hlo.module import Computation, Instruction, Module, Shape, ordered
from rewright.frontends.hlo.sharding import of_message
from rewright.frontends.hlo.wire import Message
from rewright.ir.errors import RewrightError
from rewright.ir.types import SourceSpan

_ELEMENTS = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128",
}  # fmt: skip
_DEEPEST = 50
_LITERALS: dict[str, tuple[int, str]] = {
    "s8": (15, "b"),
    "u8": (3, "B"),
    "s16": (17, "h"),
    "f16": (11, "e"),
    "bf16": (13, "H"),
    "f32": (8, "f"),
    "u16": (16, "H"),
    "f64": (9, "d"),
}
_INTEGERS = {"pred": 2, "s32": 4, "s64": 5, "u32": 6, "u64": 7}
"""Fields of LiteralProto by element type: blobs and packed numbers of fixed width, and packed varints."""


def parse(data: bytes) -> Module:
    """The module in a serialised HloModuleProto; raises RewrightError where it is none."""
    message = Message(memoryview(data))
    names = {entry.integer(5): entry.text(1) for entry in message.messages(3)}
    if not names or len(set(names.values())) != len(names):
        raise RewrightError("the module has no computations with names of their own; write it as HloModuleProto")
    frames = _frames(message.message(17))
    computations = {names[entry.integer(5)]: _computation(entry, names, frames) for entry in message.messages(3)}
    entry = names.get(message.integer(6)) or message.text(2)
    replicas, partitions = _counts(message)
    shardings = tuple(map(of_message, message.messages(14))) if message.first(12) is not None else None
    result = of_message(message.message(12)) if message.first(12) is not None else None
    return Module(message.text(1), computations, entry, replicas, partitions, shardings, result)


def _counts(message: Message) -> tuple[int | None, int | None]:
    """Replicas and partitions, where the module was compiled for a device assignment."""
    if message.first(15) is None:
        return None, None
    assignment = message.message(15)
    replicas, partitions = assignment.integer(1), assignment.integer(2)
    return (replicas, partitions) if replicas > 0 and partitions > 0 else (None, None)


def _frames(message: Message) -> Frames:
    """The stack frame index; numbers count from one."""
    strings = [message.texts(number) for number in (1, 2)]
    places = [(m.integer(1), m.integer(2), m.integer(3)) for m in message.messages(3)]
    calls = [(m.integer(1), m.integer(2)) for m in message.messages(4)]
    found: dict[int, Frame] = {}
    for number, (location, parent) in enumerate(calls, 1):
        if 0 < location <= len(places):
            file, function, line = places[location - 1]
            texts = [
                names[at - 1] if 0 < at <= len(names) else ""
                for names, at in zip(strings, (file, function), strict=True)
            ]
            found[number] = Frame(texts[0], line_number(line), texts[1], parent)
    return Frames(found)


def line_number(value: int) -> int:
    """A line as the file has it; lines out of range are not known."""
    return value if 0 <= value < 1 << 31 else 0


def _computation(message: Message, names: dict[int, str], frames: Frames) -> Computation:
    own = {entry.integer(35): entry.text(1) or f"instruction.{entry.integer(35)}" for entry in message.messages(2)}
    instructions = [_instruction(entry, own, names, frames) for entry in message.messages(2)]
    return ordered(message.text(1), instructions, own.get(message.integer(6), ""))


def _instruction(message: Message, own: dict[int, str], names: dict[int, str], frames: Frames) -> Instruction:
    shape = _shape(message.message(3))
    name = own[message.integer(35)]
    try:
        operands = tuple(own[number] for number in message.integers(36))
        called = tuple(names[number] for number in message.integers(38))
    except KeyError as error:
        raise RewrightError(f"{name:.60} refers to {error}, which does not exist; write it again") from None
    attributes = {key: value for key, read in _ATTRIBUTES.items() if (value := read(message)) is not None}
    attributes |= {"called": called, "parameter": message.integer(9), "index": message.integer(13)}
    opcode = message.text(2)
    if opcode == "constant":
        attributes["literal"] = _literal(message, shape)
    label = message.message(7).text(2)
    return Instruction(name, opcode, shape, operands, attributes, _span(message.message(7), frames), label)


def _span(metadata: Message, frames: Frames) -> SourceSpan:
    file, label = metadata.text(3), metadata.text(2)
    if not file:
        return frames.span(metadata.integer(15), label)
    return SourceSpan(file, line_number(metadata.integer(4)), module_path=label, backward=is_backward(label))


def _shape(message: Message, depth: int = 0) -> Shape:
    if depth > _DEEPEST:
        raise RewrightError("a shape is nested too deeply; write the module again")
    element = _ELEMENTS.get(message.integer(2), f"element type {message.integer(2)}")
    if any(message.integers(6)):
        raise RewrightError("a shape has a dynamic size; compile the module with fixed sizes")
    sizes = message.integers(3)
    if any(not 0 <= size < 1 << 62 for size in sizes):
        raise RewrightError("a shape has a size out of range; write the module again")
    parts = tuple(_shape(part, depth + 1) for part in message.messages(4))
    return Shape(element, sizes, parts, _layout(message.message(5)))


def _layout(message: Message) -> tuple[int, ...]:
    return TILED if message.first(6) is not None else message.integers(1)


def constant_values(data: bytes) -> tuple[float, ...] | None:
    """The values of a constant, a serialised HloInstructionProto, in row-major order; None where it has none.

    Raises RewrightError where it is no such message.
    """
    message = Message(memoryview(data))
    return _literal(message, _shape(message.message(3)))


def _literal(message: Message, shape: Shape) -> tuple[float, ...] | None:
    """The values in row-major order; None where the file has none."""
    literal = message.message(8)
    found = _elements(literal, shape)
    # The bytes of a literal lie as its own shape says, which need not be that of the instruction.
    return row_major(found, shape.sizes, _layout(literal.message(1).message(5))) if found else None


def _elements(literal: Message, shape: Shape) -> tuple[float, ...] | None:
    """The values as they lie in memory."""
    if shape.element in _INTEGERS:
        return literal.integers(_INTEGERS[shape.element])
    if shape.element not in _LITERALS:
        return None
    field, form = _LITERALS[shape.element]
    found = literal.numbers(field, form)
    if shape.element == "bf16":
        found = _widened(found)
    return found


def _widened(halves: tuple[float, ...]) -> tuple[float, ...]:
    """Numbers whose upper 16 bits are given."""
    raw = b"".join(struct.pack("<I", int(half) << 16) for half in halves)
    return tuple(entry[0] for entry in struct.iter_unpack("<f", raw))


def _groups(message: Message) -> tuple[tuple[int, ...], ...] | None:
    groups = [group.integers(1) for group in message.messages(49)]
    for devices in message.messages(87):
        groups += [group.integers(1) for group in devices.messages(1)]
        for short in devices.messages(2):
            return _short_groups(short)
    for short in message.messages(92):
        return _short_groups(short)
    for axes in message.messages(93):
        return mesh_of_message(axes.message(1)).groups([part_of_message(part) for part in axes.messages(2)])
    return tuple(groups) if groups else None


def _short_groups(short: Message) -> tuple[tuple[int, ...], ...]:
    order = short.integers(4) or tuple(range(len(short.integers(3))))
    return iota_groups((short.integer(1), short.integer(2)), short.integers(3), order)


def _pairs(message: Message) -> tuple[tuple[int, int], ...] | None:
    return tuple((pair.integer(1), pair.integer(2)) for pair in message.messages(52)) or None


def _slices(message: Message) -> tuple[tuple[int, int, int], ...] | None:
    return tuple((s.integer(1), s.integer(2), s.integer(3, 1)) for s in message.messages(17)) or None


def _padding(message: Message) -> tuple[tuple[int, int, int], ...] | None:
    found = [(d.integer(1), d.integer(2), d.integer(3)) for d in message.message(21).messages(1)]
    return tuple(found) or None


def _window(message: Message) -> tuple[dict[str, int], ...] | None:
    if message.first(15) is None:
        return None
    names = {"size": 1, "stride": 2, "low": 3, "high": 4, "rhs_dilate": 5, "lhs_dilate": 6, "reversal": 7}
    ones = ("stride", "rhs_dilate", "lhs_dilate")
    return tuple(
        {name: entry.integer(field, int(name in ones)) for name, field in names.items()}
        for entry in message.message(15).messages(1)
    )


def _labels(message: Message) -> tuple[tuple[int, ...], ...] | None:
    """Batch, feature and spatial axes of input, kernel (input and output feature) and output."""
    if message.first(16) is None:
        return None
    d = message.message(16)
    return (
        (d.integer(7), d.integer(8), *d.integers(11)),
        (d.integer(4), d.integer(3), *d.integers(6)),
        (d.integer(9), d.integer(10), *d.integers(12)),
    )


def _nested(outer: int, field: int) -> Callable[[Message], Any]:
    def read(message: Message) -> tuple[int, ...] | None:
        return message.message(outer).integers(field) if message.first(outer) is not None else None

    return read


def _vector_axis(message: Message) -> int | None:
    """The axis of the index vectors of a scatter or a gather."""
    outer = next((number for number in (48, 33) if message.first(number) is not None), None)
    return None if outer is None else message.message(outer).integer(4)


_ATTRIBUTES: dict[str, Callable[[Message], Any]] = {
    "dimensions": lambda m: m.integers(14) if m.first(14) is not None else None,
    "window": _window,
    "dim_labels": _labels,
    "slice": _slices,
    "exponent_bits": lambda m: m.integer(18) or None,
    "mantissa_bits": lambda m: m.integer(19) if m.integer(18) else None,
    "dynamic_slice_sizes": lambda m: m.integers(20) if m.first(20) is not None else None,
    "padding": _padding,
    "channel_id": lambda m: m.integer(26) or None,
    "custom_call_target": lambda m: m.text(28) or None,
    "lhs_contracting_dims": _nested(30, 1),
    "rhs_contracting_dims": _nested(30, 2),
    "lhs_batch_dims": _nested(30, 3),
    "rhs_batch_dims": _nested(30, 4),
    "offset_dims": _nested(33, 1),
    "collapsed_slice_dims": _nested(33, 2),
    "start_index_map": _nested(33, 3),
    "operand_batching_dims": _nested(33, 5),
    "start_indices_batching_dims": _nested(33, 6),
    "slice_sizes": lambda m: m.integers(34) if m.first(34) is not None else None,
    "backend_config": lambda m: m.text(43) or None,
    "update_window_dims": _nested(48, 1),
    "inserted_window_dims": _nested(48, 2),
    "scatter_dims_to_operand_dims": _nested(48, 3),
    "input_batching_dims": _nested(48, 5),
    "scatter_indices_batching_dims": _nested(48, 6),
    "replica_groups": _groups,
    "feature_group_count": lambda m: m.integer(50, 1),
    "source_target_pairs": _pairs,
    "batch_group_count": lambda m: m.integer(58, 1),
    "direction": lambda m: m.text(63) or None,
    "use_global_device_ids": lambda m: bool(m.integer(71)),
    "is_stable": lambda m: bool(m.integer(60)),
    "largest": lambda m: bool(m.integer(85)),
    "index_vector_dim": _vector_axis,
    "sharding": lambda m: of_message(m.message(40)) if m.first(40) is not None else None,
}
"""By the name of an attribute in text, how it is read; None where it is absent."""
