"""PyTorch's own decompositions, for operators that have no lowering of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch._decomp import core_aten_decompositions, decomposition_table
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from rewright.frontends.torch.lower import tables


def decomposition(node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """The operator of a node as a graph of its tensor arguments, in order; None where PyTorch knows none.

    Only this one operator is traced, on the fake tensors that the node was traced with.
    """
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return None
    function = _decomposing(target)
    if function is None:
        return None
    leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node) and _is_tensor(leaf)]
    plain = [leaf.meta["val"] if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]

    def program(*tensors: torch.Tensor) -> Any:
        filled = list(plain)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        arguments, keywords = pytree.tree_unflatten(filled, spec)
        return function(*arguments, **keywords)

    examples = [plain[place] for place in places]
    mode: Any = next((example.fake_mode for example in examples if hasattr(example, "fake_mode")), None)
    with mode or contextlib.nullcontext():
        return make_fx(program, decomposition_table=_table(), _allow_non_fake_inputs=True)(*examples)


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _decomposing(target: Any) -> Callable[..., Any] | None:
    if target in decomposition_table:
        return decomposition_table[target]
    kernel = torch._C.DispatchKey.CompositeImplicitAutograd
    return target.decompose if target.has_kernel_for_dispatch_key(kernel) else None


def _table() -> dict[Any, Callable[..., Any]]:
    """Core ATen decompositions of the operators that have no lowering here."""
    known = {**tables.PURE, **tables.VIEWS, **tables.WRITES}
    return {target: f for target, f in core_aten_decompositions().items() if str(target) not in known}
