"""Bugs of distributed programs that people have had, each as a program that is right and one that has the bug."""

from zoo.patterns.combined import COMBINED
from zoo.patterns.gradients import GRADIENTS
from zoo.patterns.layers import LAYERS
from zoo.patterns.losses import LOSSES
from zoo.patterns.pattern import Pattern
from zoo.patterns.timing import TIMING

__all__ = ["PATTERNS", "Pattern"]

PATTERNS: dict[str, Pattern] = {**LOSSES, **GRADIENTS, **LAYERS, **COMBINED, **TIMING}
"""Every pattern by name."""
