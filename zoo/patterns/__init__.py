"""Bugs of distributed programs that people have had, each as a program that is right and one that has the bug.

``pattern.py`` says what a bug is. Modules have the names of what goes wrong, or of the project whose code it was.
"""

from zoo.patterns.combined import COMBINED
from zoo.patterns.deepspeed import DEEPSPEED
from zoo.patterns.dtensor import DTENSOR
from zoo.patterns.gradients import GRADIENTS
from zoo.patterns.layers import LAYERS
from zoo.patterns.losses import LOSSES
from zoo.patterns.megatron import MEGATRON
from zoo.patterns.megatron_fixes import MEGATRON_FIXES
from zoo.patterns.megatron_groups import MEGATRON_GROUPS
from zoo.patterns.pattern import Pattern
from zoo.patterns.random_numbers import RANDOM_NUMBERS
from zoo.patterns.timing import TIMING
from zoo.patterns.torchtitan import TORCHTITAN
from zoo.patterns.transformers import TRANSFORMERS

__all__ = ["PATTERNS", "Pattern"]

PATTERNS: dict[str, Pattern] = {
    **LOSSES,
    **GRADIENTS,
    **LAYERS,
    **COMBINED,
    **TIMING,
    **DTENSOR,
    **TORCHTITAN,
    **MEGATRON,
    **MEGATRON_GROUPS,
    **MEGATRON_FIXES,
    **TRANSFORMERS,
    **DEEPSPEED,
    **RANDOM_NUMBERS,
}
"""Every pattern by name."""
