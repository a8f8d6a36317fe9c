"""A user's own rewrites: patterns as rules, and functions from program to program, with their sites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewright.env.alternatives import AlternativeGraph, Provenance
from rewright.env.hlo.editing import remove_dead_code
from rewright.env.module import HloModule
from rewright.env.rules import rule_alternatives
from rewright.env.session import Session
from rewright.env.sites import Granularity, split
from rewright.frontends.hlo.module import Module
from rewright.ir.errors import RewrightError
from rewright.rules.record import rule_digest
from rewright.rules.rule import Rule


@dataclass(frozen=True)
class Rewrite:
    """A function from program to program under a name; what it changes is split into sites as what a pass changes."""

    name: str
    function: Callable[[Module], Module]


Pattern = Rule | Rewrite
"""``left = right`` as :func:`rewright.rules.rule.rule` states it, or a function."""


def pattern_key(pattern: Pattern) -> tuple[object, ...]:
    """What tells a pattern from others."""
    return (rule_digest(pattern),) if isinstance(pattern, Rule) else (pattern.name, pattern.function)


def pattern_alternatives(
    session: Session, base: HloModule, pattern: Pattern, granularity: Granularity = "value"
) -> AlternativeGraph:
    """What a pattern would do to a module; raises RewrightError where a function fails, or makes what is no module."""
    if isinstance(pattern, Rule):
        return rule_alternatives(session, base, (pattern,), "pattern")
    try:
        program: object = pattern.function(base.program)
    except RewrightError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error!s:.80}"
        raise RewrightError(f"the rewrite {pattern.name!r:.60} fails ({what})") from None
    after = _check(session, base, pattern.name, program)
    return split(base.program, after, Provenance("pattern", pattern.name), granularity)


def _check(session: Session, base: HloModule, name: str, program: object) -> Module:
    """What a function made, where it is a module to XLA; raises RewrightError where it is none."""
    if not isinstance(program, Module):
        raise RewrightError(f"the rewrite {name!r:.60} gives no program but {program!r:.40}; return a Module")
    try:
        module = base.replaced(remove_dead_code(program))
        # An import checks every instruction against its operands.
        if module.late:
            session.fingerprint(module)
        else:
            session.canonical(module)
    except (RewrightError, KeyError) as error:
        what = " ".join(str(error).split())
        raise RewrightError(f"the rewrite {name!r:.60} gives what is no module ({what:.160})") from None
    return program
