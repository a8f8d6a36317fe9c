"""Relations in a TOML file: tables ``[relations]`` for inputs and ``[expect]`` for outputs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from rewright.cli.hints import did_you_mean
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, parse_placement, place
from rewright.ir.types import TensorType
from rewright.refine.relations.known import texts_of

Relation = str | list[str]
"""A placement or an equation, or a list: one placement per mesh axis, or equations that all hold."""


@dataclass(frozen=True)
class Relations:
    """What the user says of inputs and expects of outputs, by name pattern."""

    relations: dict[str, Relation] = field(default_factory=dict[str, Relation])
    expect: dict[str, Relation] = field(default_factory=dict[str, Relation])


def read_relations(path: Path) -> Relations:
    """Read the file; raises RewrightError for a missing file, bad TOML, an unknown table or value."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewrightError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RewrightError(f"{path} is no TOML: {error}; correct that line") from None
    for name, table in tables.items():
        if name not in ("relations", "expect") or not isinstance(table, dict):
            hint = did_you_mean(name, ["relations", "expect"])
            raise RewrightError(f"{path}: {name!r} is no table of a relations file; {hint}")
    return Relations(_table(path, tables, "relations"), _table(path, tables, "expect"))


def read_map(path: Path) -> dict[str, Relation]:
    """The table ``[relations]`` of a file with expressions over weights in place of placements; RewrightError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewrightError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RewrightError(f"{path} is no TOML: {error}; correct that line") from None
    table = tables.get("relations", {})
    if set(tables) - {"relations"} or not isinstance(table, dict):
        odd = next(iter(set(tables) - {"relations"}), "relations")
        raise RewrightError(f"{path}: {odd!r} is no table of a weight map; write [relations] only")
    for name, value in cast("dict[str, Any]", table).items():
        texts = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise RewrightError(f"{path}: relations.{name!r} is {value!r}; write an expression over weights")
    return cast("dict[str, Relation]", table)


def check_relations(
    path: Path, table: Mapping[str, Relation], tensors: Mapping[str, TensorType], mesh: Mesh, kind: str
) -> None:
    """Raise RewrightError for a pattern that no tensor of that kind has, and for a placement that does not fit."""
    for pattern, relation in table.items():
        matching = [name for name in tensors if fnmatchcase(name, pattern)]
        if not matching:
            hint = did_you_mean(pattern, tensors)
            raise RewrightError(f"{path}: no {kind} of the sequential program is named {pattern!r}; {hint}")
        if is_equation(relation):
            continue
        texts = texts_of(relation)
        for shape, name in {tensors[name].shape: name for name in matching}.items():
            try:
                place(shape, mesh, texts)
            except RewrightError as error:
                raise RewrightError(f"{path}: {kind} {name!r}: {error}") from None


def is_equation(relation: Relation) -> bool:
    """Whether a relation is stated by equations over rank tensors (``name@rank``), and not by placements."""
    return any("@" in text for text in ([relation] if isinstance(relation, str) else relation))


def _table(path: Path, tables: dict[str, Any], name: str) -> dict[str, Relation]:
    found: dict[str, Relation] = {}
    for pattern, value in cast("dict[str, Any]", tables.get(name, {})).items():
        entries = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not entries or not all(isinstance(entry, str) for entry in entries):
            raise RewrightError(
                f'{path}: {name}.{pattern!r} is {value!r}; write a placement such as "Shard(0)", an equation, or a list'
            )
        found[pattern] = cast("str | list[str]", value)
        if not is_equation(found[pattern]):
            for text in texts_of(found[pattern]):
                _check_placement(text, f"{path}: {name}.{pattern!r}")
    return found


def _check_placement(text: str, where: str) -> None:
    try:
        parse_placement(text)
    except RewrightError as error:
        raise RewrightError(f"{where}: {error}") from None
