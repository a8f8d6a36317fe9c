"""Where a value is computed: in the outermost loop that it does not depend on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rewright.optimize.printing.statements import Scalar, Statement
from rewright.optimize.scalars.expressions import Expression


@dataclass(frozen=True, slots=True)
class Scope:
    """A block of statements with the loop indices that are in scope since it, and the values that have names there."""

    loops: frozenset[str]
    statements: list[Statement] = field(default_factory=list[Statement])
    names: dict[int, Scalar] = field(default_factory=dict[int, Scalar])

    def add(self, *statements: Statement) -> None:
        """Put statements at the end."""
        self.statements.extend(statements)

    @property
    def body(self) -> tuple[Statement, ...]:
        """All statements."""
        return tuple(self.statements)


class Scopes:
    """The blocks around a statement, outermost first."""

    def __init__(self) -> None:
        self.stack: list[Scope] = []
        self._count = 0

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{stem}{self._count}"

    @contextmanager
    def block(self, *loops: str) -> Generator[Scope]:
        """A new innermost block, which the caller puts into a statement of the block around it."""
        scope = Scope(frozenset(loops))
        self.stack.append(scope)
        yield scope
        self.stack.pop()

    @contextmanager
    def outer(self, place: int) -> Generator[Scope]:
        """The block at a place of the stack, as if those inside of it had not been opened."""
        below, self.stack = self.stack[place + 1 :], self.stack[: place + 1]
        yield self.stack[-1]
        self.stack += below

    @property
    def here(self) -> Scope:
        """The innermost block."""
        return self.stack[-1]

    def lookup(self, e: Expression) -> Scalar | None:
        """What stands for a value, if something does here."""
        return next((s.names[e.number] for s in reversed(self.stack) if e.number in s.names), None)

    def depth(self, e: Expression, memo: dict[int, int] | None = None) -> int:
        """The innermost block that a value depends on, as its place on the stack."""
        memo = {} if memo is None else memo
        if e.number not in memo:
            memo[e.number] = self._depth(e, memo)
        return memo[e.number]

    def _depth(self, e: Expression, memo: dict[int, int]) -> int:
        named = [place for place, scope in enumerate(self.stack) if e.number in scope.names]
        if named:
            return named[-1]
        is_read = e.op in ("index", "load")
        own = [place for place, scope in enumerate(self.stack) if is_read and scope.loops & e.free]
        return max([0, *own, *(self.depth(a, memo) for a in e.arguments)])
