"""What proposes alternatives beside XLA's passes, by name: the rule library, single rules, general fusion."""

from __future__ import annotations

from collections.abc import Sequence

from rewright.env.alternatives import AlternativeGraph
from rewright.env.enzyme import enzyme_alternatives
from rewright.env.fusions import fusion_alternatives
from rewright.env.module import HloModule
from rewright.env.passes import XlaPass, gpu_pass
from rewright.env.rules import rule_alternatives, rules_named
from rewright.env.session import Session
from rewright.rules.library import library

DEFAULT = "algsimp,cse,reshape-mover,constant_folding"
"""What agents decide where nothing else is asked for."""
RULES, RULE, FUSION, ENZYME = "rules", "rule:", "general-fusion", "enzyme"


def is_proposer(name: str) -> bool:
    """Whether a name is none of a pass of XLA."""
    return name in (RULES, FUSION, ENZYME) or name.startswith((RULE, f"{ENZYME}:"))


def hand_decided(names: Sequence[str]) -> tuple[str, ...]:
    """Those of some names that are passes of XLA:CPU: what is decided by hand, and not to run again."""
    return tuple(XlaPass(name).name for name in names if not is_proposer(name) and gpu_pass(name) is None)


def checked_name(name: str) -> str:
    """A name of a pass of XLA or of a proposer; raises RewrightError for any other."""
    if name.startswith(RULE):
        rules_named([name.removeprefix(RULE)])
        return name
    return name if is_proposer(name) or gpu_pass(name) is not None else XlaPass(name).name


def proposals(session: Session, module: HloModule, name: str) -> AlternativeGraph:
    """The alternatives of a proposer for the entry of a module."""
    if name == FUSION:
        return fusion_alternatives(module)
    if name == ENZYME or name.startswith(f"{ENZYME}:"):
        return enzyme_alternatives(session, module, name.partition(":")[2])
    rules = library() if name == RULES else rules_named([name.removeprefix(RULE)])
    return rule_alternatives(session, module, rules)
