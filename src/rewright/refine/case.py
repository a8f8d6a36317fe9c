"""One question to ``refine``, and what running it on numbers showed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rewright.blame.factors import describe_wrong
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.refine.relations.given import Relations
from rewright.refine.twin.twin import Twin, TwinResult


@dataclass(frozen=True)
class Case:
    """Both programs, the relations of their inputs and what is expected of the outputs."""

    sequential: Graph
    program: RankProgram
    relations: Relations
    expected: Mapping[str, Placement]


@dataclass(frozen=True)
class Ran:
    """What the numeric twin said, and the twin itself where it could be made."""

    result: TwinResult
    twin: Twin | None = None
    counted: frozenset[str] | None = None
    """The outputs that the verdict counts as wrong, where these are the values of a program with repairs."""

    @property
    def is_different(self) -> bool:
        """Whether values (or placements) differ for certain."""
        return self.result.agrees is False

    def known_wrong(self, outputs: Collection[str]) -> list[str]:
        """Those of some outputs that values show to be wrong; all of them where a program fails as it runs."""
        wrong = self.result.wrong_outputs
        return [name for name in outputs if not wrong or name in wrong] if self.is_different else []

    def wrong_of(self, failed: Collection[str]) -> list[str]:
        """Those of outputs without a proof that values show to be wrong; all of them where values show none."""
        return self.known_wrong(failed) or list(failed)

    def describe(self, outputs: Sequence[str], mesh: Mesh) -> str:
        """Outputs that a place spoils, in a few words; without values that differ they are only not proved."""
        names = [name for name in outputs if self.counted is None or name in self.counted] or list(outputs)
        if self.is_different:
            return describe_wrong(names, self.result.factors, mesh)
        more = f" and {len(names) - 1} more outputs are" if len(names) > 1 else " is"
        return f"{names[0]}{more} not proved"

    def expected_outputs(self, case: Case) -> dict[str, Placement]:
        """What is expected of the outputs, at the sizes of the twin."""
        return {} if self.twin is None else self.twin.rescale(case.expected)
