"""PyTorch's own results of a call, in float64 whatever its dtypes say."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch

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
        found.append(step.target(*map(value, step.arguments), **keywords))
    return found


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
