"""The optimizers that a program uses: their state is input and output of the program, like parameters.

An optimizer holds the parameters that it was made for, as keys of its state and in groups, caches and inner optimizers
(``ZeroRedundancyOptimizer``). While a program is traced other tensors stand in for parameters and state; containers
that hold one of the originals are rebuilt with the stand-ins, and put back afterwards.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.optim.optimizer import Optimizer

from rewright.frontends.torch.names import leaves
from rewright.frontends.torch.owners import referenced_objects
from rewright.ir.errors import CaptureError

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Optimizers:
    """Optimizers by the name that the program has for them, and the names of the parameters that they may hold."""

    found: tuple[tuple[str, Optimizer], ...]
    parameters: dict[int, str]

    @staticmethod
    def of(target: Any, arguments: Mapping[str, Any], parameters: Mapping[str, torch.Tensor]) -> Optimizers:
        """Those among the arguments and those that a function refers to; ``parameters`` are all that are known.

        Raises CaptureError where an optimizer holds another tensor: nothing would stand in for it.
        """
        every = (leaf for name, value in arguments.items() for leaf in leaves(name, value))
        found = referenced_objects(target, Optimizer) | {n: value for n, value in every if isinstance(value, Optimizer)}
        names: dict[int, str] = {}
        for name, value in parameters.items():
            names.setdefault(id(value), name)
        for name, optimizer in found.items():
            held = [value for group in optimizer.param_groups for value in group["params"]]
            if any(id(value) not in names for value in held):
                raise CaptureError(
                    f"the optimizer {name!r} updates a tensor that is no parameter of a module that the program uses; "
                    "pass that module as an argument"
                )
        return Optimizers(tuple(found.items()), names)

    def state(self) -> Tensors:
        """The tensors that the optimizers remember: ``<optimizer>.<parameter>.<what>``."""
        return dict(_states(self.found, self.parameters))

    def notes(self) -> tuple[str, ...]:
        """What to tell of optimizers that have taken no step."""
        fresh = [name for name, one in self.found if not any(part.state for part in _with_inner(one))]
        return tuple(
            f"the optimizer {name!r} has taken no step yet, so that this is its first step; let it take one before the "
            "capture, and its state becomes an input"
            for name in fresh
        )

    @contextmanager
    def substitute(self, table: Mapping[int, torch.Tensor], results: Tensors) -> Generator[None]:
        """Run with the tensors of ``table`` in place of those with these ids.

        Afterwards ``results`` has the state that is new or was replaced by another tensor.
        """
        parts = {id(part): part for _, optimizer in self.found for part in _with_inner(optimizer)}
        saved = {key: dict(vars(part)) for key, part in parts.items()}
        memo: dict[int, Any] = {}
        kept = list(table)
        try:
            for part in parts.values():
                vars(part).update({key: _rebuilt(value, table, memo) for key, value in vars(part).items()})
            if any(part.state for part in parts.values()):
                _count_on_tensors(parts.values())
            yield
            names = {id(table[key]): self.parameters[key] for key in kept if key in self.parameters}
            given = {id(value) for value in table.values()}
            results |= {n: value for n, value in _states(self.found, names) if id(value) not in given}
        finally:
            for key, part in parts.items():
                vars(part).clear()
                vars(part).update(saved[key])


def _states(found: tuple[tuple[str, Optimizer], ...], names: Mapping[int, str]) -> Iterator[tuple[str, torch.Tensor]]:
    for prefix, optimizer in found:
        for part in _with_inner(optimizer):
            for key, entries in cast("dict[Any, Any]", part.state).items():
                if id(key) in names:
                    for name, value in leaves(f"{prefix}.{names[id(key)]}", entries):
                        if isinstance(value, torch.Tensor):
                            yield name, value


def _with_inner(optimizer: Optimizer) -> Iterator[Optimizer]:
    """An optimizer and those that it drives."""
    yield optimizer
    for value in vars(optimizer).values():
        if isinstance(value, Optimizer) and value is not optimizer:
            yield from _with_inner(value)


def _count_on_tensors(optimizers: Iterable[Optimizer]) -> None:
    """Have optimizers compute with their count of steps as a tensor, as they do where the host must not wait for it.

    The count of an optimizer that has taken steps is an input, so that reading its value has no answer.
    """
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.update({"capturable": True} if "capturable" in group else {})


def _rebuilt(value: Any, table: Mapping[int, Any], memo: dict[int, Any]) -> Any:
    """The same containers around other tensors; what is shared stays shared."""
    if id(value) in table:
        return table[id(value)]
    if id(value) in memo or not isinstance(value, (dict, list, tuple, set)):
        return memo.get(id(value), value)
    if isinstance(value, tuple):
        parts = [_rebuilt(item, table, memo) for item in cast("tuple[Any, ...]", value)]
        kind = cast("type[Any]", type(cast("object", value)))
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)  # a named tuple takes its fields apart
    made: Any = cast("Any", value).copy()  # of the same kind, with a default factory where there is one
    made.clear()
    memo[id(cast("object", value))] = made
    if isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            made[_rebuilt(key, table, memo)] = _rebuilt(item, table, memo)
        return made
    for item in cast("list[Any]", value):
        (made.append if isinstance(value, list) else made.add)(_rebuilt(item, table, memo))
    return made
