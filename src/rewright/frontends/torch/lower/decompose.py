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
from rewright.frontends.torch.definitions import DEFINITIONS, TRACED
from rewright.frontends.torch.lower.nodes import example, schema
from rewright.frontends.torch.trace import quiet
from rewright.ir.errors import RewrightError


def decomposition(node: torch.fx.Node, *, defined: bool = True) -> torch.fx.GraphModule | None:
    """The operator of a node as a graph of its tensor arguments, in order; None where there is none.

    With ``defined`` it may be one of the definitions here, which say what an operator computes and not how fast.
    Only this one operator is traced, on the fake tensors that the node was traced with.
    """
    found = schema(node)
    if found is None:
        return None
    target = _functional(node.target) if found.is_mutable else node.target
    function = None if target is None else _decomposing(target, defined)
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
        result = function(*_mutable(arguments), **_mutable(keywords))
        if result is NotImplemented:
            raise NotImplementedError(str(node.target))
        return result

    examples = [plain[place] for place in places]
    mode: Any = next((x.fake_mode for x in examples if hasattr(x, "fake_mode")), None)
    try:
        with mode or contextlib.nullcontext(), quiet():
            return make_fx(program, decomposition_table=_table(), _allow_non_fake_inputs=True)(*examples)
    except RewrightError:
        raise
    except Exception:  # PyTorch's decompositions refuse settings in many ways
        return None


def _mutable(argument: Any) -> Any:
    """Lists that a decomposition may write into, where a traced graph has its own."""
    if isinstance(argument, list):
        return [_mutable(item) for item in cast("list[Any]", argument)]
    if isinstance(argument, tuple):
        return tuple(_mutable(item) for item in cast("tuple[Any, ...]", argument))
    if isinstance(argument, dict):
        return {key: _mutable(item) for key, item in cast("dict[str, Any]", argument).items()}
    return argument


def _functional(target: Any) -> Any:
    """The form of an in-place operator that returns what that writes; None where there is none."""
    name = str(target._schema.name)
    only_first = all(a.alias_info is None or not a.alias_info.is_write for a in target._schema.arguments[1:])
    if not name.endswith("_") or name.endswith("__") or not only_first:
        return None
    namespace, packet = name[:-1].split("::")
    found: Any = getattr(getattr(torch.ops, namespace), packet, None)
    return getattr(found, target._overloadname, None)


def _decomposing(target: Any, defined: bool) -> Callable[..., Any] | None:
    if defined and target in DEFINITIONS:
        return DEFINITIONS[target]
    known = cast("Any", decompositions).decomposition_table
    if target in known:
        return known[target]
    keys: Any = torch._C.DispatchKey  # pyright: ignore[reportPrivateUsage]
    return target.decompose if target.has_kernel_for_dispatch_key(keys.CompositeImplicitAutograd) else None


def _table() -> dict[Any, Callable[..., Any]]:
    """Core ATen decompositions of the operators that have no lowering here."""
    known = {**tables.PURE, **tables.VIEWS, **tables.WRITES}
    every: Any = decompositions.core_aten_decompositions()
    return {target: every[target] for target in every if str(target) not in known} | TRACED
