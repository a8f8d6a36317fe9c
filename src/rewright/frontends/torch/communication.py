"""The operators ``rewright::send``, ``recv``, ``in_flight`` and ``posted``: communication as values in a graph."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.fx.node


def _send(x: torch.Tensor, destination: int, tag: int) -> torch.Tensor:
    return x.clone()


def _receive(like: torch.Tensor, source: int, tag: int) -> torch.Tensor:
    return torch.empty_like(like)


def _in_flight(x: torch.Tensor, overwritten: str) -> torch.Tensor:
    return x.clone()


def _post(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@functools.cache
def communication() -> Any:
    """The operators ``rewright::send``, ``recv``, ``in_flight`` and ``posted``, defined on first use.

    ``send`` returns its operand, so that it is a value in the graph; dead-code elimination must keep it. ``in_flight``
    is what memory holds that a collective writes and nobody has waited for yet: its result, or anything else. So it is
    after the wait where the collective's tensors were written to in the meantime, on the line that it names.
    """
    library: Any = torch.library.Library("rewright", "DEF")
    library.define("send(Tensor x, int destination, int tag) -> Tensor")
    library.define("recv(Tensor like, int source, int tag) -> Tensor")
    library.define("in_flight(Tensor x, str overwritten) -> Tensor")
    library.define("posted(Tensor x) -> Tensor")
    library.impl("send", _send, "CompositeExplicitAutograd")
    library.impl("recv", _receive, "CompositeExplicitAutograd")
    library.impl("in_flight", _in_flight, "CompositeExplicitAutograd")
    library.impl("posted", _post, "CompositeExplicitAutograd")
    operators: Any = torch.ops.rewright
    operators._rewright_library = library  # a library that is collected takes its operators with it
    for operator in (operators.send.default, operators.recv.default):
        torch.fx.node.has_side_effect(operator)
    return operators
