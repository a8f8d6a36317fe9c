"""Documents and modules that anybody may have written, read in one way only.

Two readers of one text may see two things: a key that occurs twice, a field of a protocol buffer that is given again.
So what is read here is what the printer here prints, letter for letter, or it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from rewright.frontends.hlo.module import LITERAL, SHAPE, Module
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.wire import BYTES, Field, read_fields
from rewright.ir.errors import RewrightError

_MODULE, _COMPUTATION = frozenset({3}), frozenset({2})
"""Fields of HloModuleProto and of HloComputationProto that may be given several times."""
_INSTRUCTION = frozenset({17, 49, 52, 57, 74})
"""The same of HloInstructionProto: slices, groups, pairs, shapes of operands and aliases of the result."""
_NESTED: Mapping[int, frozenset[int]] = {SHAPE: frozenset({4}), LITERAL: frozenset({10})}
"""The same of some messages in it: parts of tuples."""


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
    _check_repeated(read_fields(proto), _MODULE, lambda entry: _check_computation(entry) if entry[0] == 3 else None)
    return program


def _check_computation(entry: Field) -> None:
    _check_repeated(_fields(entry), _COMPUTATION, lambda own: _check_instruction(own) if own[0] == 2 else None)


def _check_instruction(entry: Field) -> None:
    _check_repeated(_fields(entry), _INSTRUCTION, _check_nested)


def _check_nested(entry: Field) -> None:
    number = entry[0]
    if number in _NESTED:
        _check_repeated(_fields(entry), _NESTED[number], lambda own: _check_again(own, number))


def _check_again(own: Field, number: int) -> None:
    """Check a part of a tuple, which is of the same kind, and the shape of a literal."""
    if own[0] in _NESTED[number]:
        _check_nested((number, *own[1:]))
    elif number == LITERAL and own[0] == 1:
        _check_nested((SHAPE, *own[1:]))


def _fields(entry: Field) -> list[Field]:
    if entry[1] != BYTES or not isinstance(entry[2], bytes):
        raise RewrightError("a message of a module is none")
    return read_fields(entry[2])


def _check_repeated(fields: list[Field], several: frozenset[int], inside: Callable[[Field], None]) -> None:
    seen: set[int] = set()
    for entry in fields:
        if entry[0] in seen and entry[0] not in several:
            raise RewrightError(f"field {entry[0]} of a message is given twice")
        seen.add(entry[0])
        inside(entry)
