"""Programs of many layers that are run as programs of three."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.interp.ranks import run_ranks
from rewright.ir.graph import Graph, validate
from rewright.lifting.layers.shortening import Shortened, find_layers, shorten_programs
from rewright.refine import alarm, objections
from rewright.refine.engine import refine
from tests.lifting.layers.test_induction import Wiring, deep

LAYERS = 9
KEPT = {"0": "0", "1": "1", "8": "2"}
"""By layer of the program the one of a program of three that it is."""


def short(wiring: Wiring | None = None, *, backward: bool = True, table: bool = False) -> Shortened:
    sequential, program = deep(LAYERS, wiring=wiring, backward=backward, table=table)
    return shorten_programs(*find_layers(sequential, program.graphs))


def renamed(name: str) -> str:
    """The name in a program of three layers; the second stretch of a backward pass is that of the seventh layer."""
    title, _, name = name.rpartition(":")
    layer, dot, rest = name.partition(".")
    kept = {**KEPT, "7": "1"} if title else KEPT
    return (f"{title}:" if title else "") + kept.get(layer, layer) + dot + rest


def values(graph: Graph) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(3)
    return {name: draws.standard_normal(graph.nodes[p].type.shape) / 4 for name, p in graph.inputs.items()}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("table", [False, True])
def test_three_layers_of_nine_are_a_program_of_three(backward: bool, table: bool) -> None:
    """Run on numbers: forward, and the gradients, which read what the layers saved and what entered them."""
    found, (three, _) = short(backward=backward, table=table), deep(3, backward=backward, table=table)
    given = values(found.sequential)
    assert {renamed(name) for name in given} == set(three.inputs)
    ours = run(found.sequential, given)
    theirs = run(three, {renamed(name): value for name, value in given.items()})
    assert {renamed(name) for name in ours} == set(theirs)
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[renamed(name)], rtol=1e-12)


@pytest.mark.parametrize("backward", [False, True])
def test_the_ranks_are_shortened_alike(backward: bool) -> None:
    found = short(backward=backward)
    assert found.layers == LAYERS
    for graph in (found.sequential, *found.ranks):
        validate(graph)
        assert set(graph.inputs) == set(found.sequential.inputs)
        assert set(graph.outputs) == set(found.sequential.outputs)
    (whole, _), given = deep(LAYERS), values(found.sequential)
    assert len(found.sequential) < len(whole) / 2
    halves = [
        {
            name: np.split(value, 2, axis=1 if name.endswith("up") else 0)[rank]
            if name.endswith(("up", "down"))
            else value
            for name, value in given.items()
        }
        for rank in range(2)
    ]
    for own in run_ranks(found.ranks, halves):
        np.testing.assert_allclose(own.outputs["y"], run(found.sequential, given)["y"], rtol=1e-12)


def test_layers_that_do_not_repeat_are_not_shortened() -> None:
    sequential, program = deep(4)
    assert find_layers(sequential, program.graphs) == ()


def test_a_large_pair_is_run_with_three_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objections, "_MOST_STEPS", 400)
    verdict = refine(*deep(LAYERS))
    assert verdict.status == "proved"
    assert verdict.notes[-1] == "the programs were run on numbers with 3 of their 9 equal layers"


@pytest.mark.alarm(reason="the alarm is what is tested")
def test_a_large_pair_without_layers_is_run_as_a_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(objections, "_MOST_STEPS", 40)
    sequential, program = deep(4)
    claimed = refine(sequential, program)
    assert claimed.status == "proved"
    assert not any("were not run" in note for note in claimed.notes)
    other = replace(program, graphs=tuple(map(with_sines, program.graphs)))
    assert (
        objections.challenge_verdict(claimed, objections.Run(sequential, other, other.outputs), tmp_path).status
        != "proved"
    )


def test_one_that_is_larger_than_that_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objections, "_MOST_STEPS", 40)
    monkeypatch.setattr(objections, "_MOST_WHOLE", 40)
    verdict = refine(*deep(4))
    assert verdict.status == "proved"
    assert "were not run on numbers" in verdict.notes[-1]


def with_sines(graph: Graph) -> Graph:
    nodes = [replace(node, op=ops.Sine()) if isinstance(node.op, ops.Tanh) else node for node in graph.nodes]
    return replace(graph, nodes=tuple(nodes))


@pytest.mark.alarm(reason="the alarm is what is tested")
def test_a_proof_of_many_wrong_layers_is_an_alarm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wrong proof is made up: in all layers of the ranks another function is taken."""
    monkeypatch.setattr(objections, "_MOST_STEPS", 400)
    sequential, program = deep(LAYERS)
    claimed = refine(sequential, program)
    other = replace(program, graphs=tuple(map(with_sines, program.graphs)))
    verdict = objections.challenge_verdict(claimed, objections.Run(sequential, other, other.outputs), tmp_path)
    assert verdict.status == "unknown"
    assert "3 of their 9 equal layers" in verdict.reason or verdict.reason.startswith(alarm.PREFIX)
