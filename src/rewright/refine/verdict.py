"""What a refinement check answers: the verdict, how it is known, and what a person needs to act on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial, total_ordering
from typing import Literal, Self

from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import SourceSpan
from rewright.ops.base import Array
from rewright.proof.certificate import Certificate

Status = Literal["proved", "vacuous", "refuted", "unknown"]
"""``vacuous``: proved, and of nothing: of ranks that share no work, for example."""


@total_ordering
class Evidence(Enum):
    """How a statement is known, ordered: ``PROVED`` is the greatest, ``ASSUMED`` the least.

    The evidence of a verdict is the minimum over the rules and relations that it used.
    """

    PROVED = "proved"
    """Normal forms agree, for every size, at the stated ranks."""
    BOUNDED = "bounded"
    """Proved at given sizes."""
    TESTED = "tested"
    """Random runs that satisfy the constraints."""
    ASSUMED = "assumed"
    """The user said so."""

    @property
    def strength(self) -> int:
        """0 for assumed, up to 3 for proved."""
        order = list(Evidence)
        return len(order) - 1 - order.index(self)

    def __lt__(self, other: object) -> bool:
        return self.strength < other.strength if isinstance(other, Evidence) else NotImplemented

    def __str__(self) -> str:
        return self.value


_WORTH = {
    ("proved", Evidence.PROVED): " and audited",
    ("proved", Evidence.TESTED): " by the engine (not audited; --audit checks it independently)",
    ("vacuous", Evidence.PROVED): " (equal, and it says nothing of a plan; --allow-vacuous takes it as proved)",
    ("vacuous", Evidence.TESTED): " (equal, and it says nothing of a plan; --allow-vacuous takes it as proved)",
}
_BASIS = {
    ("proved", Evidence.PROVED): "The engine found a proof, and the independent checker confirmed it.",
    ("proved", Evidence.TESTED): "The engine found a proof. The independent checker was not asked; --audit asks it.",
    ("vacuous", Evidence.PROVED): "The programs are equal, which the independent checker confirmed; it says nothing.",
    ("vacuous", Evidence.TESTED): "The engine found the programs equal, and that says nothing.",
    ("refuted", Evidence.PROVED): "The programs themselves show it, whatever the values are.",
    ("refuted", Evidence.TESTED): "Both programs were run on the inputs below, and their values differ.",
    ("unknown", Evidence.TESTED): "There is no proof, and no run that shows a difference.",
    ("unknown", Evidence.ASSUMED): "There is no proof, and no run that shows a difference.",
}


@dataclass(frozen=True)
class Counterexample:
    """Concrete inputs on which the two programs part: sizes, the seed that fills them, and one differing element."""

    sizes: dict[str, tuple[int, ...]]
    """Shape of each input, by name."""
    output: str
    """The output (or intermediate tensor) that differs."""
    index: tuple[int, ...]
    sequential_value: float
    distributed_value: float
    """Not a number where a rank fails on these inputs, in a look-up out of range for instance."""
    seed: int

    @staticmethod
    def of(
        inputs: Mapping[str, Array], output: str, index: tuple[int, ...], values: tuple[float, float], seed: int = 0
    ) -> Counterexample:
        """One element of an output, and what both programs compute there of some inputs."""
        return Counterexample({n: tuple(v.shape) for n, v in inputs.items()}, output, index, *values, seed)


@dataclass(frozen=True)
class Where:
    """The nodes that a finding is about, by their positions in ``Verdict.programs``; None where it is about none."""

    sequential: int | None = None
    rank: int = 0
    """The rank that shows it best."""
    distributed: int | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or that could not be shown, with both source lines and what to do."""

    kind: str
    """What sort of finding, in words that stay the same over releases: ``"missing_reduction"``, ``"wrong_value"``."""
    message: str
    sequential: SourceSpan | None
    distributed: SourceSpan | None
    expected: str
    """The placement (or expression) that the sequential tensor should have over the ranks; may be empty."""
    found: str
    suggestion: str | None
    """A repair that was applied and checked before it is reported."""
    counterexample: Counterexample | None
    why_not: str = ""
    """Why the nearest law did not relate the two tensors."""
    also: tuple[str, ...] = ()
    """Module paths of further places that have the same fault, and are mended by the same repair."""
    where: Where = Where()


