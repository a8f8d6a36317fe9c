"""Arguments of ATen's operators: those that PyTorch's own tests call its functions with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

DTYPES = (torch.float32, torch.int64, torch.bool)
_SAMPLES, _GRADIENTS = 12, 3
"""Samples of each function that are run, and of those with gradients."""
_CALLS = 40
"""Calls of each operator that are kept."""


@dataclass(frozen=True)
class Call:
    """What an operator was called with."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Shapes and numbers."""
        given = tree_map_only(torch.Tensor, lambda t: (tuple(t.shape), t.dtype), (self.args, dict(self.kwargs)))
        return repr(given)

    def order(self) -> tuple[int, int, int, int]:
        """By which the first call is one of floats, of several axes, and neither tiny nor large."""
        tensors = [x for x in tree_flatten((self.args, dict(self.kwargs)))[0] if isinstance(x, torch.Tensor)]
        most = max((t.numel() for t in tensors), default=0)
        floats = sum(t.is_floating_point() for t in tensors)
        return int(not 4 <= most <= 4096), -floats, -max((t.dim() for t in tensors), default=0), most


class _Recorder(TorchDispatchMode):
    def __init__(self, names: Mapping[Any, str], calls: dict[str, dict[str, Call]]) -> None:
        super().__init__()
        self._names, self._calls = names, calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = self._names.get(func)
        if name is None:
            return func(*args, **(kwargs or {}))
        call = Call(*tree_map_only(torch.Tensor, lambda t: t.detach().clone(), (args, kwargs or {})))
        result = func(*args, **(kwargs or {}))  # what raises is no call of the operator
        known = self._calls.setdefault(name, {})
        if len(known) < _CALLS:
            known.setdefault(call.text, call)
        return result


def recorded(operators: Iterable[str]) -> dict[str, list[Call]]:
    """By name of an overload, such as ``add.Tensor``, the calls of it that PyTorch's tests make, the best first."""
    names = {overload(name): name for name in operators if overload(name) is not None}
    calls: dict[str, dict[str, Call]] = {}
    tests: Any = import_module("torch.testing._internal.common_methods_invocations")
    for info in tests.op_db:
        for dtype in DTYPES:
            if info.supports_dtype(dtype, "cpu"):
                _run(info, dtype, _Recorder(names, calls))
    return {name: sorted(found.values(), key=Call.order) for name, found in sorted(calls.items())}


def overload(name: str) -> Any:
    """An operator of ATen by its name; None where there is none."""
    base, _, own = name.partition(".")
    return getattr(getattr(torch.ops.aten, base, None), own or "default", None)


def _run(info: Any, dtype: torch.dtype, recorder: _Recorder) -> None:
    differentiates = dtype is torch.float32 and info.supports_autograd
    for gradient in (False, True) if differentiates else (False,):
        for sample in _samples(info, dtype, gradient):
            with recorder:
                _call(info, sample, gradient)


def _samples(info: Any, dtype: torch.dtype, gradient: bool) -> list[Any]:
    """The first samples of a function; none where the test does not make any for a dtype."""
    try:
        return list(
            islice(info.sample_inputs("cpu", dtype, requires_grad=gradient), _GRADIENTS if gradient else _SAMPLES)
        )
    except Exception:
        return []


def _call(info: Any, sample: Any, gradient: bool) -> None:
    """A sample, in place too; what a function does not take is no sample of it."""
    for function in (info, None if gradient else info.inplace_variant):
        try:
            first = sample.input if function is info else sample.input.clone()
            result = None if function is None else function(first, *sample.args, **sample.kwargs)
            if gradient and result is not None:
                (result[0] if isinstance(result, tuple) else result).sum().backward()
        except Exception:
            continue
