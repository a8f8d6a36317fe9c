"""Certificates of trajectories: what is proved is checked again without XLA, and nothing else passes."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from rewright.env.agents import always_first
from rewright.env.certificate import audit, certify
from rewright.env.episode import Episode, Settings
from rewright.env.page import trajectory_page
from rewright.env.session import Session
from rewright.frontends.hlo.proto import read, write
from rewright.ir.errors import Refused
from rewright.proof.container import seal_document
from tests.env.modules import LOOP, RATES
from tests.env.test_patterns import PRODUCTS


def played(xla: Session, text: str, *passes: str) -> Episode:
    return always_first(Episode(xla, xla.parse(text), Settings(passes, tested=False)), None)


@pytest.fixture(scope="module")
def certified(xla: Session) -> dict[str, Any]:
    episode = Episode(xla, xla.parse(PRODUCTS), Settings(("rule:distribute", "algsimp")))
    assert episode.choose(0)
    assert episode.next_round() is False
    return certify(episode).document


def test_a_trajectory_ends_with_a_certificate(certified: dict[str, Any]) -> None:
    found = audit(certified)
    assert (found.steps, found.grade, found.open) == (1, "real", ())
    # The sum of products, and the two transpositions that are gone after XLA's import.
    assert found.lemmas == 2
    opcodes = [i.opcode for i in read(found.final).main.instructions.values()]
    assert opcodes.count("multiply") == 1


@pytest.mark.parametrize("text", [PRODUCTS, LOOP])
def test_fusions_over_several_rounds_are_one_term(xla: Session, text: str) -> None:
    episode = Episode(xla, xla.parse(text), Settings(("general-fusion",), tested=False))
    for _ in range(3):
        if any(episode.mask()):
            episode.choose(episode.mask().index(True))
        episode.next_round()
    own = certify(episode)
    assert own.proved
    assert audit(own.document).grade in ("same", "move")


def test_what_was_only_tested_is_listed(xla: Session) -> None:
    episode = Episode(xla, xla.parse(RATES), Settings(("algsimp",)))
    own = certify(always_first(episode, None), seconds=3)
    # The reciprocal of 3 is no float.
    assert len(own.open) == 1
    assert own.open[0].startswith("%third")
    assert audit(own.document).open == own.open


def test_a_trajectory_is_a_page(xla: Session) -> None:
    episode = Episode(xla, xla.parse(RATES), Settings(("rules",), tested=False))
    assert episode.choose(0)
    page = trajectory_page(episode)
    assert page.count("<strong>chosen</strong>") == 1
    assert "<svg" in page
    assert "Proved" in page
    assert "what was proved equal" in page
    assert "<script>" not in page


def _changed(document: dict[str, Any], change) -> dict[str, Any]:
    """The certificate with a change, and the digest of what it says then."""
    other = copy.deepcopy(document)
    change(other)
    return seal_document(other)


def _opcode(which: str, old: str, new: str):
    def change(document: dict[str, Any]) -> None:
        place = document if which == "final" else document["rounds"][0]
        program = read(base64.b64decode(place[which]))
        data = write(program, unique=False).replace(old.encode(), new.encode())
        place[which] = base64.b64encode(data).decode()

    return change


CHANGES = {
    "another operator in the replacement": _opcode("extended", "multiply", "subtract"),
    "another module at the end": _opcode("final", "tanh", "cosh"),
    "another module at the start": lambda d: d.update(original=d["rounds"][0]["extended"].replace("A", "B", 1)),
    "another value": lambda d: d["rounds"][0]["steps"][0].update(value=d["rounds"][0]["steps"][0]["replacement"]),
    "a use that is none": lambda d: d["rounds"][0]["steps"][0]["uses"][0].__setitem__(1, 7),
    "no proof": lambda d: d["rounds"][0]["steps"][0].update(proof=None),
    "a proof of another depth": lambda d: d["rounds"][0]["steps"][0]["proof"].update(depths=[]),
    "no steps": lambda d: d["rounds"][0].update(steps=[]),
    "a round less": lambda d: d["rounds"].pop(0),
    "an open claim": lambda d: d.update(open=["something"]),
    "another format": lambda d: d.update(version=2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_certificate_that_was_changed_is_refused(certified: dict[str, Any], change) -> None:
    with pytest.raises(Refused):
        audit(_changed(certified, change))


def test_what_is_no_certificate_is_refused() -> None:
    for wrong in (None, [], {}, {"format": "rewright.env.certificate", "version": 1}):
        with pytest.raises(Refused):
            audit(wrong)


def test_a_digest_that_does_not_fit_is_refused(certified: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="changed after it was written"):
        audit({**certified, "open": ["x"]})
