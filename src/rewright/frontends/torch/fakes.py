"""Fake tensors: shapes and dtypes without memory, and sizes that are symbols."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.distributed.nn.functional as with_gradients
import torch.fx.experimental._config
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from rewright.ir.dims import SizeExpr
from rewright.ir.errors import CaptureError
from rewright.ir.sizes_in_text import parse_dim

Dynamic = Mapping[str, Mapping[int, str]]
"""Symbolic sizes by argument and axis: ``{"input_ids": {0: "batch", 1: "sequence"}}``.

A size may be a polynomial: ``"2*half"`` for an axis that two ranks split evenly.
"""

CPU = torch.device("cpu")

experimental_config: Any = torch.fx.experimental._config

SYMBOL_PREFIX = "s_"
"""PyTorch tells kinds of symbols by the first letters of their names; the lowering drops this prefix."""

_UNBOUNDED = 2**31

_HINTS = (6, 10, 14, 22, 26, 34, 38, 46)


def new_mode(symbolic: bool = False) -> FakeTensorMode:
    """A mode in which an operator without meta kernel is an error instead of a run on zeros."""
    return FakeTensorMode(
        allow_fallback_kernels=False,
        allow_non_fake_inputs=True,
        shape_env=ShapeEnv() if symbolic else None,
        static_shapes=not symbolic,
    )


def mode_of(values: Iterable[Any]) -> FakeTensorMode | None:
    """The mode of tensors with symbolic sizes, which must be kept; other fake tensors are made anew."""
    for value in values:
        if isinstance(value, FakeTensor) and any(isinstance(size, torch.SymInt) for size in value.shape):
            return value.fake_mode
    return None


def as_fake(
    value: torch.Tensor, mode: FakeTensorMode, shape: Iterable[Any] | None = None, device: torch.device | None = None
) -> torch.Tensor:
    """A fake tensor of the same shape, strides and dtype; real, meta and other fake tensors alike.

    It is on the given device, else where the tensor is: see ``device_of``.
    """
    device = device or device_of(value)
    if isinstance(value, FakeTensor) and value.fake_mode is mode and value.device == device and shape is None:
        return value.detach()
    with mode:
        if shape is not None:
            return torch.empty(tuple(shape), dtype=value.dtype, device=device)
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device)


def device_of(value: torch.Tensor) -> torch.device:
    """Where a tensor is, as programs ask for it (``x.is_cuda``); the CPU for a device that this machine has not.

    Fake tensors of such a device end the process in autograd.
    """
    return value.device if value.device.type == "cuda" and torch.cuda.is_available() else CPU


class Symbols:
    """Creates one symbolic size per name in a mode's shape environment, and reports what a trace assumed of them."""

    def __init__(self, mode: FakeTensorMode) -> None:
        assert mode.shape_env is not None
        self._environment: Any = mode.shape_env
        self._sizes: dict[str, Any] = {}

    def shape(self, name: str, value: torch.Tensor, dims: Mapping[int, str]) -> list[Any]:
        """The tensor's shape with some sizes replaced by symbols; raises CaptureError for an axis it has not."""
        for axis in dims:
            if not -value.dim() <= axis < value.dim():
                raise CaptureError(
                    f"{name!r} has {value.dim()} axes, and no axis {axis} to make symbolic; name another"
                )
        named = {axis % value.dim(): text for axis, text in dims.items()}
        return [self._polynomial(named[i]) if i in named else size for i, size in enumerate(value.shape)]

    def _polynomial(self, text: str) -> Any:
        try:
            size = parse_dim(text)
        except ValueError:
            raise CaptureError(
                f"{text!r} is no size; write a name such as batch, or a polynomial such as 2*half"
            ) from None
        if isinstance(size, int):
            return size
        return sum(count * math.prod(self._size(name) for name in monomial) for monomial, count in size.terms)

    def _size(self, name: str) -> Any:
        if name not in self._sizes:
            from torch._dynamo.source import ConstantSource  # a second of the processor, which few programs need

            # Distinct hints that no usual model constant equals, so that no accidental equality is taken for a fact.
            hint, source = _HINTS[len(self._sizes) % len(_HINTS)], ConstantSource(name)
            symbol = self._new_symbol(name, hint, source)
            self._sizes[name] = self._environment.create_symintnode(symbol, hint=hint, source=source)
        return self._sizes[name]

    def _new_symbol(self, name: str, hint: int, source: Any) -> Any:
        """A size symbol called ``s_<name>``: PyTorch tells kinds of symbols by the first letter of their names."""

        def unique(_: object) -> str:
            return f"_{name}"

        self._environment._generate_unique_id = unique
        try:
            return self._environment.create_symbol(hint, source, dynamic_dim=DimDynamic.DYNAMIC)
        finally:
            del self._environment._generate_unique_id

    def check(self) -> None:
        """Raise CaptureError where the program fixed a symbol to a number or to another symbol."""
        for name, size in self._sizes.items():
            found = self._environment.replace(size.node._expr)
            if str(found) != SYMBOL_PREFIX + name:
                value = str(found).replace(SYMBOL_PREFIX, "")
                if value == str(size.node.hint):  # the number that stands for the size while the program is read
                    value = "one number, as for a square root, a branch of Python, or the size of another tensor"
                raise CaptureError(
                    f"the program forces the symbolic size {name!r} to be {value}; make that axis a number, or remove "
                    "the code that depends on it"
                )


