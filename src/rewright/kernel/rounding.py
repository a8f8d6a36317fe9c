"""What a kernel gives that is wrong and was proved: rounding, or a fault of the reading or of the proof?

``log(1 + exp(x))`` is zero at -60 in double precision too, where ``log1p(exp(x))`` is not. Both graphs in fifty digits
give one number there, and the kernel's graph in floats gives the wrong one that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Underflow
from typing import Any

import numpy as np
import torch

from rewright import ops
from rewright.frontends.torch.names import leaves
from rewright.frontends.validation.work import work
from rewright.interp.decimals import Decimals, close
from rewright.interp.exact import run_exactly
from rewright.interp.program import run as run_graph
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.kernel.running import Run
from rewright.ops.base import Array
from rewright.ops.functions.digits import CONTEXT

_CONTEXT = CONTEXT.copy()
_CONTEXT.traps[Underflow] = False
_DECIMALS = Decimals(_CONTEXT)
"""Numbers too near to zero for their exponent are zero, from which no float tells them."""
_MOST_WORK = 2_000_000
"""So many operations are done in fifty digits."""


def is_rounding(left: Graph, right: Graph, given: Mapping[str, Any], run: Run) -> bool:
    """Whether floats explain all of a wrong number that a run gave on some arguments; False where that is not known."""
    name = "output" if run.output == "output" else f"output.{run.output}"
    tensors = {name: x for key, value in given.items() for name, x in leaves(key, value) if isinstance(x, torch.Tensor)}
    inputs = {name: _wide(x) for name, x in tensors.items() if name in left.inputs or name in right.inputs}
    if name not in right.outputs or max(work(left), work(right)) > _MOST_WORK:
        return False
    try:
        graphs = [_with_zeros(graph) for graph in (left, right)]
        own = [{name: x for name, x in inputs.items() if name in graph.inputs} for graph in graphs]
        exact = [run_exactly(g, x, _DECIMALS)[name][run.index] for g, x in zip(graphs, own, strict=True)]
        rounded = float(run_graph(graphs[1], own[1], np.float32)[name][run.index])
    except (RewrightError, IndexError):
        return False
    true, seen = run.values
    return close(exact[0], exact[1], digits=20) and math.isclose(rounded, seen, abs_tol=abs(seen - true) / 100)


def _with_zeros(graph: Graph) -> Graph:
    """The graph with zeros in memory that nobody wrote to."""
    nodes = [
        replace(node, op=ops.Constant(node.type, (0.0 if node.type.dtype.is_float else 0,)))
        if isinstance(node.op, ops.CustomCall) and node.op.is_unspecified and not node.operands
        else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=tuple(nodes))


def _wide(tensor: torch.Tensor) -> Array:
    return (tensor.double() if tensor.is_floating_point() else tensor).detach().numpy()
