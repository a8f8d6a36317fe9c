"""Parts of a plan, each one kernel or one that was split, as functions of tensors that torch computes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH
from rewright.ir.digest import digest
from rewright.ir.graph import Graph, Node
from rewright.optimize.planning.outline import Outline
from rewright.optimize.running.bare import CPU, Steps
from rewright.optimize.running.execution import Other, Runner
from rewright.optimize.running.manifest import constants_of, manifest_of_graph
from rewright.optimize.sizes.runner import FlexibleRunner


@dataclass(frozen=True)
class Part:
    """Steps of a plan that compute some of its tensors from others: a kernel, with those that merge its pieces."""

    plan: Outline
    steps: tuple[int, ...]
    """Their numbers in the plan."""
    given: tuple[int, ...]
    made: tuple[int, ...]

    @cached_property
    def graph(self) -> Graph:
        """The same as a program of its own, whose inputs are ``given`` and whose outputs are ``made``, by number."""
        nodes = self.plan.graph.nodes
        wanted = sorted(_between(self.plan, self.given, self.made) | set(self.given))
        place = {position: number for number, position in enumerate(wanted)}
        made: list[Node] = []
        for p in wanted:
            if p in self.given:
                made.append(Node(ops.Input(f"t{p}", nodes[p].type), (), nodes[p].type))
            else:
                made.append(replace(nodes[p], operands=tuple(place[o] for o in nodes[p].operands)))
        inputs, outputs = {f"t{p}": place[p] for p in self.given}, {f"t{p}": place[p] for p in self.made}
        return Graph(tuple(made), inputs, outputs, "part")

    @cached_property
    def key(self) -> str:
        """Equal for parts that compute the same of tensors of the same types, as those of equal layers."""
        types = [str(self.plan.graph.nodes[p].type) for p in (*self.given, *self.made)]
        return "\0".join([digest(self.graph, names=False), *types])

    @property
    def kinds(self) -> dict[str, torch.dtype]:
        """The dtypes of what it makes, by the name of the output."""
        return {f"t{p}": TORCH[self.plan.graph.nodes[p].type.dtype] for p in self.made}

    def by_torch(self, device: torch.device = CPU) -> Eager:
        """What torch computes for it, operator by operator."""
        return Eager(self.graph, self.kinds, device)


class Eager:
    """A graph by torch's calls, one for each operator: call it with tensors in the order of its inputs."""

    def __init__(
        self, graph: Graph, kinds: Mapping[str, torch.dtype] | None = None, device: torch.device = CPU
    ) -> None:
        self.names, self.results = tuple(graph.inputs), tuple(graph.outputs)
        self.manifest = manifest_of_graph(graph, kinds)
        self.steps = Steps(self.manifest.document, constants_of(graph), {}, self.manifest.bind, device)

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs, in their order."""
        found = self.steps(dict(zip(self.names, tensors, strict=True)))
        return tuple(found[name] for name in self.results)


def parts_of(plan: Outline) -> list[Part]:
    """The parts of a plan: steps that hand on states of pieces, which are no tensors of the program, are one part.

    A part that torch would have to compute from other tensors than its kernels read is left out.
    """
    inputs = {p for p, node in enumerate(plan.graph.nodes) if isinstance(node.op, ops.Input)}
    states = inputs - set(plan.graph.inputs.values())
    kernels = plan.kernels
    stores = {n: set(kernel.writes) for n, kernel in kernels.items()}
    found: list[Part] = []
    for number in kernels:
        if kernels[number].loads & states:
            continue  # it merges what an earlier one has left in pieces
        handed = stores[number] & states
        group = [number, *(n for n in kernels if n != number and handed & kernels[n].loads)]
        stored = {t for n in group for t in stores[n]}
        given = tuple(sorted({p for n in group for p in kernels[n].loads} - stored))
        made = tuple(sorted(stored - states))
        if not any(_is_leaf(plan, p) for p in _between(plan, given, made)):
            found.append(Part(plan, tuple(group), given, made))
    return found


def with_parts(runner: FlexibleRunner, chosen: Collection[tuple[int, ...]]) -> FlexibleRunner:
    """The runner of all sizes with some parts by PyTorch, which are told by their steps."""
    if not chosen:
        return runner
    own = {p for part in parts_of(runner.plan) if part.steps in chosen for p in part.made}
    made = frozenset(name for name, place in runner.plan.graph.outputs.items() if place in own)

    def change(fixed: Runner) -> Runner:
        parts = [part for part in parts_of(fixed.plan) if part.steps in chosen]
        others = {part.steps[0]: _by_torch(part, fixed.device) for part in parts}
        return Runner(fixed.plan, fixed.launches, others, fixed.device)

    return runner.replaced(change, made, frozenset(chosen))


def _by_torch(part: Part, device: torch.device) -> Other:
    """A part as PyTorch computes it."""
    eager = part.by_torch(device)

    def call(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {f"t{p}": value for p, value in zip(part.made, eager(*given.values()), strict=True)}

    return Other(part.steps, part.given, part.made, part.graph, part.kinds, "eager", call)


def _between(plan: Outline, given: Sequence[int], made: Sequence[int]) -> set[int]:
    """What is computed on the way from some tensors to others, which count."""
    found: set[int] = set()
    stack = list(made)
    while stack:
        p = stack.pop()
        if p not in found and p not in given:
            found.add(p)
            stack.extend(plan.graph.nodes[p].operands)
    return found


def _is_leaf(plan: Outline, position: int) -> bool:
    """Whether a tensor is given to the program, or kept for it, and computed from nothing."""
    op = plan.graph.nodes[position].op
    return isinstance(op, ops.Input) or ops.is_table(op)
