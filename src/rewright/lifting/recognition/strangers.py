"""Terms that no other reading of their indices makes a part of what the sequential program computes.

Where a rank goes wrong nothing behind that place is the sequential program's. Looking for a reading of every index
under which it would be takes most of the time of a refutation, and cannot succeed: a function of what the sequential
program does not have stays one, whatever is added to it, multiplied by it or summed up. Guards are another matter:
what they leave out may be all that is unknown.
"""

from __future__ import annotations

from rewright.claims.language import Apply, Guard
from rewright.lifting.terms.store import Terms

_MAY_CANCEL = frozenset({"multiply", "identity", "reciprocal", "maximum", "minimum", "negate"})
_TESTS = frozenset({"where", "where_not"})


class Strangers:
    """Which terms of the ranks alone are made of functions of other such terms, each looked at once."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known: dict[int, tuple[bool, bool]] = {}
        """For a term whether it is such a one, and whether anything in it is tested."""

    def has(self, term: int) -> bool:
        """Whether nothing that is made of the term by sums and products can be the sequential program's."""
        horizon = self._terms.horizon
        if term < horizon:
            return False
        stack = [term]
        while stack:
            one = stack[-1]
            children = [c for c in self._terms.graph.node(one)[1] if c >= horizon]
            missing = [c for c in children if c not in self._known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._known[one] = self._describe(one, children)
        return self._known[term][0]

    def _describe(self, term: int, children: list[int]) -> tuple[bool, bool]:
        label = self._terms.label(term)
        tested = isinstance(label, Guard) or (isinstance(label, Apply) and label.function in _TESTS)
        tested = tested or any(self._known[c][1] for c in children)
        function = isinstance(label, Apply) and label.function not in _MAY_CANCEL
        strange = not tested and (function or any(self._known[c][0] for c in children))
        return strange, tested
