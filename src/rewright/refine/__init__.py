"""Does a distributed program compute what the sequential model computes? Read ``engine``, then ``check``.

``relations`` says how the ranks hold inputs and outputs, ``twin`` runs both programs on numbers, ``objections`` runs
what was proved, ``findings`` asks :mod:`rewright.blame` where programs part and what mends it, ``certificate`` writes a
proof down.

The name ``rewright.refine`` means two things, the public function and this package, and Python binds it to the package
as soon as anything below is imported. So the package can be called.
"""

import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.engine import refine
from rewright.refine.relations.given import Given
from rewright.refine.verdict import Counterexample, Evidence, Finding, OutputRelation, Stats, Verdict

__all__ = ["Counterexample", "Evidence", "Finding", "OutputRelation", "Stats", "Verdict", "refine"]


class _CallablePackage(ModuleType):
    def __call__(
        self,
        sequential: Graph,
        distributed: Graph | RankProgram | Sequence[Graph],
        relations: Given | None = None,
        expect: Given | None = None,
        budget: float | None = None,
        *,
        audit: bool | None = None,
        explain: bool = True,
        allow_vacuous: bool = False,
        require_collectives: bool = False,
        tell: Callable[[Finding], None] | None = None,
    ) -> Verdict:
        """See :func:`rewright.refine.engine.refine`."""
        return refine(
            sequential,
            distributed,
            relations,
            expect,
            budget,
            audit=audit,
            explain=explain,
            allow_vacuous=allow_vacuous,
            require_collectives=require_collectives,
            tell=tell,
        )


sys.modules[__name__].__class__ = _CallablePackage
