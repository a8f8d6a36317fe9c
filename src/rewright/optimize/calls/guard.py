"""Whether a call is one that kernels were made for: everything but the values of its tensors is as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from rewright.frontends.torch.owners import Owners
from rewright.optimize.calls.ambient import modes
from rewright.optimize.calls.ran import Ran
from rewright.optimize.calls.reachable import State, Walker
from rewright.optimize.calls.tensors import describe


@dataclass
class Reached:
    """What a program reaches by itself, looked at anew only where something moved."""

    program: Any
    owners: Owners
    ran: Ran
    state: State
    tensors: dict[str, torch.Tensor]
    """The parameters and buffers by name."""

    @staticmethod
    def of(program: Any, owners: Owners, ran: Ran) -> Reached:
        """As it is now."""
        tensors: dict[str, torch.Tensor] = {**owners.parameters(), **owners.buffers()}
        return Reached(program, owners, ran, look(program, ran, names_of(tensors)), tensors)

    def now(self) -> Reached:
        """The same where nothing moved, else another look."""
        return self if self.state.snapshot.holds() else Reached.of(self.program, self.owners, self.ran)


def look(program: Any, ran: Ran, names: Mapping[int, str]) -> State:
    """What a program reaches without its arguments."""
    walker = Walker(ran, names)
    walker.look("", program)
    walker.scopes()
    return walker.state


def look_at_arguments(arguments: Mapping[str, Any], ran: Ran, names: Mapping[int, str]) -> State:
    """What its arguments reach."""
    walker = Walker(ran, names)
    for name, value in arguments.items():
        walker.look(name, value)
    return walker.state


def names_of(tensors: Mapping[str, torch.Tensor]) -> dict[int, str]:
    """The first name of every tensor, by its ``id``."""
    return {id(value): name for name, value in reversed(list(tensors.items()))}


@dataclass
class Guard:
    """All that a program could read at capture besides values."""

    reached: Reached
    arguments: State
    tensors: Mapping[str, tuple[Any, ...]]
    """Type, shape, strides, dtype, device, layout of every input, by name."""
    modes: tuple[tuple[str, object], ...] = field(default_factory=modes)

    def violation(self, reached: Reached, arguments: State, tensors: Mapping[str, torch.Tensor]) -> str:
        """What is not as it was, in words; empty where the call is the same but for values."""
        for (name, before), (_, now) in zip(self.modes, modes(), strict=True):
            if before != now:
                return f"{name} was {before or 'off'} and is {now or 'off'}"
        if reached.state is not self.reached.state and (why := _move(self.reached.state, reached.state)):
            return why
        if why := _move(self.arguments, arguments):
            return why
        for name, kind in self.tensors.items():
            value = tensors.get(name)
            if value is None:
                return f"{name} is no tensor"
            if (now := describe(value)) != kind:
                return f"{name} was {_kind(kind)} and is {_kind(now)}"
        return next((f"{held.path} was written to" for held in self.reached.state.held if not held.is_same()), "")

    def refresh(self, reached: Reached) -> Guard:
        """The same guard, for what was looked at again and is equal."""
        state = replace(reached.state, held=self.reached.state.held)
        return replace(self, reached=replace(reached, state=state))

    def lines(self) -> list[str]:
        """What kernels are for, in words."""
        found = [
            f"{path.lstrip('.')} is {fact[1]}" for path, fact in sorted(self.arguments.facts.items()) if _tells(fact)
        ]
        found += [
            f"{path.lstrip('.')} is {fact[1]}"
            for path, fact in sorted(self.reached.state.facts.items())
            if _tells(fact)
        ]
        found += [f"{held.path} has the values that it had" for held in self.reached.state.held]
        found += [f"{name} is {_kind(kind)}" for name, kind in self.tensors.items()]
        return [*found, *(f"{name}: {value or 'off'}" for name, value in self.modes)]


def _tells(fact: Any) -> bool:
    """Whether a fact is a number, a flag, a text or another plain value."""
    return len(fact) == 2 and fact[0] in ("int", "float", "bool", "str", "complex", "NoneType", "dtype", "device")


def _move(before: State, now: State) -> str:
    if now.unknown:
        return now.unknown
    path = before.differs(now)
    if not path:
        return ""
    old, new = (state.facts.get(path) for state in (before, now))
    if old is not None and new is not None and _tells(old) and _tells(new):
        return f"{path.lstrip('.')} was {old[1]} and is {new[1]}"
    return f"{path.lstrip('.')} is not what it was"


def _kind(kind: tuple[Any, ...]) -> str:
    cls, shape, strides, dtype, device, layout, marks = kind
    named = zip(("requires_grad", "negative", "conjugate"), marks, strict=False)
    text = f"{str(dtype).removeprefix('torch.')}{list(shape)} with strides {list(strides)} on {device}"
    plain = "" if cls is torch.Tensor else f" ({cls.__name__})"
    return " ".join([text + plain, *(n for n, v in named if v), *([layout] if layout != "torch.strided" else [])])


__all__ = ["Guard", "Reached", "look", "look_at_arguments", "names_of"]
