"""Enzyme-JAX's patterns for StableHLO, one by one, as alternatives (https://github.com/EnzymeAD/Enzyme-JAX).

The driver of the patterns folds constants whatever pattern it is given. What it does with a pattern that never matches
is therefore told apart: those sites are named ``enzyme folding``, and the others after the pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from rewright.env.align import align_names
from rewright.env.alternatives import AlternativeGraph, Provenance
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.env.sites import split
from rewright.ir.errors import RewrightError

FOLDING = "folding"
_NEVER = "conj_complex_negate"


@dataclass(frozen=True)
class EnzymePattern:
    """A pattern by its name, and how it is written in a pipeline."""

    name: str
    spelling: str


def patterns(session: Session) -> tuple[EnzymePattern, ...]:
    """All patterns of the installed Enzyme-JAX; raises RewrightError where there is none."""
    spellings: list[str] = session.remember(("enzyme",), lambda: session.worker.call("enzyme_patterns"))
    found: dict[str, EnzymePattern] = {}
    for spelling in spellings:
        name = spelling.partition("<")[0].partition("(")[0].strip()
        found.setdefault(name, EnzymePattern(name, spelling))
    return tuple(found.values())


def named(session: Session, name: str) -> EnzymePattern:
    """A pattern by its name; raises RewrightError where there is none of that name."""
    known = {pattern.name: pattern for pattern in patterns(session)}
    if name not in known:
        close = ", ".join(get_close_matches(name, known, 3))
        raise RewrightError(f"Enzyme-JAX has no pattern {name!r:.60}" + (f"; did you mean {close}" if close else ""))
    return known[name]


def enzyme_alternatives(session: Session, module: HloModule, name: str) -> AlternativeGraph:
    """What one pattern does to a module, to its fixpoint; all patterns together where no name is given."""
    wanted = [named(session, name)] if name else list(patterns(session))
    after = _rewrite(session, module, ";".join(pattern.spelling for pattern in wanted))
    folded = _rewrite(session, module, named(session, _NEVER).spelling)
    base = module.program
    graph = split(base, align_names(base, after.program), Provenance("enzyme", name or "all patterns"))
    plain = split(base, align_names(base, folded.program), Provenance("enzyme", FOLDING))
    known = {(a.computation, a.value, a.uses) for a in plain.alternatives}
    alternatives = tuple(
        replace(a, provenance=Provenance("enzyme", FOLDING)) if (a.computation, a.value, a.uses) in known else a
        for a in graph.alternatives
    )
    return replace(graph, alternatives=alternatives, settings=None)


def _rewrite(session: Session, module: HloModule, spelling: str) -> HloModule:
    key = ("enzyme", module.digest, spelling)
    proto = session.remember(key, lambda: session.worker.call("enzyme", module.proto, spelling))
    return session.canonical(HloModule(proto))
