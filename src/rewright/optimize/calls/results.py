"""What a call returns: its structure, where every tensor of it lies in memory, and how to make it from values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from rewright.frontends.torch.names import result_names
from rewright.ir.errors import RewrightError

_tree: Any = pytree
PLAIN = (
    *(int, float, complex, bool, str, bytes, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
)
"""Values that never change, and are equal where they are written alike."""
UPDATED = "updated:"
"""An output of a graph that the program writes to an input, as captures name it."""


@dataclass(frozen=True)
class Place:
    """Where one returned tensor lies: in the memory of an input, or in a buffer of its own."""

    value: str
    """The output of the graph that has its values."""
    home: str | int
    """The name of the input whose memory it is, or the number of a new buffer."""
    is_home: bool
    """Whether it is that input itself, and no view of it."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    """In the buffer, or from the input's own first element."""
    dtype: torch.dtype


@dataclass(frozen=True)
class Results:
    """What a program returns for one kind of arguments."""

    build: Callable[[Sequence[Any]], Any]
    """The returned value from its leaves."""
    leaves: tuple[Place | int | str | object, ...]
    """The leaves: tensors by their place, everything else as it is. The same tensor is the same place."""
    sizes: Mapping[int, int]
    """How many elements each new buffer has."""

    @staticmethod
    def of(returned: Any, inputs: Sequence[tuple[str, torch.Tensor]]) -> Results:
        """Read from a run on fake tensors; raises RewrightError for what cannot be made again.

        ``inputs`` are all tensors that were there before, by name; the same one may be there as several objects.
        """
        leaves, build = flattened(returned)
        named = {id(value): name for name, value in reversed(result_names(returned))}
        homes = {_memory(value): (name, value) for name, value in reversed(inputs)}
        own = {id(value): name for name, value in reversed(inputs)}
        buffers: dict[int, int] = {}
        sizes: dict[int, int] = {}
        found: list[Any] = []
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor):
                found.append(_constant(leaf))
                continue
            if id(leaf) not in named:
                raise RewrightError("it returns a tensor within an object that cannot be made again; return it itself")
            memory = _memory(leaf)
            if id(leaf) in own or memory in homes:
                name, base = (own[id(leaf)], leaf) if id(leaf) in own else homes[memory]
                found.append(_place(leaf, named[id(leaf)], name, base))
                continue
            home = buffers.setdefault(memory, len(buffers))
            sizes[home] = leaf.untyped_storage().nbytes() // leaf.element_size()
            found.append(_place(leaf, named[id(leaf)], home, None))
        _check(found)
        return Results(build, tuple(found), sizes)

    def lying_as(self, returned: Any) -> Results:
        """The same, each new tensor with the strides that it has in a value that the program returned.

        Raises RewrightError where that value has other tensors than these.
        """
        leaves, _ = flattened(returned)
        if len(leaves) != len(self.leaves):
            raise RewrightError("on its tensors the program returns others than on their stand-ins")
        found: list[Any] = []
        for leaf, value in zip(self.leaves, leaves, strict=True):
            new = leaf
            if isinstance(leaf, Place) and not isinstance(leaf.home, str) and value.stride() != leaf.strides:
                if value.shape != leaf.shape or leaf.home in self.shared or value.numel() != self.sizes[leaf.home]:
                    raise RewrightError(f"{leaf.value} lies in memory otherwise than that of its stand-in")
                new = replace(leaf, strides=tuple(value.stride()), offset=int(value.storage_offset()))
            found.append(new)
        return replace(self, leaves=tuple(found))

    @cached_property
    def shared(self) -> frozenset[str | int]:
        """The memory that several of the returned tensors lie in."""
        homes = [leaf.home for leaf in dict.fromkeys(p for p in self.leaves if isinstance(p, Place))]
        return frozenset(home for home in homes if homes.count(home) > 1)

    @cached_property
    def made(self) -> frozenset[str]:
        """The outputs of the graph that are no memory of inputs."""
        return frozenset(p.value for p in self.leaves if isinstance(p, Place) and not isinstance(p.home, str))

    @cached_property
    def _each(self) -> tuple[Place, ...] | None:
        """The results, where each is a new tensor that fills its own memory."""
        places = [leaf for leaf in self.leaves if isinstance(leaf, Place) and not isinstance(leaf.home, str)]
        fill = [p.offset == 0 and math.prod(p.shape) == self.sizes[p.home] for p in places if isinstance(p.home, int)]
        is_each = len(places) == len(set(places)) == len(self.leaves) and all(fill) and not self.shared
        return tuple(places) if is_each else None

    def alone(self, values: Mapping[str, torch.Tensor], fresh: frozenset[str]) -> list[torch.Tensor] | None:
        """The leaves, where they are values as they are; None where something is to be looked at or copied."""
        places = self._each
        if places is None or not self.made <= fresh:
            return None
        found = [values[place.value] for place in places]
        for place, value in zip(places, found, strict=True):
            if value.stride() != place.strides or value.dtype != place.dtype:
                return None
        return found if len(found) == 1 or len(set(map(id, found))) == len(found) else None

    @property
    def shares(self) -> bool:
        """Whether something returned lies in the memory of an input."""
        return any(isinstance(leaf, Place) and isinstance(leaf.home, str) for leaf in self.leaves)

    def make(
        self,
        values: Mapping[str, torch.Tensor],
        inputs: Mapping[str, torch.Tensor],
        taken: Sequence[torch.Tensor],
        fresh: frozenset[str] = frozenset(),
    ) -> Any:
        """The returned value; what is new of it is in no memory of inputs, another result, or what is ``taken``.

        Of values that are ``fresh``, in memory of their own, only another result may be it.
        """
        others = () if self.made <= fresh else (*inputs.values(), *taken)
        used = {value.untyped_storage().data_ptr() for value in others}
        buffers: dict[int, torch.Tensor] = {}
        made: dict[Place, torch.Tensor] = {}
        for leaf in self.leaves:
            if not isinstance(leaf, Place) or leaf in made:
                continue
            if isinstance(leaf.home, str):
                made[leaf] = _view(inputs[leaf.home], leaf)
                continue
            value = values[leaf.value]
            value = value if value.dtype == leaf.dtype else value.to(leaf.dtype)
            whole = leaf.offset == 0 and value.numel() == self.sizes[leaf.home]
            place = value.untyped_storage().data_ptr()
            if whole and value.stride() == leaf.strides and leaf.home not in self.shared and place not in used:
                used.add(place)
                made[leaf] = value
                continue
            if leaf.home not in buffers:
                buffers[leaf.home] = torch.empty(self.sizes[leaf.home], dtype=leaf.dtype, device=value.device)
            _store(buffers[leaf.home], leaf, value)
            made[leaf] = buffers[leaf.home].as_strided(leaf.shape, leaf.strides, leaf.offset)
        return self.build([made[leaf] if isinstance(leaf, Place) else leaf for leaf in self.leaves])

    def lines(self) -> list[str]:
        """In words, what is no new tensor."""
        found: list[str] = []
        for place in dict.fromkeys(leaf for leaf in self.leaves if isinstance(leaf, Place)):
            if isinstance(place.home, str):
                what = "is" if place.is_home else "is a view of"
                found.append(f"{place.value} {what} {place.home}")
        return found


