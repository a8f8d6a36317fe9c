"""Source that Inductor generated, run on the CPU: a function that launches its Triton kernels as they are."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import torch

from rewright.ir.errors import CaptureError

Call = Callable[[list[Any]], Sequence[Any]]


class Kernel:
    """A kernel with the first configuration that Inductor would try: which one runs is no part of its meaning."""

    def __init__(self, function: Any, constants: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        own = {parameter.name for parameter in function.params}
        self._function, self._meta = function, meta
        self._blocks = dict(constants)
        self._constants = {name: value for name, value in constants.items() if name in own}

    def run(self, *args: Any, stream: object = None, **kwargs: Any) -> None:
        """Launch it, as the module that Inductor generated does."""
        names = [p.name for p in self._function.params if p.name not in self._constants]
        named = dict(zip(names, args, strict=False)) | kwargs
        grid = _grid(self._meta, self._blocks, named)
        self._function[grid](**named, **self._constants)


def _grid(meta: Mapping[str, Any], blocks: Mapping[str, Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The number of instances along three axes."""
    heuristics: Any = import_module("torch._inductor.runtime.triton_heuristics")
    with mock.patch.object(heuristics.GridExpr, "ceildiv", _rounded_up):
        grid = heuristics.GridExpr.from_meta(dict(meta), dict(blocks))
        found: list[Any] = list(grid.eval_slow({**named, **blocks}))
    while len(found) > 1 and isinstance(found[-1], int) and found[-1] == 1:
        found.pop()
    return tuple(found)


