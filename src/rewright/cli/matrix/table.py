"""The file that says which claims there are: tables ``[models]``, ``[meshes]`` and ``[versions]``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

from rewright.cli.hints import did_you_mean
from rewright.cli.meshes import parse_mesh
from rewright.ir.errors import RewrightError

_TABLES = ("models", "meshes", "versions")
_MODEL = ("sequential", "distributed", "relations", "backward", "symbolic", "meshes", "versions", "budget")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NO_MESH = ""
"""Files of ranks know their mesh: where there is no table of meshes, there is one claim for each model."""


@dataclass(frozen=True)
class Task:
    """One claim: plain values, which travel to any process."""

    name: str
    model: str
    mesh: str
    version: str
    folder: str
    """Where the files of the version are."""
    sequential: str
    distributed: tuple[str, ...]
    axes: tuple[tuple[str, int], ...] = ()
    relations: str = ""
    backward: bool = False
    symbolic: tuple[str, ...] = ()
    budget: float | None = None
    audit: bool | None = None
    allow_vacuous: bool = False
    require_collectives: bool = False
    cache: str = ""
    """The folder with what was proved before; empty for none."""


def read_tasks(path: Path) -> list[Task]:
    """All claims of a file, model by model; raises RewrightError naming the entry that is wrong."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewrightError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RewrightError(f"{path} is no TOML: {error}; correct that line") from None
    for name, table in tables.items():
        if name in _TABLES and not isinstance(table, dict):
            raise RewrightError(f"{path}: {name} is {table!r}, and has to be tables; write [{name}.name]")
        if name not in _TABLES:
            raise RewrightError(f"{path}: {name!r} is no table of a matrix; {did_you_mean(name, _TABLES)}")
    models = cast("dict[str, Any]", tables.get("models", {}))
    if not models:
        raise RewrightError(f"{path} names no model; add [models.name] with sequential and distributed programs")
    meshes = {name: _axes(path, name, text) for name, text in tables.get("meshes", {}).items()} or {_NO_MESH: ()}
    versions = {name: _folder(path, name, v) for name, v in tables.get("versions", {}).items()} or {"": path.parent}
    found: list[Task] = []
    for name, model in models.items():
        found.extend(_claims(path, name, model, meshes, versions))
    return found


def _claims(
    path: Path,
    name: str,
    model: object,
    meshes: Mapping[str, tuple[tuple[str, int], ...]],
    versions: Mapping[str, Path],
) -> list[Task]:
    where = f"{path}: models.{name}"
    if not isinstance(model, dict):
        raise RewrightError(f"{where} is no table; write [models.{name}] with sequential and distributed programs")
    entries = cast("dict[str, Any]", model)
    for entry in entries:
        if entry not in _MODEL:
            raise RewrightError(f"{where}: {entry!r} says nothing of a model; {did_you_mean(entry, _MODEL)}")
    given = entries.get("distributed", "")
    distributed = _texts(f"{where}.distributed", [given] if isinstance(given, str) else given)
    sequential = _texts(f"{where}.sequential", [entries.get("sequential", "")])[0]
    budget = entries.get("budget")
    if budget is not None and (not isinstance(budget, int | float) or isinstance(budget, bool) or budget <= 0):
        raise RewrightError(f"{where}.budget is {budget!r}; give a number of seconds above zero")
    if not isinstance(entries.get("backward", False), bool):
        raise RewrightError(f"{where}.backward is {entries['backward']!r}; write true or false")
    relations = entries.get("relations", "")
    if not isinstance(relations, str):
        raise RewrightError(f"{where}.relations is {relations!r}; name a file of relations")
    symbolic = _texts(f"{where}.symbolic", entries.get("symbolic", []), empty=True)
    found: list[Task] = []
    chosen = _choose(f"{where}.meshes", entries.get("meshes"), meshes)
    for mesh, version in product(chosen, _choose(f"{where}.versions", entries.get("versions"), versions)):
        words = {"mesh": mesh, "model": name, "version": version, "ranks": str(_ranks(meshes[mesh]))}
        found.append(
            Task(
                name=" / ".join(part for part in (name, mesh, version) if part),
                model=name,
                mesh=mesh,
                version=version,
                folder=str(versions[version].resolve()),
                sequential=_put_words(f"{where}.sequential", sequential, words),
                distributed=tuple(_put_words(f"{where}.distributed", text, words) for text in distributed),
                axes=meshes[mesh],
                relations=_put_words(f"{where}.relations", relations, words),
                backward=entries.get("backward", False),
                symbolic=tuple(symbolic),
                budget=None if budget is None else float(budget),
            )
        )
    return found


def _ranks(axes: tuple[tuple[str, int], ...]) -> int:
    total = 1
    for _, size in axes:
        total *= size
    return total


def _texts(where: str, found: object, empty: bool = False) -> list[str]:
    entries = cast("list[object]", found) if isinstance(found, list) else [found]
    if not empty and not any(entries):
        raise RewrightError(f'{where} is missing; give a text, for example "model.py:function", or a list of them')
    if not (entries or empty) or not all(isinstance(entry, str) and entry for entry in entries):
        raise RewrightError(f'{where} is {found!r}; write a text, for example "model.py:function", or a list of them')
    return [str(entry) for entry in entries]


def _put_words(where: str, text: str, words: Mapping[str, str]) -> str:
    """The text with ``{mesh}``, ``{version}``, ``{model}`` and ``{ranks}`` filled in."""

    def word(found: re.Match[str]) -> str:
        if found[1] not in words:
            raise RewrightError(f"{where}: {text!r} has a name in braces that is none of {', '.join(words)}")
        return words[found[1]]

    return _BRACES.sub(word, text)


def _choose(where: str, names: object, known: Mapping[str, object]) -> list[str]:
    if names is None:
        return list(known)
    chosen = _texts(where, names)
    for name in chosen:
        if name not in known:
            raise RewrightError(f"{where}: there is no {name!r}; {did_you_mean(name, known)}")
    return chosen


def _axes(path: Path, name: str, text: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(text, str):
        raise RewrightError(f'{path}: meshes.{name} is {text!r}; write axes and sizes, for example "tp=8"')
    try:
        return tuple(parse_mesh(text).items())
    except RewrightError as error:
        raise RewrightError(f"{path}: meshes.{name}: {error}") from None


def _folder(path: Path, name: str, text: object) -> Path:
    folder = path.parent / text if isinstance(text, str) else None
    if folder is None or not folder.is_dir():
        raise RewrightError(f"{path}: versions.{name} is {text!r}, which is no folder; name one, as seen from the file")
    return folder
