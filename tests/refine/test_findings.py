"""What a finding says: what is expected and what is held, both lines, and a repair that was proved."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.mutants import generate
from rewright import ops
from rewright.ir.graph import Graph
from rewright.refine import refine
from rewright.refine.engine import answer
from rewright.refine.verdict import Finding
from tests.programs import I64, Builder, Pair, attention, mlp, sequence_parallel_norm, vocabulary_embedding


def finding_of(pair: Pair, description: str) -> Finding:
    sequential, program = pair
    mutant = next(m for m in generate(program) if m.description == description)
    verdict = refine(sequential, mutant.program)
    assert verdict.status == "refuted"
    return verdict.findings[0]


def test_a_missing_reduction_names_where_the_sum_is_computed_and_where_it_is_read() -> None:
    finding = finding_of(mlp(2), "all_reduce dropped")
    assert finding.kind == "missing_reduction"
    assert "a partial sum of the matrix product at sequential.py:10" in finding.message
    assert "before the add at parallel.py" in finding.message
    assert (str(finding.sequential), str(finding.distributed)) == ("sequential.py:10", "parallel.py:10")
    assert finding.found == 'Partial("sum")'
    assert finding.suggestion == "insert all_reduce over tp after parallel.py:10"


def test_a_doubled_reduction_is_a_multiple_of_what_is_expected() -> None:
    finding = finding_of(mlp(2), "all_reduce called twice")
    assert finding.kind == "wrong_collective"
    assert finding.found == "2 times that on rank 0"
    assert finding.expected.endswith("Replicate()")


def test_a_gradient_that_is_left_partial() -> None:
    finding = finding_of(sequence_parallel_norm(2), "all_reduce dropped")
    assert finding.kind == "missing_reduction"
    assert "before it is returned" in finding.message
    assert (finding.expected, finding.found) == ("Replicate()", 'Partial("sum")')
    assert finding.suggestion is not None


@pytest.mark.parametrize(
    ("build", "description", "kind", "repair"),
    [
        (mlp, "second term of a sum dropped", "missing_term", "add the results of"),
        (mlp, "all_reduce of kind sum made maximum", "wrong_collective", "a sum instead of a maximum"),
        (attention, "subtract reversed", "wrong_value", "swap the operands of"),
        (attention, "constant of multiply made 2 times larger", "extra_operator", "leave out the mul"),
        (attention, "reduce of kind maximum made minimum", "wrong_value", "like the one at"),
    ],
)
def test_what_the_sequential_program_does_is_the_first_repair(
    build: Callable[[int], Pair], description: str, kind: str, repair: str
) -> None:
    finding = finding_of(build(2), description)
    assert finding.kind == kind
    assert finding.suggestion is not None
    assert repair in finding.suggestion
    assert finding.sequential is not None


def test_attributes_that_differ_are_told() -> None:
    finding = finding_of(attention(2), "reduce of kind sum made maximum")
    assert "with kind maximum and not sum" in finding.message


def test_a_shard_that_another_rank_should_hold() -> None:
    finding = finding_of(mlp(2), "ranks 0 and 1 hold each other's shard of up.weight")
    assert finding.kind == "wrong_shard"
    assert "up.weight" in finding.message


def test_repairs_may_be_left_out() -> None:
    sequential, program = mlp(2)
    mutant = next(m for m in generate(program) if m.kind == "dropped_collective")
    verdict = answer(sequential, mutant.program, suggest=False)
    assert verdict.status == "refuted"
    assert verdict.findings[0].suggestion is None


# --- what was expected, and what does not run ------------------------------------------------------------------------
@pytest.mark.parametrize("expected", ["Shard(0)", 'Partial("sum")'])
def test_an_output_that_is_right_and_was_expected_otherwise(expected: str) -> None:
    """The ranks hold all of the output: no reduction is missing, the expectation may be what is wrong."""
    sequential, program = mlp(2, batch=4)
    (finding,) = refine(sequential, program, expect={"output": expected}).findings
    assert finding.kind == "wrong_placement"
    assert finding.message.startswith(
        f"the ranks hold output output as Replicate(), which is right, and {expected} was"
    )
    assert (finding.expected, finding.found) == (expected, "Replicate()")


def test_a_look_up_out_of_range_on_one_rank_has_a_counterexample() -> None:
    """Every rank looks up all tokens in its own rows of the table, unmasked."""
    sequential, program = vocabulary_embedding(2)

    def of_rank(rank: int) -> Graph:
        build = Builder("parallel")
        ids, table = build.tensor("input_ids", (5,), I64), build.tensor("embedding.weight", (6, 3))
        rows = build.take_rows(table, build.add(ops.Subtract(), ids, build.full(6 * rank, ids)))
        build.output("output", build.all_reduce(rows, 2))
        return build.build()

    verdict = refine(sequential, replace(program, graphs=(of_rank(0), of_rank(1))))
    assert verdict.status == "refuted"
    example = verdict.findings[0].counterexample
    assert example is not None
    assert example.sizes == {"input_ids": (5,), "embedding.weight": (12, 3)}
    assert math.isfinite(example.sequential_value)
    assert math.isnan(example.distributed_value)


def test_the_first_finding_is_told_before_repairs_are_tried() -> None:
    told: list[Finding] = []
    sequential, program = mlp(2)
    mutant = next(m for m in generate(program) if m.description == "all_reduce dropped")
    verdict = refine(sequential, mutant.program, tell=told.append)
    (first,) = told
    assert first.suggestion is None
    assert (first.kind, first.message) == (verdict.findings[0].kind, verdict.findings[0].message)
    assert verdict.findings[0].suggestion is not None
    told.clear()
    refine(*mlp(2), tell=told.append)
    assert told == []
