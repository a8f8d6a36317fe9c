"""A recorder under the dispatcher: every operator that runs becomes a node of a flat ATen graph.

It sits below autograd, like the tracer of the other route, and writes the same kind of graph, so that one lowering
serves both. Tensors are real. One that nobody announced is a constant of the run; views of one memory are found by
their storage, because C++ code makes views that no operator tells of (the buckets of a gradient reducer).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.run.exchange import is_communication
from rewright.frontends.torch.run.memory import Memory, storage_key
from rewright.ir.errors import CaptureError

LARGEST_SNAPSHOT = 65_536
"""Integer results with more elements keep no copy of their value."""

_aten: Any = torch.ops.aten
_PLAIN = (torch.Tensor, nn.Parameter, nn.Buffer)
_Layout = tuple[int, int, tuple[int, ...], tuple[int, ...], torch.dtype]


@dataclass(frozen=True)
class Read:
    """A value that the program looked at: the node that computed it and the line that looked."""

    node: torch.fx.Node
    line: str
    writers: tuple[torch.fx.Node, ...] = ()
    """What was last written to its memory."""


class Recorder(TorchDispatchMode):
    """Notes operators in ``graph``; ``reads`` are values that the program looked at and that depend on its inputs."""

    def __init__(self, memory: Memory, decompositions: Mapping[Any, Callable[..., Any]]) -> None:
        TorchDispatchMode.__init__(self)  # pyright: ignore[reportUnknownMemberType]
        self.graph = torch.fx.Graph()
        self.root = nn.Module()
        self.reads: list[Read] = []
        self.memory = memory
        self.paused = 0
        self._decompositions = decompositions
        self._nodes: dict[int, torch.fx.Node] = {}
        self._layouts: dict[_Layout, torch.fx.Node] = {}
        self._whole: dict[int, torch.fx.Node] = {}
        self._held: list[torch.Tensor] = []
        self._writers: dict[int, torch.fx.Node] = {}

    def create_node(self, *args: Any, **kwargs: Any) -> torch.fx.Node:
        """Add a node to the graph: the one place where nodes are made."""
        return self.graph.create_node(*args, **kwargs)

    def placeholder(self, tensor: torch.Tensor) -> None:
        """Announce an input of the program."""
        node = self.create_node("placeholder", f"input_{len(self._nodes)}", (), {})
        self._note(tensor, node)
        self._snapshot(node, tensor)
        self.memory.mark(tensor)

    def node(self, tensor: torch.Tensor) -> torch.fx.Node:
        """The node that holds a tensor's value; what was never seen is a constant or a view of known memory."""
        found = self._nodes.get(id(tensor)) or self._layouts.get(_layout(tensor))
        return found if found is not None else self._unknown(tensor)

    def look(self, tensor: torch.Tensor) -> None:
        """Note that the program looks at a value."""
        if type(tensor) not in _PLAIN or self.paused or not self.memory.depends(tensor):
            return
        line = calling_line(inspect.currentframe()) or "an unknown line"
        self.reads.append(Read(self.node(tensor), line, self._writers_of([tensor])))

    def _writers_of(self, tensors: list[torch.Tensor]) -> tuple[torch.fx.Node, ...]:
        found = [self._writers.get(storage_key(tensor)) for tensor in tensors]
        return tuple(dict.fromkeys(node for node in found if node is not None))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind not in _PLAIN for kind in types):
            return NotImplemented
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        replacement = self._replacement(func, args)
        if replacement is not None:
            with self:
                return replacement(*args, **kwargs)
        return self._record(func, args, kwargs)

    def _replacement(self, func: Any, args: Any) -> Callable[..., Any] | None:
        """What to run instead of an operator, if anything."""
        if func in self._decompositions:
            return self._decompositions[func]
        keys: Any = torch._C.DispatchKey  # pyright: ignore[reportPrivateUsage]
        if func.has_kernel_for_dispatch_key(keys.CompositeImplicitAutograd) and not is_communication(func):
            return func.decompose
        if func._schema.is_mutable and any(argument.is_out for argument in func._schema.arguments):
            return _writing(func)
        if func in _BY_MASK and _has_mask(args):
            return _BY_MASK[func]
        return None

    def _record(self, func: Any, args: Any, kwargs: Any) -> Any:
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        depends = any(self.memory.depends(x) for x in given)
        inputs, options = tree_map_only(torch.Tensor, self.node, (args, kwargs))
        if func in _LOOKS:
            for tensor in given:
                self.look(tensor)
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        results = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        if not results and not func._schema.is_mutable:
            return result
        dynamic = torch.Tag.dynamic_output_shape in func.tags and func not in _BY_MASK  # masks are gone by now
        if dynamic:
            for tensor in given:
                self.look(tensor)
        writers = self._writers_of(given)
        node = self.create_node("call_function", func, tuple(inputs), dict(options))
        node.meta["writers"] = writers
        node.meta["dynamic"] = dynamic
        node.meta["depends"] = depends
        self._keep(node, func, given, result, depends)
        return result

    def _keep(self, node: torch.fx.Node, func: Any, given: list[torch.Tensor], result: Any, depends: bool) -> None:
        """Remember the results of an operator, and what it wrote."""
        if func._schema.is_mutable:
            for tensor in given:
                self.memory.mark(tensor, depends)
                self._writers[storage_key(tensor)] = node
        if isinstance(result, torch.Tensor):
            self._note(result, node)
            self.memory.mark(result, depends)
            if func.namespace != "rewright":
                self._snapshot(node, result)
            return
        node.meta["val"] = tree_map_only(torch.Tensor, _alias, result)
        several: Sequence[Any] = cast("Sequence[Any]", result) if isinstance(result, (tuple, list)) else ()
        for index, part in enumerate(several):
            if isinstance(part, torch.Tensor):
                item = self.create_node("call_function", operator.getitem, (node, index), {})
                item.meta["depends"] = depends
                self._note(part, item)
                self._snapshot(item, part)
                self.memory.mark(part, depends)

    def _note(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        node.meta["val"] = _alias(tensor)
        self._nodes[id(tensor)] = node
        self._layouts[_layout(tensor)] = node
        self._whole.setdefault(storage_key(tensor), node)
        self._held.append(tensor)  # so that neither its identity nor that of its memory is used again

    def _snapshot(self, node: torch.fx.Node, tensor: torch.Tensor) -> None:
        if not tensor.is_floating_point() and tensor.numel() <= LARGEST_SNAPSHOT:
            node.meta["value"] = tensor.detach().clone()

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
        self._note(tensor, node)
        return node

    def _constant(self, tensor: torch.Tensor) -> torch.fx.Node:
        """An attribute with the value of now; the program may overwrite the tensor later."""
        name = f"constant_{len(self._held)}"
        with torch.no_grad():
            self.root.register_buffer(name, tensor.detach().clone())
        node = self.create_node("get_attr", name, (), {})
        self._note(tensor, node)
        return node


def pinned_attribute(root: nn.Module, value: torch.Tensor) -> str:
    """The name of a new attribute that holds a value of the run."""
    name = f"pinned_{sum(1 for _ in root.buffers())}"
    root.register_buffer(name, value)
    return name


def _alias(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()


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

_LOOKS = frozenset({_aten._local_scalar_dense.default, _aten.equal.default, _aten.is_nonzero.default})
"""Operators whose result is no tensor: the program looks at values."""
