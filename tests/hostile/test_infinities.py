"""Infinities and undefined values: what was proved over the reals, and is another thing where a mask writes -inf."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright import ops
from rewright.claims.language import applies
from rewright.ir.digest import digest
from rewright.ir.errors import Refused
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.proof import facts
from rewright.proof.certificate import Certificate
from rewright.proof.checker import audit
from rewright.refine.certificate.writer import certificate
from rewright.refine.check import attempt
from rewright.refine.relations.known import input_relations

MASK = torch.ones(4, 4).triu(1).bool()
X = torch.linspace(-2, 2, 16).reshape(4, 4)
Program = Callable[[torch.Tensor], torch.Tensor]


def masked(x: torch.Tensor) -> torch.Tensor:
    return x.masked_fill(MASK, -math.inf)


def status(left: Program, right: Program) -> str:
    return rw.equiv(rw.capture(left, (X,)), rw.capture(right, (X,)), audit=True).status


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.exp(-masked(x)) - torch.exp(-masked(x)),
        lambda x: torch.log(torch.exp(masked(x))) - torch.log(torch.exp(masked(x))),
        lambda x: masked(x) - masked(x),
        lambda x: masked(x) * 0,
    ],
)
def test_infinities_do_not_cancel(program: Program) -> None:
    """Proved before: ``inf - inf`` was zero, with -inf a literal of the program."""
    assert status(program, lambda x: 0 * x) == "refuted"


def test_attention_that_is_nan_is_not_attention() -> None:
    """Proved before: exp(-s) - exp(-s) is NaN where s is masked."""

    def other(x: torch.Tensor) -> torch.Tensor:
        scores = masked(x)
        return torch.softmax(scores - (torch.exp(-scores) - torch.exp(-scores)), -1)

    assert status(lambda x: torch.softmax(masked(x), -1), other) == "refuted"


def test_the_exponential_of_a_logarithm_is_not_its_argument() -> None:
    """Proved before, for all x: the logarithm of a negative number is none."""
    verdict = rw.equiv(rw.capture(lambda x: torch.exp(torch.log(x)), (X,)), rw.capture(lambda x: x, (X,)))
    assert verdict.status != "proved"


def test_what_both_programs_need_is_said_once() -> None:
    verdict = rw.equiv(
        rw.capture(lambda x: torch.log(x) + 1, (X,)), rw.capture(lambda x: 1 + torch.log(x), (X,)), audit=True
    )
    assert verdict.status == "proved"
    exact, condition = verdict.assumptions
    assert exact == "floats are exact real numbers"
    assert condition.startswith("in all programs, log at test_infinities.py:")
    assert condition.endswith(": its argument is positive")


def causal(scores: torch.Tensor) -> torch.Tensor:
    return masked(scores).softmax(-1)


def written_out(scores: torch.Tensor) -> torch.Tensor:
    shifted = masked(scores)
    powers = torch.exp(shifted - shifted.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def test_a_causal_mask_leaves_every_row_something_so_nothing_is_assumed() -> None:
    verdict = rw.equiv(rw.capture(causal, (X,)), rw.capture(written_out, (X,)), audit=True)
    assert verdict.status == "proved"
    assert verdict.assumptions == ("floats are exact real numbers",)


def biased_choice(biased: bool) -> Graph:
    """The two largest of each row of logits, to which a row of a table with -inf may be added."""
    b = GraphBuilder()
    shape = (4, 8)
    logits = b.input("logits", ops.Input("logits", TensorType(shape, DType.F32)))
    kind = b.input("kind", ops.Input("kind", TensorType((4, 1), DType.I64)))
    x = logits
    if biased:
        bias = b.add(ops.Constant(TensorType((2,), DType.F32), (0.0, -math.inf)))
        row = b.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), bias, kind)
        x = b.add(ops.Add(), logits, b.add(ops.BroadcastInDim(shape, (0,)), row))
    b.output("chosen", b.add(ops.TopK(2, "indices"), x))
    return b.build()


def test_a_choice_among_logits_that_are_all_minus_infinity_is_another_one() -> None:
    """Proved and audited before: a private list of operators did not know that a look-up may give -inf."""
    assert rw.equiv(biased_choice(True), biased_choice(False)).status != "proved"


def difference(function: str) -> Graph:
    """``f(-m) - f(-m)`` of scores m under a causal mask."""
    b = GraphBuilder()
    kind, wide = TensorType((4, 4), DType.F32), TensorType((4, 4), DType.I64)
    x = b.input("x", ops.Input("x", kind))
    keeps = b.add(ops.Compare("GE"), b.add(ops.Iota(wide, 0)), b.add(ops.Iota(wide, 1)))
    low = b.add(ops.Constant(kind, (-math.inf,)))
    turned = b.add(ops.Negate(), b.add(ops.Select(), keeps, x, low))
    value = b.add(ops.REGISTRY[function](), turned)
    b.output("y", b.add(ops.Subtract(), value, value))
    return b.build()


def zeros() -> Graph:
    b = GraphBuilder()
    b.input("x", ops.Input("x", TensorType((4, 4), DType.F32)))
    b.output("y", b.add(ops.Constant(TensorType((4, 4), DType.F32), (0.0,))))
    return b.build()


def forged(function: str, monkeypatch: pytest.MonkeyPatch) -> Certificate:
    """The certificate of exponentials that an engine writes that knows nothing of infinities, of another function."""
    left, right = difference("exponential"), zeros()
    program = RankProgram((right,), Mesh.of({"rank": 1}), {}, {})
    known = input_relations(left, program, {"x": "Replicate()"})
    proof = attempt(left, program, known, {})
    with monkeypatch.context() as patch:
        patch.setattr(facts, "conditions", lambda *_: ())
        found = certificate(left, program, known, {}, proof.forms)
    terms = tuple(
        replace(term, content=replace(term.content, function=function))
        if applies(term.content, "exponential")
        else term
        for term in found.terms
    )
    return replace(found, terms=terms, sequential=digest(difference(function)))


@pytest.mark.parametrize("function", ["exponential", "abs", "floor", "sqrt", "log", "sine", "exponential_minus_one"])
@pytest.mark.parametrize("states", [False, True])
def test_a_certificate_over_infinities_is_refused(function: str, states: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted before for ten of thirteen functions; nor may it state a condition that no input meets."""
    found = forged(function, monkeypatch)
    if states:
        condition = "subtract at unknown line: it subtracts no infinities of one sign"
        found = replace(found, assumptions=(*found.assumptions, condition))
    program = RankProgram((zeros(),), Mesh.of({"rank": 1}), {}, {})
    assert found.sequential == digest(difference(function))
    with pytest.raises(Refused):
        audit(found, difference(function), program)
