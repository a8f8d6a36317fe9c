"""No manipulation of a certificate makes it prove anything else; on wrong programs it proves nothing at all."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.mutants import Mutant, generate, is_equivalent
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.proof.certificate import Certificate
from rewright.proof.checker import Refused, audit
from rewright.refine import refine
from rewright.refine.certificate.writer import write_down
from rewright.refine.check import prove_with_journal
from rewright.refine.relations.known import input_relations, output_expectations
from tests.programs import Pair
from tests.proof.programs import PROGRAMS
from tests.proof.tampering import tampered

SEED = 20
SECONDS = 2.0
PLACE = re.compile(
    r"equation \d+|value \d+|term \d+|given \d+|fact \d+|input|output|relation|assumption|program|ranks|mesh"
)
STORE: set[str] = set()
"""Lemmas that a test has proved are not proved again by the next."""


def certified(pair: Pair) -> Certificate:
    found = refine(*pair).certificate
    assert found is not None
    return found


def assert_names_the_place(message: str) -> None:
    assert PLACE.search(message), message
    assert "\n" not in message


def claim(certificate: Certificate) -> object:
    """What a certificate says, but for how it is proved."""
    outputs = {name: output.placement for name, output in certificate.outputs.items()}
    programs = certificate.sequential, certificate.ranks, certificate.mesh
    return programs, certificate.relations, outputs, certificate.assumptions


def check(name: str, count: int, seed: int) -> int:
    """How many manipulations are refused; the others must leave the claim as it is."""
    pair, refused = PROGRAMS[name](), 0
    certificate = certified(pair)
    audit(certificate, *pair, STORE)
    for what, changed in tampered(certificate, count, seed):
        try:
            audit(changed, *pair, STORE, SECONDS)
        except Refused as error:
            assert_names_the_place(str(error))
            refused += 1
        else:
            assert claim(changed) == claim(certificate), what
    return refused


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thousand_manipulations_are_refused_or_harmless(name: str) -> None:
    assert check(name, 85, SEED) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_manipulations_are_refused_or_harmless(name: str, seed: int) -> None:
    assert check(name, 1000, seed) >= 750


@pytest.mark.parametrize("name", ["mlp", "vocabulary_embedding", "deep", "addends"])
def test_every_manipulation_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    """A manipulated certificate in the place of the contents of a file, under the digest that the file had."""
    pair = PROGRAMS[name]()
    certificate = certified(pair)
    path = tmp_path / "certificate.json"
    certificate.save(path)
    old = path.read_text()[-70:]
    for what, changed in tampered(certificate, 100, SEED):
        try:
            changed.save(path)
            path.write_text(path.read_text()[:-70] + old)
            found = Certificate.load(path)
        except (RewrightError, AttributeError, TypeError, ValueError):  # it has no form in a file, or is malformed
            continue
        assert not found.intact, what
        with pytest.raises(Refused):
            audit(found, *pair, STORE, SECONDS)


def forged(pair: Pair, mutant: Mutant) -> list[Certificate]:
    """What a forger may try: the right program's certificate, and all true steps with the claim that is wanted."""
    sequential, program = pair[0], mutant.program
    found = [replace(certified(pair), ranks=tuple(map(digest, program.graphs)))]
    known = input_relations(sequential, program, None)
    expected = output_expectations(sequential, program, None)
    proof = prove_with_journal(sequential, program, known, expected)
    if not proof.mismatch:
        for name in sequential.outputs:
            proof.placements[name] = expected[name]
            proof.looked_into.setdefault(name, ())
        found.append(write_down(sequential, program, proof, known))
    return found


def is_refused(certificate: Certificate, sequential: Graph, mutant: Mutant) -> bool:
    try:
        audit(certificate, sequential, mutant.program, STORE, SECONDS)
    except Refused:
        return True
    return False


def hunt(name: str, per_kind: int, count: int, seed: int) -> int:
    """How many forgeries for wrong programs were refused, which are all."""
    pair, tried = PROGRAMS[name](), 0
    for mutant in generate(pair[1], per_kind=per_kind, seed=seed):
        if is_equivalent(pair[0], mutant) is not False:
            continue
        for base in forged(pair, mutant):
            for what, changed in [("nothing", base), *tampered(base, count, seed)]:
                tried += 1
                assert is_refused(changed, pair[0], mutant), f"{mutant.description}, then {what}"
    return tried


LARGER = pytest.param("mlp", marks=pytest.mark.long)


@pytest.mark.parametrize("name", ["vocabulary_embedding", "addends", "messages", "traded", LARGER])
def test_no_certificate_is_forged_for_a_wrong_program(name: str) -> None:
    assert hunt(name, per_kind=1, count=2, seed=SEED) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_certificate_is_forged_for_many_wrong_programs(name: str, seed: int) -> None:
    assert hunt(name, per_kind=6, count=20, seed=seed) > 20
