"""Where relations and expectations come from: the caller, the capture, the shapes, the parameter of a gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.refine import refine
from rewright.refine.relations.inference import by_shapes
from rewright.refine.relations.known import complete_relations, input_relations, output_expectations
from tests.programs import Builder, mlp, sequence_parallel_norm


def test_the_capture_knows_placements() -> None:
    sequential, program = mlp(2)
    known = input_relations(sequential, program, None)
    assert known.placements == program.inputs
    assert known.equations == known.assumptions == ()


def test_the_caller_comes_first_by_name_or_pattern() -> None:
    sequential, program = mlp(2)
    known = input_relations(sequential, program, {"*.bias": "Replicate()", "x": ["Shard(1)"]})
    assert str(known.placements["up.bias"]) == str(known.placements["down.bias"]) == "Replicate()"
    assert known.placements["x"] == place((3, 4), program.mesh, ("Shard(1)",))
    assert str(known.placements["up.weight"]) == "Shard(1)"


def test_an_equation_takes_the_place_of_a_placement() -> None:
    sequential, program = mlp(2)
    text = "concat([up.weight@0, up.weight@1], axis=1)"
    known = input_relations(sequential, program, {"up.weight": text})
    assert "up.weight" not in known.placements
    assert [(e.name, e.text) for e in known.equations] == [("up.weight", text)]


def test_a_later_pattern_counts() -> None:
    sequential, program = mlp(2)
    text = "concat([up.weight@0, up.weight@1], axis=1)"
    known = input_relations(sequential, program, {"up.weight": text, "up.*": "Replicate()"})
    assert known.equations == ()
    assert str(known.placements["up.weight"]) == "Replicate()"


def test_ranks_with_unlike_shapes_and_no_relation() -> None:
    whole = Builder("whole")
    whole.output("y", whole.reduce(whole.tensor("x", (7, 4)), 1))
    parts = [Builder("part") for _ in range(2)]
    for build, rows in zip(parts, (3, 4), strict=True):
        build.output("y", build.reduce(build.tensor("x", (rows, 4)), 1))
    message = r"input 'x' of rank 0, which rank 0 holds as 3x4xf32 and rank 1 as 4x4xf32; give it a placement"
    with pytest.raises(RewrightError, match=message):
        refine(whole.build(), [build.build() for build in parts])


def test_what_nobody_tells_is_read_off_the_shapes_and_said() -> None:
    sequential, program = mlp(2)
    silent = replace(program, inputs={})
    known = complete_relations(sequential, silent, input_relations(sequential, silent, None), {})
    assert {n: str(p) for n, p in known.placements.items()} == {n: str(p) for n, p in program.inputs.items()}
    (assumption,) = known.assumptions
    assert assumption.startswith("relations of 5 inputs were inferred from their shapes: x is Replicate()")
    assert by_shapes((9, 9), "x", program) == ()


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_execution_decides_between_placements_that_fit_the_shapes(axis: str) -> None:
    """Half of a vector may lie along either mesh axis; the all-reduce shows along which."""
    mesh = Mesh.of({"rows": 2, "columns": 2})
    groups = tuple(dict.fromkeys(mesh.group(rank, (axis,)) for rank in range(4)))
    whole, part = Builder("whole"), Builder("part")
    whole.output("y", whole.reduce(whole.tensor("w", (4,)), 0))
    part.output("y", part.add(ops.AllReduce("sum", groups), part.reduce(part.tensor("w", (2,)), 0)))
    program = RankProgram((part.build(),) * 4, mesh, {}, {})
    verdict = refine(whole.build(), program, allow_vacuous=True)
    assert verdict.status == "proved"
    shown = "Shard(0), Replicate()" if axis == "rows" else "Replicate(), Shard(0)"
    assert any("from execution" in text and shown in text for text in verdict.assumptions), verdict.assumptions


def test_a_gradient_is_expected_where_its_parameter_is() -> None:
    sequential, program = sequence_parallel_norm(2)
    expected = output_expectations(sequential, replace(program, outputs={}), None)
    assert {name: str(p) for name, p in expected.items()} == {"grad:norm.weight": "Replicate()"}
    expected = output_expectations(sequential, program, {"grad:*": "Shard(0)"})
    assert str(expected["grad:norm.weight"]) == "Shard(0)"


def test_names_that_do_not_occur() -> None:
    sequential, program = mlp(2)
    with pytest.raises(RewrightError, match="relation 'w' matches no input of the sequential program; its inputs are "):
        input_relations(sequential, program, {"w": "Replicate()"})
    with pytest.raises(RewrightError, match="expectation 'y' matches no output"):
        output_expectations(sequential, program, {"y": "Replicate()"})


@pytest.mark.parametrize("text", ["Sharded(0)", "Shard(7)", "Shard", "Partial(mean)", ""])
def test_texts_that_are_no_placement(text: str) -> None:
    sequential, program = mlp(2)
    with pytest.raises(RewrightError) as caught:
        input_relations(sequential, program, {"x": text})
    assert "\n" not in str(caught.value)
