"""Calls in a trace of PyTorch, as the lowering wants them described."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.fx

from rewright.frontends.aten.call import Layout
from rewright.frontends.torch.communication import communication
from rewright.frontends.torch.lower.nodes import example, example_result, operator_name, shares_memory, writes_a_list
from rewright.frontends.torch.lower.sizes import dim_of, shape_of, type_of
from rewright.ir.types import TensorType


class FxCall:
    """One node of a traced graph."""

    __slots__ = ("node", "operator")

    def __init__(self, node: torch.fx.Node) -> None:
        self.node = node
        self.operator = operator_name(node)

    @property
    def site(self) -> str:
        """Name of the node."""
        return self.node.name

    @property
    def count(self) -> int:
        """Number of results."""
        value = example(self.node)
        return len(cast("tuple[Any, ...]", value)) if isinstance(value, (tuple, list)) else 1

    def result(self, index: int) -> TensorType | None:
        """Type of a result, from the fake tensor of the trace."""
        found = example_result(self.node, index)
        return type_of(found) if isinstance(found, torch.Tensor) else None

    def first_operand(self) -> Layout | None:
        """Memory of the first operand."""
        found = example(self.node.args[0])
        if not isinstance(found, torch.Tensor):
            return None
        return Layout(shape_of(found), tuple(dim_of(n) for n in found.stride()), dim_of(found.storage_offset()))

    def shares_memory(self) -> bool:
        """Whether the (first) result is an alias of the first operand."""
        return shares_memory(self.node)

    def is_posted(self) -> bool:
        """Whether a collective was called with ``async_op=True``."""
        waits = [
            reader for reader in self.node.users if operator_name(reader) == "_c10d_functional.wait_tensor.default"
        ]
        return any(reader.target is communication().posted.default for wait in waits for reader in wait.users)

    def writes_a_list(self) -> bool:
        """Whether the operator writes into a list of tensors and returns it."""
        return writes_a_list(self.node)
