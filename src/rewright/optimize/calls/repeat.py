"""A call like one that ran: of plain tensors and numbers, told without looking into objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from rewright.optimize.calls.ambient import modes
from rewright.optimize.calls.guard import Guard, Reached
from rewright.optimize.calls.reachable import State
from rewright.optimize.calls.tensors import describe

_torch: Any = torch
_SIMPLE = (int, float, bool, str, type(None))
"""Arguments that are their ``repr``."""


@dataclass(frozen=True)
class Repeat:
    """What a call of one kind has beside values of tensors: the cheap part of a guard that held.

    What it does not tell to be alike may be so all the same, and the guard itself says.
    """

    guard: Guard
    reached: Reached
    simple: tuple[tuple[int, type[object], str], ...]
    """The arguments that are no tensors: where, of what type, and their ``repr``."""
    given: tuple[int, ...]
    """Where those are that are."""
    own: tuple[torch.Tensor, ...]
    """The program's tensors, each once; the arguments are none of them."""
    check: Callable[..., bool]
    """Whether these and the arguments are of the types, sizes, strides, dtypes and devices that they were of."""
    gradients: list[bool]
    """Which of them ask for gradients."""

    @staticmethod
    def of(guard: Guard, reached: Reached, args: Sequence[Any], names: Sequence[str], state: State) -> Repeat | None:
        """Read from a call that ran; None where its arguments are more than plain tensors and numbers."""
        given = tuple(n for n, value in enumerate(args) if type(value) is torch.Tensor)
        kinds: list[type[object]] = [type(value) for value in args]
        simple = tuple((n, kind, repr(args[n])) for n, kind in enumerate(kinds) if kind in _SIMPLE)
        as_said: dict[str, Any] = {names[n]: ("input", names[n]) for n in given}
        as_said |= {names[n]: (kind.__name__, text) for n, kind, text in simple}
        if len(given) + len(simple) != len(args) or state.facts != as_said or state.held:
            return None
        own = tuple({id(value): value for value in reached.tensors.values()}.values())
        every = (*own, *(args[n] for n in given))
        if len({id(value) for value in every}) != len(every) or any(v.layout is not torch.strided for v in every):
            return None
        return Repeat(guard, reached, simple, given, own, _check(every), [v.requires_grad for v in every])

    @cached_property
    def is_plain(self) -> bool:
        """Whether none asks for a gradient."""
        return not any(self.gradients)

    def holds(self, args: Sequence[Any]) -> bool:
        """Whether a call with as many arguments, by position, is like this one."""
        for n, kind, text in self.simple:
            if type(args[n]) is not kind or repr(args[n]) != text:
                return False
        tensors = [args[n] for n in self.given]
        for value in tensors:
            if not isinstance(value, torch.Tensor) or vars(value):
                return False
        every = (*self.own, *tensors)
        state = self.reached.state
        return (
            self.check(*every)
            and state.snapshot.holds()
            and self.guard.modes == modes()
            and [value.requires_grad for value in every] == self.gradients
            and (not state.held or all(held.is_same() for held in state.held))
        )

    def tensors(self, args: Sequence[Any], names: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """The tensors of such a call by name."""
        found = dict(self.reached.tensors)
        for n in self.given:
            found[names[n]] = args[n]
        return found


def _check(every: Sequence[torch.Tensor]) -> Callable[..., bool]:
    """Tells whether tensors are of the kinds of these, and all different: by PyTorch's own guards where it has them."""
    try:
        sizes, strides = [list(v.shape) for v in every], [list(v.stride()) for v in every]
        guards: Any = _torch._C._dynamo.guards.TensorGuards
        check: Callable[..., bool] = guards(*every, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        if check(*every):
            return check
    except (AttributeError, TypeError, ValueError, RuntimeError, SystemError):
        pass  # another version of PyTorch
    kinds = [describe(value) for value in every]

    def same(*found: torch.Tensor) -> bool:
        return len({id(v) for v in found}) == len(kinds) and [describe(v) for v in found] == kinds

    return same


__all__ = ["Repeat"]
