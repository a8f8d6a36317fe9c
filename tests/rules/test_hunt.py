"""Random pairs of programs that differ by an edit are never proved where an instance tells them apart.

``make hunt`` takes 10,000.
"""

from __future__ import annotations

import secrets

import pytest

from rewright.rules.counterexample import find
from rewright.terms.normal.prove import prove
from tests.rules.random_rules import Programs


def hunt(seed: int, pairs: int) -> tuple[int, list[str]]:
    """Number of pairs proved, and the wrong ones among them."""
    source = Programs(seed)
    proved, wrong = 0, list[str]()
    for number in range(pairs):
        pair = source.pair(f"pair {number} of seed {seed}")
        outcome = prove(pair.claim(), seconds=2)
        if outcome.status == "proved":
            proved += 1
            found = find(pair, tries=4, seconds=1)
            if found is not None:
                wrong.append(f"{pair.name}: {found}")
    return proved, wrong


@pytest.mark.parametrize(("pairs", "least"), [(40, 12), pytest.param(200, 60, marks=pytest.mark.long)])
def test_no_wrong_pair_of_a_fixed_seed_is_proved(pairs: int, least: int) -> None:
    proved, wrong = hunt(7, pairs)
    assert wrong == []
    assert proved >= least


@pytest.mark.slow
def test_no_wrong_pair_of_ten_thousand_is_proved() -> None:
    fresh = secrets.randbelow(2**32)
    for seed, pairs in ((11, 5000), (fresh, 5000)):
        assert hunt(seed, pairs)[1] == [], f"seed {seed}"
