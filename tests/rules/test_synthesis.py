"""Rules found from concrete pairs: each from three or four examples, in under a second, and true of an unseen one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewright.ir.errors import RewrightError
from rewright.rules import AtMost, concat, floats, integers, maximum, rule, size, take
from rewright.rules.concrete import concrete
from rewright.rules.library import library
from rewright.rules.matcher import match_at
from rewright.rules.pattern import dot
from rewright.rules.rule import Rule
from rewright.rules.synthesis import Pair, matches_pair, synthesise
from rewright.terms.normal.prove import prove

BY_NAME = {entry.name: entry for entry in library()}
Sizes = dict[str, int]
JOBS: dict[str, tuple[list[Sizes], Sizes]] = {
    "fused-projections": (
        [{"s": 2, "e": 3, "a": 5, "b": 2}, {"s": 3, "e": 2, "a": 7, "b": 3}, {"s": 1, "e": 5, "a": 4, "b": 1}],
        {"s": 4, "e": 2, "a": 6, "b": 4},
    ),
    "fused-gate-up": (
        [{"s": 2, "e": 3, "h": 5}, {"s": 3, "e": 2, "h": 4}, {"s": 1, "e": 5, "h": 2}],
        {"s": 4, "e": 4, "h": 3},
    ),
    "rotary-halves": ([{"s": 2, "d": 3}, {"s": 3, "d": 2}, {"s": 5, "d": 1}], {"s": 4, "d": 5}),
    "rotary-interleaved": ([{"s": 2, "d": 3}, {"s": 3, "d": 2}, {"s": 5, "d": 4}], {"s": 4, "d": 1}),
    "rms-by-root": ([{"s": 2, "e": 3}, {"s": 3, "e": 5}, {"s": 5, "e": 2}], {"s": 4, "e": 4}),
    "grouped-keys": (
        [
            {"g": 2, "h": 3, "s": 2, "t": 5, "d": 3},
            {"g": 3, "h": 2, "s": 5, "t": 2, "d": 7},
            {"g": 2, "h": 5, "s": 3, "t": 3, "d": 2},
            {"g": 5, "h": 2, "s": 2, "t": 4, "d": 2},
        ],
        {"g": 3, "h": 3, "s": 4, "t": 2, "d": 1},
    ),
}


def pair_of(entry: Rule, sizes: Sizes) -> Pair:
    """A rule's sides at numbers, as two programs of which nobody knows where they come from."""
    return concrete(entry.left, sizes), concrete(entry.right, sizes)


@pytest.mark.parametrize("name", JOBS)
def test_a_block_of_a_model_is_learnt_from_examples(name: str) -> None:
    examples, unseen = JOBS[name]
    found = synthesise([pair_of(BY_NAME[name], sizes) for sizes in examples])
    assert found.rule is not None, found.reason
    assert prove(found.rule.claim()).status == "proved"
    assert matches_pair(found.rule, pair_of(BY_NAME[name], unseen))


def test_what_was_seen_at_one_size_only_is_not_generalised_beyond_what_is_true() -> None:
    """Head order does not matter where there is one head; the examples show no other."""
    h, d, s = size("h"), size("d"), size("s")
    x = floats("x", s, h * d)
    swapped = rule("", "", x.reshape(s, h, d).transpose(0, 2, 1).reshape(s, h * d), x.reshape(s, h * d))
    pairs = [pair_of(swapped, {"h": 1, "d": d_, "s": s_}) for d_, s_ in ((2, 3), (3, 5), (5, 2))]
    found = synthesise(pairs)
    assert found.rule is not None, found.reason
    assert prove(found.rule.claim()).status == "proved"
    assert not matches_pair(found.rule, pair_of(swapped, {"h": 2, "d": 3, "s": 2}))


def test_pairs_that_differ_give_no_rule() -> None:
    m, k, n = size("m"), size("k"), size("n")
    a, b = floats("A", m, k), floats("B", k, n)
    wrong = rule("", "", dot(a, b), dot(a, b) * 1.001)
    found = synthesise([pair_of(wrong, {"m": 2, "k": i, "n": 3}) for i in (2, 3, 5)])
    assert found.rule is None
    assert "do not agree" in found.reason


def test_a_constant_that_varies_is_a_parameter() -> None:
    n = size("n")
    pairs: list[Pair] = []
    for length, factor in ((2, 0.25), (3, 0.125), (5, 3.5)):
        x = floats("x", n)
        pairs.append(pair_of(rule("", "", x * factor + x * factor, x * (2.0) * factor), {"n": length}))
    found = synthesise(pairs)
    assert found.rule is not None, found.reason
    assert set(found.rule.left.inputs) == {"x", "c0"}


def test_what_must_be_defined_is_found() -> None:
    """Dividing by a quotient is multiplying by its inverse where neither of the two divisors is nought."""
    sizes = [
        {name: k + i for i, name in enumerate(sorted(BY_NAME["divide-by-quotient"].parameters))} for k in (2, 3, 5)
    ]
    found = synthesise([pair_of(BY_NAME["divide-by-quotient"], one) for one in sizes])
    assert found.rule is not None, found.reason
    assert found.rule.facts is not None
    assert prove(found.rule.claim()).status == "proved"
    assert prove(replace(found.rule, facts=None).claim()).status != "proved"


def test_the_order_of_sizes_without_which_a_rule_is_wrong_is_found() -> None:
    p, q, e = size("p"), size("q"), size("e")
    x, y = floats("x", p), floats("y", q)
    first = rule("", "", concat(0, x, y).slice(0, e), x.slice(0, e), where=[AtMost(e, p)])
    found = synthesise(
        [pair_of(first, {"p": p_, "q": q_, "e": e_}) for p_, q_, e_ in ((5, 2, 3), (7, 9, 4), (6, 4, 6))]
    )
    assert found.rule is not None, found.reason
    assert len(found.rule.conditions) == 1
    assert prove(found.rule.claim()).status == "proved"
    assert matches_pair(found.rule, pair_of(first, {"p": 4, "q": 8, "e": 2}))
    beyond = concrete(first.left, {"p": 2, "q": 8, "e": 4})
    assert match_at(found.rule, beyond, next(iter(beyond.outputs.values()))) is None


def test_infinities_stay_what_they_are() -> None:
    n = size("n")
    x = floats("x", n)
    pairs = [pair_of(rule("", "", maximum(x, float("-inf")) * 2.0, x + x), {"n": k}) for k in (2, 3, 5)]
    found = synthesise(pairs)
    assert found.rule is not None, found.reason
    assert set(found.rule.left.inputs) == {"x"}


def test_programs_that_do_not_run_give_no_rule() -> None:
    v, s = size("v"), size("s")
    rows, table = integers("rows", s), floats("table", v, 3)
    pairs = [
        pair_of(rule("", "", take(table, rows) * 2.0, take(table * 2.0, rows)), {"v": 1, "s": k}) for k in (2, 3, 5)
    ]
    found = synthesise(pairs)
    assert found.rule is None
    assert "pair 0 do not run" in found.reason


def test_fewer_than_three_examples_are_refused() -> None:
    with pytest.raises(RewrightError, match="at least three pairs"):
        synthesise([pair_of(BY_NAME["rms-by-root"], {"s": 2, "e": 3})])
