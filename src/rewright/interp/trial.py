"""What running programs gave: outputs, and values of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rewright.ops.base import Array


@dataclass(frozen=True)
class Execution:
    """Outputs by name, and the values of the nodes that were asked for, by position."""

    outputs: dict[str, Array]
    values: dict[int, Array] = field(default_factory=dict[int, Array])


@dataclass(frozen=True)
class Trial:
    """One run of a sequential program and of all ranks on the same inputs, with the values of nodes that were kept."""

    inputs: dict[str, Array]
    held: Sequence[Mapping[str, Array]]
    """What every rank is given."""
    sequential: Execution
    ranks: list[Execution]
