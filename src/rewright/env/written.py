"""Alternatives as a person reads them: both sides as expressions over what they share, and what a choice changes.

The replacement is written out down to the values that the program has; the value that it replaces is written out as far
as it leads to the same values, so that ``divide(x, 3) = multiply(x, 0.333333)`` is all that is to be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from rewright.env.alternatives import Alternative, AlternativeGraph
from rewright.env.cost import cost_of
from rewright.env.episode import Episode
from rewright.env.words import words
from rewright.frontends.hlo.module import Instruction
from rewright.frontends.hlo.order import Cycle

_SIZED = words("reshape broadcast transpose slice dynamic-slice pad reduce concatenate bitcast gather copy reverse")
"""Operators whose result sizes say what they do."""
_DEEPEST, _MOST, _WIDEST = 4, 14, 6
"""How deep an expression goes, how many operators it has, and how many operands each: the rest are names, or dots."""


@dataclass(frozen=True)
class Written:
    """One alternative of a graph, in words; ``chosen`` are those that were chosen before it."""

    graph: AlternativeGraph
    number: int
    chosen: tuple[int, ...] = ()

    @property
    def alternative(self) -> Alternative:
        """The alternative itself."""
        return self.graph.alternatives[self.number]

    @cached_property
    def sides(self) -> tuple[str, str]:
        """The value as it is, and its replacement."""
        own = self.alternative
        program = self.graph.program.computations[own.computation].instructions
        new = self.graph.pool.get(own.computation, {})
        right = _Expression(new, program, frozenset(program))
        text = right.text(own.replacement)
        leads = _leading(program, own.value, right.shared)
        left = _Expression({name: program[name] for name in leads}, program, right.shared)
        value = left.text(own.value, whole=True)
        # Names distinguish two equal numbers.
        return (f"{own.value} ({value})", own.replacement) if value == text else (value, text)

    @property
    def operators(self) -> tuple[Counter[str], Counter[str]]:
        """How often each operator goes, and how often each is new, were nothing else chosen."""
        gone, new = self.graph.opcodes_gone(self.number), self.graph.opcodes_new(self.number)
        return gone - new, new - gone

    @property
    def change(self) -> float | None:
        """By what share the estimated cost of the program changes; None where it cannot be chosen with the others."""
        if self.number in self.chosen:
            return None
        try:
            before = cost_of(self.graph.apply(self.chosen)).seconds
            after = cost_of(self.graph.apply([*self.chosen, self.number])).seconds
        except Cycle:
            return None
        return (after - before) / max(before, 1e-12)

    def __str__(self) -> str:
        return self.text()

    def text(self, cost: bool = True) -> str:
        """The equation, who proposes it, and how the cost changes, which takes as long as choosing it."""
        left, right = self.sides
        uses = len(self.alternative.uses)
        told = [self.alternative.provenance.name, *([f"{uses} uses"] if uses != 1 else [])]
        change = self.change if cost else None
        if change is not None:
            told.append(f"cost {100 * change:+.1f}%")
        return f"{left} = {right}  [{', '.join(told)}]"


def listing(episode: Episode, numbers: Iterable[int], cost: bool = True) -> list[str]:
    """Some of the alternatives that an episode has now, one a line: ``x`` is chosen, ``-`` cannot be chosen now."""
    mask, chosen = episode.mask(), episode.chosen
    lines: list[str] = []
    for number in numbers:
        mark = "x" if number in chosen else " " if mask[number] else "-"
        own = Written(episode.run.graph, number, chosen if mask[number] or number in chosen else ())
        lines.append(f"{mark} {number:3} {own.text(cost)}")
    return lines


class _Expression:
    """Values as expressions: those of ``opened`` are written out, all others are names, numbers aside."""

    def __init__(
        self, opened: Mapping[str, Instruction], around: Mapping[str, Instruction], names: Collection[str]
    ) -> None:
        self._opened, self._around, self._names = opened, around, names
        self._left = _MOST
        self._shared: set[str] = set()

    @property
    def shared(self) -> frozenset[str]:
        """The values that stand as names in what was written."""
        return frozenset(self._shared)

    def text(self, name: str, depth: int = 0, whole: bool = False) -> str:
        """The expression of a value, a name below a depth; ``whole``: written out although its name is a leaf."""
        found = self._opened.get(name) or self._around[name]
        number = _number(found, {**self._around, **self._opened})
        if number is not None:
            return number
        if not whole and (name in self._names or name not in self._opened):
            self._shared.add(name)
            return name
        if depth >= _DEEPEST or self._left <= 0 or not found.operands:
            self._shared.add(name)
            return name if name in self._around else found.opcode
        self._left -= 1
        read = [self.text(o, depth + 1) for o in found.operands[:_WIDEST]]
        return f"{_operator(found)}({', '.join([*read, *(['...'] if len(found.operands) > _WIDEST else [])])})"


def _leading(program: Mapping[str, Instruction], value: str, goals: Collection[str]) -> set[str]:
    """The value, and what below it, no deeper than is written out, leads to one of the goals."""
    layers = [{value}]
    for _ in range(_DEEPEST):
        layers.append({o for name in layers[-1] for o in program[name].operands if o not in goals})
    found, below = {value}, frozenset(goals)
    for layer in reversed(layers):
        leading = {name for name in layer if not below.isdisjoint(program[name].operands)}
        found |= leading
        below = below | leading
    return found


def _operator(instruction: Instruction) -> str:
    shape = instruction.shape
    if instruction.opcode == "compare":
        return f"compare.{instruction.word('direction')}"
    if instruction.opcode == "convert":
        return f"convert[{shape.element}]"
    if instruction.opcode in _SIZED:
        return f"{instruction.opcode}[{','.join(map(str, shape.sizes))}]"
    return instruction.opcode


def _number(instruction: Instruction, around: Mapping[str, Instruction]) -> str | None:
    """The number that all elements of a constant are, broadcast or not; None where it is no such."""
    if instruction.opcode == "broadcast":
        return _number(around[instruction.operands[0]], around)
    if instruction.opcode != "constant":
        return None
    values = instruction.literal
    if not values or any(value != values[0] for value in values):
        return None
    if instruction.shape.element == "pred":
        return str(bool(values[0])).lower()
    return f"{values[0]:g}" if isinstance(values[0], float) else str(values[0])
