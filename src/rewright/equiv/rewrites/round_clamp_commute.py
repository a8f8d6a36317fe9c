"""Steps of quantisation in one order: absolute values below maxima, clamps to whole numbers behind what rounds."""

from __future__ import annotations

from rewright.refine.rewriting.drafts import Draft


def in_order(draft: Draft) -> Draft:
    """The program with its steps of quantisation in their usual places."""
    return draft.by_law("orders")
