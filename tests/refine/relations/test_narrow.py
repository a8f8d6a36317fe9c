"""Claims that hold where numbers are in range name that, and nothing else is taken for granted."""

import numpy as np
import pytest

import rewright as rw
from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from rewright.proof.unknowns import Question
from rewright.refine.relations.narrow import narrow_question

IN_RANGE = "the indices in input 'i' are in range: from 0 to 6, neither negative nor beyond"


def look_up(counts: bool) -> Graph:
    """Rows of a table of seven; ``counts`` negative indices from the end."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((7, 3), DType.F32)))
    i = b.input("i", ops.Input("i", TensorType((4,), DType.I64)))
    place = i
    if counts:
        below = rb.compare(b, "LT", i, rb.splat_like(b, 0, i))
        place = rb.select(b, below, rb.shift_by(b, i, 7), i)
    b.output("y", b.add(ops.Gather((1,), (0,), (), (), (0,), 1, (1, 3)), x, place))
    return b.build()


def test_an_index_in_range_decides_whether_it_counts_from_the_end() -> None:
    found = narrow_question(Question(look_up(True), RankProgram((look_up(False),), Mesh((("tp", 1),)), {}, {})), ["i"])
    assert found is not None
    sequential, program, assumptions = found.question.sequential, found.question.program, found.question.assumptions
    assert not any(isinstance(node.op, ops.Select) for node in sequential.nodes)
    assert sequential.inputs.keys() == {"x", "i"}
    assert program.graphs == (look_up(False),)
    assert assumptions == (IN_RANGE,)


def test_nothing_is_assumed_that_decides_nothing() -> None:
    assert (
        narrow_question(Question(look_up(False), RankProgram((look_up(False),), Mesh((("tp", 1),)), {}, {})), ["i"])
        is None
    )
    assert IN_RANGE not in rw.equiv(look_up(True), look_up(True)).assumptions


def test_a_claim_that_needs_an_index_in_range_says_so() -> None:
    verdict = rw.equiv(look_up(True), look_up(False))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved")
    assert IN_RANGE in verdict.assumptions


def test_a_cast_of_jax_is_that_of_torch_where_the_numbers_fit() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    own = rw.capture(lambda x: jax.numpy.floor(x).astype(jax.numpy.int32) + 1, (x,), framework="jax")
    other = rw.capture(lambda x: torch.floor(x).int() + 1, (torch.tensor(x),))
    verdict = rw.equiv(own, other)
    assert verdict.status == "proved"
    assert any("is a number that i32 holds" in text for text in verdict.assumptions)


def test_a_cast_after_a_clip_needs_no_assumption() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    x = np.linspace(-30, 30, 12, dtype=np.float32).reshape(3, 4)
    np_ = jax.numpy
    own = rw.capture(lambda x: np_.clip(np_.round(x * 9), -128, 127).astype(np_.int8), (x,), framework="jax")
    other = rw.capture(lambda x: torch.clamp(torch.round(x * 9), -128, 127).to(torch.int8), (torch.tensor(x),))
    verdict = rw.equiv(own, other)
    assert verdict.status == "proved"
    assert not any("holds" in text for text in verdict.assumptions)


def test_a_difference_out_of_range_is_not_told_of_other_programs() -> None:
    """Programs that differ out of range alone are never refuted by what is assumed away."""
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(12.0).reshape(3, 4) * 40 - 100
    left = rw.capture(lambda x: x.astype("uint8").astype("int32"), (x,), framework="jax")
    right = rw.capture(lambda x: jax.numpy.clip(x, 0, 255).astype("int32"), (x,), framework="jax")
    assert rw.equiv(left, right).status != "refuted"
