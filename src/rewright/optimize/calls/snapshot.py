"""What was looked at, kept as it was: a check of identities that costs far less than looking again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import torch

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
    sequences: list[tuple[Sequence[Any], list[Any]]] = field(default_factory=list[Any])
    sets: list[tuple[AbstractSet[Any], AbstractSet[Any]]] = field(default_factory=list[Any])
    attributes: list[tuple[Any, str, Any]] = field(default_factory=list[Any])
    entries: list[tuple[Mapping[str, Any], str, Any]] = field(default_factory=list[Any])
    variables: list[tuple[Any, Any]] = field(default_factory=list[Any])
    arrays: list[tuple[Any, bytes]] = field(default_factory=list[Any])

    def mapping(self, value: Mapping[Any, Any]) -> None:
        """Keep a mapping, with its order."""
        if value:
            self.mappings.append((value, list(value), list(value.values())))
        else:
            self.empty.append(value)

    def holds(self) -> bool:
        """Whether everything is where it was."""
        try:
            return (
                not any(self.empty)
                and all(len(d) == len(k) and _same(d, k) and _same(d.values(), v) for d, k, v in self.mappings)
                and all(len(s) == len(v) and _same(s, v) for s, v in self.sequences)
                and all(len(s) == len(v) and s == v for s, v in self.sets)
                and all(getattr(o, n, MISSING) is v for o, n, v in self.attributes)
                and all(d.get(n, MISSING) is v for d, n, v in self.entries)
                and all(x.get(MISSING) is v for x, v in self.variables)
                and all(a.tobytes() == b for a, b in self.arrays)
            )
        except (RuntimeError, ValueError):  # changed while it was looked at; an empty cell
            return False


def _same(found: Iterable[Any], kept: Iterable[Any]) -> bool:
    return all(map(is_, found, kept))
