"""Calls in graphs that others captured, as nodes that can be checked: the calls are known, and the program is not."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import torch
import torch.fx

from rewright.frontends.aten.tables import is_known
from rewright.frontends.graph_json.calls import GETITEM, part_types
from rewright.frontends.graph_json.document import Document, Record, Ref, Word
from rewright.frontends.torch.lower.sizes import TORCH
from rewright.frontends.torch.traced import TracedProgram
from rewright.frontends.torch.validation.calls import Calls
from rewright.frontends.validation.record import Validation
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.graph import NO_SPAN
from rewright.ir.types import SourceSpan, TensorType

_UNKNOWN = "it is a graph in a file"
"""Why the whole program is not run."""


def checked(documents: Sequence[Document]) -> Validation:
    """What was checked of the calls of documents; raises CaptureError at the first whose lowering gives something else.

    Sizes that are symbols are left out, with the calls that have them.
    """
    calls = Calls()
    for document in documents:
        calls.add(_Nodes(document).program())
    found = calls.record()
    return Validation(found.calls, found.difference, found.skipped, _UNKNOWN, found.seed)


class _Nodes:
    """The records of a document as nodes of a trace."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._parts = part_types(document)
        self._graph = torch.fx.Graph()
        self._nodes: dict[int, torch.fx.Node] = {}
        self._spans: dict[torch.fx.Node, SourceSpan] = {}

    def program(self) -> TracedProgram:
        """The calls of ATen whose types are known and have no symbols."""
        for record in self._document.records:
            target = _target(record.target)
            if record.op != "call_function" or target is None or _has_symbols([record.args, record.kwargs]):
                self._place(record, self._graph.placeholder(f"x{record.id}"))
                continue
            arguments = tuple(self._argument(argument) for argument in record.args)
            keywords = {key: self._argument(value) for key, value in record.kwargs.items()}
            self._place(record, self._graph.call_function(target, arguments, keywords))
        self._graph.output(self._argument(self._document.outputs))
        module = cast("torch.fx.GraphModule", SimpleNamespace(graph=self._graph))
        return TracedProgram(module, (), (), lambda node: self._spans.get(node, NO_SPAN))

    def _place(self, record: Record, node: torch.fx.Node) -> None:
        self._nodes[record.id] = node
        self._spans[node] = record.span
        node.meta["val"] = self._value(record)

    def _value(self, record: Record) -> Any:
        """What a node gives, as tensors without numbers; None for what has no type, or has symbols in it."""
        if record.type is not None:
            return _tensor(record.type, record.stride)
        parts: Mapping[int, TensorType] = self._parts.get(record.id, {})
        several = [_tensor(parts[k], None) if k in parts else None for k in range(max(parts, default=-1) + 1)]
        return tuple(several) if several else None

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            return self._nodes[argument.id]
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in cast("Sequence[Any]", argument)]
        if isinstance(argument, Word):
            return torch.device("cpu") if argument.kind == "device" else _name(argument.text)
        return _name(argument) if isinstance(argument, str) and argument.startswith("torch.") else argument


def _target(name: str) -> Any:
    """The operator of a name such as ``aten.mm.default``; None for one that is not lowered.

    A file may name any operator, and some write files or run programs: no other one is run.
    """
    if name == GETITEM:
        return operator.getitem
    if not is_known(name):
        return None
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None) if part.isidentifier() else None
    return found if hasattr(found, "_schema") else None


def _name(text: str) -> Any:
    """The dtype, layout or memory format of a name."""
    return getattr(torch, text.removeprefix("torch."), None)


def _tensor(kind: TensorType, stride: tuple[Dim, ...] | None) -> torch.Tensor | None:
    if kind.dtype not in TORCH or not kind.is_static() or _has_symbols(stride or ()):
        return None
    shape = [int(str(n)) for n in kind.shape]
    if stride is None:
        return torch.empty(shape, dtype=TORCH[kind.dtype], device="meta")
    return torch.empty_strided(shape, [int(str(n)) for n in stride], dtype=TORCH[kind.dtype], device="meta")


def _has_symbols(argument: Any) -> bool:
    if isinstance(argument, dict):
        argument = list(cast("dict[str, Any]", argument).values())
    if isinstance(argument, (list, tuple)):
        return any(map(_has_symbols, cast("Sequence[Any]", argument)))
    return isinstance(argument, SizeExpr)
