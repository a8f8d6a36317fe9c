"""Certificates of refinements and of equivalences, forged for wrong programs: ``make forged-proofs``.

A forger has pairs of programs that are equal, with their certificates, and shows these for programs that compute
something else: with the digests, the lemmas and the assumptions of the wrong programs, with one false step more, or
with other entries. None may be accepted. Where only entries of a true certificate are changed, what is accepted must
claim what the true one claims. ``python -m bench.forged_proofs --refinements N --equivalences N --seed N``.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bench.mutants import generate, is_equivalent
from bench.tables import print_table
from rewright.equiv.audit import audit as audit_equivalence
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.files import EQUIVALENCE
from rewright.ir.errors import RewrightError
from rewright.ir.placement import RankProgram
from rewright.proof.certificate import Certificate
from rewright.proof.checker import audit
from tests.programs import Pair
from tests.proof.programs import PROGRAMS
from tests.proof.rewriting.forged_pairs import PAIRS, SECONDS, case
from tests.proof.rewriting.forgeries import KINDS, Forgery
from tests.proof.rewriting.forging import alone
from tests.proof.tampering import tampered
from tests.proof.test_tampering import certified, claim, forged

HANGS = 30.0
_TRIES = 40
COLUMNS = ("forged", "refused", "benign", "accepted", "crashed", "too long")


@dataclass
class Tally:
    """What became of forgeries, by kind."""

    kinds: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    found: list[str] = field(default_factory=list[str])

    def add(self, kind: str, what: str, said: str) -> None:
        """Count one."""
        counts = self.kinds.setdefault(kind, Counter())
        counts.update(("forged", said))
        if said not in ("refused", "benign"):
            self.found.append(f"{kind}: {what}: {said}")

    def judged(self, kind: str, what: str, check: Callable[[], object], *, is_benign: bool) -> None:
        """Check one, and count what came of it."""
        started = time.monotonic()
        try:
            check()
            said = "benign" if is_benign else "accepted"
        except RewrightError:
            said = "refused"
        except Exception:
            said = "crashed"
            what += f" {traceback.format_exc(limit=-3)}"
        self.add(kind, what, "too long" if time.monotonic() - started > HANGS else said)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(counts["forged"] for counts in self.kinds.values())


# --- refinements


def refinements(count: int, seed: int, tally: Tally, names: Sequence[str] = tuple(PROGRAMS)) -> None:
    """Forge so many certificates of refinements, in turn of each pair: for wrong programs, and with other entries."""
    store: set[str] = set()
    each = -(-count // len(names))
    for name in names:
        pair = PROGRAMS[name]()
        true = certified(pair)
        audit(true, *pair, store)
        before = tally.count
        _for_wrong_ranks(name, pair, each // 2, seed, store, tally)
        for what, changed in tampered(true, each - (tally.count - before), seed):
            check = _audit_of(changed, pair, store)
            tally.judged(
                "refinement, entries changed", f"{name}, {what}", check, is_benign=claim(changed) == claim(true)
            )


def _for_wrong_ranks(name: str, pair: Pair, count: int, seed: int, store: set[str], tally: Tally) -> None:
    made = 0
    for mutant in generate(pair[1], per_kind=2, seed=seed):
        if made >= count:
            return
        if is_equivalent(pair[0], mutant) is not False:
            continue
        for base in forged(pair, mutant):
            for what, changed in [("sealed anew", base), *tampered(base, 4, seed)]:
                made += 1
                check = _audit_of(changed, (pair[0], mutant.program), store)
                kind = "refinement, wrong program" + (", entries changed" if what != "sealed anew" else "")
                tally.judged(kind, f"{name}, {mutant.description}, {what}", check, is_benign=False)


def _audit_of(certificate: Certificate, pair: tuple[object, RankProgram], store: set[str]) -> Callable[[], object]:
    return lambda: audit(certificate, *pair, store, SECONDS)  # type: ignore[arg-type]


# --- equivalences


def equivalences(count: int, seed: int, tally: Tally, names: Sequence[str] = tuple(PAIRS)) -> None:
    """Forge so many certificates of equivalences, in turn of each pair and of each kind."""
    random, made = Random(seed), 0
    while made < count:
        name, kind = names[made % len(names)], random.choice(KINDS)
        own = case(name)
        if own is None:
            raise SystemExit(f"{name} is not proved")
        for _ in range(_TRIES):
            try:
                forgery = kind(own, random)
            except RewrightError:
                tally.add(f"equivalence, {kind.__name__.replace('_', ' ')}", name, "refused")
                break
            if forgery is not None:
                _judge(name, kind.__name__, forgery, own.certificate, tally)
                break
        made += 1


def _judge(name: str, kind: str, forgery: Forgery, true: EquivalenceCertificate, tally: Tally) -> None:
    own = case(name)
    assert own is not None
    is_benign = forgery.is_true and said(forgery.certificate) == said(true)

    try:
        entries = EQUIVALENCE.sealed(forgery.certificate)
    except (RewrightError, TypeError, ValueError, AttributeError):
        entries = None  # it has no form in a file

    def check() -> object:
        shown = forgery.certificate if entries is None else EQUIVALENCE.of_value(entries)
        return audit_equivalence(shown, forgery.left, alone(forgery.right), None, None, SECONDS, own.checked)

    tally.judged(f"equivalence, {kind.replace('_', ' ')}", name, check, is_benign=is_benign)


def said(certificate: EquivalenceCertificate) -> object:
    """What a certificate of two programs claims, but for how it is proved."""
    tables = [[(n, v.shape, v.tolist()) for n, v in side.items()] for side in certificate.tables]
    bounds = sorted(certificate.ranges.items())
    return claim(certificate)[1:], certificate.definitions, tables, certificate.taken, bounds  # type: ignore[index]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a forgery was accepted, or the checker broke down over one."""
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--refinements", type=int, default=1500)
    parser.add_argument("--equivalences", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    tally = Tally()
    if given.refinements:
        refinements(given.refinements, given.seed, tally)
    if given.equivalences:
        equivalences(given.equivalences, given.seed, tally)
    print_table(["kind", *COLUMNS], [[k, *(str(c[column]) for column in COLUMNS)] for k, c in tally.kinds.items()])
    print(f"{tally.count} forged certificates, {sum(c['accepted'] for c in tally.kinds.values())} accepted")
    for line in tally.found:
        print(f"  {line}")
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main())
