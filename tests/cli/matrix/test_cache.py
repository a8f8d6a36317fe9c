"""Verdicts that are kept: believed only as they were written, and for the very same question."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewright.cli.matrix.cache import Cache
from rewright.cli.matrix.keys import claim_key, program_digest
from rewright.cli.matrix.table import Task
from rewright.cli.relations import Relations
from rewright.ir.placement import Mesh
from rewright.refine import refine
from rewright.report import document
from tests.programs import mlp
from tests.refine.stacks import stack

TASK = Task("a", "a", "", "", ".", "s.json", ("r.json",))
SEQUENTIAL, PROGRAM = stack(2)
KEY = claim_key(TASK, SEQUENTIAL, PROGRAM, Relations())


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache that holds one proof."""
    found = Cache.open(tmp_path / "cache")
    verdict = refine(SEQUENTIAL, PROGRAM)
    found.write(KEY, {"document": document(verdict), "drawings": []}, verdict.certificate)
    return found


def read(cache: Cache, confirm: bool = False) -> dict[str, Any] | None:
    return cache.read(KEY, SEQUENTIAL, PROGRAM, confirm)


@pytest.mark.parametrize("confirm", [False, True])
def test_what_was_written_is_read(cache: Cache, confirm: bool) -> None:
    found = read(cache, confirm)
    assert found is not None
    assert found["document"]["status"] == "proved"


def test_a_proof_without_a_certificate_is_not_kept(tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    cache.write(KEY, {"document": document(refine(SEQUENTIAL, PROGRAM)), "drawings": []}, None)
    assert read(cache) is None


def test_every_byte_of_an_entry_counts(cache: Cache) -> None:
    path = cache.folder / f"{KEY}.json"
    whole = path.read_bytes()
    proof = (cache.folder / f"{KEY}.proof.json.gz").read_bytes()
    for place in range(0, len(whole), 41):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            path.write_bytes(damaged)
            (cache.folder / f"{KEY}.proof.json.gz").write_bytes(proof)
            found = read(cache)
            assert found is None, place
            assert not path.exists()


def test_a_refutation_cannot_be_made_a_proof_by_changing_a_word(tmp_path: Path) -> None:
    sequential, program = stack(2, dropped=[0])
    key = claim_key(TASK, sequential, program, Relations())
    cache = Cache.open(tmp_path)
    cache.write(key, {"document": document(refine(sequential, program)), "drawings": []}, None)
    path = tmp_path / f"{key}.json"
    path.write_text(path.read_text().replace('"refuted"', '"proved"'))
    assert cache.read(key, sequential, program, False) is None


def test_an_entry_under_another_name_is_none(cache: Cache) -> None:
    """The proof of the right program is not that of the wrong one."""
    sequential, program = stack(2, dropped=[0])
    other = claim_key(TASK, sequential, program, Relations())
    for end in ("json", "proof.json.gz"):
        (cache.folder / f"{other}.{end}").write_bytes((cache.folder / f"{KEY}.{end}").read_bytes())
    assert cache.read(other, sequential, program, False) is None


def test_a_certificate_that_was_changed_or_removed_is_none(cache: Cache) -> None:
    path = cache.folder / f"{KEY}.proof.json.gz"
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text.replace(b"Replicate()", b"Shard(0)", 1)))
    assert read(cache) is None
    assert not path.exists()


def test_with_an_audit_even_a_forged_digest_is_no_proof(tmp_path: Path) -> None:
    """Whoever makes entry, digest and key fit still has no certificate that proves the wrong program."""
    right = refine(SEQUENTIAL, PROGRAM)
    sequential, program = stack(2, dropped=[0])
    key = claim_key(TASK, sequential, program, Relations())
    cache = Cache.open(tmp_path)
    cache.write(key, {"document": document(right), "drawings": []}, right.certificate)
    assert cache.read(key, sequential, program, True) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"digest": 1, "body": []}', "[" * 5000, "\x00"])
def test_what_is_no_entry_is_none(cache: Cache, text: str) -> None:
    (cache.folder / f"{KEY}.json").write_text(text)
    assert read(cache) is None


# --- keys -------------------------------------------------------------------------------------------------------------
def test_everything_that_decides_a_verdict_is_in_the_key() -> None:
    wrong = stack(2, dropped=[0])[1]
    renamed = replace(SEQUENTIAL, metadata={"assumptions": "x is small"})
    keys = [
        KEY,
        claim_key(replace(TASK, audit=True), SEQUENTIAL, PROGRAM, Relations()),
        claim_key(replace(TASK, budget=3.0), SEQUENTIAL, PROGRAM, Relations()),
        claim_key(TASK, SEQUENTIAL, wrong, Relations()),
        claim_key(TASK, renamed, PROGRAM, Relations()),
        claim_key(TASK, SEQUENTIAL, PROGRAM, Relations({"x": "Replicate()"})),
        claim_key(TASK, SEQUENTIAL, PROGRAM, Relations({}, {"output": "Replicate()"})),
        claim_key(TASK, SEQUENTIAL, replace(PROGRAM, mesh=Mesh.of({"dp": 2})), Relations()),
        claim_key(TASK, SEQUENTIAL, replace(PROGRAM, inputs={}), Relations()),
        claim_key(TASK, SEQUENTIAL, replace(PROGRAM, notes=("captured at one routing",)), Relations()),
        claim_key(TASK, *mlp(2), Relations()),
    ]
    assert len(set(keys)) == len(keys)


def test_the_name_of_a_claim_is_not_in_the_key() -> None:
    assert claim_key(replace(TASK, name="b", folder="/else"), SEQUENTIAL, PROGRAM, Relations()) == KEY


def test_dead_nodes_and_their_order_are_in_the_digest() -> None:
    """A collective whose result nobody reads still has to meet."""
    graph = PROGRAM.graphs[0]
    alive = replace(graph, nodes=(*graph.nodes, graph.nodes[-1]))
    assert program_digest(alive) != program_digest(graph)


def test_entries_are_json_without_pickles(cache: Cache) -> None:
    assert set(json.loads((cache.folder / f"{KEY}.json").read_text())) == {"digest", "body"}
