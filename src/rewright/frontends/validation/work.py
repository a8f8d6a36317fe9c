"""How long a program would run."""

from __future__ import annotations

import math
from typing import Any

from rewright import ops
from rewright.ir.graph import Graph


def work(graph: Graph) -> float:
    """How many multiplications a program takes, and how many elements it makes; its sizes are numbers."""
    total = 0.0
    for node in graph.nodes:
        sizes = [_size(node.type.shape), *(_size(graph.nodes[operand].type.shape) for operand in node.operands)]
        product = isinstance(node.op, ops.DotGeneral | ops.Convolution)
        total += math.sqrt(math.prod(sizes)) if product else sizes[0]
    return total


def _size(shape: Any) -> float:
    return float(math.prod(shape))
