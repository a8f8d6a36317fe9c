"""An alternative as a claim of its own: ``value = replacement`` for all tensors in the place of what both read.

Both are written out as terms. One term is a proof: the same operators on the same values. Else what both sides share is
cut, so that what is proved holds wherever the rewrite is made, and the rest is lowered to the IR, where the engine
proves it. The shared part grows into the claim, operand by operand, until a proof is found or a bound is reached.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewright.env.alternatives import AlternativeGraph
from rewright.env.exactness import holds_in_floats, why_not_exact
from rewright.env.hlo.editing import parameter
from rewright.env.inlining import Inlined
from rewright.env.loops import check_notes
from rewright.env.machine import as_on_machines
from rewright.env.module import assemble_module
from rewright.env.words import words
from rewright.frontends.hlo.module import LITERAL, SHAPE, Computation, Instruction, Module
from rewright.frontends.hlo.shapes import DTYPES, array, dtype_of, read_literal, read_shape
from rewright.frontends.hlo.wire import BYTES, Field, blob
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ops import REGISTRY
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

MOVEMENT = words("parameter reshape broadcast slice transpose concatenate reverse")
_KEPT = {name.replace("_", "-") for name in REGISTRY} | words(
    "parameter broadcast tuple get-tuple-element bitcast copy map while conditional"
)
"""Operators that the IR has too, or that round nothing; all others it may write with several."""
_DEPTHS = (0, 1, 2, 3, 5)
_MOST_TERMS = 120
_MOST_PARTS = 256
_SPREAD = words("broadcast reshape transpose convert negate")
_FLOATS = words("bf16 f16 f32 f64")
_PRECISION = 51
_PROMISES = (67, 69)
"""Fields of HloInstructionProto: that indices are sorted, that none is twice."""
_COMPARISON, _TOTAL = 72, b"TOTALORDER"
"""How numbers are compared: in a total order zeros of two signs differ, and what is no number has a place."""


@dataclass(frozen=True)
class Proof:
    """Whether a claim was proved, at which grade, and why not; ``pairs`` are the programs that were compared.

    Grades: ``same`` is one term, ``move`` moves data only, and both hold in floats too, bit for bit; ``real`` is over
    the reals: casts of floats keep values, and nothing is not a number. Integers wrap around in all of them.
    ``depths`` say for each pair how much of what both sides share was read.
    """

    proved: bool
    grade: str
    why: str
    pairs: tuple[tuple[Graph, Graph], ...] = ()
    depths: tuple[int, ...] = ()


def prove_alternative(graph: AlternativeGraph, number: int, seconds: float = 1.0) -> Proof:
    """Prove an alternative, and say at which grade.

    Constants are part of the claim; every other value that is cut is any tensor of its type.
    """
    try:
        return prove_terms(Neighbourhood.of(graph, number), seconds)
    except RewrightError as error:
        return Proof(False, "", str(error))


def is_same(graph: AlternativeGraph, number: int) -> bool:
    """Whether a value and its replacement are one term."""
    try:
        return not Neighbourhood.of(graph, number).pairs
    except RewrightError:
        return False


def prove_terms(claim: Neighbourhood, seconds: float, depths: Sequence[int] | None = None) -> Proof:
    """Prove that two values are equal; with ``depths`` there is no search: each pair is read as far as they say.

    Raises RewrightError where the two are tuples of different lengths.
    """
    deadline = time.process_time() + seconds
    if depths is not None and len(depths) != len(claim.pairs):
        return Proof(False, "", f"{len(depths)} depths are given for {len(claim.pairs)} pairs of values")
    grade, pairs, used = "same", list[tuple[Graph, Graph]](), list[int]()
    for place, (left, right) in enumerate(claim.pairs):
        tried = _DEPTHS if depths is None else depths[place : place + 1]
        own = _prove_pair(claim, left, right, deadline - time.process_time(), seconds, tried)
        if not own.proved:
            return own
        pairs += own.pairs
        used += own.depths
        grade = "real" if "real" in (grade, own.grade) else own.grade
    return Proof(True, grade, "", tuple(pairs), tuple(used))


def _prove_pair(
    claim: Neighbourhood, left: int, right: int, seconds: float, budget: float, depths: Sequence[int]
) -> Proof:
    deadline = time.process_time() + seconds
    why = "its neighbourhood is too large"
    for depth in depths:
        try:
            sides = claim.programs(left, right, depth)
        except RewrightError as error:
            return Proof(False, "", str(error) if depth == 0 else why)
        remaining = deadline - time.process_time()
        if remaining <= 0:
            return Proof(False, "", f"the budget of {budget:g} s is used up")
        outcome = prove(Claim(*sides), remaining, "real")
        why = (
            outcome.reason if outcome.status != "proved" else claim.says_otherwise(left, right) or why_not_exact(sides)
        )
        if outcome.status == "proved" and not why:
            moves = (
                claim.rounds_alike(left, right)
                and not claim.adds_zero(left, right, depth)
                and holds_in_floats(sides)
                and prove(Claim(*sides), min(0.2, budget), "move").status == "proved"
            )
            return Proof(True, "move" if moves else "real", "", (sides,), (depth,))
    return Proof(False, "", why)


@dataclass(frozen=True)
class Neighbourhood:
    """Two values of a program as terms."""

    program: Module
    computations: Mapping[str, Computation]
    inlined: Inlined
    left: int
    right: int

    @classmethod
    def of(cls, graph: AlternativeGraph, number: int) -> Neighbourhood:
        """A value and its replacement; raises RewrightError where they are too large or read in a circle."""
        computations = {**graph.program.computations, **graph.computations}
        return cls(graph.program, computations, *graph.sides(number))

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The arrays of both sides that are not one term."""
        if self.left == self.right:
            return []
        left, right = list(self.inlined.leaves(self.left)), list(self.inlined.leaves(self.right))
        if len(left) != len(right):
            raise RewrightError("both sides are tuples of different lengths; the pass that makes them is wrong")
        found = list(dict.fromkeys(pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]))
        if len(found) > _MOST_PARTS:
            raise RewrightError(f"it is a tuple of which {len(found)} parts differ, and at most {_MOST_PARTS} are read")
        return found

    @cached_property
    def _shared(self) -> set[int]:
        """What both sides read as a whole, parts of tuples that are compared one by one together."""
        return self.inlined.needs(self.left) & self.inlined.needs(self.right)

    def programs(self, left: int, right: int, depth: int) -> tuple[Graph, Graph]:
        """Two terms as programs over what is ``depth`` operands below what they share.

        Raises RewrightError where an operator has no lowering, or the neighbourhood is too large.
        """
        inside = self._inside(left, right, depth)
        if len(inside) > _MOST_TERMS:
            raise RewrightError(f"its neighbourhood has {len(inside)} terms, and at most {_MOST_TERMS} are read")
        check_notes(self.inlined, inside)
        self._check_orders(inside)
        self._check_bodies(inside)
        cut = _retype(self._cut(inside, (left, right)))
        sides = [assemble_module(self.computations, cut, _name(root), "claim") for root in (left, right)]
        return as_on_machines(sides[0].graph(), sides[1].graph())

    def says_otherwise(self, left: int, right: int) -> str:
        """Why two values promise different things of what they read; empty where they promise the same.

        What is promised and does not hold lets the compiler do anything, and the IR has no word for a promise.
        """
        promised = [set(self._settings(side, _PROMISES)) for side in (left, right)]
        if promised[0] != promised[1]:
            return "one side promises that indices are sorted, or that none is twice"
        total = [any(entry[2] == _TOTAL for _, entry in self._settings(s, (_COMPARISON,))) for s in (left, right)]
        return "" if total[0] == total[1] else "one side tells zeros of two signs apart, and the other does not"

    def _check_orders(self, inside: set[int]) -> None:
        """Raise RewrightError for a comparison in a total order, for which the IR has no word; a sort by one has."""
        for number in inside:
            term = self.inlined.terms[number]
            if term.opcode == "compare" and any(e[0] == _COMPARISON and e[2] == _TOTAL for e in term.fields):
                raise RewrightError("it compares in a total order, where zeros of two signs differ")

    def _check_bodies(self, inside: set[int]) -> None:
        """Raise RewrightError where a computation that is called has what no proof knows, which is cut elsewhere."""
        for body in {self.inlined.body(name) for number in inside for name in self.inlined.terms[number].called}:
            everything = sorted(self._all(body))
            opaque = next((n for n in everything if self.inlined.is_opaque(n) or self._rounds_constant(n)), None)
            if opaque is not None:
                opcode = self.inlined.terms[opaque].opcode
                raise RewrightError(f"a computation that it calls has {opcode}, of which a proof knows nothing")

    def rounds_alike(self, left: int, right: int) -> bool:
        """Whether two values are computed at one precision, not rounded by name, and by what the IR has a name for.

        An operator of one side only that the IR writes with others may be another function on a machine.
        """
        found = [set(self._settings(side, (_PRECISION,))) for side in (left, right)]
        opcodes = [{self.inlined.terms[number].opcode for number in self._all(side)} for side in (left, right)]
        written = opcodes[0].symmetric_difference(opcodes[1]) - _KEPT
        return found[0] == found[1] and not written and "reduce-precision" not in opcodes[0] | opcodes[1]

    def adds_zero(self, left: int, right: int, depth: int) -> bool:
        """Whether a constant float that may be zero is added on the way: a zero of the other sign is then another."""
        inside = self._inside(left, right, depth)
        bodies = [self.inlined.body(name) for number in inside for name in self.inlined.terms[number].called]
        for number in inside.union(*map(self._all, bodies)):
            term = self.inlined.terms[number]
            is_float = read_shape(term.shape).element.startswith(("f", "bf"))
            if term.opcode == "add" and is_float and any(map(self._is_constant, term.operands)):
                return True
        return False

    def _settings(self, number: int, fields: Sequence[int]) -> Iterator[tuple[str, Field]]:
        """Some fields of all operators that a value needs, inside of what they call too."""
        for own in self._all(number):
            term = self.inlined.terms[own]
            for entry in term.fields:
                if entry[0] in fields and entry[2] not in (0, b""):
                    yield term.opcode, entry

    def _all(self, number: int) -> set[int]:
        found, stack = set[int](), [number]
        while stack:
            at = stack.pop()
            if at not in found:
                found.add(at)
                term = self.inlined.terms[at]
                stack.extend(term.operands)
                stack.extend(self.inlined.body(name) for name in term.called)
        return found

    def _inside(self, left: int, right: int, depth: int) -> set[int]:
        """The terms that are computed: those of one side only, constants, and ``depth`` operands of shared ones."""
        shared = self._shared
        inside: dict[int, int] = {}
        stack = [(left, depth), (right, depth)]
        while stack and len(inside) <= _MOST_TERMS:
            at, budget = stack.pop()
            term = self.inlined.terms[at]
            own = at not in shared or self._is_constant(at) or term.opcode == "tuple"
            if self._is_free(at) or not (own or budget > 0) or inside.get(at, -1) >= budget:
                continue
            inside[at] = budget
            # A part of what gives a tuple stands for all of it.
            less = budget if own else budget - 1
            less = max(less, 1) if term.opcode == "get-tuple-element" else less
            stack.extend((operand, less) for operand in term.operands)
        return set(inside)

    def _is_free(self, number: int) -> bool:
        """Whether a value is a parameter, or what a proof knows as little of, or a part of one."""
        term = self.inlined.terms[number]
        while term.opcode == "get-tuple-element":
            number = term.operands[0]
            term = self.inlined.terms[number]
        return term.opcode == "parameter" or self.inlined.is_opaque(number) or self._rounds_constant(number)

    def _rounds_constant(self, number: int) -> bool:
        """Whether a value is a constant in a float dtype that does not hold it: the IR would keep all its digits."""
        term = self.inlined.terms[number]
        target = read_shape(term.shape)
        if term.opcode != "convert" or target.element not in _FLOATS:
            return False
        for _ in range(4):
            term = self.inlined.terms[term.operands[0]]
            if term.opcode not in _SPREAD:
                break
        if term.opcode != "constant":
            return False
        values = read_literal(blob(term.fields, LITERAL), read_shape(term.shape))
        if values is None:
            return True
        with np.errstate(all="ignore"):
            exact = np.array(values, dtype=object)
            rounded = np.array(values, dtype=np.float64).astype(dtype_of(target)).astype(np.float64)
        return any(own != found for own, found in zip(exact.tolist(), rounded.tolist(), strict=True))

    def _is_constant(self, number: int) -> bool:
        """Whether a value is a constant, an iota, or data movement of one."""
        for _ in range(4):
            term = self.inlined.terms[number]
            if term.opcode in ("constant", "iota"):
                return True
            if term.opcode not in _SPREAD:
                return False
            number = term.operands[0]
        return False

    def _cut(self, inside: set[int], roots: Sequence[int]) -> dict[str, Instruction]:
        """The terms inside as instructions, and parameters for what they read from outside."""
        found: dict[str, Instruction] = {}
        places = iter(range(10**9))
        for number in [*sorted(inside), *roots]:
            if number in inside:
                term = self.inlined.terms[number]
                operands = tuple(map(_name, term.operands))
                fields: tuple[Field, ...] = ((SHAPE, BYTES, term.shape), *term.fields)
                found[_name(number)] = Instruction(_name(number), term.opcode, operands, fields, term.called)
                for operand in term.operands:
                    self._enter(operand, inside, found, places)
            else:
                self._enter(number, inside, found, places)
        return found

    def _enter(self, number: int, inside: set[int], found: dict[str, Instruction], places: Iterator[int]) -> None:
        """A parameter for a term from outside; parameters for the parts of a tuple."""
        if number in inside or _name(number) in found:
            return
        shape = self.inlined.terms[number].shape
        kind = read_shape(shape).element
        if kind in ("token", "opaque"):
            raise RewrightError("it reads a token, which orders what has effects; choose another alternative")
        if kind != "tuple":
            found[_name(number)] = parameter(_name(number), next(places), shape)
            return
        parts = [self.inlined.part(number, k) for k in range(len(read_shape(shape).parts))]
        for part in parts:
            self._enter(part, inside, found, places)
        found[_name(number)] = Instruction(_name(number), "tuple", tuple(map(_name, parts)), ((SHAPE, BYTES, shape),))


def _name(number: int) -> str:
    return f"v{number}"


def _retype(cut: dict[str, Instruction]) -> dict[str, Instruction]:
    """Data movement holds for elements of any type: those that the IR does not have become float32."""
    if any(i.opcode not in MOVEMENT for i in cut.values()):
        return cut
    shapes = {name: i.shape for name, i in cut.items()}
    elements = {shape.element for shape in shapes.values()}
    if len(elements) > 1 or elements <= DTYPES.keys():
        return cut
    return {name: i.with_field(SHAPE, BYTES, array("f32", shapes[name].sizes)) for name, i in cut.items()}
