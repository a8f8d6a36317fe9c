"""Random rules over infinities, what is not a number and what is of nothing: none that is wrong is proved.

``make hunt`` takes 5,000 of them, and as many identities of bits.
"""

from __future__ import annotations

import random

from rewright.rules.counterexample import find
from rewright.terms.normal.prove import prove
from tests.rules import bit_identities, infinities


def hunt(seed: int, count: int) -> tuple[int, list[str]]:
    """Number of rules over infinities that are proved, and the wrong ones among them."""
    source = infinities.Rules(seed)
    proved, wrong = 0, list[str]()
    for number in range(count):
        made, left, right = source.rule(f"rule {number} of seed {seed}")
        if prove(made.claim(), seconds=2).status == "proved":
            proved += 1
            found = infinities.difference(left, right, random.Random(number))
            if found is not None:
                wrong.append(f"{made.name}: {made.statement} at {found}")
    return proved, wrong


def hunt_bits(seed: int, count: int) -> tuple[int, int, list[str]]:
    """Number of identities that are proved, of those that hold wherever asked, and the wrong ones that are proved."""
    source = bit_identities.Identities(seed)
    proved, true, wrong = 0, 0, list[str]()
    for number in range(count):
        made, left, right, dtype = source.pair(f"identity {number} of seed {seed}")
        found = bit_identities.difference(left, right, dtype, random.Random(number))
        true += found is None
        if prove(made.claim(), seconds=2).status == "proved":
            proved += 1
            if found is not None:
                wrong.append(f"{made.name}: {made.statement} at {found}")
    return proved, true, wrong


def test_no_wrong_rule_over_infinities_is_proved() -> None:
    proved, wrong = hunt(seed=1, count=400)
    assert wrong == []
    assert proved >= 240


def test_no_true_rule_over_infinities_is_refuted() -> None:
    source = infinities.Rules(5)
    for number in range(60):
        made, left, right = source.rule(f"rule {number}")
        if infinities.difference(left, right, random.Random(number), points=120) is None:
            assert find(made, tries=3, seconds=0.3) is None, made.statement


def test_no_wrong_identity_of_bits_is_proved() -> None:
    proved, true, wrong = hunt_bits(seed=1, count=120)
    assert wrong == []
    assert proved >= 0.92 * true
