"""Do two implementations of one model compute the same function?

As with ``rewright.refine`` the name means both the public function and this package, so the package can be called.
"""

import sys
from collections.abc import Sequence
from types import ModuleType

from rewright.equiv.engine import Equivalence, Given, Inputs, equiv
from rewright.equiv.lemmas import Prover
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.rewriting.lemma import Lemma

__all__ = ["Equivalence", "Lemma", "Prover", "equiv"]


class _CallablePackage(ModuleType):
    def __call__(
        self,
        left: Graph,
        right: Graph | RankProgram | Sequence[Graph],
        inputs: Inputs | None = None,
        relations: Given | None = None,
        budget: float | None = None,
        *,
        audit: bool = True,
        explain: bool = True,
        prover: Prover | None = None,
    ) -> Equivalence:
        """See :func:`rewright.equiv.engine.equiv`."""
        return equiv(left, right, inputs, relations, budget, audit=audit, explain=explain, prover=prover)


sys.modules[__name__].__class__ = _CallablePackage
