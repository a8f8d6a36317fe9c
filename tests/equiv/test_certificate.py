"""The certificate of two implementations is about the programs as they were captured, and nothing in it is believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch import nn

import rewright as rw
from rewright import ops
from rewright.equiv.audit import audit
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.engine import equiv
from rewright.equiv.inputs.weights import Definition
from rewright.equiv.lemmas.equations import Prover
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.proof.checker import Damaged, OtherPrograms, Refused
from rewright.proof.rewriting.evidence import Checked
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.splices import Splice, Stage
from rewright.proof.rewriting.stages import why_not

CHECKED = Checked()
"""A lemma is proved once a run."""


class Model(nn.Module):
    """A causal score with two logarithms of sums, each in its own way, and a table."""

    def __init__(self, *, fused: bool, stable: bool, counted: bool) -> None:
        super().__init__()
        self.fused, self.stable, self.counted = fused, stable, counted
        numbers = torch.arange(1, 4).float()
        if fused:
            self.register_buffer("doubles", 2 * numbers)
            self.qk = nn.Linear(4, 6, bias=False)
        else:
            self.register_buffer("numbers", numbers)
            self.q, self.k = nn.Linear(4, 3, bias=False), nn.Linear(4, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k = self.qk(x).chunk(2, -1) if self.fused else (self.q(x), self.k(x))
        k = k * (self.doubles / 2 if self.fused else self.numbers)
        if self.counted:
            seen = torch.arange(5)[:, None] >= torch.arange(5)[None, :]
        else:
            seen = torch.ones(5, 5).tril().bool()
        scores = (q @ k.T).masked_fill(~seen, 0.0)
        return torch.logsumexp(scores, -1) if self.stable else scores.exp().sum(-1).log()


def program(model: Model) -> Graph:
    return rw.capture(model, (torch.zeros(5, 4),))


def alone(graph: Graph) -> RankProgram:
    return RankProgram((graph,), Mesh.of({"rank": 1}), {}, {})


@cache
def pair() -> tuple[Graph, RankProgram, EquivalenceCertificate]:
    models = Model(fused=False, stable=True, counted=True), Model(fused=True, stable=False, counted=False)
    left, right = (program(model) for model in models)
    tables = dict(models[0].named_buffers()), dict(models[1].named_buffers())
    verdict = equiv(left, right, tables, {"qk.weight": "concat([q.weight, k.weight], axis=0)"})
    assert verdict.status == "proved", verdict.reason
    found = verdict.certificate
    assert isinstance(found, EquivalenceCertificate)
    return left, alone(right), found


def test_it_holds_for_the_captured_programs_and_says_what_it_rests_on() -> None:
    left, right, certificate = pair()
    found = audit(certificate, left, right, checked=CHECKED)
    assert found.lemmas >= 2 and found.splices >= 2
    assert [d.text for d in certificate.definitions] == ["concat([q.weight, k.weight], axis=0)"]
    assert [list(values) for values in certificate.tables] == [["numbers"], ["doubles"]]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    left, right, certificate = pair()
    certificate.save(tmp_path / "proof.json.gz")
    again = EquivalenceCertificate.load(tmp_path / "proof.json.gz")
    assert isinstance(again, EquivalenceCertificate)
    audit(again, left, right, checked=CHECKED)
    assert again.core() == certificate.core()
    assert (again.definitions, again.taken) == (certificate.definitions, certificate.taken)


def test_a_file_that_was_changed_is_damaged(tmp_path: Path) -> None:
    left, right, certificate = pair()
    path = tmp_path / "proof.json"
    certificate.save(path)
    path.write_text(path.read_text().replace('"version":1', '"version": 1', 1))
    again = EquivalenceCertificate.load(path)
    assert isinstance(again, EquivalenceCertificate)
    with pytest.raises(Damaged):
        audit(again, left, right, checked=CHECKED)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 1),
        ("left", 3),
        ("map", [["middle", "a", "b", None]]),
        ("tables", [[]]),
        ("rewriting", {"lemmas": [], "programs": [[[], [[[0, 0, []]]]]]}),
        ("rewriting", {"lemmas": [[]], "programs": []}),
        ("rewriting", [[]]),
        ("proof", {}),
        ("more", 1),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_sentence(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "proof.json"
    pair()[2].save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(RewrightError, match=r"proof\.json: ") as error:
        EquivalenceCertificate.load(path)
    assert "\n" not in str(error.value)


def test_other_programs_are_told_apart() -> None:
    left, right, certificate = pair()
    other = program(Model(fused=False, stable=False, counted=True))
    with pytest.raises(OtherPrograms, match="left program"):
        audit(certificate, other, right)
    with pytest.raises(OtherPrograms, match="right program"):
        audit(certificate, left, alone(other))
    with pytest.raises(OtherPrograms, match="numbers"):
        audit(certificate, left, right, ({"numbers": np.ones(3)}, {}))


def _with_lemma(certificate: EquivalenceCertificate, stage: int, change: Callable[[Lemma], Lemma]) -> tuple[Stage, ...]:
    """The stages with the lemma of one changed, and its splices about the changed one."""
    old = _last_stages(certificate)[stage]
    lemma = change(old.lemmas[0])
    splices = tuple(replace(splice, lemma=lemma.key) for splice in old.splices)
    stages = list(_last_stages(certificate))
    stages[stage] = Stage(splices, (lemma,))
    return tuple(stages)


def _last_stages(certificate: EquivalenceCertificate) -> tuple[Stage, Stage]:
    """Those that give the right program the masks of the left one, and what lemmas say of it."""
    first, second = certificate.rewritings[1].after[-2:]
    return first, second


def _with(certificate: EquivalenceCertificate, stages: tuple[Stage, ...]) -> EquivalenceCertificate:
    left, right = certificate.rewritings
    return replace(certificate, rewritings=(left, replace(right, after=(*right.after[:-2], *stages))))


def _exponential(kind: TensorType, names: tuple[str, ...]) -> Graph:
    b = GraphBuilder("part")
    places = [b.input(name, ops.Input(name, kind)) for name in names]
    b.output("result", b.add(ops.Exponential(), places[0]))
    return b.build()


def _moved(splice: Splice) -> Splice:
    return replace(splice, position=splice.position - 1)


def _tampered() -> Iterator[tuple[str, EquivalenceCertificate]]:
    _, _, c = pair()
    first, second = _last_stages(c)
    (split,) = c.definitions
    yield (
        "keys and values swapped",
        replace(c, definitions=(replace(split, text="concat([k.weight, q.weight], axis=0)"),)),
    )
    yield "no map", replace(c, definitions=())
    yield "a map of something else", replace(c, definitions=(*c.definitions, Definition("left", "x", "x + 1")))
    yield "another table", replace(c, tables=({"numbers": np.ones(3)}, c.tables[1]))
    yield "no table", replace(c, tables=({}, {}))
    yield "a table of a weight", replace(c, tables=({**c.tables[0], "q.weight": np.ones((3, 4))}, c.tables[1]))
    yield "more is taken", replace(c, taken=(*c.taken, "the outputs are equal"))
    yield "a stage less", _with(c, (first,))
    yield "stages in another order", _with(c, (second, first))
    yield "a splice less", _with(c, (first, replace(second, splices=())))
    yield "a splice twice", _with(c, (first, replace(second, splices=second.splices * 2)))
    yield "a splice elsewhere", _with(c, (first, replace(second, splices=tuple(map(_moved, second.splices)))))
    leaves = tuple((name, tuple(p - 1 for p in held)) for name, held in second.splices[0].leaves)
    yield (
        "leaves elsewhere",
        _with(c, (first, replace(second, splices=(replace(second.splices[0], leaves=leaves),)))),
    )
    yield "no lemma", _with(c, (first, replace(second, lemmas=())))
    yield "a lemma of words", _with(c, _with_lemma(c, 1, lambda x: replace(x, evidence="certain")))
    yield (
        "a computed lemma",
        _with(c, _with_lemma(c, 1, lambda x: replace(x, evidence="computed at its size"))),
    )
    yield "a false lemma", _with(c, _with_lemma(c, 1, lambda x: replace(x, left=_exponential_of(x.left))))
    yield "a true lemma about others", _with(c, _with_lemma(c, 1, lambda x: replace(x, right=x.left)))
    yield "a false mask", _with(c, _with_lemma(c, 0, lambda x: replace(x, left=_negated(x.left))))
    yield "another core", replace(c, sequential=c.ranks[0])
    yield "a step less", replace(c, equations=c.equations[:-1])


def _exponential_of(graph: Graph) -> Graph:
    b = GraphBuilder("part")
    places = [b.input(n, graph.nodes[p].op) for n, p in graph.inputs.items()]
    kind = graph.nodes[next(iter(graph.outputs.values()))].type
    total = b.add(ops.Reduce("sum", (1,)), places[0])
    b.output("result", b.add(ops.Exponential(), total))
    assert b.type(b.build().outputs["result"]) == kind
    return b.build()


def _negated(graph: Graph) -> Graph:
    nodes = (*graph.nodes, replace(graph.nodes[-1], op=ops.Not(), operands=(next(iter(graph.outputs.values())),)))
    return replace(graph, nodes=nodes, outputs={"result": len(graph.nodes)})


@pytest.mark.parametrize("number", range(21))
def test_what_was_tampered_with_is_refused(number: int) -> None:
    left, right, _ = pair()
    what, changed = list(_tampered())[number]
    with pytest.raises(Refused) as error:
        audit(changed, left, right, checked=CHECKED)
    assert "\n" not in str(error.value), what


def test_every_tampering_is_tried() -> None:
    assert len(list(_tampered())) == 21


KIND = TensorType((3,), DType.F32)


def _two_inputs() -> Graph:
    b = GraphBuilder()
    x, y = (b.input(name, ops.Input(name, KIND)) for name in "xy")
    b.output("result", b.add(ops.Subtract(), x, y))
    return b.build()


def test_one_name_of_a_lemma_is_one_tensor_of_the_program() -> None:
    """``t - t = 0`` says nothing about ``x - y``."""
    b = GraphBuilder("part")
    t = b.input("t", ops.Input("t", KIND))
    b.output("result", b.add(ops.Subtract(), t, t))
    zero = GraphBuilder("part")
    zero.output("result", zero.add(ops.Constant(KIND, (0.0,))))
    lemma = Lemma("", zero.build(), b.build(), "proved")
    assert Prover().proves(lemma.left, lemma.right)
    stage = Stage((Splice(2, lemma.key, (("t", (0, 1)),)),), (lemma,))
    assert "other expressions" in str(why_not(_two_inputs(), stage))
    stage = Stage((Splice(2, lemma.key, (("t", (0,)),)),), (lemma,))
    assert "something else" in str(why_not(_two_inputs(), stage))


def test_an_integer_is_no_float_without_a_cast() -> None:
    b = GraphBuilder()
    n = b.input("n", ops.Input("n", TensorType((3,), DType.I64)))
    b.output("result", b.add(ops.Convert(DType.F32), n))
    part = GraphBuilder("part")
    t = part.input("t", ops.Input("t", KIND))
    part.output("result", part.add(ops.Convert(DType.F32), t))
    lemma = Lemma("", part.build(), part.build(), "proved")
    assert why_not(b.build(), Stage((Splice(1, lemma.key, (("t", (0,)),)),), (lemma,))) is not None
