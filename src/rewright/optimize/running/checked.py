"""What running kernels first has shown, as a record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Checked:
    """What running against float64 showed."""

    passed: bool
    error: float
    """The largest error, in units of the largest value of its output."""
    reason: str
