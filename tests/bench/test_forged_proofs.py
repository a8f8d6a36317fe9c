"""A part of the forged certificates of ``make forged-proofs``: none is accepted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

from bench.forged_proofs import Tally, equivalences, refinements

QUICK = ("given", "masks", "rounded", "rotary", "codes", "orders", "picked", "infinite", "floors")


def test_no_forged_equivalence_is_accepted() -> None:
    tally = Tally()
    equivalences(150, 1, tally, QUICK)
    assert tally.count > 100
    assert not tally.found


def test_no_forged_refinement_is_accepted() -> None:
    tally = Tally()
    refinements(120, 1, tally, ("mlp", "addends", "messages", "sorted_rows"))
    assert tally.count > 100
    assert not tally.found
