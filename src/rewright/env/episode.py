"""One run of choices on a module: dry runs, choices, rounds, and what has to be written down to repeat it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from rewright.env.cost import Cost
from rewright.env.custom import Pattern
from rewright.env.dryrun import DryRun, dry_run
from rewright.env.evidence import Evidence, describe, evidence_for, to_json
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.env.sites import Granularity
from rewright.env.testing import compare_modules
from rewright.env.values import Test
from rewright.env.xla.worker import XlaError
from rewright.frontends.hlo.order import Cycle
from rewright.ir.errors import RewrightError
from rewright.proof.container import Header, seal_document
from rewright.proof.entries import encode_bytes

HEADER = Header(
    "rewright.trajectory",
    2,
    (
        *("original", "late", "entrance", "fingerprint", "granularity", "tested", "seed", "rounds", "final", "steps"),
        *("refused", "digest"),
    ),
    name="trajectory",
    hint="name a file that an environment saved",
)


@dataclass(frozen=True)
class Settings:
    """What decides which alternatives there are."""

    passes: tuple[str, ...]
    granularity: Granularity = "value"
    tested: bool = True
    seed: int = 0
    patterns: tuple[Pattern, ...] = ()
    """Rewrites of the user's own; a trajectory names them, and is run again with the same ones."""


@dataclass(frozen=True)
class Round:
    """A dry run and what was chosen in it."""

    run: DryRun
    chosen: tuple[int, ...]


@dataclass
class Episode:
    """The state of an episode; values in it are never changed in place, so that a fork is a shallow copy."""

    session: Session
    original: HloModule
    settings: Settings
    run: DryRun = field(init=False)
    chosen: tuple[int, ...] = ()
    current: HloModule = field(init=False)
    past: tuple[Round, ...] = ()
    refused: tuple[str, ...] = ()
    """What XLA could not do, in its words."""
    _mask: tuple[DryRun, tuple[int, ...], list[bool]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.run = self._dry_run(self.original)
        self.current = self.run.module

    def _dry_run(self, module: HloModule) -> DryRun:
        s = self.settings
        return dry_run(self.session, module, s.passes, s.granularity, s.tested, s.seed, s.patterns)

    def fork(self) -> Episode:
        """Another episode in the same state, which goes its own way."""
        return copy.copy(self)

    def __deepcopy__(self, memo: object) -> Episode:
        return self.fork()

    # --- choices

    def mask(self) -> list[bool]:
        """For each alternative of this round whether it can be chosen now."""
        if self._mask is None or self._mask[0] is not self.run or self._mask[1] != self.chosen:
            free = self.run.graph.applicable(self.chosen)
            self._mask = (self.run, self.chosen, [a and b for a, b in zip(free, self.run.offered, strict=True)])
        return list(self._mask[2])

    def choose(self, number: int) -> bool:
        """Choose an alternative; returns whether that was possible. Raises RewrightError for one that is not there."""
        if not 0 <= number < len(self.run):
            raise RewrightError(f"there is no alternative {number}; there are {len(self.run)}")
        if not self.mask()[number]:
            return False
        try:
            self.current = self.run.apply([*self.chosen, number])
        except Cycle:
            return False
        self.chosen = (*self.chosen, number)
        return True

    def next_round(self) -> bool:
        """Start another dry run from the module as chosen; returns whether there is anything to choose.

        Where XLA refuses the module or ends its process the round is taken back, and the episode goes on without it.
        """
        module = self.current
        try:
            run = self._dry_run(module)
        except XlaError as error:
            self.refused = (*self.refused, str(error))
            self.current = self.run.apply([])
            self.chosen = ()
            return any(self.mask())
        self.past = (*self.past, Round(self.run, self.chosen))
        self.run, self.chosen, self.current = run, (), run.module
        return len(run) > 0 and any(self.mask())

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds, the present one too."""
        return (*self.past, Round(self.run, self.chosen))

    @property
    def cost(self) -> Cost:
        """The estimated cost of the module as chosen."""
        return self.current.cost

    # --- evidence

    def evidence(self, seconds: float = 0.5) -> list[tuple[str, Evidence]]:
        """Each step that was taken, in words, with its evidence."""
        found: list[tuple[str, Evidence]] = []
        for entry in self.rounds:
            for number in entry.chosen:
                test = entry.run.tests[number] if entry.run.tests else None
                words = describe(entry.run.graph.alternatives[number])
                found.append((words, evidence_for(entry.run.graph, number, test, seconds)))
        return found

    def claims(self) -> list[str]:
        """Each step that was taken, in words."""
        return [describe(own.run.graph.alternatives[number]) for own in self.rounds for number in own.chosen]

    def validate(self, seed: int = 0) -> Test:
        """Whether the module as chosen gives the outputs of the original on random inputs."""
        return compare_modules(self.session, self.session.canonical(self.original), self.current, seed)

    # --- trajectories

    def to_json(self, seconds: float = 0.5) -> dict[str, Any]:
        """The trajectory: the original module, the settings, the choices by round, and the evidence of each."""
        original = self.original
        document: dict[str, Any] = {
            "original": encode_bytes(original.proto),
            "late": original.late,
            "entrance": None if original.entrance is None else encode_bytes(original.entrance),
            "fingerprint": self.session.fingerprint(original),
            "granularity": self.settings.granularity,
            "tested": self.settings.tested,
            "seed": self.settings.seed,
            "rounds": [
                {"passes": list(own.run.passes), "patterns": list(own.run.patterns), "chosen": list(own.chosen)}
                for own in self.rounds
            ],
            "final": self.session.fingerprint(self.current),
            "steps": [{"claim": words, **to_json(own)} for words, own in self.evidence(seconds)],
            "refused": list(self.refused),
        }
        return seal_document(HEADER.document(document))
