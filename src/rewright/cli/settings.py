"""``[tool.rewright.COMMAND]`` of a ``pyproject.toml``: options that a project would repeat on every call.

The file is that of the working folder, or of the nearest folder above it that has one. What is typed counts more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from rewright.cli.hints import did_you_mean
from rewright.ir.errors import RewrightError

FILE = "pyproject.toml"
_TABLE = "rewright"
_OF_CLAIMS = ("mesh", "relations", "symbolic", "certificate", "backward", "explain", "no-explain")
"""What the file of a matrix says for each of its claims."""
_MATRIX, _WATCH = "matrix", "watch"


def settings(
    function: Callable[..., Any], verb: str, arguments: Collection[str], folder: Path | None = None
) -> dict[str, Any]:
    """The defaults of a command, by the name of its parameter, as click's ``default_map`` has them.

    Args:
        function: the command.
        verb: its name.
        arguments: what is typed; with ``--matrix`` what is said of each claim is left to its file.
        folder: where to look, by default the working folder.

    Raises RewrightError for a file that is no TOML, and for names that are no options of the command.
    """
    path = _nearest(folder or Path.cwd())
    table: Mapping[str, Any] = {} if path is None else _table(path)
    own: Any = table.get(verb)
    if path is None or not own:
        return {}
    if not isinstance(own, Mapping):
        raise RewrightError(f"{path}: [tool.{_TABLE}] {verb} is {own!r}; write [tool.{_TABLE}.{verb}]")
    options = _options(function)
    options.pop(_WATCH, None)  # it starts the command again and again, each of which would read it here
    claims = _MATRIX in own or any(text.split("=")[0] == f"--{_MATRIX}" for text in arguments)
    found: dict[str, Any] = {}
    for name, value in cast("Mapping[str, Any]", own).items():
        if name not in options:
            hint = did_you_mean(name, list(options))
            raise RewrightError(f"{path}: {name!r} in [tool.{_TABLE}.{verb}] is no option of rewright {verb}; {hint}")
        option = options[name]
        if claims and name in _OF_CLAIMS:
            continue
        is_relative = option.is_path and isinstance(value, str) and not Path(value).is_absolute()
        found[option.parameter] = not value if option.is_off else str(path.parent / value) if is_relative else value
    return {verb: found}


def _nearest(folder: Path) -> Path | None:
    return next((path for f in (folder, *folder.parents) if (path := f / FILE).is_file()), None)


def _table(path: Path) -> Mapping[str, Any]:
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewrightError(f"cannot read {path}: {error.strerror}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RewrightError(f"{path} is no TOML: {error}; correct that line") from None
    tool: Any = found.get("tool")
    own: Any = cast("dict[str, Any]", tool).get(_TABLE, {}) if isinstance(tool, dict) else {}
    if not isinstance(own, dict):
        raise RewrightError(f"{path}: tool.{_TABLE} is {own!r}; write a table for each command, [tool.{_TABLE}.refine]")
    return cast("Mapping[str, Any]", own)


@dataclass(frozen=True)
class _Option:
    """What an option is of: a parameter, whether that is a path, and whether the option says no."""

    parameter: str
    is_path: bool
    is_off: bool


def _options(function: Callable[..., Any]) -> dict[str, _Option]:
    """The options of a command by their names without dashes."""
    found: dict[str, _Option] = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        inner, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        info: Any = next((note for note in notes if type(note).__name__ == "OptionInfo"), None)
        if info is None:
            continue
        is_path = inner is Path or Path in get_args(inner)
        # What is annotated has its first name where a default would be.
        names = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
        declared = [text for text in names if text.startswith("--")] or [f"--{name.replace('_', '-')}"]
        for on, _, off in (text.partition("/") for text in declared):
            found[on.removeprefix("--")] = _Option(name, is_path, False)
            if off:
                found[off.removeprefix("--")] = _Option(name, is_path, True)
    return found
