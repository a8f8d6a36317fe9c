"""HLO text, as XLA prints it, as a module."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

from rewright.frontends.hlo.devices import iota_groups, mesh_groups
from rewright.frontends.hlo.frames import Frame, Frames, is_backward
from rewright.frontends.hlo.layouts import TILED
from rewright.frontends.hlo.module import Computation, Instruction, Module, Shape, ordered
from rewright.frontends.hlo.sharding import Sharding, of_text
from rewright.ir.errors import RewrightError
from rewright.ir.types import SourceSpan

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
    frames = _frames(text)
    text = _TABLES.sub(lambda table: "\n" * table[0].count("\n"), text)
    found = re.match(r"\s*HloModule\s+(?P<name>[\w.\-]+)(?P<rest>[^\n]*)", text)
    if found is None:
        raise RewrightError("this is no HLO text: it does not start with HloModule; print the module as text")
    computations: dict[str, Computation] = {}
    entry = ""
    for name, is_entry, body, line in _computations(text, found.end()):
        if name in computations:
            raise RewrightError(f"line {line}: two computations are called {name:.60}; print the module again")
        computations[name] = _computation(name, body, line, frames)
        entry = name if is_entry else entry
    if not computations:
        raise RewrightError("the module has no computation; print the whole module")
    counts = {key: _stated(found["rest"], key) for key in ("replica_count", "num_partitions")}
    last = list(computations)[-1]
    return Module(found["name"], computations, entry or last, counts["replica_count"], counts["num_partitions"])


def _stated(text: str, key: str) -> int | None:
    found = re.search(rf"\b{key}=([0-9]{{1,6}})\b", text)
    return int(found[1]) if found else None


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
        end = _closing(text, brace, line)
        yield header["name"], header["entry"] is not None, text[brace + 1 : end], line
        at = end + 1


def _body_start(text: str, at: int, line: int) -> int:
    """The brace that opens the body: the one that ends its line, since layouts in the signature do not."""
    for found in re.compile(r"\{[ \t\r]*(?=\n)").finditer(text, at):
        return found.start()
    raise RewrightError(f"line {line}: a computation has no body; print the whole module")


def _closing(text: str, brace: int, line: int) -> int:
    depth = 0
    for token in re.compile(r'"(?:[^"\\]|\\.)*"|[{}]').finditer(text, brace):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                return token.start()
    raise RewrightError(f"line {line}: a computation is not closed; print the whole module")


def _computation(name: str, body: str, line: int, frames: Frames) -> Computation:
    instructions: list[Instruction] = []
    root = ""
    for text, number in _statements(body, line):
        found = _INSTRUCTION.fullmatch(text)
        if found is None:
            raise RewrightError(f"line {number}: {text[:40]!r} is no instruction; print the module again")
        try:
            instructions.append(_instruction(found["name"], found["rest"], frames))
        except RewrightError as error:
            raise RewrightError(f"line {number}: {error}") from None
        root = found["name"] if found["root"] else root
    return ordered(name, instructions, root or (instructions[-1].name if instructions else ""))


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


def _instruction(name: str, rest: str, frames: Frames) -> Instruction:
    shape, at = _shape(rest, 0)
    opcode = _OPCODE.match(rest, at)
    if opcode is None:
        raise RewrightError(f"{name:.60} has no operator; print the module again")
    close = _matching(rest, opcode.end() - 1)
    inner, after = rest[opcode.end() : close], rest[close + 1 :]
    attributes: dict[str, Any] = {"called": ()}
    for part in _attributes(after):
        key, _, value = part.partition("=")
        reader = _READERS.get(key.strip())
        if reader is not None:
            attributes[key.strip()] = reader(value.strip())
    called = [attributes[key] for key in _CALLS if key in attributes]
    attributes["called"] = tuple(name for names in called for name in names)
    operands: tuple[str, ...] = ()
    if opcode["opcode"] == "constant":
        attributes["literal"] = _literal(inner, shape)
    elif opcode["opcode"] == "parameter":
        attributes["parameter"] = _integer(inner)
    else:
        operands = tuple(_operand(part) for part in split(inner))
    span, label = _metadata(after, frames)
    return Instruction(name, opcode["opcode"], shape, operands, attributes, span, label)


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


def _matching(text: str, start: int) -> int:
    depth = 0
    for token in re.compile(r'"(?:[^"\\]|\\.)*"|[()]').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return token.start()
    raise RewrightError("a bracket is not closed; print the module again")


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
                return Shape("tuple", (), tuple(parts)), at + 1
            part, at = _shape(text, at, depth + 1)
            parts.append(part)
    found = _ARRAY.match(text, at)
    if found is None:
        raise RewrightError(f"{text[at : at + 30]!r} is no shape; print the module again")
    sizes = [size.strip() for size in found["sizes"].split(",") if size.strip()]
    if not all(size.isdecimal() and len(size) <= 18 for size in sizes):
        raise RewrightError(f"the shape {found[0]!r:.40} has a size that is no number; compile with fixed sizes")
    return Shape(found["element"], tuple(map(int, sizes)), (), _layout(found["layout"] or "")), found.end()


def _layout(text: str) -> tuple[int, ...]:
    """Axes from minor to major, with tiles and memory spaces after a colon."""
    order, _, more = text.partition(":")
    return TILED if "T(" in more else _integers(order)


def _literal(text: str, shape: Shape) -> tuple[float, ...] | None:
    """The values in row-major order; None where they were left out of the text."""
    values: list[float] = []
    body = _ARRAY.sub(" ", text)
    for token in _NUMBER.finditer(body):
        word = token[0].lower()
        if word == "...":
            return None
        try:
            values.append(_rounded(_value(word), shape.element))
        except (ValueError, OverflowError):
            raise RewrightError(f"{word!r:.40} is no number; print the module again") from None
    return tuple(values)


def _value(word: str) -> float:
    if word in ("true", "false"):
        return word == "true"
    bare = word.lstrip("-")
    if bare.startswith("0x") or "nan" in word:
        return float("nan")  # a pattern of bits that no number has
    return int(word) if bare.isdecimal() else float(word)


_FORMS = {"f32": ("<f", 0xFFFFFFFF), "f16": ("<e", 0xFFFF), "bf16": ("<f", 0xFFFF0000)}


def _rounded(value: float, element: str) -> float:
    """The number of the element type that the digits stand for: text has as many digits as tell it from others."""
    if element not in _FORMS or not isfinite(value):
        return value
    form, mask = _FORMS[element]
    try:
        raw = struct.pack(form, value)
    except OverflowError:
        return value
    if mask == 0xFFFF0000:
        bits = int.from_bytes(raw, "little")
        raw = ((bits + 0x7FFF + (bits >> 16 & 1)) & mask).to_bytes(5, "little")[:4]
    return float(struct.unpack(form, raw)[0])


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


def _pairs(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(a), int(b)) for a, b in re.findall(r"\{\s*([0-9]{1,6})\s*,\s*([0-9]{1,6})\s*\}", text))


def _slices(text: str) -> tuple[tuple[int, int, int], ...]:
    found: list[tuple[int, int, int]] = []
    for part in re.findall(r"\[([^\]]*)\]", text):
        numbers = _integers(part.replace(":", " "))
        if len(numbers) not in (2, 3):
            raise RewrightError(f"{part[:30]!r} is no range; print the module again")
        found.append((numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 1))
    return tuple(found)


def _padding(text: str) -> tuple[tuple[int, int, int], ...]:
    found: list[tuple[int, int, int]] = []
    for part in text.split("x"):
        numbers = [_integer(number) for number in part.split("_")]
        if len(numbers) not in (2, 3):
            raise RewrightError(f"{part[:30]!r} is no padding; print the module again")
        found.append((numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0))
    return tuple(found)


def _window(text: str) -> tuple[dict[str, int], ...]:
    fields = dict(part.split("=", 1) for part in text.strip("{} ").split() if "=" in part)
    if "size" not in fields:
        return ()
    sizes = [_integer(number) for number in fields["size"].split("x")]
    plain: dict[str, list[int]] = {}
    for name, otherwise in (("stride", 1), ("lhs_dilate", 1), ("rhs_dilate", 1), ("rhs_reversal", 0)):
        given = [_integer(number) for number in fields[name].split("x")] if name in fields else []
        plain[name] = given or [otherwise] * len(sizes)
    pads = _padding(fields["pad"]) if "pad" in fields else ((0, 0, 0),) * len(sizes)
    if any(len(entry) != len(sizes) for entry in (*plain.values(), pads)):
        raise RewrightError(f"the window {text[:40]!r} has lists of several lengths; print the module again")
    return tuple(
        {
            "size": size,
            "stride": plain["stride"][k],
            "low": pads[k][0],
            "high": pads[k][1],
            "lhs_dilate": plain["lhs_dilate"][k],
            "rhs_dilate": plain["rhs_dilate"][k],
            "reversal": plain["rhs_reversal"][k],
        }
        for k, size in enumerate(sizes)
    )


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


def _metadata(text: str, frames: Frames) -> tuple[SourceSpan, str]:
    found = re.search(r"metadata=\{((?:\"(?:[^\"\\]|\\.)*\"|[^}\"])*)\}", text)
    if found is None:
        return SourceSpan(), ""
    fields = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|[0-9]{1,9})', found[1]))
    label, file = (re.sub(r"\\(.)", r"\1", fields.get(key, "").strip('"')) for key in ("op_name", "source_file"))
    line, frame = fields.get("source_line", "0"), fields.get("stack_frame_id", "0")
    if not file and frame.isdecimal():
        return frames.span(int(frame), label), label
    number = int(line) if line.isdecimal() else 0
    return SourceSpan(file, number, module_path=label, backward=is_backward(label)), label


_ROW = re.compile(r'^([0-9]{1,9}) (?:"((?:[^"\\]|\\.)*)"|\{([^}]*)\})$', re.MULTILINE)


def _frames(text: str) -> Frames:
    """The tables of files, functions, places and frames that stand before the computations."""
    rows: dict[str, dict[int, tuple[str, dict[str, int]]]] = {}
    for table in _TABLES.finditer(text):
        name = table[0].split("\n", 1)[0]
        rows[name] = {
            int(number): (word, {key: int(n) for key, n in re.findall(r"(\w+)=([0-9]{1,9})", fields)})
            for number, word, fields in _ROW.findall(table[0])
        }
    empty: tuple[str, dict[str, int]] = ("", {})
    found: dict[int, Frame] = {}
    for number, (_, call) in rows.get("StackFrames", {}).items():
        place = rows.get("FileLocations", {}).get(call.get("file_location_id", 0), empty)[1]
        file = rows.get("FileNames", {}).get(place.get("file_name_id", 0), empty)[0]
        function = rows.get("FunctionNames", {}).get(place.get("function_name_id", 0), empty)[0]
        found[number] = Frame(file, place.get("line", 0), function, call.get("parent_frame_id", 0))
    return Frames(found)


def _sharding(text: str) -> Sharding:
    return of_text(text, split)


_CALLS = ("to_apply", "calls", "body", "condition", "branch_computations", "true_computation", "false_computation")
"""Attributes that name computations, in the order in which HloModuleProto has them."""
_LISTS = """
dimensions lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims offset_dims collapsed_slice_dims
start_index_map slice_sizes operand_batching_dims start_indices_batching_dims dynamic_slice_sizes update_window_dims
inserted_window_dims scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims
"""
_SINGLE = "iota_dimension index index_vector_dim channel_id feature_group_count batch_group_count k"
_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(_LISTS.split(), _integers),
    **dict.fromkeys(_SINGLE.split(), _integer),
    **dict.fromkeys(("direction", "custom_call_target", "backend_config"), _string),
    **dict.fromkeys(("use_global_device_ids", "is_stable", "largest"), _flag),
    **dict.fromkeys(_CALLS, _names),
    "replica_groups": _groups,
    "source_target_pairs": _pairs,
    "slice": _slices,
    "padding": _padding,
    "window": _window,
    "dim_labels": _labels,
    "sharding": _sharding,
}
