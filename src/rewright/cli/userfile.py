"""Functions in the user's own Python files, named ``path/to/file.py:function``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from rewright.cli.hints import did_you_mean
from rewright.ir.errors import RewrightError
from rewright.packages import missing, no_gpu


@dataclass(frozen=True)
class UserFunction:
    """A function of a file, found but not called yet."""

    path: Path
    name: str
    function: Callable[..., Any]

    def __call__(self, *args: Any, **fields: Any) -> tuple[Any, Sequence[Any], dict[str, Any]]:
        """Call it; it must return ``(module, args)`` or ``(module, args, kwargs)``. Raises RewrightError.

        Arguments that are a dictionary are keyword arguments; ``fields`` are those of a configuration.
        """
        self._check_arguments(args)
        with user_code(self.path, f"running {self.name}"):
            result = self.function(*args, **fields)
        if not _is_program(result):
            wanted = "return (module, args), or (module, args, kwargs)"
            raise RewrightError(f"{self.path.name}: {self.name} returned {_kind(result)}; {wanted}")
        module, given, *rest = cast("tuple[Any, ...]", result)
        if isinstance(given, dict):
            return module, (), cast("dict[str, Any]", given)
        return module, given, rest[0] if rest else {}

    def fields(self) -> dict[str, Any]:
        """Its parameters that have a default: the fields of a configuration."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    def _check_arguments(self, args: Sequence[Any]) -> None:
        """Raise RewrightError where the function is one of ranks and no mesh is given, or the other way round."""
        try:
            signature = inspect.signature(self.function)
        except ValueError:  # a builtin says nothing of its parameters
            return
        try:
            signature.bind(*args)
        except TypeError:
            needed = [p for p in signature.parameters.values() if p.default is p.empty]
            alone = "give its ranks with --mesh tp=8" if len(needed) == 1 else "give each parameter a default"
            wanted = f"write {self.name}(mesh), or leave --mesh out" if args else alone
            called = "with the mesh" if args else "without arguments"
            raise RewrightError(f"{self.path.name}: {self.name}{signature} is called {called}; {wanted}") from None


def is_function_name(text: str) -> bool:
    """Whether an argument names a function of a Python file and not a graph file."""
    return text.endswith(".py") or text.rpartition(":")[0].endswith(".py")


def find_function(text: str) -> UserFunction:
    """Import the file and look the function up; raises RewrightError with the line that went wrong."""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py"):
        example = f"{text}:function" if text.endswith(".py") else "file.py:function"
        raise RewrightError(f"{text} names no function of a Python file; write {example}")
    path = Path(file)
    if not path.is_file():
        raise RewrightError(f"there is no file {file}; check the path")
    module = _import(path)
    function = getattr(module, name, None)
    if not callable(function):
        own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        raise RewrightError(f"{file} has no function {name!r}; {did_you_mean(name, own)}")
    return UserFunction(path, name, function)


def load_module(path: Path) -> ModuleType:
    """Run a Python file as a module; raises RewrightError with the line that went wrong."""
    if not path.is_file():
        raise RewrightError(f"there is no file {path}; check the path")
    return _import(path)


def _import(path: Path) -> ModuleType:
    """Run the file as a module, with its folder on the path as ``python file.py`` has it."""
    name = f"_rewright_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[name] = module
    with user_code(path, "importing"):
        spec.loader.exec_module(module)
    return module


@contextmanager
def user_code(path: Path, doing: str) -> Generator[None]:
    """Run the user's code: whatever it raises becomes one RewrightError that names the line.

    What it prints goes to stderr, because stdout is for the report.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except RewrightError:
        raise
    except SyntaxError as error:
        where = Path(error.filename).name if error.filename else path.name
        raise RewrightError(f"{doing} {where} stopped at line {error.lineno}: {error.msg}; correct the file") from None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
        where = f"{path.name}:{lines[-1]}" if lines else path.name
        if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("rewright"):
            raise RewrightError(missing(error.name.partition(".")[0], f"{doing} {where}")) from None
        first = next(iter(str(error).splitlines()), "")
        what = f"{type(error).__name__}: {first}" if first else type(error).__name__
        raise RewrightError(f"{doing} stopped at {where}: {what}; {no_gpu(first) or 'correct the file'}") from None


def _is_program(value: object) -> bool:
    """Whether a value is ``(callable, sequence)`` or ``(callable, sequence, dict)``."""
    if not isinstance(value, tuple):
        return False
    parts = cast("tuple[Any, ...]", value)
    kinds = ((tuple, list, dict), dict)
    return len(parts) in (2, 3) and callable(parts[0]) and all(map(isinstance, parts[1:], kinds))


def _kind(value: object) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(type(part).__name__ for part in cast('tuple[Any, ...]', value)) or 'nothing'}"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
