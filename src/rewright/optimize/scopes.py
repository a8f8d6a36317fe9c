"""Printing expressions where they belong: every value is computed in the outermost loop that it does not depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rewright.optimize.expressions import Expression


@dataclass
class Scope:
    """A block of code with the loop indices that are in scope since it, and the values that have names there."""

    loops: frozenset[str]
    indent: int
    lines: list[str] = field(default_factory=list[str])
    names: dict[int, str] = field(default_factory=dict[int, str])

    def line(self, text: str) -> None:
        """Add a line of code."""
        self.lines.append("  " * self.indent + text)


class Scopes:
    """A stack of scopes, and the language that expressions are printed in."""

    def __init__(self) -> None:
        self.stack: list[Scope] = []
        self._count = 0

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{stem}{self._count}"

    def push(self, *loops: str) -> Scope:
        """Enter a block."""
        scope = Scope(frozenset(loops), len(self.stack) + 1)
        self.stack.append(scope)
        return scope

    def pop(self) -> Scope:
        """Leave a block."""
        return self.stack.pop()

    @property
    def here(self) -> Scope:
        """The innermost block."""
        return self.stack[-1]

    def bind(self, e: Expression, name: str) -> None:
        """Give a value a name in the innermost block."""
        self.here.names[e.number] = name

    def lookup(self, e: Expression) -> str | None:
        """The name of a value, if it has one here."""
        for scope in reversed(self.stack):
            if e.number in scope.names:
                return scope.names[e.number]
        return None

    def depth(self, e: Expression, memo: dict[int, int]) -> int:
        """The innermost block that a value depends on, as its place on the stack."""
        if e.number not in memo:
            memo[e.number] = self._depth(e, memo)
        return memo[e.number]

    def _depth(self, e: Expression, memo: dict[int, int]) -> int:
        for place in range(len(self.stack) - 1, -1, -1):
            if e.number in self.stack[place].names:
                return place
        own = 0
        if e.op in ("index", "load"):
            for place, scope in enumerate(self.stack):
                if scope.loops & e.free:
                    own = place
        return max([own, *(self.depth(a, memo) for a in e.arguments)])


Names = Mapping[str, str]
