"""No certificate that was forged for an optimised program is accepted: a tenth of ``make forged-optimize``."""

from __future__ import annotations

import pytest

from tests.optimize.forgeries import PROGRAMS, Forgery, accepted, base, forgeries


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_true_ones_are_accepted(name: str) -> None:
    text, left, right = base(name)

    assert accepted(Forgery(name, "true", "", text, left, right))


def test_the_forged_ones_are_not() -> None:
    wrong = [f"{f.program}: {f.kind}: {f.what}" for f in forgeries(50, seed=3) if accepted(f)]

    assert wrong == []
