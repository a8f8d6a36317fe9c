"""A question with how its programs were rewritten, so that a proof of it becomes one about the captured programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rewright.proof.certificate import Certificate
from rewright.proof.drawn import judge_draws
from rewright.proof.rewriting.splices import Rewriting
from rewright.proof.unknowns import Question, unknown_assumptions
from rewright.refine.case import Case
from rewright.refine.rewriting.drafts import Draft
from rewright.refine.rewriting.steps import LemmaSearch


@dataclass(frozen=True)
class Stated:
    """A case with the question that it is, and how its programs were rewritten, the sequential one first."""

    question: Question
    case: Case
    drafts: tuple[Draft, ...] = ()
    """Empty where nothing is assumed of numbers."""

    def certificate(self, write: Callable[[], Certificate], counts: bool) -> Certificate:
        """A proof about the programs as one about those that were captured; raises RewrightError.

        With ``counts`` short integers are written out only after the steps, where they have an end.
        """
        core = write()
        steps = LemmaSearch()
        stages = (steps.stages(draft, counts=not counts) for draft in self.drafts)
        rewritings = tuple(Rewriting(narrowing=own) for own in stages)
        question = self.question
        drawn = judge_draws(question.sequential, question.program, core.relations)
        known = (*unknown_assumptions(question.sequential, core.relations), *drawn.conditions)
        more = (*question.assumptions, *known)
        return replace(core, rewritings=rewritings, assumptions=tuple(dict.fromkeys((*core.assumptions, *more))))
