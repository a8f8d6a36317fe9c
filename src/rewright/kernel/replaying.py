"""Inputs on which the graph that was read of a kernel differs from its reference, to run the kernel itself on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from rewright.frontends.torch.names import leaves
from rewright.frontends.validation.work import work
from rewright.interp.adversarial import Kind, plan_draws
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ops.base import Array

_KINDS = (Kind.USUAL, Kind.ROWS, Kind.CONSTANTS, Kind.ZEROS, Kind.TIES)
_WITHOUT_TIES = (Kind.USUAL, Kind.ROWS)
_TRIALS = 3
_MOST_WORK = 20_000_000
"""So many operations are done for one draw."""
_MOST = 4
Arguments = tuple[Sequence[Any], Mapping[str, Any]]


def told_apart(
    left: Graph, right: Graph, parameters: Sequence[str], given: Arguments, *, ties: bool
) -> list[Arguments]:
    """A few arguments of the shapes and types of the given ones, on which two graphs differ, or the right one fails.

    They are drawn as the search for counterexamples draws them; without ``ties`` no elements are equal. There are none
    where sizes are symbols, or where graphs of this size would take long to run.
    """
    named = {**dict(zip(parameters, given[0], strict=False)), **given[1]}
    tensors = {n: x for key, value in named.items() for n, x in leaves(key, value) if isinstance(x, torch.Tensor)}
    if not _fits(left, tensors) or max(work(left), work(right)) > _MOST_WORK:
        return []
    drawn, found = plan_draws(left, (right,)), list[Arguments]()
    for kind, trial in ((k, t) for t in range(_TRIALS) for k in (_KINDS if ties else _WITHOUT_TIES)):
        values = drawn.draw(0, trial, kind=kind)
        if len(found) < _MOST and _differ(left, right, values):
            found.append(_with_values(given, tensors, values))
    return found


def _fits(graph: Graph, tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether all inputs of a graph are tensors of the arguments, and no two of these share memory."""
    if len({x.untyped_storage().data_ptr() for x in tensors.values()}) < len(tensors):
        return False
    kinds = {name: graph.nodes[position].type for name, position in graph.inputs.items()}
    return all(name in tensors and kind.shape == tuple(tensors[name].shape) for name, kind in kinds.items())


def _differ(left: Graph, right: Graph, values: Mapping[str, Array]) -> bool:
    """Whether the left graph has outputs, all of them numbers, and the right one has others or none."""
    try:
        mine = run(left, values)
    except RewrightError:
        return False
    try:
        other = run(right, {name: value for name, value in values.items() if name in right.inputs})
    except RewrightError:
        return True
    return any(
        np.isfinite(value).all() and not np.allclose(value, other[name], rtol=1e-3, atol=1e-3)
        for name, value in mine.items()
        if name in other
    )


def _with_values(given: Arguments, tensors: Mapping[str, torch.Tensor], values: Mapping[str, Array]) -> Arguments:
    """Arguments with the values in place of those of their tensors, which keep their types and strides."""
    own = {id(x): values[name] for name, x in tensors.items() if name in values}

    def replaced(x: torch.Tensor) -> torch.Tensor:
        if id(x) not in own:
            return x
        made = x.detach().clone(memory_format=torch.preserve_format)
        return made.copy_(torch.as_tensor(np.ascontiguousarray(own[id(x)])))

    args, kwargs = tree_map_only(torch.Tensor, replaced, given)
    return args, kwargs
