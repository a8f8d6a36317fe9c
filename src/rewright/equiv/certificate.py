"""A certificate of two implementations: how both are made comparable, and the proof about what is made of them.

The core is a certificate of ``rewright.proof``, about both programs as they were rewritten. What is added says how
these come from the programs that were captured: the weight map, tables that are constants, and every step of every
rewrite, with the lemma that says why it changes nothing, and what that takes for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rewright.analysis.ends import Bound
from rewright.equiv.inputs.weights import Definition
from rewright.equiv.rewrites.ranges import Ranges
from rewright.ops.base import Array
from rewright.proof.certificate import Certificate
from rewright.proof.rewriting.splices import Rewriting


@dataclass(frozen=True, kw_only=True)
class EquivalenceCertificate(Certificate):
    """A proof that two implementations compute the same, about the programs as they were captured."""

    left: str
    """The digest of the left program."""
    right: tuple[str, ...]
    """The digests of the right program, of all its ranks where it has several."""
    definitions: tuple[Definition, ...] = ()
    """The weight map."""
    tables: tuple[Mapping[str, Array], Mapping[str, Array]] = field(default=({}, {}), repr=False)
    """Inputs of either side that stand for these values."""
    taken: tuple[str, ...] = ()
    """What its rewritings take for granted until the core begins, whose ``assumptions`` say the rest."""
    ranges: Ranges = field(default_factory=dict[str, Bound])
    """Bounds of inputs without which short integers might not fit into their types."""

    def core(self) -> Certificate:
        """The proof about the prepared programs, which begins where numbers are in range."""
        known: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(Certificate)}
        last = tuple(Rewriting(narrowing=rewriting.narrowing) for rewriting in self.rewritings)
        known["rewritings"] = last if any(own.narrowing for own in last) else ()
        return Certificate(**known)

    @classmethod
    def form(cls) -> Any:
        """How certificates of this kind are written."""
        from rewright.equiv.files import EQUIVALENCE

        return EQUIVALENCE