def flattened(returned: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of a returned value, and what makes such a value of other leaves; also of dataclasses."""
    outer, spec = _tree.tree_flatten(returned)
    if not any(is_dataclass(value) for value in outer):
        if spec.is_leaf():
            return outer, lambda found: found[0]
        if type(returned) in (tuple, list) and len(outer) == len(returned) and all(map(is_, outer, returned)):
            return outer, tuple if isinstance(returned, tuple) else list
        return outer, lambda found: _tree.tree_unflatten(list(found), spec)
    parts: list[tuple[int, Callable[[Sequence[Any]], Any]]] = []
    leaves: list[Any] = []
    for value in outer:
        if is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in fields(value)]
            inner, build = flattened([getattr(value, name) for name in names])
            parts.append((len(inner), _rebuilding(value, names, build)))
            leaves += inner
        else:
            parts.append((1, lambda found: found[0]))
            leaves.append(value)

    def build_all(found: Sequence[Any]) -> Any:
        values: list[Any] = []
        start = 0
        for count, build in parts:
            values.append(build(found[start : start + count]))
            start += count
        return _tree.tree_unflatten(values, spec)

    return leaves, build_all


def _rebuilding(
    example: Any, names: Sequence[str], build: Callable[[Sequence[Any]], Any]
) -> Callable[[Sequence[Any]], Any]:
    def rebuild(found: Sequence[Any]) -> Any:
        new = copy(example)
        for name, value in zip(names, build(found), strict=True):
            object.__setattr__(new, name, value)
        return new

    return rebuild


def _constant(leaf: Any) -> Any:
    if isinstance(leaf, PLAIN):
        return leaf
    raise RewrightError(
        f"it returns a {type(leaf).__name__}, which is no tensor, number or text, nor a container of these that "
        "PyTorch can take apart; return its tensors"
    )


def _memory(value: torch.Tensor) -> int:
    storage: Any = value.untyped_storage()
    return int(storage._cdata)


def _place(leaf: torch.Tensor, name: str, home: str | int, base: torch.Tensor | None) -> Place:
    """The place of a leaf; ``base`` is the input whose memory it is."""
    if base is not leaf and not isinstance(leaf, FakeTensor):
        raise RewrightError(f"{name} is a {type(leaf).__name__}, and kernels make plain tensors; return one")
    if leaf.layout is not torch.strided or leaf.is_conj() or leaf.is_neg():
        raise RewrightError(f"{name} is sparse, or its elements stand for others; return it plain")
    offset = int(leaf.storage_offset())
    if base is not None:
        if leaf.dtype != base.dtype:
            raise RewrightError(f"{name} is the memory of {home} read as {leaf.dtype}; return a copy")
        offset -= int(base.storage_offset())
    return Place(name, home, base is leaf, tuple(leaf.shape), tuple(leaf.stride()), offset, leaf.dtype)


def _check(leaves: Sequence[Any]) -> None:
    """Buffers have one dtype, and no two elements of one tensor in one place, but for broadcasting."""
    dtypes: dict[int, torch.dtype] = {}
    for leaf in leaves:
        if not isinstance(leaf, Place) or isinstance(leaf.home, str):
            continue
        if dtypes.setdefault(leaf.home, leaf.dtype) != leaf.dtype:
            raise RewrightError(f"{leaf.value} is the memory of another result read as {leaf.dtype}; return a copy")
        steps = sorted((s, n) for s, n in zip(leaf.strides, leaf.shape, strict=True) if s and n > 1)
        reach = 0
        for step, count in steps:
            if step <= reach:
                raise RewrightError(f"{leaf.value} has several elements in one place of memory; return a copy")
            reach += step * (count - 1)


def _view(home: torch.Tensor, place: Place) -> torch.Tensor:
    """The input, or what is returned of its memory."""
    if place.is_home:
        return home
    offset = int(home.storage_offset()) + place.offset
    return (
        home.detach().as_strided(place.shape, place.strides, offset)
        if home.requires_grad
        else home.as_strided(place.shape, place.strides, offset)
    )


def _store(buffer: torch.Tensor, place: Place, value: torch.Tensor) -> None:
    """Write values into their place; broadcast axes are written once."""
    shape = tuple(1 if s == 0 and n else n for s, n in zip(place.strides, place.shape, strict=True))
    once = value[tuple(slice(0, n) for n in shape)] if shape else value
    buffer.as_strided(shape, place.strides, place.offset).copy_(once)


def update_inputs(inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What a program returns; what it writes to its inputs, as the statistics of a normalisation, is written there."""
    updates = {name.removeprefix(UPDATED): name for name in outputs if name.startswith(UPDATED)}
    if not updates:
        return dict(outputs)
    written = {inputs[name].untyped_storage().data_ptr() for name in updates}

    def kept(value: torch.Tensor) -> torch.Tensor:
        return value.clone() if value.untyped_storage().data_ptr() in written else value

    values = {name: kept(value) for name, value in outputs.items()}
    with torch.no_grad():
        for name, output in updates.items():
            inputs[name].copy_(values.pop(output))
    return values


__all__ = ["PLAIN", "UPDATED", "Place", "Results", "flattened", "update_inputs"]
