"""What an attempt at a proof found: which outputs are related, and which are left to explain."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.ir.placement import Placement
from rewright.lifting.programs import Lifted, Lifter
from rewright.lifting.terms.forms import Forms
from rewright.ops.agreement import CollectiveMismatch
from rewright.refine.verdict import OutputRelation, Pairing


@dataclass
class Proof:
    """The result of lifting both programs: what is related, and what is left to explain."""

    lifter: Lifter
    sequential: Lifted
    ranks: list[Lifted]
    relations: dict[str, OutputRelation] = field(default_factory=dict[str, OutputRelation])
    placements: dict[str, Placement] = field(default_factory=dict[str, Placement])
    """How the ranks hold every output that is related."""
    looked_into: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """For a proof with a journal, the terms that relating an output looked into."""
    failed: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    assumptions: list[str] = field(default_factory=list[str])
    pairing: Pairing | None = None
    """For outputs without names whose numbers differ on both sides: which belong together."""
    mismatch: CollectiveMismatch | None = None
    out_of_time: bool = False

    @property
    def forms(self) -> Forms:
        """The normal forms that it was tried with."""
        return self.lifter.algebra.forms