@dataclass(frozen=True)
class OutputRelation:
    """How the ranks hold one output of the sequential program."""

    name: str
    placement: str
    """In DTensor notation; empty where the relation is none of DTensor's placements."""
    equation: str
    """``name = clean expression over rank tensors``."""
    expected: str | None
    """The placement that was asked for, where one was."""
    holds: bool

    def __str__(self) -> str:
        return self.equation


@dataclass(frozen=True)
class Stats:
    """How large the problem was, which strategies carried it, and where the time went."""

    sequential_nodes: int = 0
    rank_nodes: int = 0
    """Nodes of all ranks together."""
    ranks: int = 0
    steps: dict[str, int] = field(default_factory=dict[str, int])
    """Sequential nodes by the strategy that related them."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Wall-clock seconds by phase."""
    laws: dict[str, int] = field(default_factory=dict[str, int])
    """How often each law of the engine was used."""


@dataclass(frozen=True)
class Verdict:
    """The answer of ``rewright.refine``."""

    status: Status
    evidence: Evidence
    assumptions: tuple[str, ...] = ()
    relation: dict[str, OutputRelation] = field(default_factory=dict[str, OutputRelation])
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    stats: Stats = field(default_factory=Stats)
    reason: str = ""
    """One sentence: why the status is what it is; for ``unknown``, which operator and which budget or rule."""
    certify: Callable[[], Certificate] | None = field(default=None, repr=False, compare=False)
    """Writes the proof down; None for a verdict without one."""
    programs: tuple[Graph, RankProgram] | None = field(default=None, repr=False, compare=False)
    """The programs that were compared, which is what findings count positions in; of a proof, as they were captured."""
    validation: str = ""
    """What was checked of the captures: whether the graphs compute what the programs do that they come from."""

    def about_captures(self, validation: str, record: str) -> Self:
        """The verdict with what was checked of the captures: in a sentence, and as JSON for its certificate."""
        certify = None if self.certify is None else partial(_record, self.certify, record)
        return replace(self, validation=validation, certify=certify)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The proof of a verdict that is proved, to be saved and audited; written down when it is first asked for.

        Raises RewrightError where the language of certificates cannot express the proof.
        """
        return None if self.certify is None else self.certify()

    @property
    def worth(self) -> str:
        """The status, and of a proof whether the independent checker confirmed it: ``"proved and audited"``."""
        return f"{self.status}{_WORTH.get((self.status, self.evidence), '')}"

    @property
    def basis(self) -> str:
        """A sentence that says what the status rests on."""
        return _BASIS.get((self.status, self.evidence), f"What it rests on is {self.evidence}.")

    def __str__(self) -> str:
        return f"{self.worth}: {self.reason}" if self.reason else self.worth


def _record(certify: Callable[[], Certificate], record: str) -> Certificate:
    return replace(certify(), captured=record)


@dataclass
class Pairing:
    """What was found: for every sequential output its counterpart, and the outputs that have none."""

    related: dict[str, tuple[str, Placement]] = field(default_factory=dict[str, tuple[str, Placement]])
    """Sequential output -> the ranks' tensor (an output or an input) and how they hold it."""
    alone: list[str] = field(default_factory=list[str])
    """Sequential outputs that are indices or masks without a counterpart."""
    failed: list[str] = field(default_factory=list[str])
    unclaimed: list[str] = field(default_factory=list[str])
    """Outputs of the ranks that are no tensor of the sequential program."""
    rank_alone: list[str] = field(default_factory=list[str])
    """Outputs of the ranks that are indices or masks without a counterpart."""
