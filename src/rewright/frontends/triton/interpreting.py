"""Kernels run by Triton's own interpreter on CPU tensors, in this process and without a GPU.

Places of loads and stores are checked: a kernel that reads or writes outside of the memory of its arguments is told.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from rewright.frontends.triton.conditions import compiled_conditions
from rewright.frontends.triton.launches import Compiled, Pointer, of_tensor, replaced_runs, run_tuned, tuners


class OutOfBounds(Exception):
    """A kernel reads or writes outside of the memory of its arguments, at a line of a file."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file, self.line = file, line


@contextmanager
def interpreted(*, zeros: bool = False) -> Generator[None]:
    """Launches inside run in the interpreter; nothing happens where Triton was not imported.

    With ``zeros`` a masked load that says nothing of other lanes gives zero there, and else what is no number.
    Functions that kernels call, Triton's own library among them, are interpreted too. Raises OutOfBounds.
    """
    if "triton.runtime.jit" not in sys.modules:
        yield
        return
    interpreter: Any = import_module("triton.runtime.interpreter")
    tuner: Any = import_module("triton.runtime.autotuner").Autotuner
    language: Any = import_module("triton.language")
    import_module("triton.compiler.code_generator")  # keeps functions of the language as it finds them
    known: dict[int, Any] = {}  # a hash of a function would parse it

    def of(function: Any) -> Any:
        if id(function) not in known:
            known[id(function)] = interpreter.InterpretedFunction(function.fn)
        return known[id(function)]

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Compiled:
        own: Any = grid if callable(grid) else tuple(grid)
        names = dict(zip(self.arg_names, args, strict=False)) | kwargs
        constants = {p.name for p in self.params if p.is_constexpr}
        names = {n: scalar(v) if type(v) is float and n not in constants else _memory(v) for n, v in names.items()}
        with _watched(self.fn.__name__, names, zeros), _library(self.fn):
            of(self).run(**names, grid=own, warmup=warmup)
        return Compiled(self, {name: names[name] for name in constants if name in names})

    def scalar(value: float) -> Any:
        """A float as the block of no axes that kernels are given, which the interpreter leaves a number of Python."""
        kind = interpreter._get_np_dtype(language.float32)
        handle = interpreter.TensorHandle(np.array([value], kind), language.float32)
        return language.tensor(handle, language.float32)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        function = of(self)
        scope = interpreter._patch_lang(function.fn)  # which a call by the interpreter itself leaves as it is
        args = tuple(language.constexpr(x) if isinstance(x, language.dtype) else x for x in args)  # as compiled ones
        try:
            with _library(function.fn):
                return function.rewrite()(*args, **kwargs)
        finally:
            scope.restore()

    jit: Any = import_module("triton.runtime.jit").JITFunction
    before, jit.__call__ = jit.__call__, call
    patched = interpreter._patch_lang
    visible = SimpleNamespace(
        __globals__={"tl": language, "core": language.core}
    )  # also to functions that do not name the language

    def patch(_: Any) -> Any:
        return patched(visible)

    interpreter._patch_lang = patch
    truncated = interpreter._convert_float

    def converted(data: Any, source: Any, target: Any, mode: Any) -> Any:
        towards_zero = mode is not None and mode == interpreter._ir.ROUNDING_MODE.RTZ
        known = _FLOATS.get(str(source)), _FLOATS.get(str(target))
        if known[0] is None or known[1] is None or towards_zero:
            return truncated(data, source, target, mode)
        return _nearest(data, known[0], known[1])

    interpreter._convert_float = converted
    try:
        with compiled_conditions(), replaced_runs([(jit, run), *((cls, run_tuned) for cls in tuners(tuner))]):
            yield
    finally:
        jit.__call__, interpreter._patch_lang, interpreter._convert_float = before, patched, truncated


_FLOATS = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _nearest(data: Any, source: torch.dtype, target: torch.dtype) -> Any:
    """The bits of the nearest floats of another type, as compilers have them; the interpreter cuts off bits.

    Those of 8 bits saturate.
    """
    signed = np.ascontiguousarray(data).reshape(-1).view(np.dtype(f"i{source.itemsize}"))
    floats = torch.as_tensor(signed).view(source)
    if target.itemsize == 1:
        most = torch.finfo(target).max
        floats = floats.float().clamp(-most, most)
    found = floats.to(target).view(_BITS[target.itemsize]).numpy()
    return found.view(np.dtype(f"u{target.itemsize}")).reshape(data.shape)


