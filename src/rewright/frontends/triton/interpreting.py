"""Kernels run by Triton's own interpreter on CPU tensors, in this process and without a GPU.

What lies around the memory of an argument is watched: a kernel that writes there is told, and one that reads there
reads values that are no numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import torch

_MARGIN = 1 << 16
"""Bytes before and behind the memory of an argument that are watched."""
_FILLING = 0xFF
"""The bytes there: no number, read as any float; minus one, read as an integer."""


class OutOfBounds(Exception):
    """A kernel wrote outside of the memory of its arguments."""


@contextmanager
def interpreted() -> Generator[None]:
    """Launches inside run in the interpreter; nothing happens where Triton was not imported.

    Functions that kernels call, Triton's own library among them, are interpreted too. Raises OutOfBounds.
    """
    if "triton.runtime.jit" not in sys.modules:
        yield
        return
    interpreter: Any = import_module("triton.runtime.interpreter")
    tuner: Any = import_module("triton.runtime.autotuner").Autotuner
    known: dict[int, Any] = {}  # a hash of a function would parse it

    def of(function: Any) -> Any:
        if id(function) not in known:
            known[id(function)] = interpreter.InterpretedFunction(function.fn)
        return known[id(function)]

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        own: Any = grid if callable(grid) else tuple(grid)
        names = dict(zip(self.arg_names, args, strict=False)) | kwargs
        constants = {p.name for p in self.params if p.is_constexpr}
        names = {n: scalar(v) if type(v) is float and n not in constants else v for n, v in names.items()}
        with _watched(self.fn.__name__, names) as moved, _library(self.fn):
            of(self).run(**moved, grid=own, warmup=warmup)

    def scalar(value: float) -> Any:
        """A float as the block of no axes that kernels are given, which the interpreter leaves a number of Python."""
        language: Any = import_module("triton.language")
        handle = interpreter.TensorHandle(np.array([value], np.float32), language.float32)
        return language.tensor(handle, language.float32)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        function = of(self)
        scope = interpreter._patch_lang(function.fn)  # which a call by the interpreter itself leaves as it is
        try:
            with _library(function.fn):
                return function.rewrite()(*args, **kwargs)
        finally:
            scope.restore()

    def run_tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.fn.run(*args, **{**kwargs, **self.configs[0].kwargs})

    jit: Any = import_module("triton.runtime.jit").JITFunction
    before = jit.run, jit.__call__, tuner.run
    jit.run, jit.__call__, tuner.run = run, call, run_tuned
    try:
        yield
    finally:
        jit.run, jit.__call__, tuner.run = before


_HOME = "triton.language.extra.libdevice"
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "abs": np.abs,
    "pow": np.power,
    "erf": lambda x: torch.erf(torch.from_numpy(np.asarray(x))).numpy(),
    **{
        name: getattr(np, name)
        for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "ceil", "floor")
    },
}
"""Functions of CUDA's mathematical library, of which Triton has only the names outside of a GPU, by NumPy."""


@contextmanager
def _library(function: Any) -> Generator[None]:
    """The functions of the mathematical library that a kernel names, as ones that compute something."""
    names, home = function.__globals__, import_module(_HOME)
    before = [(n, v) for n, v in names.items() if getattr(v, "__module__", "") == _HOME and callable(v)]
    own = {name: getattr(home, name) for name in _FUNCTIONS if hasattr(home, name)}
    for name, value in before:
        names[name] = _by_numpy(value.__name__)
    for name in own:
        setattr(home, name, _by_numpy(name))
    try:
        yield
    finally:
        names.update(before)
        for name, value in own.items():
            setattr(home, name, value)


def _by_numpy(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        if (known := _FUNCTIONS.get(name.removeprefix("fast_"))) is None:
            raise NotImplementedError(f"the interpreter has no {name}")
        interpreter: Any = import_module("triton.runtime.interpreter")
        first = args[0]
        with np.errstate(all="ignore"):
            found = known(*(a.handle.data for a in args)).astype(first.handle.data.dtype)
        return type(first)(interpreter.TensorHandle(found, first.handle.dtype), first.type)

    function.__name__, function.__module__ = name, _HOME
    return function


@contextmanager
def _watched(kernel: str, arguments: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """The arguments with their tensors in memory that has margins, copied back at the end."""
    memory: dict[int, tuple[torch.Tensor, torch.UntypedStorage, str]] = {}
    moved: dict[str, Any] = {}
    for name, value in arguments.items():
        if not isinstance(value, torch.Tensor):
            moved[name] = value
            continue
        storage = value.untyped_storage()
        if storage.data_ptr() not in memory:
            size = storage.nbytes()
            watched = torch.full((size + 2 * _MARGIN,), _FILLING, dtype=torch.uint8)
            watched[_MARGIN : _MARGIN + size] = torch.tensor([], dtype=torch.uint8).set_(storage)
            memory[storage.data_ptr()] = watched, storage, name
        watched = memory[storage.data_ptr()][0]
        offset = _MARGIN // value.element_size() + value.storage_offset()
        moved[name] = torch.empty(0, dtype=value.dtype).set_(
            watched.untyped_storage(), offset, value.size(), value.stride()
        )
    yield moved
    for watched, storage, name in memory.values():
        size = storage.nbytes()
        if not (bool((watched[:_MARGIN] == _FILLING).all()) and bool((watched[_MARGIN + size :] == _FILLING).all())):
            raise OutOfBounds(f"{kernel} writes outside of the memory of its argument {name}")
        torch.tensor([], dtype=torch.uint8).set_(storage).copy_(watched[_MARGIN : _MARGIN + size])
