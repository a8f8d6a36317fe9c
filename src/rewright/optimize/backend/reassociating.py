"""Statistics of rows by products that are there: ``sum_k (G V')[i, k] P[i, k] = sum_d G[i, d] (P V)[i, d]``.

The gradient of attention has such sums, of one element for each pair. With ``P V``, the result of attention, they are
sums of the size of queries. Every such rewrite is proved.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._functorch import partitioners

from rewright.frontends.torch.capture import capture
from rewright.ir.graph import Graph
from rewright.optimize.backend.others import said
from rewright.optimize.backend.plain import is_flexible
from rewright.optimize.proving.proofs import why_unequal

_LOG = logging.getLogger("rewright.optimize")
_aten: Any = torch.ops.aten
_prims: Any = torch.ops.prims
_cast: Any = _aten._to_copy.default
_parts: Any = partitioners
_PRODUCTS = (_aten.bmm.default, _aten.mm.default)
SECONDS = 2.0
"""Of the processor, for the proof of one sum."""
Node = torch.fx.Node


def reassociate_sums(joint: torch.fx.GraphModule) -> int:
    """Rewrite such sums of a joint graph for sizes that are numbers; returns how many there were."""
    if is_flexible(joint):
        return 0
    count = 0
    order = {node: number for number, node in enumerate(joint.graph.nodes)}
    for node in [node for node in joint.graph.nodes if node.target is _aten.sum.dim_IntList]:
        for match in _matches(joint.graph, node, order):
            made = _made(joint.graph, node, match)
            if _is_proved(node, made, match.leaves):
                node.replace_all_uses_with(made)
                count += 1
                break
    joint.graph.eliminate_dead_code()
    joint.recompile()
    return count


@dataclass(frozen=True)
class _Match:
    """A sum over k of ``left[i, d] right[d, k]`` and other factors, of which a product with ``right`` is there."""

    left: Node
    result: Node
    leaves: tuple[Node, ...]


@dataclass(frozen=True)
class _Factor:
    """What a tensor is multiplied by, element by element: a tensor without its views, at some of its last places."""

    node: Node
    places: tuple[int, int]


def _matches(graph: torch.fx.Graph, total: Node, order: dict[Node, int]) -> Iterator[_Match]:
    given, axes = total.args[0], total.args[1]
    assert isinstance(given, Node)
    rank = given.meta["val"].dim()
    if total.kwargs or list(axes) not in ([-1], [rank - 1]):  # type: ignore[arg-type]
        return
    factors = _factors(given)
    for factor in [factor for factor in factors if factor.node.target in _PRODUCTS]:
        others = list(factors)
        others.remove(factor)
        left, right = factor.node.args
        assert isinstance(left, Node) and isinstance(right, Node)
        base, is_turned = _base(right)
        for user in graph.find_nodes(op="call_function", target=factor.node.target):
            weights, values = user.args
            assert isinstance(weights, Node) and isinstance(values, Node)
            same = _base(values) == (base, not is_turned) and Counter(_factors(weights)) == Counter(others)
            if same and order[user] < order[total] and user is not factor.node:
                yield _Match(left, user, (left, base, *(other.node for other in others)))


def _factors(tensor: Node, places: tuple[int, int] | None = None) -> list[_Factor]:
    """The factors of a tensor at some of its last places, without regard to views."""
    node, is_turned = _base(tensor)
    given: list[Any] = [] if is_turned else list(node.args)
    if node.target is _aten.mul.Tensor and given and all(isinstance(a, Node) for a in given):
        parts = [(a, places) for a in given]
        padded = [a for a in given if places is None and _base(a)[0].target is _aten.slice_scatter.default]
        if len(padded) == 1 and (within := _range(_base(padded[0])[0])) is not None:
            written: Any = _base(padded[0])[0].args[1]
            parts = [(written, None) if a is padded[0] else (a, within) for a in given]  # it is zero elsewhere
        return [factor for a, some in parts for factor in _factors(a, some)]
    if node.target is _aten.slice.Tensor and given and places is None and (found := _range(node)) is not None:
        return _factors(given[0], found)
    width = tensor.meta["val"].shape[-1:].numel()
    return [_Factor(node, places or (0, width))]


def _range(node: Node) -> tuple[int, int] | None:
    """The places along the last axis that a slice has, or that are written; None along others, or with steps."""
    whole: Any = node.args[0]
    shape = whole.meta["val"].shape
    first = 2 if node.target is _aten.slice_scatter.default else 1
    given: list[Any] = list(node.args[first:])
    axis, start, stop, step = (*given, *cast("list[Any]", [0, None, None, 1])[len(given) :])
    if axis % len(shape) != len(shape) - 1 or step != 1:
        return None
    begin, end, _ = slice(start, stop).indices(shape[-1])
    return begin, end


def _base(node: Node) -> tuple[Node, bool]:
    """What a tensor is a view of with the same matrices, and whether they are transposed."""
    types: Any = _parts.get_default_op_list()
    is_turned = False
    while node.op == "call_function" and (types.is_view(node) or _is_cast(node)) and len(node.all_input_nodes) == 1:
        given = node.all_input_nodes[0]
        if not all(isinstance(n.meta.get("val"), torch.Tensor) for n in (given, node)):
            break
        before, after = (tuple(n.meta["val"].shape) for n in (given, node))
        if len(before) < 2 or len(after) < 2 or given.meta["val"].numel() != node.meta["val"].numel():
            break
        if node.target is _aten.permute.default:
            axes = [axis % len(before) for axis in node.args[1]]  # type: ignore[union-attr, operator]
            if axes != [*range(len(before) - 2), len(before) - 1, len(before) - 2]:
                break
            is_turned = not is_turned
        elif before[-2:] != after[-2:]:
            break
        node = given
    return node, is_turned


def _is_cast(node: Node) -> bool:
    """Whether a node is another tensor with more or fewer digits."""
    if node.target is not _prims.convert_element_type.default:
        return False
    return all(n.meta["val"].dtype.is_floating_point for n in (node, *node.all_input_nodes))


def _made(graph: torch.fx.Graph, total: Node, match: _Match) -> Node:
    """The sum by the product that is there, before the sum itself."""
    given = total.args[0]
    assert isinstance(given, Node)
    shape = [*given.meta["val"].shape[:-1], match.left.meta["val"].shape[-1]]
    with graph.inserting_before(total):
        kind = given.meta["val"].dtype  # that is summed, which may have more digits than what is multiplied
        parts = [_called(graph, _aten.view.default, node, shape) for node in (match.left, match.result)]
        if any(part.meta["val"].dtype is not kind for part in parts):
            parts = [_called(graph, _prims.convert_element_type.default, part, kind) for part in parts]
        product = _called(graph, _aten.mul.Tensor, *parts)
        return _called(graph, total.target, product, *total.args[1:], **total.kwargs)


def _called(graph: torch.fx.Graph, target: Any, *args: Any, **kwargs: Any) -> Node:
    node = graph.call_function(target, args, kwargs)
    values = [a.meta["val"] if isinstance(a, Node) else a for a in args]
    node.meta["val"] = target(*values, **kwargs)
    return node


def _is_proved(one: Node, other: Node, leaves: Collection[Node]) -> bool:
    """Whether two nodes are equal, whatever their common leaves are."""
    order = list(dict.fromkeys(leaves))
    try:
        return why_unequal(_captured(one, order), _captured(other, order), SECONDS) == ""
    except Exception as error:  # what cannot be captured is not proved
        _LOG.info("a sum of the gradients stays as it is: %s", said(error))
        return False


def _captured(root: Node, leaves: Sequence[Node]) -> Graph:
    examples = [torch.empty(tuple(n.meta["val"].shape), dtype=n.meta["val"].dtype, device="meta") for n in leaves]
    return capture(_extracted(root, leaves), examples)


def _extracted(root: Node, leaves: Sequence[Node]) -> torch.fx.GraphModule:
    """What computes a node from leaves."""
    graph = torch.fx.Graph()
    copies = {leaf: graph.placeholder(f"leaf_{number}") for number, leaf in enumerate(leaves)}
    found: set[Node] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in found and node not in copies:
            found.add(node)
            stack.extend(node.all_input_nodes)
    for node in root.graph.nodes:
        if node in found:
            copies[node] = copied = graph.node_copy(node, lambda n: copies[n])
            if node.target is _prims.convert_element_type.default:  # by an operator of ATen's
                copied.target, copied.args, copied.kwargs = _cast, copied.args[:1], {"dtype": node.args[1]}
    graph.output(copies[root])
    return cast("Any", torch.fx.GraphModule)({}, graph)
