"""Alternatives that are made one by one: their instructions stand in the pool under names of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rewright.env.alternatives import ROOT, Alternative, AlternativeGraph, Provenance, Use
from rewright.frontends.hlo.module import Computation, Instruction, Module


@dataclass
class Pool:
    """Alternatives for the entry of a program, gathered one by one."""

    program: Module
    alternatives: list[Alternative] = field(default_factory=list[Alternative])
    instructions: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    computations: dict[str, Computation] = field(default_factory=dict[str, Computation])

    def uses(self, value: str) -> tuple[Use, ...]:
        """Where the entry reads a value."""
        main = self.program.main
        found = [
            Use(user, index)
            for user in main.users[value]
            for index, operand in enumerate(main.instructions[user].operands)
            if operand == value
        ]
        return tuple([*found, Use(ROOT)] if main.root == value else found)

    def add(self, value: str, replacement: str, provenance: Provenance) -> None:
        """Offer ``value = replacement`` at all uses of the value, where it has any."""
        uses = self.uses(value)
        if value == replacement or not uses:
            return
        needs: dict[str, None] = {}
        stack = [replacement]
        while stack:
            name = stack.pop()
            if name in self.instructions and name not in needs:
                needs[name] = None
                stack.extend(self.instructions[name].operands)
        main = self.program.main.name
        self.alternatives.append(Alternative(main, value, replacement, uses, provenance, tuple(needs)))

    def enter(self, instruction: Instruction) -> str:
        """Put an instruction into the pool, under a name that is free; returns the name."""
        name = instruction.name
        taken = self.program.main.instructions
        while name in taken or name in self.instructions:
            name += ".new"
        self.instructions[name] = replace(instruction, name=name)
        return name

    def call(self, computation: Computation) -> str:
        """Add a computation that the pool calls, under a name that is free; returns the name."""
        name = computation.name
        while name in self.program.computations or name in self.computations:
            name += ".new"
        self.computations[name] = replace(computation, name=name)
        return name

    def include(self, other: Module, names: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
        """Enter the instructions of the entry of another program, whose parameters are values of this one.

        ``names`` says which; returns the names here of what was wanted.
        """
        calls: dict[str, str] = {}
        found = dict(names)
        for name, computation in other.computations.items():
            if name != other.entry:
                calls[name] = self.call(computation)
        for instruction in other.main.instructions.values():
            if instruction.opcode not in ("parameter", "tuple"):
                found[instruction.name] = self.enter(replace(instruction.rename(found, calls), controls=()))
        return {name: found[name] for name in wanted}

    def graph(self) -> AlternativeGraph:
        """What was gathered."""
        pool = {self.program.main.name: self.instructions} if self.instructions else {}
        return AlternativeGraph(self.program, tuple(self.alternatives), pool, self.computations)
