"""States of generators as programs hold them while they are traced: numbers, where all other tensors have none."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

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


__all__ = ["State", "get_state", "readable_states"]
