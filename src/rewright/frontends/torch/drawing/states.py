"""States of generators as programs hold them while they are traced: numbers, where all other tensors have none."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

_C: Any = torch._C  # pyright: ignore[reportPrivateUsage]
_untyped: Any = torch


class State(torch.Tensor):
    """The state of a generator; what is computed of it is computed, and no trace has it."""

    @classmethod
    def of(cls, state: torch.Tensor) -> State:
        """A state that a generator gave."""
        return torch.Tensor._make_subclass(cls, state)  # pyright: ignore[reportPrivateUsage]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        guards = _C.DisableTorchFunctionSubclass(), _C._DisableTorchDispatch()
        try:
            with guards[0]:
                found = func(*args, **(kwargs or {}))
        finally:
            del guards
        return tree_map_only(torch.Tensor, _state, found)


def _state(value: torch.Tensor) -> torch.Tensor:
    return value if isinstance(value, State) else State.of(value)


def get_state() -> torch.Tensor:
    """The state of the default generator."""
    return State.of(torch.default_generator.get_state())


@contextmanager
def readable_states() -> Generator[None]:
    """Inside, programs may look at the states of generators."""
    with (
        mock.patch.object(torch, "get_rng_state", get_state),
        mock.patch.object(_untyped.random, "get_rng_state", get_state),
    ):
        yield


class OtherGenerators:
    """Whether a program draws from the generators of Python and NumPy, whose numbers a capture takes as they are."""

    def __init__(self) -> None:
        self._before = self._states()

    def _states(self) -> tuple[Any, ...]:
        return random.getstate(), np.random.get_state()[1:3]  # pyright: ignore[reportArgumentType]

    def assumptions(self) -> tuple[str, ...]:
        """What a capture takes for granted that drew from them."""
        after = self._states()
        same = after[0] == self._before[0], _is_same(after[1], self._before[1])
        drawn = [name for name, kept in zip(("Python", "NumPy"), same, strict=True) if not kept]
        return (f"numbers drawn from the generator of {' and '.join(drawn)} are those of the capture",) if drawn else ()


def _is_same(one: Any, other: Any) -> bool:
    return one[1] == other[1] and bool((one[0] == other[0]).all())


__all__ = ["OtherGenerators", "State", "get_state", "readable_states"]
