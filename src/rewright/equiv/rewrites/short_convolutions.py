"""Convolutions by few elements as sums of products with shifted inputs, where programs have other convolutions.

A causal convolution over time is a convolution in one program, and a sum of shifted inputs in another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rewright import ops
from rewright.refine.rewriting.drafts import Draft


def shifted_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with small convolutions as sums; as they are where all of them have the same convolutions."""
    kinds = [Counter(n.op for n in draft.graph.nodes if isinstance(n.op, ops.Convolution)) for draft in drafts]
    if all(kind == kinds[0] for kind in kinds):
        return tuple(drafts)
    return tuple(draft.by_law("convolutions") for draft in drafts)
