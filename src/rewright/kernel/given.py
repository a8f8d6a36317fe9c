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

from rewright.frontends.torch.capture import capture
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.kernel.counting import PREFIX
from rewright.kernel.parameters import parameters_of, renamed, with_names, with_one_signature

_FORM = "give a function of the reference's arguments that returns tensors of truth values"


def condition_of(
    given: Callable[..., Any],
    reference: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    sizes: Mapping[str, Mapping[int, str]],
) -> Graph:
    """A condition as facts, over inputs with the reference's names; raises RewrightError for what is none."""
    reference, given = with_one_signature(reference, given)
    if not meets(given, args, kwargs):
        raise RewrightError(f"the arguments do not meet the condition {_name(given)}; give arguments that do")
    names, others = (parameters_of(f, args, kwargs) for f in (reference, given))
    graph = capture(given, args, kwargs, dynamic=renamed(sizes, names, others) or None)
    graph = with_names(graph, dict(zip(others, names, strict=False)))
    if any(graph.nodes[position].type.dtype is not DType.BOOL for position in graph.outputs.values()):
        raise RewrightError(f"the condition {_name(given)} gives numbers; {_FORM}")
    return replace(graph, outputs={f"{PREFIX}given {n}": p for n, p in enumerate(graph.outputs.values())})


def meets(given: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether arguments meet a condition; raises RewrightError for one that gives no tensors."""
    try:
        found = tree_flatten(given(*args, **kwargs))[0]
    except Exception as error:
        raise RewrightError(f"the condition {_name(given)} fails on the arguments ({error}); {_FORM}") from None
    if not found or not all(isinstance(x, torch.Tensor) for x in found):
        raise RewrightError(f"the condition {_name(given)} gives no tensors; {_FORM}")
    return all(bool(x.all()) for x in found)


def _name(given: Callable[..., Any]) -> str:
    return getattr(given, "__qualname__", type(given).__name__)
