"""Fake tensors: shapes and dtypes without memory, and sizes that are symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from rewright.ir.errors import CaptureError

Dynamic = Mapping[str, Mapping[int, str]]
"""Names of symbolic sizes: ``{"input_ids": {0: "batch", 1: "sequence"}}``."""

SYMBOL_PREFIX = "s_"
"""PyTorch tells kinds of symbols by the first letters of their names; the lowering drops this prefix."""

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


def as_fake(value: torch.Tensor, mode: FakeTensorMode, shape: Iterable[Any] | None = None) -> torch.Tensor:
    """A fake CPU tensor of the same shape, strides and dtype; real, meta and other fake tensors alike.

    Fake CUDA tensors end the process in autograd on a build without CUDA, hence always the CPU.
    """
    if isinstance(value, FakeTensor) and value.fake_mode is mode and value.device.type == "cpu" and shape is None:
        return value.detach()
    with mode:
        if shape is not None:
            return torch.empty(tuple(shape), dtype=value.dtype, device="cpu")
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="cpu")


class Symbols:
    """Creates one symbolic size per name in a mode's shape environment, and reports what a trace assumed of them."""

    def __init__(self, mode: FakeTensorMode) -> None:
        assert mode.shape_env is not None
        self._environment: ShapeEnv = mode.shape_env
        self._sizes: dict[str, torch.SymInt] = {}

    def shape(self, name: str, value: torch.Tensor, dims: Mapping[int, str]) -> list[Any]:
        """The tensor's shape with some sizes replaced by symbols; raises CaptureError for an axis it has not."""
        for axis in dims:
            if not -value.dim() <= axis < value.dim():
                raise CaptureError(f"{name!r} has {value.dim()} axes and no axis {axis} to make symbolic; name one it has")
        named = {axis % value.dim(): symbol for axis, symbol in dims.items()}
        return [self._size(named[i]) if i in named else size for i, size in enumerate(value.shape)]

    def _size(self, name: str) -> torch.SymInt:
        if name not in self._sizes:
            if not name.isidentifier():
                raise CaptureError(f"{name!r} cannot name a symbolic size; use a Python identifier")
            # Distinct hints that no usual model constant equals, so that no accidental equality is taken for a fact.
            hint, source = _HINTS[len(self._sizes) % len(_HINTS)], ConstantSource(name)
            symbol = self._new_symbol(name, hint, source)
            self._sizes[name] = cast("torch.SymInt", self._environment.create_symintnode(symbol, hint=hint, source=source))
        return self._sizes[name]

    def _new_symbol(self, name: str, hint: int, source: ConstantSource) -> sympy.Symbol:
        """A size symbol called ``s_<name>``: PyTorch tells kinds of symbols by the first letter of their names."""
        environment: Any = self._environment
        environment._generate_unique_id = lambda _: f"_{name}"
        try:
            return environment.create_symbol(hint, source, dynamic_dim=DimDynamic.DYNAMIC)
        finally:
            del environment._generate_unique_id

    def assumptions(self) -> list[str]:
        """What the trace assumed of the symbols, as text; raises CaptureError where one was fixed to a number."""
        for name, size in self._sizes.items():
            if not self._environment.replace(size.node._expr).free_symbols:
                raise CaptureError(
                    f"the program forces the symbolic size {name!r} to be {self._environment.replace(size.node._expr)}; "
                    "make that axis a number, or remove the code that depends on it"
                )
        return sorted({str(guard.expr).replace(SYMBOL_PREFIX, "") for guard in self._environment.guards})


@contextmanager
def compiling() -> Iterator[None]:
    """Make ``torch.compiler.is_compiling()`` and ``is_exporting()`` true, so that models avoid data-dependent shortcuts."""
    saved = torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag
    torch.compiler._is_compiling_flag = torch.compiler._is_exporting_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag = saved
