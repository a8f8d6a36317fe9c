"""Which outputs of two programs belong together, where they have no names."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.ir.placement import Placement


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
