"""HLO text, as XLA prints it, as a module: what it says, as the fields of a HloModuleProto that says the same."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rewright.frontends.hlo import frames
from rewright.frontends.hlo.attributes import ATTRIBUTES, Kind, Window, write_attributes
from rewright.frontends.hlo.devices import iota_groups, mesh_groups
from rewright.frontends.hlo.layouts import TILED
from rewright.frontends.hlo.module import (
    ASSIGNMENT,
    FRAMES,
    LITERAL,
    METADATA,
    PARAMETER,
    SHAPE,
    Computation,
    Instruction,
    Module,
    signature,
)
from rewright.frontends.hlo.shapes import Shape, write_literal, write_shape
from rewright.frontends.hlo.sharding import Sharding, of_text
from rewright.frontends.hlo.wire import BYTES, VARINT, Field, write_fields
from rewright.frontends.hlo.wire import text as text_field
from rewright.ir.errors import RewrightError

_OPEN, _CLOSE = "([{", ")]}"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:[^\n]+\n)*", re.MULTILINE)
_HEADER = re.compile(r"(?P<entry>ENTRY\s+)?%?(?P<name>[\w.\-]+)\s*(\(.*\)\s*->\s*.*)?\{", re.DOTALL)
_INSTRUCTION = re.compile(r"(?P<root>ROOT\s+)?%?(?P<name>[\w.\-]+)\s*=\s*(?P<rest>.*)", re.DOTALL)
_ARRAY = re.compile(r"(?P<element>[a-z][a-z0-9]*)\[(?P<sizes>[^\]]*)\](\{(?P<layout>[^}]*)\})?")
_OPCODE = re.compile(r"\s*(?P<opcode>[a-z][\w\-]*)\(")
_NUMBER = re.compile(r"-?(?:inf|nan|0x[0-9a-f]+|[0-9.]+(?:e[+-]?[0-9]+)?)|true|false|\.\.\.", re.IGNORECASE)
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_SHORT_GROUPS = re.compile(r"\[(?P<counts>[0-9,]+)\]<=\[(?P<sizes>[0-9,]+)\](?:T\((?P<order>[0-9,]+)\))?")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_DEEPEST = 50


def parse(text: str) -> Module:
    """The module in a text; raises RewrightError with the line where it cannot be read."""
    text = _COMMENT.sub(" ", text)
    fields = _frames(text)
    text = _TABLES.sub(lambda table: "\n" * table[0].count("\n"), text)
    found = re.match(r"\s*HloModule\s+(?P<name>[\w.\-]+)(?P<rest>[^\n]*)", text)
    if found is None:
        raise RewrightError(
            "this is no HLO text, which files that end in .hlo and .txt have: it does not start with HloModule; print "
            "the module as text, or name a program that was saved"
        )
    computations: dict[str, Computation] = {}
    entry = ""
    for name, is_entry, body, line in _computations(text, found.end()):
        if name in computations:
            raise RewrightError(f"line {line}: two computations are called {name:.60}; print the module again")
        computations[name] = _computation(name, body, line)
        entry = name if is_entry else entry
    if not computations:
        raise RewrightError("the module has no computation; print the whole module")
    entry = entry or list(computations)[-1]
    fields = [*computations[entry].fields, *fields, *_assignment(found["rest"])]
    return Module(found["name"], computations, entry, tuple(fields))


def _assignment(text: str) -> list[Field]:
    """The DeviceAssignmentProto of a module that says of how many devices it is."""
    found = [re.search(rf"\b{key}=([0-9]{{1,6}})\b", text) for key in ("replica_count", "num_partitions")]
    counts = [(number, VARINT, max(int(own[1]), 1) if own else 1) for number, own in enumerate(found, 1)]
    return [(ASSIGNMENT, BYTES, write_fields(counts))] if any(found) else []


def _computations(text: str, start: int) -> Iterator[tuple[str, bool, str, int]]:
    """Name, whether it is the entry, text between the braces and first line of every computation."""
    at = start
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        line = text.count("\n", 0, at) + 1
        brace = _body_start(text, at, line)
        header = _HEADER.fullmatch(text[at : brace + 1])
        if header is None:
            raise RewrightError(f"line {line}: {text[at : at + 30]!r} starts no computation; print the module again")
        end = _closing(text, brace, "{}")
        if end < 0:
            raise RewrightError(f"line {line}: a computation is not closed; print the whole module")
        yield header["name"], header["entry"] is not None, text[brace + 1 : end], line
        at = end + 1


def _body_start(text: str, at: int, line: int) -> int:
    """The brace that opens the body: the one that ends its line, since layouts in the signature do not."""
    for found in re.compile(r"\{[ \t\r]*(?=\n)").finditer(text, at):
        return found.start()
    raise RewrightError(f"line {line}: a computation has no body; print the whole module")


def _closing(text: str, at: int, pair: str) -> int:
    """Where the bracket that opens at a place is closed; -1 where it is not."""
    depth = 0
    for token in re.compile(rf'"(?:[^"\\]|\\.)*"|[{pair}]').finditer(text, at):
        depth += {pair[0]: 1, pair[-1]: -1}.get(token[0], 0)
        if depth == 0:
            return token.start()
    return -1


def _computation(name: str, body: str, line: int) -> Computation:
    instructions: dict[str, Instruction] = {}
    root = ""
    for text, number in _statements(body, line):
        found = _INSTRUCTION.fullmatch(text)
        if found is None:
            raise RewrightError(f"line {number}: {text[:40]!r} is no instruction; print the module again")
        own = found["name"]
        if own in instructions:
            raise RewrightError(f"line {number}: two instructions of {name} have one name; print the module again")
        try:
            instructions[own] = _instruction(own, found["rest"])
        except RewrightError as error:
            raise RewrightError(f"line {number}: {error}") from None
        root = own if found["root"] else root
    if not instructions:
        raise RewrightError(f"the computation {name} has no root; print the whole module")
    found = Computation(name, instructions, root or list(instructions)[-1])
    parameters = {i.name: i.shape_proto for i in found.parameters()}
    return replace(found, fields=(signature(parameters, found.result().shape_proto),))


def _statements(body: str, line: int) -> Iterator[tuple[str, int]]:
    """Instructions, which end with a line where all brackets are closed, with their line numbers."""
    depth, start, first = 0, 0, line
    for token in re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{}\n]').finditer(body + "\n"):
        mark = token[0]
        if mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            depth -= 1
        elif mark == "\n":
            line += 1
            if depth <= 0:
                statement = body[start : token.start()].strip().rstrip(",")
                if statement:
                    yield statement, first
                start, first, depth = token.end(), line, 0
        else:
            line += mark.count("\n")
    rest = body[start:].strip()
    if rest:
        yield rest, first


def split(text: str) -> list[str]:
    """Parts at the commas that stand in no bracket and no string."""
    parts: list[str] = []
    depth, start = 0, 0
    for token in re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{},]').finditer(text):
        mark = token[0]
        if mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            depth -= 1
        elif mark == "," and depth == 0:
            parts.append(text[start : token.start()].strip())
            start = token.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _instruction(name: str, rest: str) -> Instruction:
    shape, at = _shape(rest, 0)
    found = _OPCODE.match(rest, at)
    if found is None:
        raise RewrightError(f"{name:.60} has no operator; print the module again")
    close, opcode = _closing(rest, found.end() - 1, "()"), found["opcode"]
    if close < 0:
        raise RewrightError("a bracket is not closed; print the module again")
    inner, after = rest[found.end() : close], rest[close + 1 :]
    attributes: dict[str, Any] = {}
    calls: dict[str, tuple[str, ...]] = {}
    for part in _attributes(after):
        key, _, value = (word.strip() for word in part.partition("="))
        if key in _CALLS:
            calls[key] = _names(value)
            continue
        key = f"scatter_{key}" if key == "index_vector_dim" and opcode == "scatter" else key
        if key in ATTRIBUTES:
            read = _READERS.get(key) or _BY_KIND[ATTRIBUTES[key].kind]
            attributes[key] = read(value)
    fields: list[Field] = [(SHAPE, BYTES, write_shape(shape)), *_metadata(after), *write_attributes(attributes)]
    operands: tuple[str, ...] = ()
    if opcode == "constant":
        fields += _literal(inner, shape)
    elif opcode == "parameter":
        fields.append((PARAMETER, VARINT, _integer(inner)))
    else:
        operands = tuple(_operand(part) for part in split(inner))
    called = tuple(name for key in _CALLS for name in calls.get(key, ()))
    return Instruction(name, opcode, operands, tuple(fields), called)


def _attributes(text: str) -> Iterator[str]:
    """Attributes one by one; a list of devices that belongs to a mesh stays with it."""
    waiting = ""
    for part in split(text):
        if part.startswith("replica_groups=mesh[") and "{" not in part:
            waiting = part
        else:
            yield f"{waiting}, {part}" if waiting else part
            waiting = ""
    if waiting:
        yield waiting


def _operand(text: str) -> str:
    """The name at the end of an operand, which may have its shape before it."""
    return text.split()[-1].lstrip("%") if text.split() else ""


def _shape(text: str, at: int, depth: int = 0) -> tuple[Shape, int]:
    """A shape and where it ends."""
    while at < len(text) and text[at].isspace():
        at += 1
    if text.startswith("(", at):
        if depth > _DEEPEST:
            raise RewrightError("a shape is nested too deeply; print the module again")
        parts: list[Shape] = []
        at += 1
        while True:
            while at < len(text) and (text[at].isspace() or text[at] == ","):
                at += 1
            if text.startswith(")", at):
                return Shape("tuple", parts=tuple(parts)), at + 1
            part, at = _shape(text, at, depth + 1)
            parts.append(part)
    found = _ARRAY.match(text, at)
    if found is None:
        raise RewrightError(f"{text[at : at + 30]!r} is no shape; print the module again")
    sizes = [size.strip() for size in found["sizes"].split(",") if size.strip()]
    if not all(size.isdecimal() and len(size) <= 18 for size in sizes):
        raise RewrightError(f"the shape {found[0]!r:.40} has a size that is no number; compile with fixed sizes")
    return Shape(found["element"], tuple(map(int, sizes)), _layout(found["layout"] or "")), found.end()


def _layout(text: str) -> tuple[int, ...]:
    """Axes from minor to major, with tiles and memory spaces after a colon."""
    order, _, more = text.partition(":")
    return TILED if "T(" in more else _integers(order)


def _literal(text: str, shape: Shape) -> list[Field]:
    """The LiteralProto of the values; none where they were left out of the text."""
    body = _ARRAY.sub(" ", text)
    words = [token[0].lower() for token in _NUMBER.finditer(body)]
    if "..." in words:
        return []
    try:
        return [(LITERAL, BYTES, write_literal([_value(word) for word in words], shape))]
    except (ValueError, OverflowError, struct.error):
        raise RewrightError(
            f"{text!r:.40} holds what is no number of {shape.element}; print the module again"
        ) from None


def _value(word: str) -> float:
    if word in ("true", "false"):
        return word == "true"
    bare = word.lstrip("-")
    if bare.startswith("0x") or "nan" in word:
        return float("nan")  # a pattern of bits that no number has
    return int(word) if bare.isdecimal() else float(word)


def _integer(text: str) -> int:
    found = _INTEGER.fullmatch(text.strip())
    if found is None:
        raise RewrightError(f"{text[:30]!r} is no integer; print the module again")
    return int(found[0])


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _INTEGER.findall(text))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lstrip("%") for name in text.strip("{} ").split(",") if name.strip())


def _groups(text: str) -> tuple[tuple[int, ...], ...] | None:
    short = _SHORT_GROUPS.match(text)
    if short is not None:
        sizes = _integers(short["sizes"])
        order = _integers(short["order"]) if short["order"] else tuple(range(len(sizes)))
        return iota_groups(_integers(short["counts"]), sizes, order)
    if re.fullmatch(r"[{}0-9, ]*", text) is None:
        return mesh_groups(text)
    return tuple(_integers(group) for group in re.findall(r"\{([0-9, ]+)\}", text)) or None


def _pairs(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple((int(a), int(b)) for a, b in re.findall(r"\{\s*([0-9]{1,6})\s*,\s*([0-9]{1,6})\s*\}", text))


def _slices(text: str) -> tuple[tuple[int, ...], ...]:
    parts = (_integers(part.replace(":", " ")) for part in re.findall(r"\[([^\]]*)\]", text))
    return tuple(_three(part, 1, text) for part in parts)


def _padding(text: str) -> tuple[tuple[int, ...], ...]:
    parts = (tuple(map(_integer, part.split("_"))) for part in text.split("x"))
    return tuple(_three(part, 0, text) for part in parts)


def _three(numbers: tuple[int, ...], last: int, text: str) -> tuple[int, ...]:
    """Two or three numbers along an axis, the third of which may be left out."""
    if len(numbers) not in (2, 3):
        raise RewrightError(f"{text[:30]!r} is no list of two or three numbers an axis; print the module again")
    return (*numbers, last)[:3]


def _window(text: str) -> tuple[Window, ...]:
    fields = dict(part.split("=", 1) for part in text.strip("{} ").split() if "=" in part)
    if "size" not in fields:
        return ()
    lists = {name: list(map(_integer, fields[name].split("x"))) for name in _WINDOW if name in fields}
    pads = _padding(fields["pad"]) if "pad" in fields else ((0, 0, 0),) * len(lists["size"])
    lists |= {"low": [low for low, _, _ in pads], "high": [high for _, high, _ in pads]}
    if len(set(map(len, lists.values()))) != 1:
        raise RewrightError(f"the window {text[:40]!r} has lists of several lengths; print the module again")
    return tuple(Window(**dict(zip(lists, row, strict=True))) for row in zip(*lists.values(), strict=True))


def _labels(text: str) -> tuple[tuple[int, ...], ...]:
    """Axes of input (batch, feature, spatial), kernel (output, input, spatial) and output, from ``b01f_01io->b01f``."""
    found = re.fullmatch(r"([b f0-9]+)_([i o0-9]+)->([b f0-9]+)", text)
    if found is None:
        raise RewrightError(f"{text!r:.40} names no axes of a convolution; print the module again")
    axes: list[tuple[int, ...]] = []
    for word, (first, second) in zip(found.groups(), ("bf", "oi", "bf"), strict=True):
        digits = sorted(letter for letter in word if letter.isdecimal())
        if word.count(first) != 1 or word.count(second) != 1 or len(set(word)) != len(word):
            raise RewrightError(f"{text!r:.40} names no axes of a convolution; print the module again")
        axes.append((word.index(first), word.index(second), *(word.index(digit) for digit in digits)))
    return tuple(axes)


def _string(text: str) -> str:
    found = _STRING.match(text)
    return found[1] if found else text


def _flag(text: str) -> bool:
    return text == "true"


def _metadata(text: str) -> list[Field]:
    """The OpMetadata of an instruction, where it has one."""
    found = re.search(r"metadata=\{((?:\"(?:[^\"\\]|\\.)*\"|[^}\"])*)\}", text)
    if found is None:
        return []
    given = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|[0-9]{1,9})', found[1]))
    words = [(number, given[key]) for key, number in _METADATA.items() if key in given]
    out = [
        (number, VARINT, int(word)) if word.isdecimal() else text_field(number, re.sub(r"\\(.)", r"\1", word[1:-1]))
        for number, word in words
    ]
    return [(METADATA, BYTES, write_fields(out))]


_METADATA = {
    "op_name": frames.OP_NAME,
    "source_file": frames.SOURCE_FILE,
    "source_line": frames.SOURCE_LINE,
    "stack_frame_id": frames.STACK_FRAME,
}


_ROW = re.compile(r'^([0-9]{1,9}) (?:"((?:[^"\\]|\\.)*)"|\{([^}]*)\})$', re.MULTILINE)


def _frames(text: str) -> list[Field]:
    """The StackFrameIndexProto of the tables before the computations, whose rows are numbered from one."""
    out: list[Field] = []
    for table in _TABLES.finditer(text):
        field, columns = _FRAME_TABLES[table[0].split("\n", 1)[0]]
        for _, word, fields in sorted(_ROW.findall(table[0]), key=lambda row: int(row[0])):
            given = dict(re.findall(r"(\w+)=([0-9]{1,9})", fields))
            row = write_fields((k, VARINT, int(given.get(key, 0))) for k, key in enumerate(columns, 1))
            out.append((field, BYTES, row if columns else word.encode()))
    return [(FRAMES, BYTES, write_fields(out))] if out else []


_FRAME_TABLES: dict[str, tuple[int, Sequence[str]]] = {
    "FileNames": (frames.FILES, ()),
    "FunctionNames": (frames.FUNCTIONS, ()),
    "FileLocations": (frames.PLACES, ("file_name_id", "function_name_id", "line")),
    "StackFrames": (frames.CALLS, ("file_location_id", "parent_frame_id")),
}
"""By name: the field of a table, and its columns."""


def _sharding(text: str) -> Sharding:
    return of_text(text, split)


_CALLS = ("to_apply", "calls", "body", "condition", "branch_computations", "true_computation", "false_computation")
"""Attributes that name computations, in the order in which HloModuleProto has them."""
_WINDOW = ("size", "stride", "rhs_dilate", "lhs_dilate", "rhs_reversal")
_BY_KIND: dict[Kind, Callable[[str], Any]] = {"list": _integers, "number": _integer, "word": _string, "flag": _flag}
_READERS: dict[str, Callable[[str], Any]] = {
    "replica_groups": _groups,
    "source_target_pairs": _pairs,
    "slice": _slices,
    "padding": _padding,
    "window": _window,
    "dim_labels": _labels,
    "sharding": _sharding,
}
"""Of attributes of no kind of their own."""
