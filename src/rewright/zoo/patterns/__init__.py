"""Bugs of distributed programs that people have had, each as a program that is right and one that has the bug."""

from rewright.zoo.patterns.combined import COMBINED
from rewright.zoo.patterns.gradients import GRADIENTS
from rewright.zoo.patterns.layers import LAYERS
from rewright.zoo.patterns.losses import LOSSES
from rewright.zoo.patterns.pattern import Pattern
from rewright.zoo.patterns.timing import TIMING

__all__ = ["PATTERNS", "Pattern"]

PATTERNS: dict[str, Pattern] = {**LOSSES, **GRADIENTS, **LAYERS, **COMBINED, **TIMING}
"""Every pattern by name."""
