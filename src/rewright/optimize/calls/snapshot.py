"""What was looked at, kept as it was: a check of identities that costs far less than looking again."""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterable, KeysView, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import is_
from typing import Any

import torch

from rewright.optimize.calls.tensors import state_of

_dict: Any = dict
MISSING = object()
"""Stands for what a name did not mean."""


@dataclass
class Held:
    """A tensor that the program reaches by itself, with the bits that it had."""

    path: str
    tensor: torch.Tensor
    bits: torch.Tensor | None
    """None for a tensor without values."""

    @staticmethod
    def of(path: str, tensor: torch.Tensor) -> Held:
        """The tensor as it is now."""
        has_values = tensor.device.type != "meta" and type(tensor) in (
            torch.Tensor,
            torch.nn.Parameter,
            torch.nn.Buffer,
        )
        return Held(path, tensor, bits(tensor).clone() if has_values else None)

    def is_same(self) -> bool:
        """Whether every bit is what it was; version counters do not count writes through ``.data`` or NumPy."""
        return self.bits is None or torch.equal(bits(self.tensor), self.bits)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor as bytes, so that undefined ones are equal to themselves."""
    plain = tensor.detach().resolve_neg().resolve_conj().contiguous().reshape(-1)
    return plain.view(torch.uint8) if plain.numel() else plain.to(torch.uint8)


@dataclass
class Snapshot:
    """Containers with what they held: the same objects in the same places are the same state."""

    mappings: list[tuple[Mapping[Any, Any], list[Any], list[Any]]] = field(default_factory=list[Any])
    empty: list[Any] = field(default_factory=list[Any])
    """Mappings without entries, as most tables of hooks are: they are looked at all at once."""
    sequences: list[tuple[Collection[Any], list[Any]]] = field(default_factory=list[Any])
    sets: list[tuple[AbstractSet[Any], AbstractSet[Any]]] = field(default_factory=list[Any])
    attributes: list[tuple[Any, str, Any]] = field(default_factory=list[Any])
    entries: list[tuple[Mapping[str, Any], str, Any]] = field(default_factory=list[Any])
    variables: list[tuple[Any, Any]] = field(default_factory=list[Any])
    arrays: list[tuple[Any, bytes]] = field(default_factory=list[Any])

    owners: list[tuple[Any, Any]] = field(default_factory=list[Any])
    """Objects with the tables of their attributes, which may be exchanged."""
    tensors: list[tuple[torch.Tensor, tuple[str, ...], Any]] = field(default_factory=list[Any])
    """Inputs with what is read of them beside their values."""

    def mapping(self, value: Mapping[Any, Any]) -> None:
        """Keep a mapping, with its order."""
        found = list(entries_of(value))
        if found:
            self.mappings.append((value, [key for key, _ in found], [item for _, item in found]))
        else:
            self.empty.append(value)
        if type(value) is not dict:  # it may have an order of its own
            self.sequences.append((value, list(value)))

    @cached_property
    def _whole(self) -> _Whole:
        return _Whole.of(self.mappings)

    def holds(self) -> bool:
        """Whether everything is where it was, once all was looked at."""
        try:
            return all(check() for check in self._checks)
        except (RuntimeError, ValueError):  # changed while it was looked at; an empty cell
            return False

    @cached_property
    def _checks(self) -> tuple[Callable[[], bool], ...]:
        """One check for each kind of things that there are."""
        checks: tuple[tuple[Collection[Any], Callable[[], bool]], ...] = (
            (self.empty, lambda: not any(map(_length, self.empty))),
            (self.mappings, lambda: self._whole.holds()),
            (self.owners, lambda: all(vars(o) is d for o, d in self.owners)),
            (self.tensors, lambda: all(state_of(t, names) == said for t, names, said in self.tensors)),
            (self.sequences, lambda: all(len(s) == len(v) and _same(s, v) for s, v in self.sequences)),
            (self.sets, lambda: all(len(s) == len(v) and s == v for s, v in self.sets)),
            (self.attributes, lambda: all(getattr(o, n, MISSING) is v for o, n, v in self.attributes)),
            (self.entries, lambda: all(d.get(n, MISSING) is v for d, n, v in self.entries)),
            (self.variables, lambda: all(x.get(MISSING) is v for x, v in self.variables)),
            (self.arrays, lambda: all(a.tobytes() == b for a, b in self.arrays)),
        )
        return tuple(check for things, check in checks if things)


@dataclass(frozen=True)
class _Whole:
    """Many mappings, compared at once: views of them follow what they hold."""

    named: list[Collection[Any]]
    """The keys of those whose keys are texts."""
    names: list[list[str]]
    others: list[tuple[KeysView[Any], list[Any]]]
    views: list[Iterable[Any]]
    values: list[Any]

    @staticmethod
    def of(mappings: list[tuple[Mapping[Any, Any], list[Any], list[Any]]]) -> _Whole:
        """Mappings with the keys and the values that they had."""
        plain = [all(type(key) is str for key in keys) for _, keys, _ in mappings]
        every = [(_keys(d), keys) for d, keys, _ in mappings]
        named = [each for each, is_named in zip(every, plain, strict=True) if is_named]
        others = [each for each, is_named in zip(every, plain, strict=True) if not is_named]
        values = list(chain.from_iterable(held for _, _, held in mappings))
        return _Whole(
            [d for d, _ in named], [keys for _, keys in named], others, [_values(d) for d, _, _ in mappings], values
        )

    def holds(self) -> bool:
        """Whether all have the keys that they had, in order, and the same objects under them."""
        return (
            list(map(list, self.named)) == self.names
            and all(len(d) == len(keys) and _same(d, keys) for d, keys in self.others)
            and _same(chain.from_iterable(self.views), self.values)
        )


def _keys(value: Mapping[Any, Any]) -> KeysView[Any]:
    """The keys as they are, whatever a class of its own says they are; a view, which follows."""
    return _dict.keys(value) if isinstance(value, dict) else value.keys()


def _values(value: Mapping[Any, Any]) -> ValuesView[Any]:
    return _dict.values(value) if isinstance(value, dict) else value.values()


def entries_of(value: Mapping[Any, Any]) -> ItemsView[Any, Any]:
    """The entries of a mapping as they are."""
    return _dict.items(value) if isinstance(value, dict) else value.items()


def _length(value: Mapping[Any, Any]) -> int:
    return len(_keys(value))


def _same(found: Iterable[Any], kept: Iterable[Any]) -> bool:
    return all(map(is_, found, kept))
