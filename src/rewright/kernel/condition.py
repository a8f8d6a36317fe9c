"""Conditions on inputs: that slots are above zero, that no two are the same, that lengths fit.

A condition is a function of the reference's arguments that gives truth values, all of which hold of every input that
the verdict is about. It is a program like others, so that proofs use it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.kernel.counting import PREFIX
from rewright.kernel.parameters import with_names

_FORM = "give a function of the reference's arguments that returns tensors of truth values"


def as_facts(condition: Graph, names: Mapping[str, str], given: Callable[..., Any]) -> Graph:
    """A condition that was captured as facts, over inputs by other names; raises RewrightError for what is none."""
    graph = with_names(condition, names)
    if any(graph.nodes[position].type.dtype is not DType.BOOL for position in graph.outputs.values()):
        raise RewrightError(f"the condition {name_of(given)} gives numbers; {_FORM}")
    return replace(graph, outputs={f"{PREFIX}given {n}": p for n, p in enumerate(graph.outputs.values())})


def meets(given: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether arguments meet a condition; raises RewrightError for one that gives no tensors."""
    try:
        found = tree_flatten(given(*args, **kwargs))[0]
    except Exception as error:
        raise RewrightError(f"the condition {name_of(given)} fails on the arguments ({error}); {_FORM}") from None
    if not found or not all(isinstance(x, torch.Tensor) for x in found):
        raise RewrightError(f"the condition {name_of(given)} gives no tensors; {_FORM}")
    return all(bool(x.all()) for x in found)


def name_of(given: Callable[..., Any]) -> str:
    """What messages call a condition."""
    return getattr(given, "__qualname__", type(given).__name__)
