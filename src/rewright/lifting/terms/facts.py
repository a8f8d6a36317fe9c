"""What is known of integer terms: the sets that their values lie in wherever the sequential program is defined."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
        if found is None:
            return self._chosen_among(term)
        self._terms.mark(partial(self._is_known, found), term)
        return found

    def has(self, term: int) -> bool:
        """Whether a look-up told what the values of a term are."""
        found = term in self.known
        self._terms.mark(lambda other: (other in self.known) == found, term)
        return found

    def _is_known(self, region: Region, term: int) -> bool:
        return self.known.get(term) == region

    def _chosen_among(self, term: int) -> Region | None:
        """The positions of an axis, for a term that sorts it or chooses of it: these are known without a look-up."""
        label = self._terms.label(term)
        if not isinstance(label, Opaque):
            return None
        self._terms.see(term)
        op = label.op
        if not isinstance(op, ops.Ordering) or op.result != "indices":
            return None
        digits = label.layout[0][op.axis]
        length = product(digits) if isinstance(digits, tuple) else None
        return intervals(0, length) if isinstance(length, int) and length > 0 else None

    def leave_unchecked(self, terms: Sequence[int]) -> None:
        """Note that a rank looks up with a sum of terms, and that nothing shows that this stays in range."""
        for term in terms:
            self._terms.mark(self._leave_unchecked, term)

    def _leave_unchecked(self, term: int) -> None:
        self.unchecked |= self._terms.inputs(term)
        self.layered |= self._terms.reads_named(term)

    def take_as_finite(self, term: int) -> None:
        """Note that a term is taken to be finite where the programs ask whether it is."""
        self.finite |= self._terms.inputs(term)

    def learn(self, operand: Operand, lengths: Sequence[Dim], allowed: Region) -> None:
        """Record the set that the values read lie in; not for a term that was tested outside of what is read."""
        term, access = operand
        window = hull(access, lengths)
        if window is None or not dense(access, lengths):
            return
        chosen = None if term in self.known else self._chosen_among(term)
        if chosen is None or intersect(chosen, allowed) != chosen:
            self._terms.mark(partial(self._learn, window, allowed), term)

    def _learn(self, window: Window, allowed: Region, term: int) -> None:
        if term not in self.known:
            if not all(other is not None and contains(window, other) for other in self.tests.get(term, ())):
                return
            self.known[term], self.looked_up[term] = allowed, []
        if self.known[term] == allowed and window not in self.looked_up[term]:
            self.looked_up[term].append(window)

    def name_operand(self, operand: Operand, lengths: Sequence[Dim]) -> Operand:
        """The integer operand of a test, under a name of its own where it reads elements without facts."""
        windows = [(term, hull(access, lengths)) for term, access in read_by(self._terms, operand)]
        for term, window in windows:
            is_apart = self._is_apart(window, True, term)
            self._terms.mark(partial(self._is_apart, window, is_apart), term)
            if is_apart:
                return self._terms.apply("identity", [operand])
        for term, window in windows:
            self._terms.mark(partial(self._test, window), term)
        return operand

    def _is_apart(self, window: Window | None, wanted: bool, term: int) -> bool:
        """Whether it is ``wanted`` that a term has a fact, and a window elements for which it does not hold."""
        known = self.looked_up.get(term)
        holds = window is not None and any(contains(w, window) for w in known or ())
        return (known is not None and not holds) == wanted

    def _test(self, window: Window | None, term: int) -> None:
        found = self.tests.setdefault(term, [])
        if window not in found:
            found.append(window)
