"""Turns whatever a tracer raises into one sentence: what happened, at which line of the user, and what to do."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sysconfig
import warnings
from collections.abc import Collection
from types import CodeType, FrameType, TracebackType

import torch
import typing_extensions

from rewright.frontends.torch.fakes import SYMBOL_PREFIX
from rewright.ir.errors import CaptureError, RewrightError
from rewright.packages import no_gpu

TORCH_ROOT = os.path.dirname(torch.__file__) + os.sep
OWN_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep

_WRAPPERS = frozenset(module.__file__ for module in (contextlib, functools, typing_extensions, warnings))
"""What stands between the user and functions of PyTorch that are deprecated, cached or contexts."""

_DATA_DEPENDENT = frozenset(
    {
        "DataDependentOutputException",
        "GuardOnDataDependentSymNode",
        "DynamicOutputShapeException",
        "UserError",
        "PendingUnbackedSymbolNotFound",
    }
)
_READS_A_VALUE = (".numpy() is not supported for tensor subclasses", ".tolist() is not supported for tensor subclasses")
_NO_META = frozenset({"UnsupportedOperatorException", "UnsupportedFakeTensorException", "UnsupportedMutationAliasing"})


def is_library(code: CodeType) -> bool:
    """Whether a frame belongs to PyTorch, to this frontend or to a wrapper, so that the user's line is further out.

    A mode, whoever wrote it, stands between an operator and the line that calls it.
    """
    if code.co_name in ("__torch_function__", "__torch_dispatch__"):
        return True
    return code.co_filename in _WRAPPERS or code.co_filename.startswith((TORCH_ROOT, OWN_ROOT, "<"))


def user_line(traceback: TracebackType | None) -> str:
    """``file.py:88`` of the innermost frame that is neither PyTorch's nor ours, or an empty string."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_library(code):
            found = f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def calling_line(frame: FrameType | None) -> str:
    """``file.py:88`` of the innermost running frame outside of installed packages, or an empty string."""
    installed = tuple(sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    while frame is not None:
        code = frame.f_code
        if not is_library(code) and not code.co_filename.startswith(installed):
            return f"{os.path.basename(code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def exchanges_objects(traceback: TracebackType | None) -> str:
    """The name of the collective on Python objects in which an error arose, or an empty string."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.endswith("distributed_c10d.py") and "_object" in code.co_name:
            return code.co_name
        traceback = traceback.tb_next
    return ""


def first_line(error: BaseException) -> str:
    """The first line of a message that says something; distributed wrappers prefix theirs with ``[rank0]:``."""
    for line in str(error).splitlines():
        text = line.strip()
        while text.startswith("[rank") and "]" in text:
            text = text.split("]", 1)[1].lstrip(": ")
        if text and not set(text) <= set("=-*"):
            return text if len(text) <= 200 else text[:197] + "..."
    return type(error).__name__


def capture_error(error: Exception, doing: str, sizes: Collection[str] = ()) -> RewrightError:
    """The error to raise instead of ``error``: one line, with the user's source line where there is one.

    ``doing`` says what was attempted ("tracing LlamaForCausalLM on rank 0"), and ``sizes`` are its symbols. Errors
    that are ours already pass through.
    """
    if isinstance(error, RewrightError):
        return error
    cause = _root(error)
    if isinstance(cause, RewrightError):
        return cause
    line = user_line(error.__traceback__) or user_line(cause.__traceback__)
    where = f"{doing} stopped at {line}" if line else f"{doing} stopped"
    if objects := exchanges_objects(error.__traceback__):
        what = "exchanges Python objects, which a capture without peers cannot know"
        return CaptureError(f"{where}: {objects} {what}; exchange tensors, or compute the object on every rank")
    return CaptureError(f"{where}: {_explain(cause, sizes)}")


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None and not _is_known(error):
        error = error.__cause__
    return error


def _is_known(error: BaseException) -> bool:
    return type(error).__name__ in _DATA_DEPENDENT | _NO_META


def _explain(error: BaseException, sizes: Collection[str]) -> str:
    name, text = type(error).__name__, first_line(error)
    if name in _DATA_DEPENDENT or text.startswith(_READS_A_VALUE):
        return (
            f"the program reads a tensor's value ({text.partition(' is not supported')[0]}), which a capture without "
            "data cannot know; "
            "use tensor operations such as torch.where, pass the value as a Python number, or capture a run (run=True, "
            "ranks='threads')"
        )
    if name in _NO_META or (isinstance(error, NotImplementedError) and "Meta" in text):
        return (
            f"{text} has no meta kernel, so its result shape is unknown; register one with torch.library.register_fake"
        )
    if "Invalid process group" in text or "does not belong to the given group" in text:
        return "it calls a collective over a group that this rank is not in; call it on the ranks of the group only"
    if text.startswith("Cannot swap t"):
        return "it moves parameters while it runs, which a capture does not follow; move its modules before"
    if "ScriptModule" in text:
        return "TorchScript is not captured; give the module that it was made from"
    if symbols := [size for size in sizes if re.search(rf"\b{SYMBOL_PREFIX}{size}\b", text)]:
        what = re.sub(rf"\b{SYMBOL_PREFIX}(?=({'|'.join(symbols)})\b)", "", text).rstrip(".")
        return f"{name}: {what}; the size {', '.join(symbols)} is any number here: make that axis a number"
    return f"{name}: {text.rstrip('.')}; {no_gpu(text) or 'correct the program'}"
