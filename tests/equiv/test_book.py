"""Lemmas in a file: what was proved is known to a later run, and what was changed is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewright import ops
from rewright.equiv.book import read_book, write_book
from rewright.equiv.lemmas import Lemma, Prover
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType

KIND = TensorType((3, 5), DType.F32)


def softmax(*, safe: bool) -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", KIND))
    if safe:
        largest = b.add(ops.Reduce("maximum", (1,)), x)
        x = b.add(ops.Subtract(), x, b.add(ops.BroadcastInDim((3, 5), (0,)), largest))
    powers = b.add(ops.Exponential(), x)
    total = b.add(ops.BroadcastInDim((3, 5), (0,)), b.add(ops.Reduce("sum", (1,)), powers))
    b.output("result", b.add(ops.Divide(), powers, total))
    return b.build()


def test_a_lemma_is_proved_once(tmp_path: Path) -> None:
    first, sides = Prover(), (softmax(safe=True), softmax(safe=False))
    assert first.proves(*sides)
    assert first.attempts == 1
    write_book(tmp_path / "lemmas.json", [Lemma("safe softmax", *sides, "proved")])
    later = read_book(tmp_path / "lemmas.json")
    assert later.proves(*sides)
    assert later.attempts == 0


def test_another_statement_is_another_lemma() -> None:
    prover = Prover()
    b = GraphBuilder()
    b.output("result", b.add(ops.Exponential(), b.input("x", ops.Input("x", KIND))))
    assert not prover.proves(softmax(safe=True), b.build())


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lemmas.json"
    write_book(path, [Lemma("lemma", softmax(safe=True), softmax(safe=False), "proved")])
    document = json.loads(path.read_text())
    document["lemmas"][0]["left"], document["lemmas"][0]["right"] = (
        document["lemmas"][0]["left"],
        document["lemmas"][0]["left"],
    )
    path.write_text(json.dumps(document))
    with pytest.raises(RewrightError, match="was changed after it was written"):
        read_book(path)
    path.write_text("[]")
    with pytest.raises(RewrightError, match="no file of lemmas"):
        read_book(path)


def test_a_wrong_lemma_with_a_digest_of_its_own_does_not_count(tmp_path: Path) -> None:
    """Whoever writes the file can compute its digests."""

    def program(name: str, op: ops.Operator) -> Graph:
        build = GraphBuilder(name)
        build.output("y", build.add(op, build.input("x", ops.Input("x", TensorType((3,), DType.F32)))))
        return build.build()

    wrong = Lemma("wrong", program("left", ops.Tanh()), program("right", ops.Sine()), "proved", ())
    write_book(tmp_path / "lemmas.json", [wrong])
    prover = read_book(tmp_path / "lemmas.json")
    assert not prover.proves(wrong.left, wrong.right)
