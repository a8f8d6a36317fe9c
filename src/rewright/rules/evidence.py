"""The evidence record of a rule: its proof, a second proof, tests, what makes it worth proving, and its mutants."""

from __future__ import annotations

import hashlib
import importlib.metadata
import random
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.rules import bounded, mutation
from rewright.rules.concrete import concrete
from rewright.rules.counterexample import Comparison, compare_programs
from rewright.rules.instances import Instance, sample
from rewright.rules.matcher import match_at, rewrite_match
from rewright.rules.record import INSTANCES, Record, Tier, graph_text, rule_digest
from rewright.rules.rule import Rule
from rewright.rules.verdict import judge

ASSUMPTIONS = (
    "floats are real numbers: no rounding, no overflow, no NaN, no negative zero",
    "integers do not overflow",
    "conversions between floats, and from integers to floats, keep the value",
)
"""What every proof about values assumes; rules of grade ``move`` need none of the first."""
_CHECKER = ("ir", "ops", "terms", "rules")
"""The packages whose code an evidence record depends on."""


@lru_cache(maxsize=1)
def checker_digest() -> str:
    """The SHA-256 digest of the source that proofs depend on, and of the solver's version."""
    found = hashlib.sha256(importlib.metadata.version("z3-solver").encode())
    root = Path(__file__).parents[1]
    for package in _CHECKER:
        for path in sorted((root / package).rglob("*.py")):
            if "library" not in path.parts:
                found.update(path.relative_to(root).as_posix().encode())
                found.update(path.read_bytes())
    return found.hexdigest()


def collect(rule: Rule, budget: float = 20.0, seed: int = 0) -> Record:
    """Make the record of a rule; raises RewrightError where its conditions cannot hold."""
    verdict = judge(rule, budget)
    second = bounded.check(rule)
    tests = run_tests(rule, seed)
    tier: Tier = "none"
    if verdict.status == "proved":
        tier = "proved"
    elif verdict.status == "unknown" and tests["failed"] is None:
        tier = "tested"
    mutants = [asdict(m) for m in mutation.examine(rule)] if tier == "proved" else []
    return Record(
        rule.name,
        rule.statement,
        rule_digest(rule),
        checker_digest(),
        tier,
        verdict.grade,
        {
            "status": verdict.status,
            "reason": verdict.reason,
            "definedness": list(verdict.outcome.demands),
            "queries": verdict.outcome.queries,
            "solver": f"z3 {importlib.metadata.version('z3-solver')}",
            "ranks": rule.ranks or "as stated",
        },
        {"identical": second.identical, "skipped": second.skipped, "difference": second.difference},
        tests,
        substance(rule, seed),
        mutants,
        ASSUMPTIONS,
    )


def run_tests(rule: Rule, seed: int = 0, wanted: int = INSTANCES) -> dict[str, Any]:
    """Random instances through the executable matcher: match the left side, rewrite, compare to 35 digits."""
    source = random.Random(seed)
    counted, empty, boundary, digits, failed = 0, 0, 0, 0, None
    for attempt in range(wanted * 6):
        instance = sample(rule, source, most=2 + attempt % 4)
        if instance is None:
            continue
        result = through_matcher(rule, instance)
        if result.difference is not None:
            failed = f"{dict(instance.sizes)}: {result.difference}"
            break
        counted += 1
        digits += result.compared
        empty += result.compared == 0
        boundary += any(value in (0, 1) for value in instance.sizes.values())
        if counted >= wanted and digits >= wanted:
            break
    return {"instances": counted, "elements": digits, "empty": empty, "boundary": boundary, "failed": failed}


def through_matcher(rule: Rule, instance: Instance) -> Comparison:
    """The left side as a program, and what the engine makes of it with the rule, on the same elements.

    Raises RewrightError where the rule does not match its own left side.
    """
    program = concrete(rule.left, instance.sizes)
    root = next(iter(program.outputs.values()))
    match = match_at(rule, program, root) or match_at(rule, program, root, instance.sizes)
    if match is None:
        raise RewrightError(f"rule {rule.name!r} does not match its own left side at {dict(instance.sizes)}")
    try:
        after = rewrite_match(program, match)
    except TypeMismatch as error:
        return Comparison(f"the right side is not valid: {error}", 0)
    return compare_programs(program, after, instance)


def substance(rule: Rule, seed: int = 0) -> dict[str, bool]:
    """What keeps a rule from being true for no reason: it applies, its sides differ, its result varies."""
    source = random.Random(seed + 1)
    values: set[str] = set()
    applies = False
    for _ in range(12):
        instance = sample(rule, source, most=4)
        if instance is None:
            continue
        applies = True
        result = through_matcher(rule, instance)
        values |= {str(value) for value in result.values}
    constant = not rule.right.inputs or _is_constant(rule)
    return {
        "applies": applies,
        "sides differ": graph_text(rule.left) != graph_text(rule.right),
        "result varies": constant or len(values) > 1,
    }


def _is_constant(rule: Rule) -> bool:
    """Whether the right side says openly that the result is a constant."""
    return all(not node.operands or node.op.name == "broadcast_in_dim" for node in rule.right.nodes)
