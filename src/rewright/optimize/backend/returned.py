"""What a graph returns: which tensors have to be computed, and where in the memory of which every result lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rewright.ir.errors import RewrightError
from rewright.optimize.backend.plain import Plain


@dataclass(frozen=True)
class Layout:
    """Where the elements of a tensor lie in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill a stretch of memory, each one place of it."""
        reach = 1
        for stride, size in sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n != 1):
            if stride != reach:
                return False
            reach *= size
        return True


@dataclass(frozen=True)
class Home:
    """A result in the memory of an argument, or of a computed tensor, by its number."""

    is_argument: bool
    number: int
    layout: Layout
    is_whole: bool
    """Whether it is that tensor itself."""


@dataclass(frozen=True)
class Returned:
    """The results of a graph, made of its arguments and of what it computes."""

    module: torch.fx.GraphModule
    """It returns what has to be computed and nothing else."""
    computed: tuple[Layout, ...]
    leaves: tuple[Home | object, ...]
    """Results that are no tensors are as they are."""
    arguments: Mapping[int, tuple[int, ...]]
    """The strides of the arguments whose memory is returned."""
    first: tuple[int, ...]
    """For each result the first one that is the same tensor: two views of one memory may be alike, and have gradients
    of their own."""

    @cached_property
    def whole(self) -> tuple[int, ...] | None:
        """Which computed tensor each result is, where each is one as it is; else None."""
        homes = [leaf for leaf in self.leaves if isinstance(leaf, Home) and leaf.is_whole and not leaf.is_argument]
        return tuple(home.number for home in homes) if len(homes) == len(self.leaves) else None

    def make(self, values: Sequence[torch.Tensor], arguments: Sequence[torch.Tensor]) -> list[Any]:
        """The results, from what was computed; what is new is in no memory of another."""
        used = {a.untyped_storage().data_ptr() for a in arguments}
        bases: list[torch.Tensor] = []
        for value, layout in zip(values, self.computed, strict=True):
            if value.device != layout.device:
                value = value.to(layout.device)
            new = value
            place = value.untyped_storage().data_ptr()
            as_it_is = value.stride() == layout.strides and value.dtype == layout.dtype and not value.storage_offset()
            if not as_it_is or place in used:
                new = torch.empty_strided(layout.shape, layout.strides, dtype=layout.dtype, device=value.device)
                place = new.copy_(value).untyped_storage().data_ptr()
            used.add(place)
            bases.append(new)
        if self.whole is not None:
            return [bases[number] for number in self.whole]
        made: list[Any] = []
        for first, leaf in zip(self.first, self.leaves, strict=True):
            if not isinstance(leaf, Home) or first < len(made):
                made.append(made[first] if isinstance(leaf, Home) else leaf)
                continue
            home = arguments[leaf.number] if leaf.is_argument else bases[leaf.number]
            made.append(home if leaf.is_whole else _within(home, leaf))
        return made


def returned_by(plain: Plain, examples: Sequence[torch.Tensor]) -> Returned:
    """Look at a run of a graph on fake tensors; raises RewrightError for results that cannot be made again."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        given = [mode.from_tensor(example) for example in examples]
        run = torch.fx.Interpreter(plain.module, garbage_collect_values=False)
        results: Sequence[Any] = run.run(*given)
    values: dict[torch.fx.Node, Any] = {n: v for n, v in run.env.items() if isinstance(v, torch.Tensor)}
    homes = {_memory(value): number for number, value in reversed(list(enumerate(given)))}
    computed: list[torch.fx.Node] = []
    leaves: list[Home | object] = []
    nodes = list(_results(plain.module))
    for node, result in zip(nodes, results, strict=True):
        if not isinstance(result, torch.Tensor):
            leaves.append(result)
        elif (memory := _memory(result)) in homes:
            number = next((n for n, value in enumerate(given) if value is result), homes[memory])
            leaves.append(_home(True, number, result, given[number]))
        else:
            base = _base(node, values)
            if base not in computed:
                computed.append(base)
            leaves.append(_home(False, computed.index(base), result, values[base]))
    strides = {h.number: tuple(given[h.number].stride()) for h in leaves if isinstance(h, Home) and h.is_argument}
    layouts = tuple(_layout(values[node]) for node in computed)
    first = tuple(nodes.index(node) for node in nodes)
    return Returned(_returning(plain.module, computed), layouts, tuple(leaves), strides, first)


def _results(module: torch.fx.GraphModule) -> Sequence[Any]:
    output = next(iter(reversed(module.graph.nodes)))
    return cast("Sequence[Any]", output.args[0])


def _base(node: torch.fx.Node, values: Mapping[torch.fx.Node, torch.Tensor]) -> torch.fx.Node:
    """The tensor that is computed for a result: the first one that fills the same memory, else the result itself."""
    result = values[node]
    bytes_of = result.untyped_storage().nbytes()
    same = [n for n, value in values.items() if _memory(value) == _memory(result) and value.dtype == result.dtype]
    whole = [n for n in same if _layout(values[n]).is_dense and values[n].nbytes == bytes_of]
    if not whole and not _layout(result).is_dense:
        raise RewrightError(f"{node.name} is a part of no tensor of the graph; return a copy")
    return next((n for n in whole if values[n].is_contiguous()), whole[0] if whole else node)


def _home(is_argument: bool, number: int, result: torch.Tensor, base: torch.Tensor) -> Home:
    if result.dtype != base.dtype or result.is_conj() or result.is_neg():
        raise RewrightError("a result is the memory of another tensor, read as something else")
    layout, own = _layout(result), _layout(base)
    is_whole = result is base if is_argument else layout == own
    return Home(is_argument, number, replace(layout, offset=layout.offset - own.offset), is_whole)


def _within(home: torch.Tensor, leaf: Home) -> torch.Tensor:
    """A tensor in the memory of another one, and no view for autograd."""
    new, layout = torch.empty(0, dtype=home.dtype, device=home.device), leaf.layout
    return new.set_(home.untyped_storage(), int(home.storage_offset()) + layout.offset, layout.shape, layout.strides)


def _layout(value: torch.Tensor) -> Layout:
    return Layout(tuple(value.shape), tuple(value.stride()), int(value.storage_offset()), value.dtype, value.device)


def _memory(value: torch.Tensor) -> int:
    storage: Any = value.untyped_storage()
    return int(storage._cdata)


def _returning(module: torch.fx.GraphModule, nodes: Sequence[torch.fx.Node]) -> torch.fx.GraphModule:
    """The graph with other results."""
    graph, copies = torch.fx.Graph(), dict[torch.fx.Node, torch.fx.Node]()
    graph.graph_copy(module.graph, copies)
    graph.output(tuple(copies[node] for node in nodes))
    return torch.fx.GraphModule(module, graph)