def _memory(value: Any) -> Any:
    """A tensor that begins where an object points that stands for one; anything else as it is."""
    found = of_tensor(value)
    if not isinstance(found, Pointer):
        return found
    return found.tensor.as_strided((1,), (1,), found.tensor.storage_offset() + found.offset)


class _Doubles(TorchFunctionMode):
    """Floats of 64 bits in the place of all others that a program names."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _CASTS:
            func, args = torch.Tensor.double, args[:1]
        wide = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64}
        given, named = tree_map_only(torch.dtype, lambda d: wide.get(d, d), (tuple(args), dict(kwargs or {})))
        return func(*given, **named)


_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


@contextmanager
def in_doubles() -> Generator[None]:
    """Kernels that are interpreted inside compute in doubles, and so does the program around them.

    What they give is then what they would give over real numbers, up to the numbers that are written in them.
    """
    language: Any = import_module("triton.language")
    before, kind = language.float32, torch.get_default_dtype()
    language.float32 = language.float64
    torch.set_default_dtype(torch.float64)
    try:
        with _Doubles():
            yield
    finally:
        language.float32 = before
        torch.set_default_dtype(kind)


_HOMES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")


def _by_torch(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        numbers: list[Any] = [torch.as_tensor(x) for x in args]
        found: Any = getattr(torch.special, name)(*numbers)
        return found.numpy()

    return function


def _round(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rsqrt": _rsqrt,
    "abs": np.abs,
    "pow": np.power,
    "cyl_bessel_i0": _by_torch("i0"),
    "cyl_bessel_i1": _by_torch("i1"),
    "lgamma": _by_torch("gammaln"),
    "round": _round,
    "nearbyint": np.rint,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "div_rn": np.divide,
    **{f"fdiv_{mode}": np.divide for mode in ("rn", "rz", "rd", "ru")},
    **{name: _by_torch(name) for name in ("erf", "erfc", "erfinv", "erfcx")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("acos", "asin", "atan", "atan2", "acosh", "asinh", "atanh")},
    **{
        name: getattr(np, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tanh", "ceil", "floor"),
            *("trunc", "rint", "isnan", "isinf", "fmod", "fmax", "fmin", "log10", "sinh", "cosh", "tan", "hypot"),
            *("copysign", "cbrt"),
        )
    },
}
"""Functions of CUDA's mathematical library, of which Triton has only the names outside of a GPU, by NumPy."""


@contextmanager
def _library(function: Any) -> Generator[None]:
    """The functions of the mathematical library that a kernel names, as ones that compute something."""
    names = function.__globals__
    before = [(n, v) for n, v in names.items() if getattr(v, "__module__", "") in _HOMES and callable(v)]
    homes: list[Any] = [import_module(name) for name in _HOMES]
    own = [(home, name, getattr(home, name)) for home in homes for name in _FUNCTIONS if hasattr(home, name)]
    for name, value in before:
        names[name] = _by_numpy(value.__name__)
    aliases = [(n, v) for n, v in names.items() if getattr(v, "__triton_builtin__", False) is True]
    before += aliases
    own_range = names.get("range")
    names["range"] = _counted
    for name, value in aliases:  # the interpreter knows those of the language by its own names
        names[name] = partial(_of_language, value.__name__)
    for home, name, _ in own:
        setattr(home, name, _by_numpy(name))
    try:
        yield
    finally:
        names.update(before)
        if own_range is None:
            del names["range"]
        else:
            names["range"] = own_range
        for home, name, value in own:
            setattr(home, name, value)


class _Count(int):
    """A number of an iteration, which compiled kernels have as a number of theirs, with its methods."""

    def to(self, dtype: Any, **_: Any) -> Any:
        """The number in another type."""
        interpreter: Any = import_module("triton.runtime.interpreter")
        return interpreter.interpreter_semantic.to_tensor(int(self)).to(dtype)


def _counted(*ends: Any) -> Iterator[_Count]:
    return map(_Count, range(*(end.__index__() for end in ends)))


def _of_language(name: str, *args: Any, **kwargs: Any) -> Any:
    language: Any = import_module("triton.language")
    return getattr(language, name)(*args, **kwargs)


