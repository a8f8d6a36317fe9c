"""Launches of Triton kernels inside of PyTorch functions, as calls of one operator that tracers see.

``rewright::launch`` holds all that a launch is: the kernel's TTIR, its tensors and how they lie, sizes, numbers and
the grid. It gives what the tensors hold afterwards that the kernel writes to, which are copied into them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

import torch

from rewright.frontends.torch.scalars import number_in
from rewright.frontends.triton.compiling import is_descriptor, ttir_of
from rewright.frontends.triton.text import Block, Function, parse_module
from rewright.ir.errors import CaptureError

NAME = "rewright.launch.default"
_SCHEMA = (
    "launch(str ttir, str kinds, Tensor[] tensors, int[] memories, SymInt[] strides, SymInt[] sizes, float[] numbers,"
    " Tensor[] read, SymInt[] grid, int[] written, SymInt[] offsets, bool zeros) -> Tensor[]"
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
    offsets: Any,
    zeros: bool,
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
        classes += [(cls, run_tuned) for cls in tuners(tuner.Autotuner)]
        classes.append((tuner.Heuristics, _run_by_values))
    with replaced_runs(classes):
        yield


@contextmanager
def replaced_runs(classes: Sequence[tuple[Any, Any]]) -> Generator[None]:
    """Classes of kernels with other ways to run inside."""
    before = [(cls, cls.run) for cls, _ in classes]
    for cls, run in classes:
        cls.run = run
    try:
        yield
    finally:
        for cls, run in before:
            cls.run = run


def tuners(base: Any) -> list[Any]:
    """Triton's autotuner, and those of packages that run configurations in a way of their own."""
    own = [cls for cls in base.__subclasses__() if "run" in vars(cls)]
    return [base, *(found for cls in own for found in tuners(cls))]


def run_tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The first configuration; see :mod:`rewright.frontends.triton.configurations` for others."""
    return run_configuration(self, self.configs[0], args, kwargs)


def run_configuration(tuner: Any, config: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A launch with the constants of one configuration, behind what it does before each launch."""
    tuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**dict(zip(tuner.arg_names, args, strict=False)), **kwargs, **config.all_kwargs()})
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return tuner.fn.run(*args, **{**kwargs, **config.kwargs, **options})


class Compiled:
    """What a launch gives: a kernel that is launched again without another look at its arguments."""

    def __init__(self, function: Any, constants: Mapping[str, Any]) -> None:
        self._function, self._constants = function, dict(constants)

    def __getitem__(self, grid: Any) -> Any:
        def again(*args: Any, **_: Any) -> None:
            names = [p.name for p in self._function.params]
            if len(args) < len(names):
                names = [p.name for p in self._function.params if not p.is_constexpr]
            given = dict(zip(names, args, strict=True))
            self._function.run(**{**self._constants, **given}, grid=grid, warmup=False)

        return again


