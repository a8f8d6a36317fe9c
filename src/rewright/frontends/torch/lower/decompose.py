"""PyTorch's own decompositions, for operators that have no lowering of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.fx
from torch import _decomp as decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from rewright.frontends.aten import tables
from rewright.frontends.torch.lower.nodes import example, schema


def decomposition(node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """The operator of a node as a graph of its tensor arguments, in order; None where PyTorch knows none.

    Only this one operator is traced, on the fake tensors that the node was traced with.
    """
    found = schema(node)
    function = None if found is None or found.is_mutable else _decomposing(node.target)
    if function is None:
        return None
    leaves, spec = pytree.tree_flatten((node.args, dict(node.kwargs)))
    plain = [example(leaf) for leaf in leaves]
    nodes = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]
    places = [i for i in nodes if isinstance(plain[i], torch.Tensor)]

    def program(*tensors: torch.Tensor) -> Any:
        filled = list(plain)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        arguments, keywords = pytree.tree_unflatten(filled, spec)
        return function(*arguments, **keywords)

    examples = [plain[place] for place in places]
    mode: Any = next((x.fake_mode for x in examples if hasattr(x, "fake_mode")), None)
    with mode or contextlib.nullcontext():
        return make_fx(program, decomposition_table=_table(), _allow_non_fake_inputs=True)(*examples)


def _decomposing(target: Any) -> Callable[..., Any] | None:
    known = cast("Any", decompositions).decomposition_table
    if target in known:
        return known[target]
    keys: Any = torch._C.DispatchKey  # pyright: ignore[reportPrivateUsage]
    return target.decompose if target.has_kernel_for_dispatch_key(keys.CompositeImplicitAutograd) else None


def _table() -> dict[Any, Callable[..., Any]]:
    """Core ATen decompositions of the operators that have no lowering here."""
    known = {**tables.PURE, **tables.VIEWS, **tables.WRITES}
    every: Any = decompositions.core_aten_decompositions()
    return {target: every[target] for target in every if str(target) not in known}