def derive_symbols(value: torch.Tensor, dims: Mapping[int, str]) -> None:
    """Compute each symbol from an axis that is a multiple of it, so that the tracer knows where it comes from."""
    for axis, text in dims.items():
        size = parse_dim(text)
        if isinstance(size, SizeExpr) and len(size.terms) == 1 and size.terms[0][1] > 1:
            _ = value.shape[axis] // size.terms[0][1]


def assumptions(mode: FakeTensorMode) -> tuple[str, ...]:
    """What a trace assumed of symbolic sizes: their bounds and the conditions it branched on, as text."""
    environment: Any = mode.shape_env
    if environment is None:
        return ()
    found: list[str] = []
    for symbol, bounds in environment.var_to_range.items():
        low, high = bounds.lower, bounds.upper
        found += [f"{symbol} >= {low}"] if low > 1 else []
        found += [f"{symbol} <= {high}"] if high < _UNBOUNDED else []
    found += [str(guard.expr) for guard in environment.guards]
    return tuple(sorted({text.replace(SYMBOL_PREFIX, "") for text in found}))


@contextmanager
def undecided_sizes() -> Generator[None]:
    """Where PyTorch asks for a mere preference about a symbolic size, it takes the general way and assumes nothing."""
    with experimental_config.patch(backed_size_oblivious=True):
        yield


@contextmanager
def compiling() -> Generator[None]:
    """Make ``torch.compiler.is_compiling()`` and ``is_exporting()`` true: models avoid data-dependent shortcuts.

    The collectives with gradients of ``torch.distributed.nn``, which newer PyTorch refuses to compile, are traced
    as they run; so is FSDP2, which PyTorch before 2.13 refuses to compile.
    """
    compiler = torch.compiler
    with ExitStack() as stack:
        for flag in ("_is_compiling_flag", "_is_exporting_flag"):
            stack.enter_context(mock.patch.object(compiler, flag, True))
        for name in ("_not_supported_under_compile", "_deprecated"):
            if hasattr(with_gradients, name):
                stack.enter_context(mock.patch.object(with_gradients, name))
        sharded = sys.modules.get("torch.distributed.fsdp._fully_shard._fsdp_state")
        if hasattr(sharded, "detect_compiled_autograd"):
            stack.enter_context(mock.patch.object(sharded, "detect_compiled_autograd"))
        yield
