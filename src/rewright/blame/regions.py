"""What is behind wrong results, as far as the other program does not have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_Node = TypeVar("_Node")


def unknown_behind(
    starts: Iterable[_Node], reads: Callable[[_Node], Iterable[_Node]], is_known: Callable[[_Node], bool]
) -> dict[_Node, list[_Node]]:
    """Some nodes and what is behind them up to what is known, with what of that each of them reads.

    Where a node reads nothing that is unknown, the programs part.
    """
    found: dict[_Node, list[_Node]] = {}
    stack = list(starts)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = [other for other in reads(node) if not is_known(other)]
            stack.extend(found[node])
    return found
