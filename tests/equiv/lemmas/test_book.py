"""Rules in a file: what one pair of programs asked for is known to the next, and what was changed is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import rewright as rw
from rewright import ops
from rewright.equiv.engine import equiv
from rewright.equiv.lemmas.book import read_book, write_book
from rewright.equiv.lemmas.equations import Prover
from rewright.equiv.lemmas.synthesised import FOR_ALL_SIZES, SynthesisedRule
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.proof.rewriting.lemma import Lemma
from rewright.rules.reading import canonical
from rewright.rules.scheme import Scheme


def softmax(rows: int = 3, columns: int = 5, *, safe: bool) -> Graph:
    b = GraphBuilder()
    shape = (rows, columns)
    x = b.input("x", ops.Input("x", TensorType(shape, DType.F32)))
    if safe:
        largest = b.add(ops.Reduce("maximum", (1,)), x)
        x = b.add(ops.Subtract(), x, b.add(ops.BroadcastInDim(shape, (0,)), largest))
    powers = b.add(ops.Exponential(), x)
    total = b.add(ops.BroadcastInDim(shape, (0,)), b.add(ops.Reduce("sum", (1,)), powers))
    b.output("result", b.add(ops.Divide(), powers, total))
    return b.build()


def general(left: Graph, right: Graph) -> SynthesisedRule:
    prover = Prover()
    assert prover.proves(left, right)
    scheme = prover.generalise(left, right, 60.0)
    assert scheme is not None
    return SynthesisedRule("rule 1", scheme, FOR_ALL_SIZES, (Lemma("lemma 1", left, right, "proved"),))


def test_a_rule_serves_other_sizes_in_a_later_run(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    write_book(path, [general(softmax(safe=True), softmax(safe=False))])
    later = read_book(path)
    assert later.proves(softmax(7, 2, safe=True), softmax(7, 2, safe=False))
    assert later.attempts == 0


def test_a_rule_without_parameters(tmp_path: Path) -> None:
    """What holds at its sizes alone is an instance of itself and of nothing else."""
    left, right = softmax(safe=True), softmax(safe=False)
    only = SynthesisedRule("rule 1", Scheme(*canonical(left, right)), "proved", ())
    write_book(tmp_path / "rules.json", [only])
    later = read_book(tmp_path / "rules.json")
    assert later.proves(left, right)
    assert later.attempts == 0
    assert later.proves(softmax(7, 2, safe=True), softmax(7, 2, safe=False))
    assert later.attempts == 1


def test_another_statement_is_another_lemma() -> None:
    prover = Prover()
    b = GraphBuilder()
    b.output("result", b.add(ops.Exponential(), b.input("x", ops.Input("x", TensorType((3, 5), DType.F32)))))
    assert not prover.proves(softmax(safe=True), b.build())


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document["rules"][0])
    path.write_text(json.dumps(document))


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    rule = general(softmax(safe=True), softmax(safe=False))
    changes: list[tuple[Callable[[dict[str, Any]], None], str]] = [
        (lambda entry: entry.update(left=entry["right"]), "was changed after it was written"),
        (lambda entry: entry.update(numbers=[[0, 0, {"size": "3", "inverted": False}]]), "do not belong together"),
        (lambda entry: entry.update(numbers=[[0, "x", {}]]), "cannot be read"),
        (lambda entry: entry.update(numbers=3), "cannot be read"),
        (lambda entry: entry.pop("left"), "says too little"),
    ]
    for change, why in changes:
        path.unlink(missing_ok=True)
        write_book(path, [rule])
        changed(path, change)
        with pytest.raises(RewrightError, match=why):
            read_book(path)
    for text in ("[]", "{", '{"format": "rewright.lemmas", "version": 1}'):
        path.write_text(text)
        with pytest.raises(RewrightError, match="no file of lemmas"):
            read_book(path)


def test_a_wrong_rule_with_a_digest_of_its_own_does_not_count(tmp_path: Path) -> None:
    """Whoever writes the file can compute its digests."""

    def program(name: str, op: ops.Operator) -> Graph:
        build = GraphBuilder(name)
        build.output("y", build.add(op, build.input("x", ops.Input("x", TensorType((3,), DType.F32)))))
        return build.build()

    left, right = program("left", ops.Tanh()), program("right", ops.Sine())
    wrong = SynthesisedRule("wrong", Scheme(*canonical(left, right)), FOR_ALL_SIZES, ())
    write_book(tmp_path / "rules.json", [wrong])
    assert not read_book(tmp_path / "rules.json").proves(left, right)


# --- a second model of a family


def decoder(width: int, heads: int, scale: float, *, fused: bool) -> Graph:
    """Two layers of attention with a rotation, once as tables of halves and fused weights, once written otherwise."""
    head = width // heads

    def rotated(x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(x.shape[2])[:, None] * torch.arange(1, head // 2 + 1)[None, :]
        if fused:
            cos, sin = (f(angles.float()).repeat(1, 2) for f in (torch.cos, torch.sin))
            return x * cos + torch.cat([-x[..., head // 2 :], x[..., : head // 2]], -1) * sin
        first, second = x.reshape(*x.shape[:-1], 2, head // 2).unbind(-2)
        cos, sin = torch.cos(angles.float()), torch.sin(angles.float())
        return torch.stack([first * cos - second * sin, second * cos + first * sin], -2).flatten(-2)

    def model(x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            mean = x.mean(-1, keepdim=True)
            if fused:
                variance = (x - mean).square().mean(-1, keepdim=True)
            else:
                variance = x.square().mean(-1, keepdim=True) - mean.square()
            normed = (x - mean) * torch.rsqrt(variance + scale)
            if fused:
                q, k, v = (normed @ torch.cat([wq, wk, wv], 1)).split(width, -1)
            else:
                q, k, v = normed @ wq, normed @ wk, normed @ wv
            q, k, v = (t.unflatten(-1, (heads, head)).transpose(1, 2) for t in (q, k, v))
            scores = rotated(q) @ rotated(k).transpose(-1, -2)
            x = x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2)
        return x

    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 5, width), *[(width, width)] * 3]
    return rw.capture(model, tuple(torch.randn(*shape, generator=generator) for shape in shapes))


def test_a_second_model_of_a_family_needs_no_rule(tmp_path: Path) -> None:
    """Other widths, heads and epsilon: every rule of the second model is one of the first."""
    path = tmp_path / "rules.json"
    first = equiv(decoder(8, 2, 1e-5, fused=True), decoder(8, 2, 1e-5, fused=False))
    assert first.status == "proved", first.reason
    assert first.rules
    assert all(rule.evidence == FOR_ALL_SIZES and not rule.earlier for rule in first.rules)
    write_book(path, first.rules)
    prover = read_book(path)
    second = equiv(decoder(24, 3, 1e-6, fused=True), decoder(24, 3, 1e-6, fused=False), prover=prover)
    assert second.status == "proved", second.reason
    assert second.rules
    assert all(rule.earlier for rule in second.rules)


def test_a_layer_proved_at_other_sizes_is_not_proved_again() -> None:
    prover = Prover()
    for width, heads in ((8, 2), (24, 3)):
        verdict = equiv(
            decoder(width, heads, 1e-5, fused=True), decoder(width, heads, 1e-5, fused=False), prover=prover
        )
        assert verdict.status == "proved", verdict.reason
        assert verdict.rules
    assert all(rule.earlier for rule in verdict.rules)
