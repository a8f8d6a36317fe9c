"""Results of operators that take numbers that ranks differ in: one result, where all ranks have one of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from rewright.frontends.torch.alike.numbers import Numbers, at_rank, nodes_in


def run_for_all(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], run: Callable[..., Any]) -> Any:
    """The result of an operator on the first rank; raises Differ where another rank's has another shape or place.

    Without such numbers the operator just runs.
    """
    nodes = list(nodes_in((args, kwargs)))
    if not nodes:
        return func(*args, **kwargs)
    ranks = _representatives(nodes)
    results = [run(func, at_rank(args, rank), at_rank(kwargs, rank)) for rank in ranks]
    if len({layouts_of(result) for result in results}) > 1:
        nodes[0].differences.refuse(f"{func} gives tensors of other shapes, or in other places, on some ranks")
    return results[0]


def layouts_of(result: object) -> tuple[object, ...]:
    """What a trace sees of a result: of tensors all but their values."""
    if isinstance(result, torch.Tensor):
        layout = (tuple(result.shape), tuple(result.stride()), result.storage_offset())
        return (*layout, result.dtype, result.device, result.requires_grad)
    if isinstance(result, (list, tuple)):
        return tuple(layouts_of(part) for part in cast("Sequence[object]", result))
    return (type(result), result)


def _representatives(nodes: Sequence[Numbers]) -> list[int]:
    """One rank for each tuple of numbers, the first rank among them."""
    found: dict[tuple[int, ...], int] = {}
    for rank, numbers in enumerate(zip(*(node.values for node in nodes), strict=True)):
        found.setdefault(numbers, rank)
    return list(found.values())
