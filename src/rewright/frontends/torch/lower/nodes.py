"""What the nodes of a traced graph say about themselves: names, aliasing, places."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import torch
import torch.fx


def schema(node: torch.fx.Node) -> Any:
    """The schema of an ATen overload; None for any other function."""
    return getattr(node.target, "_schema", None)


def operator_name(node: torch.fx.Node) -> str:
    """``aten.add.Tensor``; the plain name of a function that is no ATen overload."""
    return _name(node.target)


@cache
def _name(target: Any) -> str:
    if getattr(target, "_schema", None) is not None:
        return str(target)
    return getattr(target, "_name", None) or getattr(target, "__name__", None) or str(target)


def example(argument: Any) -> Any:
    """The fake value of a node; anything else is itself."""
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def example_result(node: torch.fx.Node, index: int) -> Any:
    """The fake value of one result of a node that may have several; an empty list is itself."""
    value = example(node)
    if not isinstance(value, (tuple, list)):
        return value
    several = cast("Sequence[Any]", value)
    return several[index] if several else several


def writes_a_list(node: torch.fx.Node) -> bool:
    """Whether the operator writes into a list of tensors and returns it."""
    found = schema(node)
    return found is not None and str(found.name).endswith("_coalesced_")


def shares_memory(node: torch.fx.Node) -> bool:
    """Whether the (first) result of a node is an alias of its first operand."""
    result = example_result(node, 0)
    source = example(node.args[0]) if isinstance(node.args[0], torch.fx.Node) else None
    if isinstance(result, torch.Tensor) and isinstance(source, torch.Tensor):
        return memory(result) == memory(source)
    found = schema(node)
    return bool(found) and bool(found.returns) and found.returns[0].alias_info is not None


def memory(tensor: torch.Tensor) -> int:
    """What tells the memory of a tensor from that of others."""
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def is_read(node: torch.fx.Node) -> bool:
    """Whether a result, or a write, comes of a node."""
    seen: set[torch.fx.Node] = set()
    stack = [node]
    while stack:
        reader = stack.pop()
        if reader.is_impure():
            return True
        stack += [user for user in reader.users if user not in seen]
        seen.update(reader.users)
    return False
