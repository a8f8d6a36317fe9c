"""How a drawn tensor stands in a traced graph: one operator, which says what is drawn and from which state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
import torch.fx

from rewright.frontends.unknowns import place_of
from rewright.ir.draws import Draw
from rewright.ir.types import SourceSpan


@cache
def drawn_operator() -> Any:
    """The operator of drawn tensors: only graphs have it, and nobody calls it."""
    library: Any = torch.library.Library("rewright_random", "DEF")
    library.define("drawn(str kind, str before, str value, str after) -> Tensor")
    operators: Any = torch.ops.rewright_random
    operators._rewright_library = library  # a library that is collected takes its operators with it
    return operators.drawn.default


def draws_of(module: torch.fx.GraphModule, spans: Callable[[torch.fx.Node], SourceSpan]) -> Iterator[Draw]:
    """The draws of a traced program, in order, with their places."""
    target = drawn_operator()
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is target:
            kind, before, value, after = (str(argument) for argument in node.args)
            yield Draw(kind, before, value, after, place_of(spans(node)))
