"""Documents and modules that anybody may have written, read in one way only.

Two readers of one text may see two things: a key that occurs twice, a field of a protocol buffer that is given again.
So what is read here is what the printer here prints, letter for letter, or it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast

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


def read_document(text: str) -> dict[str, Any]:
    """A JSON document that was printed here; raises ValueError where a key occurs twice, or it is not so printed."""
    document: object = json.loads(text, object_pairs_hook=_table, parse_constant=_refuse)
    if text.rstrip("\n") not in (json.dumps(document), json.dumps(document, indent=1)):
        raise ValueError("it is not written as its printer writes it")
    if not isinstance(document, dict):
        raise ValueError("it holds no table")
    return cast("dict[str, Any]", document)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.40} occurs twice")
    return found


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def table_of(value: object, keys: Collection[str]) -> dict[str, Any]:
    """A table with exactly these keys; raises ValueError for any other."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.40} is no table")
    table = cast("dict[str, Any]", value)
    if other := table.keys() ^ set(keys):
        raise ValueError(f"the key {min(map(str, other))!r:.40} is missing, or is none of those that are known")
    return table


def number_of(value: object) -> int:
    """A whole number that is not negative; raises ValueError for anything else, True among it."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is no number of something")
    return value


def text_of(value: object) -> str:
    """A text; raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return value


def list_of(value: object) -> list[Any]:
    """A list; raises ValueError for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.40} is no list")
    return cast("list[Any]", value)


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
