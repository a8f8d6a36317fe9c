"""Does a distributed program compute what the sequential model computes?"""

from rewright.refine.engine import refine
from rewright.refine.verdict import Counterexample, Evidence, Finding, OutputRelation, Stats, Verdict

__all__ = ["Counterexample", "Evidence", "Finding", "OutputRelation", "Stats", "Verdict", "refine"]
