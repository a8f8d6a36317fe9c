"""What is needed before what: instructions after their operands, computations after those that they call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rewright.ir.errors import RewrightError


class Cycle(RewrightError):
    """Instructions that read each other in a circle, or computations that call each other so."""


def needed_first(roots: Iterable[str], needs: Callable[[str], Sequence[str]], why: str) -> list[str]:
    """The roots and all that they need, what is needed first; raises Cycle, which says why: ``x calls itself``."""
    order: list[str] = []
    state: dict[str, bool] = {}
    for root in roots:
        stack = [root]
        while stack:
            name = stack[-1]
            if state.get(name):
                stack.pop()
                continue
            waiting = [other for other in needs(name) if not state.get(other)]
            if not waiting:
                state[name] = True
                order.append(name)
                stack.pop()
            elif name in state:
                raise Cycle(f"{name:.60} {why}")
            else:
                state[name] = False
                stack.extend(reversed(waiting))
    return order
