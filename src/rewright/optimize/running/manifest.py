"""Plans and graphs as manifests: the steps that ``bare`` runs, as data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH, Call, bind_at, constant, numbers
from rewright.ir.graph import Graph
from rewright.optimize.planning.linear import linear_layers
from rewright.optimize.planning.outline import KernelOutline, Outline
from rewright.optimize.planning.plan import LibraryStep
from rewright.optimize.running.linear import bind_linear


@dataclass
class Manifest:
    """Steps as data; ``calls`` are the functions of what it calls, by the ``number`` of an entry."""

    document: dict[str, Any]
    calls: list[Call]
    """In process."""

    @property
    def is_complete(self) -> bool:
        """Whether the document says all, and no call runs in NumPy."""
        return all(call.node is None for call in self.calls)

    def bind(self, entry: Mapping[str, Any]) -> Call:
        """The function of an entry."""
        number: int = entry["number"]
        return self.calls[number]


def manifest_of(plan: Outline, tensors: Mapping[str, tuple[int, ...]]) -> Manifest:
    """The manifest of a plan; ``tensors`` are what each kernel takes, in order."""
    graph = plan.graph
    library = {step.position for step in plan.steps if isinstance(step, LibraryStep)}
    linear = linear_layers(graph, library)
    writer = _Writer(graph, {plan.base(p) for p in range(len(graph.nodes))} & plan.memory)
    last = _last_uses(plan, linear)
    steps: list[dict[str, Any]] = []
    for number, step in enumerate(plan.steps):
        found: dict[str, Any] = {}
        if isinstance(step, KernelOutline):
            found = _kernel(graph, step, tensors[step.name])
        elif step.position in linear:
            found = writer.call(*bind_linear(graph, step.position)) | {"writes": [[step.position]]}
        elif step.position not in linear.values():  # else with what is added to it
            call = bind_at(graph, step.position)
            found = writer.call(call, graph.nodes[step.position].operands) | {"writes": [[step.position]]}
        steps.append(found | {"gone": last.get(number, [])})
    return writer.manifest(steps)


def manifest_of_graph(graph: Graph, kinds: Mapping[str, torch.dtype] | None = None) -> Manifest:
    """The manifest of a graph, operator by operator; ``kinds`` are dtypes that outputs are given in, by name."""
    given = {p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Input) or ops.is_table(node.op)}
    computed = [p for p in sorted(graph.live()) if p not in given]
    last: dict[int, int] = {}
    for number, position in enumerate(computed):
        last |= dict.fromkeys((position, *graph.nodes[position].operands), number)
    pinned = given | set(graph.outputs.values())
    wanted = {graph.outputs[name]: _name(kind) for name, kind in (kinds or {}).items()}
    writer = _Writer(graph, given | set(computed))
    steps: list[dict[str, Any]] = []
    for number, position in enumerate(computed):
        found = writer.call(bind_at(graph, position), graph.nodes[position].operands)
        made = [position, wanted[position]] if position in wanted else [position]
        gone = [p for p, n in last.items() if n == number and p not in pinned]
        steps.append({**found, "writes": [made], "gone": gone})
    return writer.manifest(steps)


def types_document(graph: Graph) -> dict[str, Any]:
    """Shape and dtype of each output."""
    kinds = {name: graph.nodes[place].type for name, place in graph.outputs.items()}
    return {name: [numbers(kind.shape), _name(TORCH[kind.dtype])] for name, kind in kinds.items()}


def constants_of(graph: Graph) -> dict[int, torch.Tensor]:
    """Tables, by place."""
    return {p: constant(node) for p, node in enumerate(graph.nodes) if ops.is_table(node.op)}


@dataclass
class _Writer:
    graph: Graph
    stored: Collection[int]
    """What is in memory."""
    calls: list[Call] = field(default_factory=list[Call])
    views: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def call(self, call: Call, operands: Sequence[int]) -> dict[str, Any]:
        """The entry of a call, with the views that it reads."""
        self.calls.append(call)
        number = len(self.calls) - 1
        self.read(operands)
        said = {"call": call.name, "arguments": dict(call.arguments)}
        return {**said, "operands": list(operands), "number": number}

    def read(self, places: Iterable[int]) -> None:
        """Note the views among tensors that are read."""
        for p in places:
            if p not in self.stored and str(p) not in self.views:
                self.views[str(p)] = {}
                self.views[str(p)] = self.call(bind_at(self.graph, p), self.graph.nodes[p].operands)

    def manifest(self, steps: list[dict[str, Any]]) -> Manifest:
        """The whole."""
        graph = self.graph
        self.read(graph.outputs.values())
        inputs: list[list[Any]] = []
        for name, place in graph.inputs.items():
            kind = graph.nodes[place].type
            inputs.append([name, place, numbers(kind.shape), _name(TORCH[kind.dtype])])
        document = {"inputs": inputs, "outputs": dict(graph.outputs), "steps": steps, "views": self.views}
        return Manifest(document, self.calls)


def _kernel(graph: Graph, kernel: KernelOutline, tensors: Sequence[int]) -> dict[str, Any]:
    types = {p: graph.nodes[p].type for p in kernel.writes}
    written = [[p, numbers(kind.shape), _name(TORCH[kind.dtype])] for p, kind in types.items()]
    return {"kernel": kernel.name, "tensors": list(tensors), "writes": written}


def _last_uses(plan: Outline, linear: Mapping[int, int]) -> dict[int, list[int]]:
    """For every step the stored tensors that nothing needs after it; a linear layer is computed where its sum is."""
    pinned = {plan.base(p) for p in plan.graph.outputs.values()} | set(plan.graph.outputs.values())
    last: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        read = plan.reads(step)
        if isinstance(step, LibraryStep) and step.position in linear:
            read |= {plan.base(p) for p in plan.graph.nodes[linear[step.position]].operands}
        written = (step.position,) if isinstance(step, LibraryStep) else step.writes
        for position in (*read, *written):
            last[position] = number
    found: dict[int, list[int]] = {}
    for position, number in last.items():
        if position not in pinned and not ops.is_table(plan.graph.nodes[position].op):
            found.setdefault(number, []).append(position)
    return found


def _name(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")
