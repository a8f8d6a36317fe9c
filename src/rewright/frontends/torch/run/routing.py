"""What a program looked at is fixed at the value of the run, together with the integers that it was computed from.

A program that branches on a value, or splits by it, is recorded as it went: the record is the program for all inputs
that give the same value there. The integers behind such a value (which expert a token goes to) become constants of
the run, because nothing can be said about a permutation that is not known. They are where integers come from: the
results of operators on floats (a top-k), masks, integer inputs, and messages.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx

from rewright.frontends.torch.run.recorder import Read, pinned_attribute
from rewright.ir.types import SourceSpan

ONE_RUN = "captured from one run: branches, shapes and constants made of values are those of that run"

Spans = Callable[[torch.fx.Node], SourceSpan]

_aten: Any = torch.ops.aten
_CHOOSING = {
    _aten.topk.default: 2,
    _aten.sort.default: 1,
    _aten.sort.stable: 2,
    _aten.max.dim: 1,
    _aten.min.dim: 1,
}
"""Operators that give values and where they were found, and which argument is the axis."""


def fix_reads(
    module: torch.fx.GraphModule, reads: Sequence[Read], names: tuple[str, ...], spans: Spans
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Replace what was looked at by its value; the names of the inputs that are left, and what is assumed."""
    origins = _origins([node for read in reads for node in (read.node, *read.writers)])
    fixed = [node for node in origins if "value" in node.meta and not _is_written(node)]
    known = frozenset(fixed)
    lines = dict.fromkeys(read.line for read in reads if not _follows((read.node, *read.writers), known))
    assumed = [ONE_RUN, *(f"the value that {line} looks at is that of the run" for line in lines)]
    kept = _without_inputs(module, fixed, names)
    assumed += [f"the input {name!r} is that of the run" for name in names if name not in kept]
    places = dict.fromkeys(_place(node, spans) for node in fixed if node.op != "placeholder")
    assumed += [f"the integers computed at {place} are those of the run" for place in places]
    for node in fixed:
        _fix(module, node)
    _fold(module)
    for node in reversed(list(module.graph.nodes)):
        if not node.users and (node.meta.get("fixed") or _may_go(node)):
            module.graph.erase_node(node)
    module.graph.lint()
    return kept, tuple(assumed)


def _fold(module: torch.fx.GraphModule) -> None:
    """Replace integers that are computed from constants alone, and those whose number is a value of the run."""
    written = {x for node in module.graph.nodes if _is_written(node) for x in node.all_input_nodes}
    for node in list(module.graph.nodes):
        if node.op != "call_function" or "value" not in node.meta or _is_written(node):
            continue
        schema: Any = getattr(node.target, "_schema", None)
        views = schema is None or any(result.alias_info is not None for result in schema.returns)
        operands = node.all_input_nodes
        constant = bool(operands) and all(x.op == "get_attr" and x not in written for x in operands)
        constant = constant and not node.meta.get("writers")
        if node.meta.get("dynamic") or (constant and not views and not _communicates(node)):
            _fix(module, node)


def _communicates(node: torch.fx.Node) -> bool:
    return str(node.target).startswith(("_c10d", "_dtensor", "rewright"))


def _may_go(node: torch.fx.Node) -> bool:
    """Whether a node that nothing reads can be left out."""
    return node.op in ("get_attr", "call_function") and not (_is_written(node) or _communicates(node))


def _origins(looked: Iterable[torch.fx.Node]) -> list[torch.fx.Node]:
    """The integer and boolean nodes that looked-at values come from, through integers only."""
    found: dict[torch.fx.Node, None] = {}
    seen: set[torch.fx.Node] = set()
    left = list(looked)
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        if _is_float(node):
            continue
        operands = [x for x in _sources(node) if x.meta.get("depends", x.op == "placeholder")]
        if node.target is operator.getitem:
            operands = [x for source in operands for x in _sources(source)]
        starts = node.op == "placeholder" or _communicates(node)
        if starts or any(_is_float(x) for x in operands):
            found[node] = None
        else:
            left += operands
    return list(found)


def _follows(nodes: Iterable[torch.fx.Node], fixed: frozenset[torch.fx.Node]) -> bool:
    """Whether values are computed from fixed ones and constants alone."""
    left, seen = list(nodes), set[torch.fx.Node]()
    while left:
        one = left.pop()
        if one in seen or one in fixed:
            continue
        seen.add(one)
        if one.op == "placeholder" or _communicates(one):
            return False
        left += _sources(one)
    return True


def _sources(node: torch.fx.Node) -> list[torch.fx.Node]:
    """What a node reads, and what wrote the memory that it reads."""
    return [*node.all_input_nodes, *node.meta.get("writers", ())]


def _is_float(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_written(node: torch.fx.Node) -> bool:
    """Whether a node is the result of a write, or is written: its value is not that of its memory."""
    schema: Any = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


def _without_inputs(
    module: torch.fx.GraphModule, fixed: Sequence[torch.fx.Node], names: tuple[str, ...]
) -> tuple[str, ...]:
    """The names of the placeholders that are not fixed."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in fixed:
        node.meta["fixed"] = True
    return tuple(name for node, name in zip(placeholders, names, strict=True) if not node.meta.get("fixed"))


def _place(node: torch.fx.Node, spans: Spans) -> str:
    source = node.args[0] if node.target is operator.getitem else node
    return str(spans(node) if spans(node).file else spans(source)) if isinstance(source, torch.fx.Node) else ""


def _fix(module: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Put the value of the run in place of a node; values chosen along with it are looked up there."""
    with module.graph.inserting_before(_after_inputs(module, node)):
        constant = module.graph.get_attr(pinned_attribute(module, node.meta["value"]))
        constant.meta["val"] = node.meta["value"]
    node.replace_all_uses_with(constant)
    source = node.args[0] if node.target is operator.getitem else None
    if isinstance(source, torch.fx.Node) and source.target in _CHOOSING:
        _look_up(module, source, constant)


def _after_inputs(module: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.Node:
    if node.op != "placeholder":
        return node.next
    return next(other for other in module.graph.nodes if other.op != "placeholder")


def _look_up(module: torch.fx.GraphModule, source: torch.fx.Node, places: torch.fx.Node) -> None:
    """The values that a top-k or a sort gives are those at the places that it gives, which are fixed."""
    given = source.args[0]
    axis = source.args[_CHOOSING[source.target]] if len(source.args) > _CHOOSING[source.target] else -1
    for item in list(source.users):
        if item.target is not operator.getitem or item.args[1] != 0 or places.meta["val"].dim() == 0:
            continue
        if item.meta["val"].shape != places.meta["val"].shape:
            continue  # an axis was dropped
        with module.graph.inserting_before(max(item.next, places.next, key=_position(module))):
            values = module.graph.call_function(_aten.gather.default, (given, axis, places))
        values.meta["val"] = item.meta["val"]
        item.replace_all_uses_with(values)


def _position(module: torch.fx.GraphModule) -> Callable[[torch.fx.Node], int]:
    order = {node: place for place, node in enumerate(module.graph.nodes)}
    return lambda node: order[node]