def _rounded_up(self: Any, numel: Any, block: Any) -> Any:
    """A quotient rounded up, written with positive numbers."""
    if block is None or block == 1:
        return numel
    if isinstance(numel, int) and isinstance(block, int):
        return -(-numel // block)
    return f"((({numel}) + ({block}) - 1) // ({block}))"


def load(source: str, title: str = "inductor") -> Call:
    """The function ``call`` of a module that Inductor generated, for tensors on the CPU.

    Its imports and what it binds to CUDA are replaced. Raises CaptureError for what is no such module.
    """
    scope = _scope(title)
    module = _Laid().visit(ast.parse(source))
    kept = [statement for statement in module.body if _is_own(statement, scope)]
    exec(compile(ast.fix_missing_locations(ast.Module(kept, [])), f"<{title}>", "exec"), scope)
    call: Any = scope.get("call")
    if not callable(call):
        raise CaptureError("what Inductor generated has no function call")
    return cast("Call", call)


class _Laid(ast.NodeTransformer):
    """Assertions of how tensors lie as statements that see to it."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """``x = assert_size_stride(x, ..)`` for the call alone."""
        call = node.value
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "assert_size_stride":
            return node
        name = call.args[0]
        return ast.Assign([ast.Name(name.id, ast.Store())], call) if isinstance(name, ast.Name) else node


def _is_own(statement: ast.stmt, scope: Mapping[str, object]) -> bool:
    """Whether a statement is part of the program, and neither an import nor the binding of a name that is given."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return True
    if isinstance(statement, ast.Assign):
        return not any(isinstance(target, ast.Name) and target.id in scope for target in statement.targets)
    return False


def _scope(title: str) -> dict[str, Any]:
    return {
        "torch": _Torch(),
        "aten": torch.ops.aten,
        "inductor_ops": torch.ops.inductor,
        "extern_kernels": _Library(),
        "async_compile": SimpleNamespace(triton=partial(kernel_of, title)),
        "assert_size_stride": laid,
        "assert_alignment": _nothing,
        "copy_if_misaligned": _same,
        "empty_strided_cuda": _empty,
        "empty_strided_cpu": _empty,
        "reinterpret_tensor": reinterpreted,
        "get_raw_stream": _nothing,
        "run_intermediate_hooks": _nothing,
        "device": torch.device,
        "inf": float("inf"),
        "nan": float("nan"),
        "math": import_module("math"),
    } | dict.fromkeys(("_quantized", "alloc_from_pool", "empty_strided_cpu_pinned", "empty_strided_xpu"))


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _guard(_: object) -> AbstractContextManager[None]:
    return nullcontext()


class _Torch:
    """PyTorch without its devices."""

    cuda = SimpleNamespace(_DeviceGuard=_guard, set_device=_nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


class _Library:
    """Kernels of libraries, by PyTorch's operators of their names."""

    def __getattr__(self, name: str) -> Any:
        function: Any = _PRODUCTS.get(name) or getattr(torch, name, None)
        if function is None:
            raise CaptureError(f"the library's kernel {name} is not known")

        def run(*args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            return found if out is None else out.copy_(found)

        return run


def _two_products(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b) + torch.mm(c, d)


_PRODUCTS: dict[str, Callable[..., Any]] = {"bias_addmm": torch.addmm, "_mm_plus_mm": _two_products}


def _same(value: Any) -> Any:
    return value


def _empty(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype)


def _is(one: Any, other: Any) -> bool:
    """Whether two sizes are one, without fixing symbols."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    symbols: Any = import_module("torch.fx.experimental.symbolic_shapes")
    return symbols.statically_known_true(one == other)


def _are(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(ones) == len(others) and all(map(_is, ones, others))


def laid(
    tensor: torch.Tensor, size: Sequence[Any], stride: Sequence[Any], origin: str = "", *_: object
) -> torch.Tensor:
    """A tensor as the kernels after it take for granted that it lies; what a library gives may lie otherwise on a CPU.

    Raises CaptureError for an input that lies otherwise, and for other sizes.
    """
    live = [axis for axis, count in enumerate(size) if not _is(count, 1)]
    is_laid = _are([tensor.stride(axis) for axis in live], [stride[axis] for axis in live])
    if not _are(tensor.shape, size) or (origin == "input" and not is_laid):
        raise CaptureError(
            f"a tensor has the sizes {tuple(tensor.shape)} and strides {tensor.stride()}, and on CUDA {tuple(size)} "
            f"and {tuple(stride)}"
        )
    return tensor if is_laid else torch.empty_strided(size, stride, dtype=tensor.dtype).copy_(tensor)


def reinterpreted(tensor: torch.Tensor, size: Sequence[Any], stride: Sequence[Any], offset: int = 0) -> torch.Tensor:
    """Other sizes and strides over the same memory: a view by reshapes and transposes where there is one."""
    if _are(size, tensor.shape) and _are(stride, tensor.stride()) and _is(offset, 0):
        return tensor
    flat, order = _flat(tensor), _outermost_first(size, stride)
    want: Any = 1
    for axis in reversed(order):
        if not _is(size[axis], 1) and not _is(stride[axis], want):
            flat = None
        want = want * size[axis]
    if flat is None:
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)
    part = flat if _is(offset, 0) and _is(want, flat.shape[0]) else flat[offset : offset + want]
    return part.view([size[axis] for axis in order]).permute([order.index(axis) for axis in range(len(size))])


def _outermost_first(size: Sequence[Any], stride: Sequence[Any]) -> list[int]:
    """Axes by their strides; of sizes that are symbols those of the numbers that stand for them."""
    return sorted(range(len(size)), key=lambda axis: (_number(stride[axis]), _number(size[axis])), reverse=True)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(value.node.hint)


def _flat(tensor: torch.Tensor) -> torch.Tensor | None:
    """The elements in the order of memory, as a view; None where they do not lie without gaps."""
    laid = tensor.permute(_outermost_first(tensor.shape, tensor.stride()))
    return laid.reshape(-1) if laid.is_contiguous() else None


def kernel_of(title: str, name: str, text: str, **_: object) -> Kernel:
    """A kernel from its source."""
    file = f"<{title}:{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    heuristics: Any = import_module("torch._inductor.runtime.triton_heuristics")
    helpers: Any = import_module("torch._inductor.runtime.triton_helpers")
    scope: dict[str, Any] = {"__file__": file, "__name__": f"{title}.{name}"}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(heuristics, "cached_autotune", _first))
        stack.enter_context(mock.patch.object(helpers, "set_driver_to_gpu", _nothing))
        exec(compile(text, file, "exec"), scope)
    found = scope.get(name)
    if not isinstance(found, Kernel):
        raise CaptureError(f"{name} is no kernel that is read")
    return found


def _first(
    size_hints: object, configs: Sequence[Any], triton_meta: object = None, *_: object, **named: Any
) -> Callable[[Any], Kernel]:
    """In the place of Inductor's search for the fastest configuration: the first one."""
    return lambda function: Kernel(function, configs[0].kwargs, named.get("inductor_meta") or {})