def _run_by_values(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Constants that are computed from the other arguments."""
    named = dict(zip(self.arg_names, args, strict=False))
    for name, value in self.values.items():
        kwargs[name] = value({**named, **kwargs})
    return self.fn.run(*args, **kwargs)


def _run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Compiled:
    """A launch of a ``@triton.jit`` function."""
    return _recorded(self, args, grid, kwargs, zeros=False)


def _run_with_zeros(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Compiled:
    return _recorded(self, args, grid, kwargs, zeros=True)


def _recorded(function: Any, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any], *, zeros: bool) -> Compiled:
    own = {name: value for name, value in kwargs.items() if name in function.arg_names}
    bound = inspect.signature(function.fn).bind(*args, **own)
    bound.apply_defaults()
    arguments = {
        name: getattr(value, "value", value) if _is_constant(value) else of_tensor(value)
        for name, value in bound.arguments.items()
    }
    found: Any = grid({**arguments, **kwargs}) if callable(grid) else grid
    sizes = (found,) if isinstance(found, int | torch.SymInt) else tuple(found)
    ttir, compiled = ttir_of(function, arguments)
    launch(ttir, arguments, compiled, sizes, zeros=zeros)
    constants = {p.name for p in function.params if p.is_constexpr}
    return Compiled(function, {name: value for name, value in arguments.items() if name in constants})


def with_zeros(launcher: Callable[..., Any]) -> Callable[..., Any]:
    """The launcher with zero for what a masked load leaves undefined, which all compilers for GPUs make it today."""

    @wraps(launcher)
    def run(*args: Any, **kwargs: Any) -> Any:
        jit = sys.modules.get("triton.runtime.jit")
        with replaced_runs([] if jit is None else [(jit.JITFunction, _run_with_zeros)]):
            return launcher(*args, **kwargs)

    return run


@dataclass(frozen=True, eq=False)
class Pointer:
    """A place in the memory of a tensor: so many elements behind its first one."""

    tensor: torch.Tensor
    offset: Any = 0

    @property
    def dtype(self) -> torch.dtype:
        """The type of the elements."""
        return self.tensor.dtype


def of_tensor(value: Any) -> Any:
    """The place in a tensor of an object that a package gives to kernels in its place; anything else as it is.

    Triton takes all that has an address and a dtype for memory.
    """
    if isinstance(value, torch.Tensor) or not hasattr(value, "data_ptr") or not hasattr(value, "__dict__"):
        return value
    parts: list[Any] = [*cast("dict[str, Any]", vars(value)).values()]
    held = [part for part in parts if isinstance(part, torch.Tensor) and part.dtype == value.dtype]
    if len(held) != 1:
        return value
    (tensor,) = held
    steps, rest = divmod(value.data_ptr() - tensor.data_ptr(), tensor.element_size())
    return value if rest else Pointer(tensor, steps) if steps else tensor


def _is_constant(value: object) -> bool:
    return type(value).__name__ == "constexpr"


def launch(
    ttir: str, arguments: Mapping[str, Any], constants: Set[str], grid: Sequence[Any], *, zeros: bool = False
) -> None:
    """Record a launch of a kernel, and write what it leaves into the tensors that it writes to.

    ``arguments`` are in the order of the kernel's parameters; those among ``constants`` its TTIR has no more.
    """
    kernel = parse_module(ttir).kernel
    names = [name for name, _ in kernel.body.arguments]  # the last names that the kernel gave them: not its parameters
    given = [part for name, value in arguments.items() if name not in constants for part in _parts(value)]
    if len(given) != len(names):
        raise CaptureError(f"the kernel {kernel.name} has {len(names)} arguments, and is given {len(given)}")
    pointers = {
        name: value if isinstance(value, Pointer) else _without_repetition(value)
        for name, value in zip(names, given, strict=True)
        if isinstance(value, torch.Tensor | Pointer)
    }
    writes = written_arguments(kernel)
    pointers = _in_common_memory(pointers, writes)
    kinds, tensors, strides, sizes, numbers = "", list[torch.Tensor](), list[Any](), list[Any](), list[float]()
    places: dict[str, int] = {}
    read: list[torch.Tensor] = []
    """Numbers that the program has read of tensors."""
    for name, value in zip(names, given, strict=True):
        if name in pointers:
            tensor = pointers[name].tensor
            known = next((n for n, other in enumerate(tensors) if _is_one(tensor, other)), None)
            if known is None:
                known = len(tensors)
                tensors.append(tensor)
                strides += tensor.stride()
            places[name] = known
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
    written = sorted({places[name] for name in writes})
    operator: Any = torch.ops.rewright.launch.default
    memories, offsets = [places[name] for name in pointers], [pointer.offset for pointer in pointers.values()]
    results = operator(
        ttir, kinds, tensors, memories, strides, sizes, numbers, read, list(grid), written, offsets, zeros
    )
    for number, result in zip(written, results, strict=True):
        tensors[number].copy_(result)


def _parts(value: Any) -> list[Any]:
    """The arguments in TTIR of one of a kernel: of a descriptor the tensor, its sizes and its strides."""
    return [value.base, *value.shape, *value.strides] if is_descriptor(value) else [value]


def _in_common_memory(pointers: Mapping[str, Pointer], written: Set[str]) -> dict[str, Pointer]:
    """Places in the tensor that several of them are views of, where one is written that shares memory with another.

    Raises CaptureError where they are views of no one tensor.
    """
    found = dict(pointers)
    for name in written & pointers.keys():
        memory = _memory(pointers[name].tensor)
        alike = [other for other, pointer in pointers.items() if _memory(pointer.tensor) == memory]
        if all(_is_one(pointers[other].tensor, pointers[name].tensor) for other in alike):
            continue
        bases = [_base(pointers[other].tensor) for other in alike]
        if not all(_is_one(base, bases[0]) for base in bases):
            raise CaptureError("a kernel writes to memory that two of its tensors share in part, which is not read")
        for other in alike:
            steps = pointers[other].tensor.storage_offset() - bases[0].storage_offset()
            found[other] = Pointer(bases[0], pointers[other].offset + steps)
    return found


def _without_repetition(tensor: torch.Tensor) -> Pointer:
    """A tensor of which several elements lie at one place as its first place in what it is a view of."""
    base = _base(tensor)
    if base is tensor or not any(stride == 0 for stride in tensor.stride()):
        return Pointer(tensor)
    return Pointer(base, tensor.storage_offset() - base.storage_offset())


def _base(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that one is a view of, or the tensor itself."""
    return tensor if tensor._base is None else tensor._base  # pyright: ignore[reportPrivateUsage]


def _is_one(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same elements at the same places of memory."""
    if tensor is other or _memory(tensor) != _memory(other):  # sizes of others are not compared: it may fix symbols
        return tensor is other
    if tensor.shape != other.shape or tensor.stride() != other.stride() or tensor.dtype != other.dtype:
        return False
    return tensor.storage_offset() == other.storage_offset()


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def written_arguments(kernel: Function) -> set[str]:
    """The arguments whose memory a kernel may write to: those from which addresses of stores are made."""
    roots = {name: {name} for name, kind in kernel.body.arguments if kind.is_pointer or kind.is_descriptor}
    found: set[str] = set()
    for _ in range(2):  # what a loop carries is made in its body
        _trace(kernel.body, roots, found)
    return found & {name for name, _ in kernel.body.arguments}


_STORES = ("tt.store", "tt.atomic", "tt.descriptor_store", "tt.descriptor_reduce")


def _trace(block: Block, roots: dict[str, set[str]], found: set[str]) -> list[set[str]]:
    """Note of which arguments pointers are made; what the last operation hands on."""
    last: list[set[str]] = []
    for op in (*block.operations, *(op for _, other in block.others for op in other.operations)):
        last = [roots.get(name, set[str]()) for name in op.operands]
        sources = set[str]().union(*last)
        made = [sources] * len(op.results)
        for region in op.regions:
            own = last[3:] if op.name == "scf.for" and len(last) == len(region.arguments) + 2 else None
            for place, (name, _) in enumerate(region.arguments):  # of a loop, its number and what it carries
                given = sources if own is None else own[place - 1] if place else set[str]()
                roots[name] = roots.get(name, set()) | given
            ends = _trace(region, roots, found)
            if own is not None and len(ends) == len(own):
                for (name, _), end in zip(region.arguments[1:], ends, strict=True):
                    roots[name] |= end
            if op.name in ("scf.if", "scf.for") and len(ends) == len(made):
                made = [one | other for one, other in zip(made, ends, strict=True)]
        if op.name == "tt.call":
            found |= sources
        elif op.name.startswith(_STORES):
            found |= last[0]
        for name, own in zip(op.results, [last[0]] if op.name == "tt.addptr" else made, strict=False):
            if op.name != "tt.load":  # what was read is no pointer
                roots[name] = roots.get(name, set()) | own
    return last
