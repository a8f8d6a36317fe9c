"""Alternatives as expressions: both sides down to what they share, numbers as numbers, and what a choice changes."""

from __future__ import annotations

import pytest

from tests.env.modules import RATES

pytest.importorskip("jax")

from rewright.env.alternatives import Alternative, AlternativeGraph, Provenance, Use
from rewright.env.dryrun import dry_run
from rewright.env.episode import Episode, Settings
from rewright.env.session import Session
from rewright.env.written import Written, listing

TWICE = """HloModule twice
ENTRY main {
  x = f32[4] parameter(0)
  less = f32[4] negate(x)
  same = f32[4] negate(less)
  ROOT square = f32[4] multiply(same, same)
}
"""


NUMBERS = """HloModule numbers
ENTRY main {
  x = f32[4] parameter(0)
  two = f32[] constant(2)
  deux = f32[] constant(2)
  low = f32[8] pad(x, deux), padding=4_0
  far = f32[9] pad(x, two), padding=5_0
  ROOT out = (f32[8], f32[9]) tuple(low, far)
}
"""


def sides(session: Session, text: str, names: list[str]) -> dict[str, str]:
    """The right sides by the left ones."""
    graph = dry_run(session, session.parse(text), names).graph
    return dict(Written(graph, number).sides for number in range(len(graph)))


def test_a_quotient_becomes_a_product(xla: Session) -> None:
    found = sides(xla, RATES, ["algsimp"])

    assert found["divide(x.1, 3)"] == "multiply(x.1, 0.333333)"
    assert found["power(third.1, 2)"] == "multiply(third.1, third.1)"


def test_the_left_side_goes_as_deep_as_the_right_one_asks(xla: Session) -> None:
    found = sides(xla, RATES, ["rule:add-associates"])

    assert found["add(add(less.1, square.1), cosine.1)"] == "add(less.1, add(square.1, cosine.1))"


def test_a_value_that_is_there_is_a_name(xla: Session) -> None:
    assert sides(xla, TWICE, ["algsimp"]) == {"negate(negate(x.1))": "x.1"}


def test_equal_numbers_are_told_apart_by_name(xla: Session) -> None:
    """As everything else that is there twice."""
    program = xla.parse(NUMBERS).program
    main = program.main
    first, second = (i.name for i in main.instructions.values() if i.opcode == "constant")
    low = next(i.name for i in main.instructions.values() if i.operands[1:] == (second,))
    same = Alternative(main.name, second, first, (Use(low, 1),), Provenance("xla", "cse"))

    assert Written(AlternativeGraph(program, (same,)), 0).sides == (f"{second} (2)", first)


def test_nothing_is_offered_that_changes_nothing(xla: Session) -> None:
    """``same * same`` the other way round is itself."""
    assert not sides(xla, TWICE, ["rule:multiply-commutes"])


def test_operators_and_cost_change_with_a_choice(xla: Session) -> None:
    run = dry_run(xla, xla.parse(TWICE), ["algsimp"])
    own = Written(run.graph, 0)

    assert own.operators[0] == {"negate": 2}
    assert not own.operators[1]
    assert own.change is not None
    assert own.change < 0
    assert Written(run.graph, 0, (0,)).change is None


def test_a_listing_marks_what_is_chosen_and_what_cannot_be(xla: Session) -> None:
    episode = Episode(xla, xla.parse(RATES), Settings(("algsimp", "rule:divide-constant")))
    [number] = [n for n in range(len(episode.run)) if "divide(x.1, 3) = multiply(x.1, 0.3" in listing(episode, [n])[0]]
    assert episode.choose(number)

    lines = listing(episode, range(len(episode.run)))

    assert lines[number].startswith(f"x {number:3} divide(x.1, 3)")
    assert [line for line in lines if line.startswith("-") and "divide-constant" in line]
