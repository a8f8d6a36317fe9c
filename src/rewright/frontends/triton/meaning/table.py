"""The operations of TTIR by name, each with the function that says what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rewright.frontends.triton.meaning.values import Value
from rewright.frontends.triton.text import Operation

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

Found = Value | tuple[Value, ...] | None
"""The results of an operation: one, several or none."""
Meaning = Callable[["Reader", Operation], Found]


class Meanings(dict[str, Meaning]):
    """Meanings by the name of the operation, ``arith.addi``."""

    def enter(self, *names: str) -> Callable[[Meaning], Meaning]:
        """Enter a function under some names, each of which must be new."""

        def add(function: Meaning) -> Meaning:
            for name in names:
                assert name not in self, name
                self[name] = function
            return function

        return add


MEANINGS = Meanings()
