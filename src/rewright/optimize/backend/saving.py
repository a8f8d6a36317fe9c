"""What is saved between a forward pass and its gradients: not what attention computes for each pair."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch import partitioners
from torch._guards import TracingContext
from torch.utils.checkpoint import CheckpointPolicy

from rewright.frontends.torch.lower.foreign import COMPUTING
from rewright.optimize.backend.others import said
from rewright.optimize.backend.reassociating import reassociate_sums
from rewright.optimize.planning.costs import CPU, Machine
from rewright.optimize.planning.dense import is_for_library

_LOG = logging.getLogger("rewright.optimize")
_aten: Any = torch.ops.aten
_parts: Any = partitioners
_PRODUCTS = (_aten.bmm.default, _aten.mm.default, _aten.addmm.default, _aten.baddbmm.default)
_ELEMENTWISE = 4.0
"""What one element costs, exponentials and additions taken together."""
_JOINED = (_aten.cat.default, _aten.constant_pad_nd.default)
Modules = tuple[torch.fx.GraphModule, torch.fx.GraphModule]
Nodes = dict[torch.fx.Node, None]


@dataclass
class Saving:
    """A cut between forward and backward that saves no wide product, nor what is made of it element by element.

    A product is wide that has more elements than its operands together, and is a kernel's, not a library's: the scores
    of attention, of which there is one for each pair. It is computed again. Of all such cuts it is the one at which
    fewest bytes are saved.
    """

    machine: Machine = CPU
    bytes: int = 0
    """Of what is computed again, once a graph was cut."""
    only_computes: bool = False
    """Whether a graph was cut, or looked at, that may run more often than the program does."""
    is_inference: bool = False
    """Whether the graph was for inference, which nothing is cut of."""
    share: float = 0.0
    """Of the work of both passes, what is done to compute it again: more than saving it could save."""

    def look_at(self, graph: torch.fx.Graph) -> None:
        """Note that a graph is for inference, and whether it only computes, and writes to no argument."""
        context = TracingContext.try_get()
        found: Any = getattr(context, "fw_metadata", None)
        writes = found is None or any(i.mutates_data or i.mutates_metadata for i in found.input_info)
        self.is_inference, self.only_computes = True, not writes and all(map(only_computes, graph.nodes))

    def __call__(self, joint: torch.fx.GraphModule, inputs: Any, **rest: Any) -> Modules:
        """The graphs of the forward and the backward pass, cut out of a joint graph of AOTAutograd's."""
        try:
            reassociate_sums(joint)
        except Exception as error:  # the graph is what it was, but for sums that are proved
            _LOG.warning("sums of the gradients stay as they are: %s", said(error))
        self.only_computes = all(map(only_computes, joint.graph.nodes))
        wide = wide_tensors(joint.graph, self.machine)
        for node in wide:
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
            self.bytes += (_elements(node) or 0) * node.meta["val"].dtype.itemsize
        total = sum(map(_work, joint.graph.nodes))
        self.share = sum(map(_work, wide)) / total if total else 0.0
        return _parts.min_cut_rematerialization_partition(joint, inputs, **rest)


def wide_tensors(joint: torch.fx.Graph, machine: Machine) -> list[torch.fx.Node]:
    """The wide products of a forward pass, and what follows from them element by element, but for what it returns.

    Where there are some, also what depends on no input, as masks of places do.
    """
    types: Any = _parts.get_default_op_list()
    backward = _after(node for node in joint.nodes if node.op == "placeholder" and "tangents" in node.name)
    found: Nodes = {}
    fixed: Nodes = {}
    for node in joint.nodes:
        if node.op != "call_function" or node in backward:
            continue
        if _is_wide_product(node, backward, machine) or _follows(node, found):
            found[node] = None
        elif (types.is_recomputable(node) or types.is_view(node)) and all(p in fixed for p in node.all_input_nodes):
            fixed |= {node: None} if _elements(node) is not None else {}
    kept = _returned(joint) | {node: None for node in joint.nodes if "recompute" in node.meta}  # which a user decided
    return [node for node in (*found, *(fixed if found else ())) if node not in kept]


def only_computes(node: torch.fx.Node) -> bool:
    """Whether a node is an operator of PyTorch's own, no collective, or arithmetic on sizes."""
    if node.op != "call_function":
        return node.op in ("placeholder", "get_attr", "output")
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload):  # pyright: ignore[reportPrivateUsage]
        return target.namespace in COMPUTING
    return getattr(target, "__module__", "") in ("_operator", "builtins", "math", "torch")


def _work(node: torch.fx.Node) -> float:
    """Multiplications and additions of a node, about: exponentials and the like are counted as several."""
    own = _elements(node)
    if node.op != "call_function" or own is None:
        return 0.0
    if node.target in _PRODUCTS:
        left: Any = node.args[-2]
        return 2.0 * own * (_product(left.meta["val"].shape[-1:]) or 1)
    if node.target is _aten.convolution.default:
        weight: Any = node.args[1]
        return 2.0 * own * (_product(weight.meta["val"].shape[1:]) or 1)
    return _ELEMENTWISE * own


def _is_wide_product(node: torch.fx.Node, backward: Nodes, machine: Machine) -> bool:
    if node.target not in _PRODUCTS[:2]:
        return False
    own, left, right = (_elements(p) for p in (node, *node.all_input_nodes[:1], node.all_input_nodes[-1]))
    depth = _product(node.all_input_nodes[0].meta["val"].shape[-1:])
    if own is None or left is None or right is None or depth is None or own <= left + right:
        return False
    readings = 2 if any(map(_is_reduction, _after([node], backward))) else 1
    return not is_for_library(own, depth, 4 * (own + left + right), readings * own, machine)


def _follows(node: torch.fx.Node, found: Nodes) -> bool:
    """Whether a node is made of such tensors, and has as many elements."""
    types: Any = _parts.get_default_op_list()
    own, wide = _elements(node), [_elements(p) or 0 for p in node.all_input_nodes if p in found]
    if own is None or not wide or own < max(wide):
        return False
    return types.is_recomputable(node) or types.is_view(node) or node.target in _JOINED


def _is_reduction(node: torch.fx.Node) -> bool:
    """Whether a node has fewer elements than the one tensor that it is computed from."""
    own, given = _elements(node), [_elements(p) or 0 for p in node.all_input_nodes]
    return own is not None and len(given) == 1 and 0 < own < given[0]


def _after(nodes: Iterable[torch.fx.Node], stop: Nodes | None = None) -> Nodes:
    """Nodes, and all that is computed from them before some others."""
    found: Nodes = {}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found and node not in (stop or {}):
            found[node] = None
            stack.extend(node.users)
    return found


def _returned(graph: torch.fx.Graph) -> Nodes:
    """What a graph returns, and what that is a view of."""
    found: Nodes = {}
    stack = list(graph.output_node().all_input_nodes)
    types: Any = _parts.get_default_op_list()
    while stack:
        node = stack.pop()
        found[node] = None
        stack.extend(node.all_input_nodes if types.is_view(node) else ())
    return found


def _elements(node: torch.fx.Node) -> int | None:
    """The elements of a tensor, those of the example where a size is open; None for what is no tensor."""
    value = node.meta.get("val")
    return _product(value.shape) if isinstance(value, torch.Tensor) else None


def _product(shape: Sequence[Any]) -> int | None:
    """The product of sizes; None where one is not known."""
    total = 1
    for size in shape:
        known = size if isinstance(size, int) else size.node.hint
        if known is None:
            return None
        total *= int(known)
    return total