def _by_numpy(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        if (known := _FUNCTIONS.get(name.removeprefix("fast_"))) is None:
            raise NotImplementedError(f"the interpreter has no {name}")
        interpreter: Any = import_module("triton.runtime.interpreter")
        args = tuple(x if hasattr(x, "handle") else interpreter.interpreter_semantic.to_tensor(x) for x in args)
        first = max(args, key=lambda x: len(getattr(x, "shape", ())))
        with np.errstate(all="ignore"):
            found = known(*(a.handle.data for a in args))
        if found.dtype == np.bool_:
            language: Any = import_module("triton.language")
            whole = language.block_type(language.int32, first.shape) if first.type.is_block() else language.int32
            return type(first)(interpreter.TensorHandle(found.astype(np.int32), language.int32), whole)
        found = found.astype(first.handle.data.dtype)
        return type(first)(interpreter.TensorHandle(found, first.handle.dtype), first.type)

    function.__name__, function.__module__ = name, _HOMES[0]
    return function


class _Checked:
    """The memory that the interpreter reads and writes: that of the arguments of a launch, and no other."""

    def __init__(self, kernel: str, memory: Any, builder: Any, arguments: Mapping[str, Any]) -> None:
        self._kernel, self._memory, self._builder = kernel, memory, builder
        given = [getattr(v, "base", v) for v in arguments.values()]  # of descriptors, the tensors
        storages = [v.untyped_storage() for v in given if isinstance(v, torch.Tensor)]
        self._ranges = {(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages}

    def load(self, places: Any, mask: Any, other: Any, dtype: Any) -> Any:
        self._check("reads", places, mask, np.dtype(dtype).itemsize)
        return self._memory.load(places, np.asarray(mask, bool), other, dtype)

    def store(self, places: Any, values: Any, mask: Any) -> Any:
        self._check("writes", places, mask, values.dtype.itemsize)
        return self._memory.store(places, values, np.asarray(mask, bool))

    def atomic_rmw(self, operation: Any, places: Any, values: Any, mask: Any, order: Any) -> Any:
        self._check("writes", places, mask, values.dtype.itemsize)
        return self._memory.atomic_rmw(operation, places, values, mask, order)

    def atomic_cas(self, places: Any, expected: Any, values: Any, order: Any) -> Any:
        self._check("writes", places, np.ones_like(places, dtype=bool), values.dtype.itemsize)
        return self._memory.atomic_cas(places, expected, values, order)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def _check(self, does: str, places: Any, mask: Any, size: int) -> None:
        found = np.asarray(places, np.int64)
        inside = np.zeros(found.shape, bool)
        for start, end in self._ranges:
            inside |= (found >= start) & (found + size <= end)
        wrong = np.asarray(mask, bool) & ~inside
        if wrong.any():
            lane = [int(n) for n in np.argwhere(wrong)[0]]
            instance = [int(n) for n in self._builder.grid_idx]
            file, line = _place()
            raise OutOfBounds(
                f"{self._kernel} {does} outside of the memory of its arguments at line {line}, instance {instance}, "
                f"lane {lane}",
                file,
                line,
            )


def _place() -> tuple[str, int]:
    """The line of the kernel that is being interpreted, and its file."""
    frame = inspect.currentframe()
    while frame is not None and ("/triton/" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _load(builder: Any, zeros: bool, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
    """A masked load, which gives no numbers, or zeros, where nothing says what it gives."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    if other is None:
        kind = ptrs.get_element_ty()
        dtype = interpreter._get_np_dtype(kind)
        nothing = (
            0
            if zeros
            else np.nan
            if np.issubdtype(dtype, np.floating)
            else np.iinfo(dtype).max
            if dtype != np.bool_
            else True
        )
        other = interpreter.TensorHandle(np.full_like(ptrs.data, nothing, dtype=dtype), kind)
    plain: Any = cast("Any", type(builder))
    return plain.create_masked_load(builder, ptrs, mask, other, *rest, **named)


@contextmanager
def _watched(kernel: str, arguments: Mapping[str, Any], zeros: bool) -> Generator[None]:
    """The interpreter with checks of what it reads and writes."""
    interpreter: Any = import_module("triton.runtime.interpreter")
    memory, builder = interpreter._interpreter, interpreter.interpreter_builder
    interpreter._interpreter = _Checked(kernel, memory, builder, arguments)
    builder.create_masked_load = partial(_load, builder, zeros)
    builder.create_int_to_ptr = _pointer_of_integer
    try:
        yield
    finally:
        interpreter._interpreter = memory
        del builder.create_masked_load, builder.create_int_to_ptr


def _pointer_of_integer(*_: Any) -> Any:
    raise NotImplementedError("a pointer is made of an integer, of which nobody knows where it leads")
