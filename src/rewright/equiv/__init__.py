"""Do two implementations of one model compute the same function? Read ``engine``, then ``preparing``.

``inputs`` relates the weights of both sides, ``rewrites`` brings both programs into one form, ``lemmas`` proves small
parts that values point to, ``findings`` says where they part; ``audit`` verifies a certificate.

As with ``rewright.refine`` the name means both the public function and this package, so the package can be called. The
names are looked up when they are first used: an audit imports ``rewright.equiv.audit``, and no engine with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewright.equiv.engine import Equivalence as Equivalence
    from rewright.equiv.engine import Given, Inputs
    from rewright.equiv.engine import equiv as equiv
    from rewright.equiv.lemmas.equations import Prover as Prover
    from rewright.ir.graph import Graph
    from rewright.ir.placement import RankProgram
    from rewright.proof.rewriting.lemma import Lemma as Lemma

__all__ = ["Equivalence", "Lemma", "Prover", "equiv"]

_HOMES = {
    "Equivalence": "rewright.equiv.engine",
    "Lemma": "rewright.proof.rewriting.lemma",
    "Prover": "rewright.equiv.lemmas.equations",
    "equiv": "rewright.equiv.engine",
}
"""The module that each public name is defined in."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


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
        from rewright.equiv.engine import equiv

        return equiv(left, right, inputs, relations, budget, audit=audit, explain=explain, prover=prover)


sys.modules[__name__].__class__ = _CallablePackage
