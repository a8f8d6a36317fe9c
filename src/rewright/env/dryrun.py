"""Dry runs: what passes would do to a module, as alternatives that are checked one by one before they are offered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewright.env.alternatives import ROOT, AlternativeGraph, Provenance, merge
from rewright.env.custom import Pattern, pattern_alternatives, pattern_key
from rewright.env.module import HloModule
from rewright.env.passes import gpu_pass
from rewright.env.proposers import checked_name, is_proposer, proposals
from rewright.env.session import Change, Session
from rewright.env.sites import Granularity, split
from rewright.env.testing import run_alternatives
from rewright.env.values import Test

_MOST_ROUNDS = 3


@dataclass(frozen=True)
class DryRun:
    """A module, the alternatives that passes offer for it, and what testing each has shown (none: not tested)."""

    module: HloModule
    graph: AlternativeGraph
    tests: tuple[Test, ...] = ()
    passes: tuple[str, ...] = ()
    """What proposed them, by name, and the patterns of the user's own that did."""
    patterns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def offered(self) -> list[bool]:
        """For each alternative whether it may be chosen: those that were refuted may not."""
        return [test.agrees is not False for test in self.tests] if self.tests else [True] * len(self.graph)

    def apply(self, choices: Sequence[int]) -> HloModule:
        """The module with the chosen alternatives; the module itself, untouched, where none is chosen."""
        return self.module.replaced(self.graph.apply(choices)) if choices else self.module


def dry_run(
    session: Session,
    module: HloModule,
    passes: Sequence[str],
    granularity: Granularity = "value",
    tested: bool = True,
    seed: int = 0,
    patterns: Sequence[Pattern] = (),
) -> DryRun:
    """The alternatives of the first iteration in which each of some passes changes a module, and of what is no pass.

    Beside XLA's passes there are ``rules`` (every match of every rule of the library), ``rule:NAME``,
    ``general-fusion``, the user's patterns, and with the extra ``gpu-passes`` passes of XLA:GPU for a device that need
    not be there (``h100:priority-fusion``). ``tested`` runs every alternative on random inputs; names that XLA gave
    to another value are found so and told apart. A module that differs from an earlier one in names alone gives the dry
    run of that one. Raises RewrightError for a pass that does not exist, XlaError where XLA refuses the module.
    """
    passes = tuple(map(checked_name, passes))
    own = tuple(map(pattern_key, patterns))
    key = ("dry run", session.fingerprint(module), module.late, passes, granularity, tested, seed, own)
    return session.remember(key, lambda: _dry_run(session, module, passes, granularity, tested, seed, patterns))


def _dry_run(
    session: Session,
    module: HloModule,
    passes: Sequence[str],
    granularity: Granularity,
    tested: bool,
    seed: int,
    patterns: Sequence[Pattern],
) -> DryRun:
    names = [name for name in passes if not is_proposer(name)]
    firsts = [changes[0] for name in names if (changes := _changes(session, module, name))]
    # Every import gives the same names; a pass that has no name itself could still have changed something before.
    firsts = [
        change for change in firsts if change.before.program.computations == firsts[0].before.program.computations
    ]
    base = firsts[0].before if firsts else session.canonical(module)
    runs = [dry_change(session, change, granularity, tested, seed) for change in firsts]
    proposed = [proposals(session, base, name) for name in passes if is_proposer(name)]
    proposed += [pattern_alternatives(session, base, pattern, granularity) for pattern in patterns]
    for own in proposed:
        runs.append(DryRun(base, own, tuple(run_alternatives(session, base, own, seed)) if tested else ()))
    graph, origins = merge(base.program, [run.graph for run in runs])
    tests = tuple(runs[tag].tests[number] for tag, number in origins) if tested else ()
    return DryRun(base, graph, tests, tuple(passes), tuple(pattern.name for pattern in patterns))


def _changes(session: Session, module: HloModule, name: str) -> list[Change]:
    """What a pass by its name changes, run alone: one of XLA:CPU, or one of XLA:GPU with its target."""
    own = gpu_pass(name)
    if own is None:
        return session.early_changes(module, name)
    found = session.gpu_changes(session.canonical(module), own.target, own.name)
    return [replace(change, name=name) for change in found]


def dry_change(
    session: Session, change: Change, granularity: Granularity = "value", tested: bool = True, seed: int = 0
) -> DryRun:
    """One run of a pass as alternatives; users of a replacement that is refuted count as new instructions, and so on.

    XLA gives the name of a value to another one now and then: then the users of the first are told apart from what
    has their names after the pass, until every alternative agrees. Where that does not help the pass is wrong, or not
    to be split, and what is refuted is marked.
    """
    provenance = Provenance("xla", change.name, change.pipeline, change.iteration)
    before, after = change.before.program, change.after.program
    plain = graph = split(before, after, provenance, granularity)
    if not tested or not len(graph):
        return DryRun(change.before, graph, ())
    first = tests = tuple(run_alternatives(session, change.before, graph, seed))
    renamed: set[tuple[str, str]] = set()
    for _ in range(_MOST_ROUNDS):
        refuted = [graph.alternatives[n] for n, own in enumerate(tests) if own.agrees is False]
        if not refuted:
            return DryRun(change.before, graph, tests)
        users = {(a.computation, use.user) for a in refuted for use in a.uses if use.user != ROOT}
        if not users - renamed:
            break
        renamed |= users
        graph = split(before, after, provenance, granularity, renamed)
        tests = tuple(run_alternatives(session, change.before, graph, seed))
    if any(own.agrees is False for own in tests):
        return DryRun(change.before, plain, first)
    return DryRun(change.before, graph, tests)
