"""Which functions a program runs, and which of them depend on more than they are given."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any, cast

from rewright.optimize.calls.asking import Asking
from rewright.optimize.calls.tensors import can_ask, is_told

_OF_TORCH = (
    "torchgen",
    "functorch",
    "opt_einsum",
    "sympy",
    "mpmath",
    "networkx",
    "tqdm",
    "filelock",
    "typing_extensions",
)
INSTALLED = frozenset({"torch", "numpy", "einops", "rewright", *_OF_TORCH, *sys.stdlib_module_names})
"""PyTorch with what it uses, einops, Python: functions and classes that do not change, nor keep a state to be read."""
PURE = frozenset(
    {
        *(
            "torch",
            "numpy",
            "einops",
            "rewright",
            "math",
            "cmath",
            "operator",
            "_operator",
            "itertools",
            "functools",
            "_functools",
        ),
        *("collections", "_collections", "_collections_abc", "abc", "_abc", "copy", "copyreg", "enum", "dataclasses"),
        *("typing", "types", "contextlib", "warnings", "_warnings", "logging", "inspect", "re", "string", "numbers"),
        *("fractions", "decimal", "bisect", "_bisect", "heapq", "_heapq", "struct", "_struct", "textwrap", "weakref"),
        *("builtins", "importlib", "_weakref", "opt_einsum", "torchgen", "reprlib", "statistics"),
    }
)
"""Packages whose functions give what their arguments make of them; of another one nothing is known."""
IMPURE = frozenset(
    {"input", "open", "print", "id", "hash", "breakpoint", "is_grad_enabled", "is_inference_mode_enabled"}
)
"""Functions of these packages that do more: they ask, tell, or look at what a capture sets."""
GLOBAL = cast("object", random.random.__self__)
"""The generator of Python's own random numbers."""
_IMPORTS = "<frozen importlib._bootstrap>"


@dataclass
class Ran:
    """The code that a program ran, with the globals that it sees."""

    codes: dict[int, tuple[CodeType, dict[str, Any]]] = field(default_factory=dict[int, Any])
    asked: tuple[str, ...] = ()
    """What it asked tensors for beside their values, as :class:`Asking` names it; filled in once it ran."""
    unseen: set[int] = field(default_factory=set[int])
    """Its own code that ran where its questions were not seen."""
    unknown: str = ""
    """The first called function whose dependencies are unknown."""

    def __contains__(self, code: CodeType) -> bool:
        return id(code) in self.codes

    @cached_property
    def own(self) -> list[tuple[CodeType, dict[str, Any]]]:
        """The code that is not of an installed package, once it ran."""
        return [(code, scope) for code, scope in self.codes.values() if not is_installed(scope.get("__name__"))]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names and texts that occur in it, once it ran: what it may read by a name."""
        return _names(code for code, _ in self.own)

    def asks(self, names: Collection[str]) -> None:
        """What it asked tensors for; what its code names, where that ran unseen."""
        hidden = "DisableTorchFunction" in self.names
        unseen = self.names if hidden else _names(self.codes[key][0] for key in self.unseen)
        self.asked = tuple(sorted(n for n in {*names, *unseen} if can_ask(n) and not is_told(n)))
        odd = sorted(n for n in names if not can_ask(n))
        if odd and not self.unknown:
            self.unknown = f"it asks a tensor for {odd[0]}, of which nothing says what it depends on"

    def note(self, frame: FrameType, called: str, package: str) -> None:
        """A function that the program itself calls."""
        name = called.rpartition(".")[2]
        if (package.partition(".")[0] in PURE and name not in IMPURE) or self.unknown:
            return
        where = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        self.unknown = f"it calls {package}.{called} at {where}, which depends on, or does, more than it is given"


def _names(codes: Iterable[CodeType]) -> frozenset[str]:
    found: set[str] = set()
    for code in codes:
        found.update(code.co_names)
        found.update(text for text in code.co_consts if isinstance(text, str))
    return frozenset(found)


def is_installed(name: object) -> bool:
    """Whether a module is of a package that does not change."""
    return str(name).partition(".")[0] in INSTALLED


@contextmanager
def recording(ran: Ran) -> Generator[None]:
    """Record what runs inside of the block on this thread."""
    codes, own, before, importing = ran.codes, set[int](), sys.getprofile(), 0
    asking = Asking()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal importing
        if event in ("call", "return") and frame.f_code.co_filename == _IMPORTS:
            importing += (1 if event == "call" else -1) * (frame.f_code.co_name == "_find_and_load")
        elif importing:
            return  # what a module does when it is first imported is no part of a call
        elif event == "call":
            code = frame.f_code
            outer = frame.f_back
            key = id(code)
            if key not in codes:
                codes[key] = code, frame.f_globals
                if not is_installed(frame.f_globals.get("__name__")):
                    own.add(key)
            if asking.is_away and key in own:
                ran.unseen.add(key)
            if key not in own and outer is not None and id(outer.f_code) in own:
                ran.note(outer, code.co_name, str(frame.f_globals.get("__name__")))
        elif event == "c_call" and id(frame.f_code) in own:
            package = _package(argument)
            if package:
                ran.note(frame, getattr(argument, "__name__", ""), package)

    drawn = random.getstate()
    collects = gc.isenabled()
    gc.disable()  # what is deleted meanwhile runs code of its own
    try:
        with asking:
            sys.setprofile(profile)
            try:
                yield
            finally:
                sys.setprofile(before)
    finally:
        if collects:
            gc.enable()
        ran.asks(asking.names)
        if random.getstate() != drawn and not ran.unknown:  # also where C calls it, as ``partial(random.random)()``
            ran.unknown = "it draws random numbers of Python's"


def _package(function: object) -> str:
    """The package of a C function that belongs to no object; those of objects depend on these."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type):
        return owner.__module__
    if isinstance(owner, random.Random):
        return "random"
    if isinstance(function, BuiltinFunctionType) and getattr(function, "__module__", None):
        return str(function.__module__)
    return ""
