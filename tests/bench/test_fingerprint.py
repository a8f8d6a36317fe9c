"""Claims that values propose: accepted for right programs, and neither made nor accepted for a wrong one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.distributed import Claim
from bench.fingerprint import Found, prove_by_values
from rewright import ops
from rewright.ir.digest import digest
from rewright.ir.placement import RankProgram
from rewright.proof.certificate import Meeting
from rewright.proof.checker import Refused, audit
from tests import programs


def of(pair: programs.Pair) -> Found:
    return prove_by_values(Claim(*pair))


def without_all_reduce(program: RankProgram) -> RankProgram:
    """Every rank adds its own addend to itself where it should add up those of all."""
    graphs = [
        replace(graph, nodes=tuple(_alone(node) for node in graph.nodes))  # one node for one node
        for graph in program.graphs
    ]
    return replace(program, graphs=tuple(graphs))


def _alone(node: object) -> object:
    is_sum = isinstance(node.op, ops.AllReduce)
    return replace(node, op=ops.Reshape(node.type.shape)) if is_sum else node


@pytest.mark.parametrize("name", ["mlp", "attention", "vocabulary_embedding", "cross_entropy"])
def test_claims_from_values_are_accepted(name: str) -> None:
    pair = getattr(programs, name)(2)
    found = of(pair)
    assert found.proved, found.why
    assert found.matched and found.certificate is not None
    # also by an audit that knows no lemma of the search
    audit(found.certificate, pair[0], replace(pair[1], inputs=found.certificate.relations))


def test_what_ranks_have_of_their_own_is_a_term_until_they_meet() -> None:
    found = of(programs.mlp(2))
    assert found.own == 2, "the addend of each rank"
    assert found.certificate is not None
    assert any(isinstance(equation, Meeting) and equation.unfold for equation in found.certificate.equations)


def test_a_dropped_all_reduce_is_not_proved() -> None:
    sequential, program = programs.mlp(2)
    found = of((sequential, without_all_reduce(program)))
    assert not found.proved
    assert "values differ" in found.why


def test_the_checker_refuses_the_claims_for_a_program_without_the_all_reduce() -> None:
    sequential, program = programs.mlp(2)
    certificate = of((sequential, program)).certificate
    assert certificate is not None
    wrong = without_all_reduce(program)
    with pytest.raises(Refused, match="is no meeting"):
        audit(replace(certificate, ranks=tuple(map(digest, wrong.graphs))), sequential, wrong)
