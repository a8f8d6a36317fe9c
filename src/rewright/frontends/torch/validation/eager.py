"""PyTorch's own results of a call, in float64 whatever its dtypes say."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from rewright.frontends.torch.validation.cuts import Cut, Value

REALS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def results(
    call: Cut, leaves: Sequence[torch.Tensor], dtype_of: Callable[[torch.dtype], torch.dtype], device: str
) -> list[Any]:
    """What every step of a cut gives on these operands, which it may write."""
    found: list[Any] = []

    def value(argument: Any) -> Any:
        if isinstance(argument, Value):
            return found[argument.number] if argument.step else leaves[argument.number]
        if isinstance(argument, list):
            return [value(item) for item in cast("list[Any]", argument)]
        if isinstance(argument, torch.dtype):
            return dtype_of(argument)
        return torch.device(device) if isinstance(argument, torch.device) else argument

    for step in call.steps:
        keywords = {key: value(item) for key, item in step.keywords.items()}
        arguments = [value(item) for item in step.arguments]
        if device == "cpu":
            refuse_trap(step.target, arguments, keywords)
        found.append(step.target(*arguments, **keywords))
    return found


def refuse_trap(target: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise ArithmeticError for the lowest integer by -1, rounded to zero: PyTorch's kernel ends the process there."""
    if keywords.get("rounding_mode") != "trunc" or target.overloadpacket.__name__ not in ("div", "div_"):
        return
    left, right = arguments[:2]
    kind = torch.result_type(left, right)
    if kind is torch.bool or not kind.is_signed or kind.is_floating_point or isinstance(left, FakeTensor):
        return
    trapped = (torch.as_tensor(left) == torch.iinfo(kind).min) & (torch.as_tensor(right) == -1)
    if bool(trapped.any()):
        raise ArithmeticError("the lowest integer is divided by -1")


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype that values are computed in."""
    return torch.float64 if dtype in REALS else dtype


def same(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself."""
    return dtype


@contextmanager
def undisturbed() -> Generator[None]:
    """Doubles are what is made of Python's numbers, and no random number of the user's is used up.

    One thread is enough for small tensors, and starting others takes longer than the work.
    """
    library: Any = torch
    before, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    try:
        with library.random.fork_rng(devices=()):
            yield
    finally:
        torch.set_default_dtype(before)
        torch.set_num_threads(threads)
