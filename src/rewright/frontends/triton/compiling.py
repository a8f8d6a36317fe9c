"""TTIR of a kernel for the types of its arguments, on a machine without a GPU."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from rewright.frontends.torch.scalars import number_in
from rewright.ir.errors import CaptureError
from rewright.ops.functions import FUNCTIONS

POINTERS = {
    torch.float64: "*fp64",
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float8_e4m3fn: "*fp8e4nv",
    torch.float8_e5m2: "*fp8e5",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int16: "*i16",
    torch.int8: "*i8",
    torch.uint8: "*u8",
    torch.bool: "*i1",
}
_CAPABILITY = 90
"""The architecture that kernels are compiled for; their TTIR has no more of it than what they ask for."""


def ttir_of(function: Any, arguments: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """The TTIR of a ``@triton.jit`` function for arguments by name, and which of them are constants in it.

    Integers are not specialised: what is true of the kernel is so for all of them. Raises CaptureError with the
    compiler's reason.
    """
    compiler: Any = import_module("triton.compiler")
    backends: Any = import_module("triton.backends.compiler")
    signature = {name: kind_of(name, value, function.params[n]) for n, (name, value) in enumerate(arguments.items())}
    constants = {(n,): value for n, (name, value) in enumerate(arguments.items()) if signature[name] == "constexpr"}
    target = backends.GPUTarget("cuda", _CAPABILITY, 32)
    source = compiler.ASTSource(function, signature=signature, constexprs=constants)
    backend = compiler.make_backend(target)
    try:
        with warnings.catch_warnings(), _library_apart(function):
            warnings.simplefilter("ignore")
            options: Any = backend.parse_options({})
            text = _compiled(source, backend, target, options)
            return text, frozenset(name for name, kind in signature.items() if kind == "constexpr")
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise CaptureError(
            f"the kernel {function.__name__} does not compile: {reason[-1] if reason else error!r}"
        ) from None


LIBRARY = (("triton.language.standard", "sort_impl"), ("triton.language.random", "philox_impl"))
"""Functions of Triton's own library that stay calls in TTIR: what they give has a name, and the way to it has not."""


PRINTED = "rewright.printed"
"""The module of functions that are printed for others, which stay calls too: what they stand for has a name."""


@contextmanager
def _library_apart(function: Any) -> Generator[None]:
    generator: Any = import_module("triton.compiler.code_generator")
    check = getattr(generator, "_check_fn_args", None)  # which refuses blocks as arguments of calls that stay
    own = printed_beside(function)
    functions: list[Any] = [getattr(import_module(home), name, None) for home, name in LIBRARY]
    known = [one for one in (*functions, *own) if check is not None and hasattr(one, "noinline")]
    before = [(one, one.noinline, one.__module__) for one in known]
    for one in known:
        one.noinline = True
        one.__module__ = PRINTED if one in own else one.__module__
    generator._check_fn_args = _nothing
    try:
        yield
    finally:
        generator._check_fn_args = check
        for one, inlines, home in before:
            one.noinline, one.__module__ = inlines, home


def printed_beside(function: Any) -> list[Any]:
    """The functions beside a kernel whose source, and what ``tl`` in it is, are those of one that is printed."""
    printed = [record.code.triton for record in FUNCTIONS.values()]
    sources = {one.source.partition("def ")[2].strip() for one in printed if one is not None and one.error is not None}
    kind: Any = import_module("triton.runtime.jit").JITFunction
    beside = [one for one in getattr(function.fn, "__globals__", {}).values() if isinstance(one, kind)]
    own = [one for one in beside if one.fn.__globals__.get("tl") is import_module("triton.language")]
    return [one for one in own if str(one.src).removeprefix("def ").strip() in sources]


def _nothing(*_: object) -> None:
    """Refuse nothing."""


def _compiled(source: Any, backend: Any, target: Any, options: Any) -> str:
    ir: Any = import_module("triton._C.libtriton").ir
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    given = {
        "target": target,
        "options": options,
        "codegen_fns": backend.get_codegen_implementation(options),
        "module_map": backend.get_module_map(),
        "context": context,
    }
    wanted = inspect.signature(source.make_ir).parameters  # of which older versions have fewer
    module = source.make_ir(**{name: value for name, value in given.items() if name in wanted})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    return str(stages["ttir"](module, {}))


def kind_of(name: str, value: Any, parameter: Any) -> str:
    """The type of an argument in a signature; raises CaptureError for what has none."""
    if parameter.is_constexpr or value is None or isinstance(value, str) or callable(value):
        if number_in(value) is not None:
            raise CaptureError(f"the constant {name} of a kernel is read of a tensor; give it a number")
        if isinstance(value, torch.SymInt):
            raise CaptureError(f"the constant {name} of a kernel depends on a size that is a symbol; give it a number")
        return "constexpr"
    if is_descriptor(value):
        if value.padding != "zero" or value.round_f32_to_tf32:
            raise CaptureError(f"the descriptor {name} fills with no numbers or rounds, which is not read")
        block = ", ".join(map(str, value.block_shape))
        return f"tensordesc<{kind_of(name, value.base, parameter)[1:]}[{block}]>"
    if isinstance(value, torch.Tensor) or isinstance(getattr(value, "tensor", None), torch.Tensor):
        if value.dtype not in POINTERS:
            raise CaptureError(f"the argument {name} of a kernel has the dtype {value.dtype}, which is not read")
        return POINTERS[value.dtype]
    if isinstance(value, bool | torch.SymBool):
        return "i1"
    if isinstance(value, int | torch.SymInt):
        return "i64" if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31 else "i32"
    if isinstance(value, float | torch.SymFloat):
        return "fp32"
    raise CaptureError(f"the argument {name} of a kernel is a {type(value).__name__}, which is not read")


def is_descriptor(value: object) -> bool:
    """Whether an argument is a tensor with sizes, strides and the shape of the blocks that are read of it."""
    return type(value).__name__ == "TensorDescriptor" and isinstance(getattr(value, "base", None), torch.Tensor)
