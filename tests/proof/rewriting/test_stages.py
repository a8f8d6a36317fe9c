"""A splice stands where the program has what its lemma says was there, over nodes that are what it is given."""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import Facts, facts_between, of_values
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.splices import Splice, Stage
from rewright.proof.rewriting.stages import splice_stage, why_not

F = TensorType((3,), DType.F32)


def program() -> Graph:
    """``x``, its square, the larger one of that and zero, ``y``, and the sum of both."""
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", F))
    square = b.add(ops.Multiply(), x, x)
    zero = b.add(ops.Constant(F, (0.0,)))
    largest = b.add(ops.Maximum(), square, zero)
    y = b.input("y", ops.Input("y", F))
    b.output("result", b.add(ops.Add(), largest, y))
    return b.build()


def part(name: str, *, floored: bool) -> Graph:
    b = GraphBuilder("part")
    place = b.input(name, ops.Input(name, F))
    b.output("result", b.add(ops.Maximum(), place, b.add(ops.Constant(F, (0.0,)))) if floored else place)
    return b.build()


def lemma(given: Facts | None) -> Lemma:
    known = () if given is None else (("s", given),)
    return Lemma("", part("s", floored=False), part("s", floored=True), "proved", (), known)


def reason(given: Facts | None, position: int = 3, held: tuple[int, ...] = (1,)) -> str:
    one = lemma(given)
    return str(why_not(program(), Stage((Splice(position, one.key, (("s", held),)),), (one,))))


def test_what_the_analysis_knows_may_be_given() -> None:
    one = lemma(facts_between(0, float("inf")))
    stage = Stage((Splice(3, one.key, (("s", (1,)),)),), (one,))
    assert why_not(program(), stage) is None
    assert [node.op.name for node in splice_stage(program(), stage).nodes] == ["input", "multiply", "input", "add"]


def test_what_it_does_not_know_may_not() -> None:
    for given in (
        facts_between(1, float("inf")),
        facts_between(0, 9),
        of_values([0]),
        facts_between(0, float("inf"), whole=True),
    ):
        assert "not known" in reason(given)
    assert reason(None) == "None"  # whether the lemma holds without it is not asked here


def test_a_splice_is_where_its_lemma_was() -> None:
    assert "something else" in reason(None, held=(0,))
    assert "something else" in reason(None, position=5)
    assert "come later" in reason(None, held=(4,))
    assert "come later" in reason(None, held=())
    assert "other expressions" in reason(None, held=(0, 1))
    assert "does not exist" in reason(None, position=6)


def test_nothing_that_is_put_in_reads_what_it_replaces() -> None:
    one = Lemma("", part("s", floored=False), part("s", floored=False), "proved")
    stage = Stage((Splice(3, one.key, (("s", (3,)),)),), (one,))
    assert "come later" in str(why_not(program(), stage))


def test_what_was_there_may_be_the_node_of_which_something_is_known() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", F))
    b.output("result", b.add(ops.Multiply(), x, b.add(ops.Constant(F, (0.0,)))))
    zero = GraphBuilder("part")
    zero.output("result", zero.add(ops.Constant(F, (0.0,))))
    one = Lemma("", zero.build(), part("s", floored=False), "proved", (), (("s", facts_between(0, 0)),))
    assert why_not(b.build(), Stage((Splice(2, one.key, (("s", (2,)),)),), (one,))) is None
    assert why_not(program(), Stage((Splice(1, one.key, (("s", (1,)),)),), (one,))) is not None


def test_an_inner_input_is_held_by_the_node_that_the_lemma_says() -> None:
    right = GraphBuilder("part")
    x = right.input("x", ops.Input("x", F))
    square = right.add(ops.Multiply(), x, x)
    right.output("result", right.add(ops.Maximum(), square, right.add(ops.Constant(F, (0.0,)))))
    one = Lemma("", part("s", floored=True), right.build(), "proved", (), (), (("s", 1),))

    def why(held: int) -> str | None:
        return why_not(program(), Stage((Splice(3, one.key, (("x", (0,)), ("s", (held,)))),), (one,)))

    assert why(1) is None
    assert "not held" in str(why(0))
