"""Kernels that take sizes, as data: the outline of their plan, and the units that they are compiled from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rewright import ops
from rewright.ir.building import parse_size
from rewright.ir.json_form import from_json, to_json
from rewright.ir.types import DType, TensorType
from rewright.optimize.floor.parts import with_parts
from rewright.optimize.planning.outline import KernelOutline, Outline
from rewright.optimize.planning.plan import LibraryStep, Plan
from rewright.optimize.sizes.runner import FlexibleRunner
from rewright.optimize.sizes.testing import Tests, compiled_runner
from rewright.optimize.sizes.variants import Function, Unit


def sized_document(runner: FlexibleRunner, plan: Plan) -> dict[str, Any] | None:
    """All that a runner is made of, but the texts of its units; None where its kernels are not in C++.

    Raises RewrightError for a graph that has no JSON form.
    """
    if runner.variants is None:
        return None
    nodes = zip(runner.plan.graph.nodes, plan.graph.nodes, strict=True)
    return {
        "graph": to_json(plan.graph),
        "wide": [p for p, (stored, node) in enumerate(nodes) if stored.type != node.type],
        "memory": sorted(plan.memory),
        "steps": [_step_document(step) for step in runner.plan.steps],
        "units": [_unit_document(unit) for unit in runner.variants.units],
        "known": runner.variants.checked,
        "by torch": [list(steps) for steps in sorted(runner.by_torch)],
    }


def sized_texts(runner: FlexibleRunner) -> dict[str, str]:
    """The text of each unit, by file."""
    units = runner.variants.units if runner.variants is not None else ()
    return {_file(number): unit.text for number, unit in enumerate(units)}


def sized_runner(said: dict[str, Any], folder: Path, tests: Tests | None) -> FlexibleRunner:
    """The runner that a document says; raises RewrightError where its kernels cannot be built."""
    graph = from_json(said["graph"], ops.REGISTRY)
    wide = frozenset(said["wide"])
    nodes = [
        replace(node, type=TensorType(node.type.shape, DType.F32)) if p in wide else node
        for p, node in enumerate(graph.nodes)
    ]
    steps = tuple(_step(step) for step in said["steps"])
    plan = Outline(replace(graph, nodes=tuple(nodes)), frozenset(said["memory"]), steps)
    units = [_unit(unit, (folder / _file(number)).read_text()) for number, unit in enumerate(said["units"])]
    runner = compiled_runner(plan, units, tests, said["known"])
    return with_parts(runner, {tuple(steps) for steps in said["by torch"]})


def _file(number: int) -> str:
    return f"unit{number}.cpp"


def _step_document(step: KernelOutline | LibraryStep) -> list[Any]:
    if isinstance(step, LibraryStep):
        return [step.position, step.why]
    return [step.name, sorted(step.loads), list(step.writes)]


def _step(said: list[Any]) -> KernelOutline | LibraryStep:
    if len(said) == 2:
        return LibraryStep(*said)
    name, loads, writes = said
    return KernelOutline(name, frozenset(loads), tuple(writes))


def _unit_document(unit: Unit) -> dict[str, Any]:
    functions = [[f.kernel, f.name, list(f.tensors), list(f.written)] for f in unit.functions]
    return {"functions": functions, "guards": [str(guard) for guard in unit.guards]}


def _unit(said: dict[str, Any], text: str) -> Unit:
    functions = tuple(Function(k, name, tuple(t), tuple(w)) for k, name, t, w in said["functions"])
    return Unit(text, functions, tuple(parse_size(guard) for guard in said["guards"]))


__all__ = ["sized_document", "sized_runner", "sized_texts"]
