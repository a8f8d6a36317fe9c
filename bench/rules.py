"""The rules benchmark: which true rules are proved and which wrong ones are refused: ``make bench-rules``.

Part 1 are the rules of XLA's simplifier that TensorRight encodes, part 2 reshapes, roots and masks, part 3 the algebra
of language models, part 4 wrong rules. ``--random N`` adds random pairs of programs that differ by an edit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.tables import print_table
from rewright.ir.errors import RewrightError
from rewright.rules import Rule
from rewright.rules.counterexample import find
from rewright.rules.library import library
from rewright.rules.library.arithmetic import EXTRA, MODELS, XLA
from rewright.rules.library.sums import DILATION
from rewright.rules.verdict import RuleVerdict, judge
from tests.rules.near_misses import WRONG
from tests.rules.random_rules import Programs

BUDGET = 10.0


@dataclass(frozen=True)
class Part:
    """Rules of one part of the benchmark, and what has to come out."""

    title: str
    rules: tuple[Rule, ...]
    expected: str


def parts() -> list[Part]:
    """The parts, in order; rules of the library that are in none of them come last."""
    rules = library()
    named = [
        Part("1 XLA, TensorRight", _with(rules, XLA), "proved"),
        Part("2 reshape, roots, masks", _with(rules, EXTRA), "proved"),
        Part("3 language models", _with(rules, MODELS), "proved"),
    ]
    listed = {rule.name for part in named for rule in part.rules}
    rest = tuple(rule for rule in rules if rule.name not in listed)
    return [*named, Part("other rules", rest, "proved"), Part("4 wrong rules", WRONG, "refuted")]


def _with(rules: Iterable[Rule], prefix: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.provenance.startswith(prefix))


def row(part: Part, verdicts: Sequence[RuleVerdict]) -> list[object]:
    """One line of the table."""
    times = [1000 * verdict.seconds for verdict in verdicts]
    wrong = [v.rule.name for v in verdicts if v.status != part.expected]
    return [
        part.title,
        len(verdicts),
        sum(v.status == "proved" for v in verdicts),
        sum(v.status == "refuted" for v in verdicts),
        sum(v.status == "unknown" for v in verdicts),
        f"{statistics.median(times):.0f}",
        f"{max(times):.0f}",
        f"{sum(times) / 1000:.1f}",
        ", ".join(wrong) or "as marked",
    ]


def random_pairs(count: int, seed: int) -> list[object]:
    """Random pairs: how many are proved, and how many of those an instance refutes."""
    source, proved, wrong, times = Programs(seed), 0, 0, list[float]()
    for number in range(count):
        pair = source.pair(f"random {number}")
        started = time.monotonic()
        verdict = judge_or_none(pair)
        times.append(1000 * (time.monotonic() - started))
        if verdict is not None and verdict.status == "proved":
            proved += 1
            wrong += find(pair, tries=4, seconds=1) is not None
    middle, total = f"{statistics.median(times):.0f}", f"{sum(times) / 1000:.1f}"
    shown = "none of them is wrong" if not wrong else f"{wrong} ARE WRONG"
    return [f"random pairs, seed {seed}", count, proved, "", "", middle, f"{max(times):.0f}", total, shown]


def judge_or_none(rule: Rule) -> RuleVerdict | None:
    """The verdict, or None for a pair that holds for no sizes at all."""
    try:
        return judge(rule, 2.0, search=False)
    except RewrightError:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the status is 1 where something came out otherwise than marked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also N random pairs")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    rows: list[list[object]] = []
    right = True
    for part in parts():
        verdicts = [judge(rule, BUDGET) for rule in part.rules]
        right = right and all(verdict.status == part.expected for verdict in verdicts)
        rows.append(row(part, verdicts))
    rows.append(row(Part("stretch: any dilation", (DILATION,), "proved"), [judge(DILATION, BUDGET, search=False)]))
    if given.random:
        rows.append(random_pairs(given.random, given.seed))
    header = ("rules", "n", "proved", "refuted", "unknown", "median ms", "max ms", "total s", "otherwise")
    print_table(header, rows)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
