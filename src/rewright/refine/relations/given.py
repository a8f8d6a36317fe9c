"""What is known of the inputs before a proof: placements, equations, and what shapes leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from rewright.ir.placement import Placement
from rewright.refine.relations.equations import Equation


@dataclass(frozen=True)
class Inferred:
    """By input the placements that fit its local shapes, the simplest first."""

    fitting: dict[str, tuple[Placement, ...]] = field(default_factory=dict[str, tuple[Placement, ...]])

    @property
    def first(self) -> dict[str, Placement]:
        """The simplest placement of every input."""
        return {name: choices[0] for name, choices in self.fitting.items()}

    @property
    def is_open(self) -> bool:
        """Whether shapes leave a choice."""
        return any(len(choices) > 1 for choices in self.fitting.values())

    def combinations(self) -> Iterator[dict[str, Placement]]:
        """Every choice for all inputs together, the simplest first."""
        for chosen in product(*self.fitting.values()):
            yield dict(zip(self.fitting, chosen, strict=True))


Given = Mapping[str, str | Sequence[str] | Placement]


@dataclass(frozen=True)
class Relations:
    """Placements by input name, equations, what shapes leave open, and what was assumed."""

    placements: dict[str, Placement]
    equations: tuple[Equation, ...]
    inferred: Inferred = field(default_factory=Inferred)
    assumptions: tuple[str, ...] = ()
