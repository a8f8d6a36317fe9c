"""What a front end is: the programs of one world as graphs, written in Python or kept in files.

A front end is a folder here whose ``__init__`` holds one value, and a line in ``registry``. Its functions are named by
text and imported when they are called, so that knowing of a front end costs nothing, and its library has to be there
only for its programs. What a front end does not offer is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from rewright.ir.errors import CaptureError, RewrightError
from rewright.packages import missing

_COMMON = frozenset({"backward", "validate"})
"""Options of all programs in Python: whether gradients are captured, and whether the capture is checked."""


@dataclass(frozen=True)
class Function:
    """A function by its place: ``"rewright.frontends.jax.capture:capture"``."""

    place: str

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Import and call it; raises RewrightError where a package is missing."""
        module, _, name = self.place.partition(":")
        try:
            function = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise RewrightError(missing((error.name or module).partition(".")[0], "capture")) from None
        return function(*arguments, **options)


@dataclass(frozen=True)
class Programs:
    """Programs in Python."""

    packages: tuple[str, ...]
    """Of whose objects programs and arguments are: ``("jax", "jaxlib")``."""
    capture: Callable[..., Any]
    """Of ``program, args, kwargs`` and options: a Graph."""
    capture_ranks: Callable[..., Any] | None = None
    """Of ``build, mesh`` and options: a RankProgram."""
    options: frozenset[str] = frozenset()
    """Those of ``rewright.capture`` and ``capture_ranks`` that it has, beside ``backward`` and ``validate``."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """What to say where one is given that it has not; others that it has not make no difference to its programs."""
    building: Callable[..., Any] | None = None
    """Gives a context under which programs are built."""

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of some options that this front end has; raises CaptureError for one that it refuses."""
        for name, value in options.items():
            if name in self.refused and value and value != "traced":
                raise CaptureError(self.refused[name].format(f"{name}={value!r}"))
        return {name: value for name, value in options.items() if name in self.options | _COMMON}


@dataclass(frozen=True)
class File:
    """The contents of a file, read when they are asked for; raises RewrightError where they cannot be."""

    path: str

    @cached_property
    def data(self) -> bytes:
        """All bytes."""
        return import_module("rewright.ir.files").read_bytes(self.path)

    @cached_property
    def text(self) -> str:
        """All text."""
        return import_module("rewright.ir.files").decode_text(self.data)

    @cached_property
    def json(self) -> Any:
        """The JSON value of a file that ends in ``.json`` or ``.json.gz``."""
        files = import_module("rewright.ir.files")
        return files.decode_json(files.read_text(self.path))


@dataclass(frozen=True)
class Files:
    """Programs in files, none of which runs code when it is read."""

    extensions: tuple[str, ...]
    read: Callable[..., Any]
    """Of ``file, devices, validate``: a Graph, or the RankProgram of all ranks."""
    read_ranks: Callable[..., Any] | None = None
    """Of ``files, validate``, where there is a file for each rank: the graphs of all."""
    write: Callable[..., Any] | None = None
    """Of ``program, path``."""
    knows: Callable[..., Any] | None = None
    """Whether a file is of this front end, where others have its ending; None where the ending says it all."""


@dataclass(frozen=True)
class Frontend:
    """One world of programs."""

    name: str
    programs: Programs | None = None
    files: Files | None = None
