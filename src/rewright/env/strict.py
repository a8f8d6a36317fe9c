"""Modules that anybody may have written, read in one way only.

Two readers may see two things where a field of a protocol buffer is given again. So what is read here is what the
printer here prints, letter for letter, or it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rewright.frontends.hlo.module import LITERAL, SHAPE, Module
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.wire import BYTES, read_fields
from rewright.ir.errors import RewrightError

_Level = Literal["module", "computation", "instruction", "shape", "literal"]
_LEVELS: Mapping[_Level, tuple[frozenset[int], Mapping[int, _Level]]] = {
    "module": (frozenset({3}), {3: "computation"}),
    "computation": (frozenset({2}), {2: "instruction"}),
    "instruction": (frozenset({17, 49, 52, 57, 74}), {SHAPE: "shape", LITERAL: "literal"}),
    "shape": (frozenset({4}), {4: "shape"}),
    "literal": (frozenset({10}), {1: "shape", 10: "literal"}),
}
"""Of messages: the fields that may be given several times (of an instruction slices, groups, pairs, shapes of operands
and aliases of the result), and those that hold messages which are checked too."""


def read_module(proto: bytes) -> Module:
    """The program of a module that was written here; raises RewrightError where a field is given again."""
    program = read(proto)
    if write(program, unique=False) != proto:
        raise RewrightError("a module is not written as its printer writes it")
    _check_repeated(proto, "module")
    return program


def _check_repeated(data: bytes, level: _Level) -> None:
    """Raise RewrightError where a field of a message, or of one in it, is given twice."""
    several, inside = _LEVELS[level]
    seen: set[int] = set()
    for number, wire, value in read_fields(data):
        if number in seen and number not in several:
            raise RewrightError(f"field {number} of a message is given twice")
        seen.add(number)
        if number in inside:
            if wire != BYTES or not isinstance(value, bytes):
                raise RewrightError("a message of a module is none")
            _check_repeated(value, inside[number])
