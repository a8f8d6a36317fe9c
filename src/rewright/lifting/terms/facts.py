"""What is known of integer terms: the sets that their values lie in wherever the sequential program is defined."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.claims.language import Opaque
from rewright.ir.dims import Dim, product
from rewright.lifting.terms.regions import Region, intersect, intervals
from rewright.lifting.terms.store import Operand, Terms
from rewright.lifting.terms.windows import Window, contains, dense, hull, read_by


class Facts:
    """The values that look-ups of the sequential program allow, and where they have been tested."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.known: dict[int, Region] = {}
        """For an integer term, the set its values lie in wherever the sequential program is defined and reads them."""
        self.looked_up: dict[int, list[Window]] = {}
        """For a term with a fact, the windows in which it holds."""
        self.tests: dict[int, list[Window | None]] = {}
        """For an integer term, the windows in which its values are tested; None for one that is not known."""
        self.unchecked: set[str] = set()
        """Inputs that ranks look up with, where nothing shows that the look-up stays in range."""
        self.layered = False
        """Whether an index that depends on what passes between layers is among these look-ups."""
        self.finite: set[str] = set()
        """Inputs of which the programs ask whether something largest is finite, and go on otherwise if not."""

    def allowed_values(self, term: int) -> Region | None:
        """The set that an integer term's values lie in, where it is known."""
        found = self.known.get(term)
        if found is not None:
            self._terms.pin(term)
            return found
        return self._chosen_among(term)

    def _chosen_among(self, term: int) -> Region | None:
        """The positions of an axis, for a term that sorts it or chooses of it: these are known without a look-up."""
        label = self._terms.label(term)
        if not isinstance(label, Opaque):
            return None
        op = label.op
        if not isinstance(op, ops.Ordering) or op.result != "indices":
            return None
        digits = label.layout[0][op.axis]
        length = product(digits) if isinstance(digits, tuple) else None
        return intervals(0, length) if isinstance(length, int) and length > 0 else None

    def leave_unchecked(self, terms: Sequence[int]) -> None:
        """Note that a rank looks up with a sum of terms, and that nothing shows that this stays in range."""
        for term in terms:
            self._terms.pin(term)
            self.unchecked |= self._terms.inputs(term)
            self.layered |= self._terms.reads_named(term)

    def learn(self, operand: Operand, lengths: Sequence[Dim], allowed: Region) -> None:
        """Record the set that the values read lie in; not for a term that was tested outside of what is read."""
        term, access = operand
        self._terms.pin(term)
        window = hull(access, lengths)
        if window is None or not dense(access, lengths):
            return
        chosen = None if term in self.known else self._chosen_among(term)
        if chosen is not None and intersect(chosen, allowed) == chosen:
            return
        if term in self.known:
            if self.known[term] == allowed:
                self.looked_up[term].append(window)
        elif all(other is not None and contains(window, other) for other in self.tests.get(term, ())):
            self.known[term] = allowed
            self.looked_up[term] = [window]

    def name_operand(self, operand: Operand, lengths: Sequence[Dim]) -> Operand:
        """The integer operand of a test, under a name of its own where it reads elements without facts."""
        windows = [(term, hull(access, lengths)) for term, access in read_by(self._terms, operand)]
        for term, window in windows:
            known = self.looked_up.get(term)
            if known is not None:
                self._terms.pin(term)
            if known is not None and not (window is not None and any(contains(w, window) for w in known)):
                return self._terms.apply("identity", [operand])
        for term, window in windows:
            self._terms.pin(term)
            self.tests.setdefault(term, []).append(window)
        return operand
