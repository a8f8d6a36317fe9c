"""The alternatives of many passes in one e-graph, and the cheapest program that follows from all of them.

Alternatives are equalities ``value = replacement``. A pass applies its own and leaves the program to the next pass; in
an e-graph they hold together, so that a replacement by one pass may be taken apart by another and back. Nodes are
HLO instructions with classes as operands; congruence merges what is computed alike from equal operands, which no pass
has to say. The cheapest node of every class is found by relaxation (Willsey et al., "egg", POPL 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewright.egraph.egraph import EGraph, Justification
from rewright.env.cost import computation_cost, instruction_cost
from rewright.env.dryrun import DryRun
from rewright.env.hlo.editing import prune
from rewright.env.inlining import Inlined
from rewright.env.module import HloModule
from rewright.frontends.hlo.module import Instruction, toposort
from rewright.frontends.hlo.order import Cycle

_SMALLEST = 1e-13
"""What an instruction costs at least, so that no cheapest program goes in a circle."""


@dataclass(frozen=True)
class Combined:
    """The cheapest program, how many classes were merged, and the cost before and after."""

    module: HloModule
    unions: int
    before: float
    after: float
    way: str
    """``e-graph``, ``all chosen`` or ``as it was``: whichever costs least."""


def combine(run: DryRun) -> Combined:
    """The cheapest program by the estimated cost; what was refuted is left out. Never dearer than either neighbour."""
    merged = _Merged(run)
    candidates = [("as it was", run.module), ("all chosen", run.apply(_greedy(run)))]
    extracted = merged.extract()
    if extracted is not None:
        candidates.append(("e-graph", extracted))
    way, best = min(candidates, key=lambda entry: (entry[1].cost.seconds, entry[1].instruction_count))
    return Combined(best, merged.unions, run.module.cost.seconds, best.cost.seconds, way)


def _greedy(run: DryRun) -> list[int]:
    chosen: list[int] = []
    for number, offered in enumerate(run.offered):
        if offered and run.graph.applicable(chosen)[number]:
            chosen.append(number)
    return chosen


class _Merged:
    def __init__(self, run: DryRun) -> None:
        self.run = run
        program = run.graph.program
        self.main = program.main
        self.instructions: dict[str, Instruction] = {**self.main.instructions, **run.graph.pool.get(self.main.name, {})}
        self.order = toposort(self.instructions, list(self.instructions))
        self.inlined = Inlined({**program.computations, **run.graph.computations})
        self.egraph = EGraph()
        self.places: dict[str, int] = {}
        for name in self.order:
            instruction = self.instructions[name]
            children = tuple(self.places[operand] for operand in instruction.operands)
            self.places[name] = self.egraph.add(self._label(instruction), children)
        self.unions = sum(self._union(number) for number, offered in enumerate(run.offered) if offered)
        self.egraph.rebuild()

    def _label(self, instruction: Instruction) -> tuple[object, ...]:
        apart = instruction.name if instruction.controls or self.inlined.is_apart(instruction) else ""
        return *instruction.meaning, apart

    def _union(self, number: int) -> bool:
        alternative = self.run.graph.alternatives[number]
        if alternative.computation != self.main.name:
            return False
        left, right = self.places[alternative.value], self.places[alternative.replacement]
        return self.egraph.union(left, right, Justification(str(alternative.provenance), f"alternative {number}"))

    def extract(self) -> HloModule | None:
        """The program of the cheapest nodes; None where what has effects would be lost."""
        chosen = self._cheapest()
        instructions: dict[str, Instruction] = {}
        for name in chosen.values():
            instruction = self.instructions[name]
            operands = tuple(chosen[self._class(operand)] for operand in instruction.operands)
            controls = tuple(chosen[self._class(control)] for control in instruction.controls)
            instructions[name] = replace(instruction, operands=operands, controls=controls)
        for parameter in self.main.parameters():
            instructions.setdefault(parameter.name, parameter)
        main = replace(self.main, instructions=instructions, root=chosen[self._class(self.main.root)])
        try:
            slim = prune(main)
        except Cycle:
            return None
        lost = {n for n, i in self.main.instructions.items() if i.has_effect} - slim.instructions.keys()
        program = self.run.graph.program
        everything = {**program.computations, **self.run.graph.computations, main.name: slim}
        return None if lost else self.run.module.replaced(replace(program, computations=everything))

    def _class(self, name: str) -> int:
        return self.egraph.find(self.places[name])

    def _cheapest(self) -> dict[int, str]:
        own = self._own_costs()
        best: dict[int, tuple[float, str]] = {}
        changed = True
        while changed:
            changed = False
            for name in self.order:
                operands = {self._class(operand) for operand in self.instructions[name].operands}
                if any(operand not in best for operand in operands):
                    continue
                total = own[name] + sum(best[operand][0] for operand in operands)
                at = self._class(name)
                if at not in best or total < best[at][0] - _SMALLEST / 10:
                    best[at], changed = (total, name), True
        return {at: name for at, (_, name) in best.items()}

    def _own_costs(self) -> Mapping[str, float]:
        bodies = {**self.run.graph.program.computations, **self.run.graph.computations}
        called = {name: computation_cost(body, {}) for name, body in bodies.items() if name != self.main.name}
        return {
            name: instruction_cost(i, self.instructions, called).seconds + _SMALLEST
            for name, i in self.instructions.items()
        }
