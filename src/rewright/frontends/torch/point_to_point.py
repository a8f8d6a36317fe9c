"""The operators ``rewright::send`` and ``rewright::recv``: point to point as values in a graph."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.fx.node


def _send(x: torch.Tensor, destination: int, tag: int) -> torch.Tensor:
    return x.clone()


def _receive(like: torch.Tensor, source: int, tag: int) -> torch.Tensor:
    return torch.empty_like(like)


@functools.cache
def point_to_point() -> Any:
    """The operators ``rewright::send`` and ``rewright::recv``, defined on first use.

    ``send`` returns its operand, so that it is a value in the graph; dead-code elimination must keep it.
    """
    library: Any = torch.library.Library("rewright", "DEF")
    library.define("send(Tensor x, int destination, int tag) -> Tensor")
    library.define("recv(Tensor like, int source, int tag) -> Tensor")
    library.impl("send", _send, "CompositeExplicitAutograd")
    library.impl("recv", _receive, "CompositeExplicitAutograd")
    operators: Any = torch.ops.rewright
    operators._rewright_library = library  # a library that is collected takes its operators with it
    for operator in (operators.send.default, operators.recv.default):
        torch.fx.node.has_side_effect(operator)
    return operators
