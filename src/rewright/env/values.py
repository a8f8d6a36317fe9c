"""Numbers of values: equal for values that are computed alike, or that were found equal before.

Most alternatives of a round were alternatives of the round before. A value is numbered by its operator and the numbers
of its operands, and values that a test found equal to the bit have one number from then on, so that what follows from
earlier tests is not run again. What agrees but for rounding keeps its own: what reads it may tell it apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from rewright.env.alternatives import AlternativeGraph
from rewright.frontends.hlo.module import Computation, Instruction, Module, called_first, toposort
from rewright.frontends.hlo.wire import write_fields
from rewright.ir.errors import RewrightError
from rewright.ir.union_find import UnionFind

_MOST_KNOWN = 200_000


@dataclass(frozen=True)
class Test:
    """What running an alternative has shown; ``agrees`` is None where it could not be run."""

    agrees: bool | None
    what: str
    is_exact: bool = False
    """Whether all values that were computed were equal to the bit."""


@dataclass
class KnownValues:
    """Tests by the numbers of the two values."""

    classes: UnionFind[bytes] = field(default_factory=UnionFind[bytes])
    tests: dict[tuple[bytes, bytes], Test] = field(default_factory=dict[tuple[bytes, bytes], Test])

    def find(self, number: bytes) -> bytes:
        """The number that stands for all that are equal."""
        return self.classes.find(number)

    def lookup(self, left: bytes, right: bytes) -> Test | None:
        """The test of two values, where there was one; values of one number agree."""
        left, right = self.find(left), self.find(right)
        if left == right:
            return Test(True, "follows from earlier steps")
        return self.tests.get((left, right))

    def record(self, left: bytes, right: bytes, test: Test) -> None:
        """Keep a test."""
        if len(self.tests) > _MOST_KNOWN:
            self.tests.clear()
            self.classes = UnionFind()
        left, right = self.find(left), self.find(right)
        if test.agrees is not None:
            self.tests[left, right] = test
        if test.agrees and test.is_exact:
            self.classes.union(left, right)


def value_numbers(graph: AlternativeGraph, known: KnownValues) -> Mapping[str, bytes]:
    """A number for each value of the entry and of its pool; raises RewrightError for a pool that reads in a circle."""
    program = graph.program
    bodies = _bodies({**program.computations, **graph.computations})
    main = program.main
    instructions: dict[str, Instruction] = {**main.instructions, **graph.pool.get(main.name, {})}
    found: dict[str, bytes] = {}
    for name in toposort(instructions, list(instructions)):
        found[name] = known.find(_number(instructions[name], found, bodies, main.signature))
    return found


def _number(
    instruction: Instruction, operands: Mapping[str, bytes], bodies: Mapping[str, bytes], around: bytes
) -> bytes:
    digest = hashlib.blake2b(instruction.opcode.encode(), digest_size=16)
    if instruction.opcode == "parameter":
        digest.update(b"%d" % instruction.parameter + around)
        return digest.digest()
    digest.update(write_fields(instruction.own_fields))
    for called in instruction.called:
        digest.update(bodies[called])
    for operand in instruction.operands:
        digest.update(operands[operand])
    return digest.digest()


def body_digests(program: Module) -> Mapping[str, bytes]:
    """A digest of every computation, whatever it and its instructions are called.

    It counts how often a value is computed: what a pass makes one of two equal instructions is another computation.
    """
    found: dict[str, bytes] = {}
    for name, numbers in _numbered(program.computations).items():
        own = program.computations[name]
        settings = write_fields(entry for entry in own.fields if entry[0] != 4)
        effects = sorted(i.opcode.encode() for i in own.instructions.values() if i.has_effect)
        parts = (numbers[own.root], own.signature, settings, b"".join(effects), b"".join(sorted(numbers.values())))
        found[name] = hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()
    return found


def _bodies(everything: Mapping[str, Computation]) -> dict[str, bytes]:
    """A digest of the value of every computation, whatever its instructions are called."""
    return {name: numbers[everything[name].root] for name, numbers in _numbered(everything).items()}


def _numbered(everything: Mapping[str, Computation]) -> dict[str, dict[str, bytes]]:
    """By computation the numbers of its instructions: equal numbers are equal values."""
    found: dict[str, dict[str, bytes]] = {}
    bodies: dict[str, bytes] = {}
    for start in everything:
        for name in called_first(everything, start):
            if name not in found:
                body, numbers = everything[name], found.setdefault(name, {})
                for own in toposort(body.instructions, [body.root]):
                    numbers[own] = _number(body.instructions[own], numbers, bodies, b"")
                bodies[name] = numbers[body.root]
    if not found:
        raise RewrightError("the program has no computations; write the module again")
    return found
