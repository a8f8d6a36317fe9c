"""All independent failures in one run: behind one another, in every layer, and where a repair is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.mutants import generate
from rewright.blame.editing import edit_program
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine import refine
from rewright.refine.verdict import Verdict
from tests.programs import ALL, mlp
from tests.refine.stacks import stack


def line_of(verdict: Verdict, number: int) -> tuple[str, int, str]:
    span = verdict.findings[number].distributed
    assert span is not None
    return span.file, span.line, span.module_path


def test_a_right_stack_is_proved() -> None:
    assert refine(*stack(3)).status == "proved"


def test_two_failures_behind_one_another_are_two_findings_with_a_repair_each() -> None:
    verdict = refine(*stack(4, dropped=[1], scaled=[3]))
    assert [finding.kind for finding in verdict.findings] == ["missing_reduction", "wrong_value"]
    assert [line_of(verdict, k)[2] for k in range(2)] == ["layers.1", "layers.3"]
    first, second = (finding.suggestion for finding in verdict.findings)
    assert first == "insert all_reduce over tp after parallel.py:122"
    assert second == "use 0.5 for the constant at parallel.py:121"
    assert any("once those before them are mended" in note for note in verdict.notes)


@pytest.mark.parametrize("faults", [{"dropped": range(4)}, {"scaled": range(4)}])
def test_one_fault_in_every_layer_is_one_finding(faults: dict[str, range]) -> None:
    verdict = refine(*stack(4, **faults))
    (finding,) = verdict.findings
    assert line_of(verdict, 0)[2] == "layers.0"
    assert finding.also == ("layers.1", "layers.2", "layers.3")
    assert finding.suggestion is not None


def test_only_layers_with_the_fault_are_named() -> None:
    (finding,) = refine(*stack(4, dropped=[0, 2])).findings
    assert finding.also == ("layers.2",)


def test_every_finding_has_a_counterexample_of_its_own() -> None:
    examples = [finding.counterexample for finding in refine(*stack(4, dropped=[1], scaled=[3])).findings]
    assert all(example is not None for example in examples)
    assert len({(example.index, example.sequential_value) for example in examples if example is not None}) == 2


def test_counterexamples_are_at_the_smallest_sizes_that_both_programs_allow() -> None:
    sequential, program = mlp(2, batch=64, hidden=96, inner=128)
    verdict = refine(sequential, replace(program, graphs=tuple(without_reduction(g) for g in program.graphs)))
    example = verdict.findings[0].counterexample
    assert example is not None
    assert sum(a * b for a, b in (shape for shape in example.sizes.values() if len(shape) == 2)) < 200
    assert abs(example.sequential_value - example.distributed_value) > 1e-6


def test_findings_behind_repairs_are_told_at_nodes_of_the_program_without_them() -> None:
    sequential, program = stack(4, dropped=[1], scaled=[3])
    for finding in refine(sequential, program).findings:
        where = finding.where
        assert where.sequential is not None
        assert where.distributed is not None
        assert program.graphs[where.rank].nodes[where.distributed].span == finding.distributed
        assert sequential.nodes[where.sequential].span == finding.sequential


def test_repairs_together_make_the_program_right() -> None:
    """What the findings say, done by hand: the verdict is then proved."""
    assert refine(*stack(4, dropped=[1])).status == "refuted"
    assert refine(*stack(4)).status == "proved"


def without_reduction(graph: Graph) -> Graph:
    position = next(p for p, node in enumerate(graph.nodes) if node.op.name == "all_reduce")
    program = RankProgram((graph,), mlp(1)[1].mesh, {}, {})
    return edit_program(program, {0: position}, lambda _, node: node.operands[0])[0].graphs[0]


# --- why not related --------------------------------------------------------------------------------------------------
def test_an_open_sum_is_told_with_its_ranges() -> None:
    why = refine(*stack(2, dropped=[0])).findings[0].why_not
    assert "the sum of the matrix product at sequential.py:103" in why
    assert "0..4 on rank 0" in why
    assert "the sequential program takes 0..8" in why


def test_a_difference_the_wrong_way_round_names_the_nearest_tensor() -> None:
    why = refine(*stack(2, reversed_=1)).findings[0].why_not
    assert why.startswith("the sub gives what the sequential program has elsewhere")


def test_what_is_proved_has_no_findings_and_counts_its_laws() -> None:
    verdict = refine(*stack(2))
    assert not verdict.findings
    assert verdict.stats.laws["all_reduce"] == 2
    assert verdict.stats.laws["tanh"] >= 8


# --- one fault is one finding -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_one_injected_fault_is_one_finding(name: str) -> None:
    """What only follows from a fault is not told beside it."""
    sequential, program = ALL[name](2)
    for mutant in list(generate(program, per_kind=1))[:6]:
        verdict = refine(sequential, mutant.program)
        if verdict.status == "refuted":
            assert len(verdict.findings) == 1, mutant.description
