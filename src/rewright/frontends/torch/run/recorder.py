"""A recorder of what runs on real tensors.

A tensor that nobody announced is a constant of the run; views of one memory are found by their storage, because C++
code makes views that no operator tells of (the buckets of a gradient reducer).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from rewright.frontends.torch.drawing.generators import Generators
from rewright.frontends.torch.drawing.operators import drawn
from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.recorder import Recorder, Replacement
from rewright.frontends.torch.run.exchange import is_communication
from rewright.frontends.torch.run.memory import Memory, storage_key
from rewright.ir.errors import CaptureError

LARGEST_SNAPSHOT = 65_536
"""Integer results with more elements keep no copy of their value."""

_aten: Any = torch.ops.aten
PLAIN = frozenset({torch.Tensor, nn.Parameter, nn.Buffer})
_Layout = tuple[int, int, tuple[int, ...], tuple[int, ...], torch.dtype]


@dataclass(frozen=True)
class Read:
    """A value that the program looked at: the node that computed it and the line that looked."""

    node: torch.fx.Node
    line: str
    writers: tuple[torch.fx.Node, ...] = ()
    """What was last written to its memory."""


class RunRecorder(Recorder):
    """Notes what runs on real tensors; ``reads`` are values that the program looked at, which depend on its inputs."""

    kinds = PLAIN
    has_values = True

    def __init__(self, memory: Memory, replacements: Mapping[Any, Replacement], generators: Generators) -> None:
        super().__init__(replacements, generators=generators)
        self.reads: list[Read] = []
        self.memory = memory
        self.paused = 0
        self._layouts: dict[_Layout, torch.fx.Node] = {}
        self._whole: dict[int, torch.fx.Node] = {}
        self._writers: dict[int, torch.fx.Node] = {}

    def placeholder(self, tensor: torch.Tensor) -> None:
        """Announce an input of the program."""
        super().placeholder(tensor)
        _snapshot(self.node(tensor), tensor)
        self.memory.mark(tensor)

    def node(self, tensor: torch.Tensor) -> torch.fx.Node:
        """The node that holds a tensor's value; what was never seen is a constant or a view of known memory."""
        found = self.known(tensor) or self._layouts.get(_layout(tensor))
        return found if found is not None else self._unknown(tensor)

    def note(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        """Note that a node holds a tensor's value."""
        super().note(tensor, node)
        node.meta["val"] = tensor.detach()
        self._layouts[_layout(tensor)] = node
        self._whole.setdefault(storage_key(tensor), node)

    def look(self, tensor: torch.Tensor) -> None:
        """Note that the program looks at a value."""
        if type(tensor) not in self.kinds or self.paused or not self.memory.depends(tensor):
            return
        line = calling_line(inspect.currentframe()) or "an unknown line"
        self.reads.append(Read(self.node(tensor), line, self._writers_of([tensor])))

    def _writers_of(self, tensors: list[torch.Tensor]) -> tuple[torch.fx.Node, ...]:
        found = [self._writers.get(storage_key(tensor)) for tensor in tensors]
        return tuple(dict.fromkeys(node for node in found if node is not None))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (self.paused and self.kinds.issuperset(types)) or _has_no_values(types):
            return func(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)

    def replacement(self, func: Any, args: Sequence[Any]) -> Replacement | None:
        """What to run instead of an operator, if anything."""
        if is_communication(func):
            return None
        if func in _BY_MASK and _has_mask(args) and not _fills(func, args):
            return _BY_MASK[func]
        known = super().replacement(func, args)
        if known is None and func._schema.is_mutable and any(argument.is_out for argument in func._schema.arguments):
            return _writing(func)
        return known

    def record(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator, and note it, what it looks at and what it writes to."""
        if self.generators is not None and (what := drawn(func, args, kwargs)) is not None:
            result, node = self.draw(what, lambda: func(*args, **kwargs), self.generators)
            self._keep(node, func, result, True)
            return result
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        depends = any(self.memory.depends(x) for x in given)
        if func in _LOOKS:
            for tensor in given:
                self.look(tensor)
            return func(*args, **kwargs)
        for tensor in _groups(func, args, kwargs):
            self.look(tensor)
        inputs = self.inputs(args, kwargs)  # a constant has its value of now
        result = func(*args, **kwargs)
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        if (not func._schema.is_mutable and not made) or _has_no_values(map(type, made)):
            return result
        dynamic = torch.Tag.dynamic_output_shape in func.tags and func not in _BY_MASK  # masks are gone by now
        if dynamic:
            for tensor in given:
                self.look(tensor)
        writers = self._writers_of(given)
        node = self.add(func, inputs, result)
        node.meta["writers"] = writers
        node.meta["dynamic"] = dynamic
        for tensor in _written(func, args, kwargs):
            self.memory.mark(tensor, depends)
            self._writers[storage_key(tensor)] = node
        self._keep(node, func, result, depends)
        return result

    def _keep(self, node: torch.fx.Node, func: Any, result: Any, depends: bool) -> None:
        """Remember of results whether they depend on inputs, and their values where they are whole numbers."""
        node.meta["depends"] = depends
        unfinished = isinstance(result, torch.Tensor) and func.namespace == "rewright"
        has_value = not unfinished and func.overloadpacket not in _ALLOCATIONS
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                part = self.node(tensor)
                part.meta["depends"] = depends
                self.memory.mark(tensor, depends)
                if has_value:
                    _snapshot(part, tensor)

    def _unknown(self, tensor: torch.Tensor) -> torch.fx.Node:
        if isinstance(tensor, nn.Parameter) and tensor.requires_grad:
            line = calling_line(inspect.currentframe())
            advice = "pass that module as an argument"
            raise CaptureError(f"the program uses a parameter of a module that it does not name at {line}; {advice}")
        known = self._whole.get(storage_key(tensor))
        if known is None and (not tensor.is_contiguous() or tensor.storage_offset() or not _is_whole_storage(tensor)):
            storage = tensor.untyped_storage()
            length = storage.nbytes() // tensor.element_size()
            empty: Any = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            known = self._constant(empty.set_(storage, 0, (length,)))
        if known is None:
            return self._constant(tensor)
        arguments = (known, list(tensor.shape), list(tensor.stride()), int(tensor.storage_offset()))
        node = self.create_node("call_function", _aten.as_strided.default, arguments, {})
        self.note(tensor, node)
        return node

    def _constant(self, tensor: torch.Tensor) -> torch.fx.Node:
        """A constant with the value of now; the program may overwrite the tensor later."""
        with torch.no_grad():
            return self.constant(tensor, tensor.detach().clone())


def pinned_attribute(root: nn.Module, value: torch.Tensor) -> str:
    """The name of a new attribute that holds a value of the run."""
    name = f"pinned_{sum(1 for _ in root.buffers())}"
    root.register_buffer(name, value)
    return name


def _has_no_values(types: Any) -> bool:
    """Whether shapes alone are computed, as DTensor does to plan an operator."""
    return any(issubclass(kind, FakeTensor) for kind in types)


def _snapshot(node: torch.fx.Node, tensor: torch.Tensor) -> None:
    if not tensor.is_floating_point() and tensor.numel() <= LARGEST_SNAPSHOT:
        node.meta["value"] = tensor.detach().clone()


def _layout(tensor: torch.Tensor) -> _Layout:
    place = (storage_key(tensor), int(tensor.storage_offset()))
    return (*place, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def _is_whole_storage(tensor: torch.Tensor) -> bool:
    """Whether a tensor is all that its storage holds."""
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def _writing(func: Any) -> Callable[..., Any]:
    """An operator with an ``out`` argument as its functional form and a copy."""

    def run(*args: Any, out: Any, **kwargs: Any) -> Any:
        return out.copy_(func.overloadpacket(*args, **kwargs))

    return run


def _has_mask(args: Any) -> bool:
    indices = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    return any(isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8) for x in cast("list[Any]", indices))


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that an operator writes to."""
    places = enumerate(func._schema.arguments) if func._schema.is_mutable else ()
    given = [
        args[place] if place < len(args) else kwargs.get(argument.name)
        for place, argument in places
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return [x for x in tree_leaves(given) if isinstance(x, torch.Tensor)]


def _groups(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """What says which rows a grouped product multiplies with which matrix: it splits by values, as an all-to-all."""
    found = [kwargs.get("offs"), *args[2:3]] if func is _aten._grouped_mm.default else []
    return [x for x in found if x is not None]


def _fills(func: Any, args: Any) -> bool:
    """Whether one number is written wherever a mask holds: where that is may be any."""
    indices = args[1] if func is _aten.index_put_.default else ()
    is_mask = len(indices) == 1 and indices[0].dtype is torch.bool and indices[0].shape == args[0].shape
    return is_mask and args[2].numel() == 1


def _places(indices: Any) -> list[Any]:
    """Indices with every mask replaced by the places where it holds."""
    found: list[Any] = []
    for index in indices:
        if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8):
            found += index.nonzero().unbind(1)
        else:
            found.append(index)
    return found


def _index(x: torch.Tensor, indices: Any) -> torch.Tensor:
    return _aten.index.Tensor(x, _places(indices))


def _index_put(x: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    return _aten.index_put_.default(x, _places(indices), values, accumulate)


def _masked_select(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    untyped: Any = torch
    wide, chosen = untyped.broadcast_tensors(x, mask)
    return _aten.index.Tensor(wide, list(chosen.nonzero().unbind(1)))


_BY_MASK: dict[Any, Callable[..., Any]] = {
    _aten.index.Tensor: _index,
    _aten.index_put_.default: _index_put,
    _aten.masked_select.default: _masked_select,
}
"""Operators that choose by a mask: which elements is a value of the run."""

_ALLOCATIONS = frozenset(
    {_aten.empty, _aten.empty_like, _aten.empty_permuted, _aten.empty_strided, _aten.new_empty, _aten.new_empty_strided}
)
"""Operators that give memory as it is: what it holds is no value of the run."""

_LOOKS = frozenset({_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default})
"""Operators whose result is no tensor: the program looks at values."""
