"""What was timed, and what runs, as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rewright.optimize.running.execution import Runner
    from rewright.optimize.sizes.runner import FlexibleRunner

Peer = Literal["eager", "inductor"]
PEERS: tuple[Peer, ...] = ("eager", "inductor")
OURS = "kernels"
FLOOR_SECONDS = 30.0
"""After so many, no more parts are timed."""


@dataclass(frozen=True)
class Timing:
    """The least seconds of each contestant, and which one is kept; ``what`` was timed."""

    what: str
    seconds: Mapping[str, float]
    kept: str

    def __str__(self) -> str:
        times = ", ".join(f"{name} {1e3 * s:.3f} ms" for name, s in sorted(self.seconds.items(), key=lambda x: x[1]))
        others = [s for name, s in self.seconds.items() if name != self.kept]
        by = f", {min(others) / self.seconds[self.kept]:.2f} times as fast as the next" if others else ""
        return f"{self.what}: {self.kept} is kept ({times}{by})"


@dataclass
class Floor:
    """What was timed, what runs, and what could not be timed."""

    whole: Timing
    parts: list[Timing] = field(default_factory=list[Timing])
    notes: list[str] = field(default_factory=list[str])
    runner: Runner | FlexibleRunner | None = None
    """The plan with the faster of each part."""
    compiled: Callable[..., Any] | None = None
    """What Inductor made of the whole program, where that is kept."""

    @property
    def runs(self) -> str:
        """``kernels``, ``eager`` or ``inductor``."""
        return self.whole.kept

    def lines(self) -> list[str]:
        """As text."""
        return [str(self.whole), *map(str, self.parts), *self.notes]
