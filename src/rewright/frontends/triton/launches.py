"""Launches of Triton kernels inside of PyTorch functions, as calls of one operator that tracers see.

``rewright::launch`` holds all that a launch is: the kernel's TTIR, its tensors and how they lie, sizes, numbers and
the grid. It gives what the tensors hold afterwards that the kernel writes to, which are copied into them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from rewright.frontends.torch.scalars import number_in
from rewright.frontends.triton.compiling import ttir_of
from rewright.frontends.triton.text import Block, Function, parse_module
from rewright.ir.errors import CaptureError

NAME = "rewright.launch.default"
_SCHEMA = (
    "launch(str ttir, str kinds, Tensor[] tensors, int[] memories, SymInt[] strides, SymInt[] sizes, float[] numbers,"
    " Tensor[] read, SymInt[] grid, int[] written) -> Tensor[]"
)
_library: Any = torch.library.Library("rewright", "FRAGMENT")
_library.define(_SCHEMA)


@torch.library.impl(_library, "launch", "Meta")
def _launch(
    ttir: str,
    kinds: str,
    tensors: list[Any],
    memories: list[int],
    strides: Any,
    sizes: Any,
    numbers: Any,
    read: Any,
    grid: Any,
    written: list[int],
) -> list[torch.Tensor]:
    return [torch.empty_like(tensors[n], memory_format=torch.contiguous_format) for n in written]


@contextmanager
def intercepted() -> Generator[None]:
    """Launches inside become calls of the operator; nothing happens where Triton was not imported."""
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None:
        yield
        return
    tuner: Any = sys.modules.get("triton.runtime.autotuner")
    classes: list[tuple[Any, Any]] = [(jit.JITFunction, _run)]
    if tuner is not None:
        classes += [(tuner.Autotuner, _run_tuned), (tuner.Heuristics, _run_by_values)]
    before = [(cls, cls.run) for cls, _ in classes]
    for cls, run in classes:
        cls.run = run
    try:
        yield
    finally:
        for cls, run in before:
            cls.run = run


def _run_tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The first configuration: which of them runs is not part of what a kernel computes."""
    config = self.configs[0]
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return self.fn.run(*args, **{**kwargs, **config.kwargs, **options})


def _run_by_values(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Constants that are computed from the other arguments."""
    given = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
    return self.fn.run(*args, **{**kwargs, **{name: value(given) for name, value in self.values.items()}})


def _run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
    """A launch of a ``@triton.jit`` function."""
    own = {name: value for name, value in kwargs.items() if name in self.arg_names}
    bound = inspect.signature(self.fn).bind(*args, **own)
    bound.apply_defaults()
    arguments = {
        name: getattr(value, "value", value) if _is_constant(value) else value
        for name, value in bound.arguments.items()
    }
    sizes: Any = grid({**arguments, **kwargs}) if callable(grid) else grid
    launch(ttir_of(self, arguments), arguments, (sizes,) if isinstance(sizes, int | torch.SymInt) else tuple(sizes))


def _is_constant(value: object) -> bool:
    return type(value).__name__ == "constexpr"


def launch(ttir: str, arguments: Mapping[str, Any], grid: Sequence[Any]) -> None:
    """Record a launch of a kernel, and write what it leaves into the tensors that it writes to."""
    kernel = parse_module(ttir).kernel
    names = [name.lstrip("%") for name, _ in kernel.body.arguments]
    given = [arguments[name] for name in names]
    kinds, tensors, strides, sizes, numbers = "", list[torch.Tensor](), list[Any](), list[Any](), list[float]()
    places: dict[str, int] = {}
    read: list[torch.Tensor] = []
    """Numbers that the program has read of tensors."""
    memories: list[int] = []
    """For each argument that is a tensor which one it is: one tensor may be given twice."""
    for name, value in zip(names, given, strict=True):
        if isinstance(value, torch.Tensor):
            known = next((n for n, other in enumerate(tensors) if _is_one(value, other)), None)
            if known is None:
                known = len(tensors)
                tensors.append(value)
                strides += value.stride()
            places[f"%{name}"] = known
            memories.append(known)
            kinds += "t"
        elif (number := number_in(value)) is not None:
            read.append(number.tensor)
            kinds += "d"
        elif isinstance(value, bool | float):
            numbers.append(float(value))
            kinds += "b" if isinstance(value, bool) else "n"
        else:
            sizes.append(value)
            kinds += "s"
    written = sorted({places[name] for name in written_arguments(kernel)})
    _refuse_overlaps(tensors, written)
    operator: Any = torch.ops.rewright.launch.default
    results = operator(ttir, kinds, tensors, memories, strides, sizes, numbers, read, list(grid), written)
    for number, result in zip(written, results, strict=True):
        tensors[number].copy_(result)


def _is_one(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same elements at the same places of memory."""
    if tensor is other or _memory(tensor) != _memory(other):  # sizes of others are not compared: it may fix symbols
        return tensor is other
    if tensor.shape != other.shape or tensor.stride() != other.stride() or tensor.dtype != other.dtype:
        return False
    return tensor.storage_offset() == other.storage_offset()


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def _refuse_overlaps(tensors: Sequence[torch.Tensor], written: Sequence[int]) -> None:
    """Raises CaptureError where a tensor that is written shares memory with another one."""
    for number in written:
        for other, tensor in enumerate(tensors):
            if other != number and _memory(tensor) == _memory(tensors[number]):
                raise CaptureError("a kernel writes to memory that two of its tensors share in part, which is not read")


def written_arguments(kernel: Function) -> set[str]:
    """The arguments whose memory a kernel may write to: those from which addresses of stores are made."""
    roots: dict[str, set[str]] = {name: {name} for name, kind in kernel.body.arguments if kind.is_pointer}
    found: set[str] = set()
    for _ in range(2):  # what a loop carries is made in its body
        _trace(kernel.body, roots, found)
    return found & {name for name, _ in kernel.body.arguments}


def _trace(block: Block, roots: dict[str, set[str]], found: set[str]) -> set[str]:
    last: set[str] = set()
    for op in (*block.operations, *(op for _, other in block.others for op in other.operations)):
        sources = set[str]().union(*(roots.get(name, set()) for name in op.operands))
        for region in op.regions:
            for name, _ in region.arguments:
                roots[name] = roots.get(name, set()) | sources
            sources |= _trace(region, roots, found)
        if op.name.startswith(("tt.store", "tt.atomic", "tt.descriptor_store", "tt.descriptor_reduce", "tt.call")):
            found |= roots.get(op.operands[0], set()) if op.name != "tt.call" else sources
        for name in op.results if op.name != "tt.load" else ():  # what was read is no pointer
            roots[name] = roots.get(name, set()) | sources
        last = sources
    return last
