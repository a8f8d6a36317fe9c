"""Operators of ATen as functions of other ones, where PyTorch has none, or one that computes something else.

A call of an operator without a lowering of its own is traced through its definition, and what that calls is lowered.
What is defined here is what PyTorch's kernels compute, infinities, NaN and ties included.
"""

from __future__ import annotations

from rewright.frontends.torch.definitions import (
    choosing,
    distances,
    factors,
    gradients,
    normalizing,
    numbers,
    pooling,
    sampling,
    scattering,
    solving,
)
from rewright.frontends.torch.definitions.table import Definitions

DEFINITIONS: Definitions = Definitions(
    choosing.DEFINITIONS
    | distances.DEFINITIONS
    | factors.DEFINITIONS
    | gradients.DEFINITIONS
    | numbers.DEFINITIONS
    | pooling.DEFINITIONS
    | sampling.DEFINITIONS
    | scattering.DEFINITIONS
    | solving.DEFINITIONS
)
"""Definitions that a lowering uses, for calls that a trace has."""

TRACED: Definitions = Definitions(factors.TRACED | gradients.TRACED | normalizing.TRACED | scattering.TRACED)
"""Definitions that a trace itself uses, for operators that it has no results for: they have no meta kernel."""
