"""Testing alternatives: every value and its replacement are computed on the same inputs and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from rewright.env.alternatives import AlternativeGraph
from rewright.env.claims import is_same
from rewright.env.hlo.editing import make_tuple, remove_dead_code, with_entry
from rewright.env.hlo.reentry import enterable
from rewright.env.hlo.widen import widen_module
from rewright.env.inputs import DRAWS, Array, Draw, draw_inputs, nearby, seeds_of
from rewright.env.module import HloModule
from rewright.env.numeric import Agreement, compare, says_something, worst
from rewright.env.session import Session
from rewright.env.values import Test, value_numbers
from rewright.env.words import words
from rewright.env.xla.worker import XlaError
from rewright.frontends.hlo.module import Instruction, Module
from rewright.frontends.hlo.proto import write
from rewright.frontends.hlo.shapes import dtype_of
from rewright.ir.errors import RewrightError

_RANDOM = words("rng rng-bit-generator rng-get-and-update-state")
"""Operators whose result differs from run to run."""
_DEVICE = words("partition-id replica-id")
"""Operators whose result depends on the device: a run is one on the first."""
_NOTHING = "no value is a finite number on the inputs that were drawn"
_MOST_ALONE = 4
"""Alternatives that are run one by one where all of them together cannot be run."""
_MOST_MOVED = 3
"""How often inputs are moved by a rounding where values do not agree at once."""


def why_not_run(module: HloModule) -> str:
    """Why values of a module say nothing; empty where they do."""
    return _why_not(
        i for computation in module.program.computations.values() for i in computation.instructions.values()
    )


def _why_not(instructions: Iterable[Instruction]) -> str:
    for i in instructions:
        if i.opcode in _RANDOM:
            return f"{i.name} is random"
        if i.opcode in _DEVICE:
            return f"{i.name} is the number of a device, and one device runs it"
    return ""


def run_alternatives(session: Session, module: HloModule, graph: AlternativeGraph, seed: int = 0) -> list[Test]:
    """A test of each alternative of a module: those of the entry in one run, those of other computations applied.

    What is one term with its replacement needs no run.
    """
    found: list[Test | None] = [Test(True, "one term") if is_same(graph, n) else None for n in range(len(graph))]
    added = [*graph.pool.values(), *(computation.instructions for computation in graph.computations.values())]
    reason = why_not_run(module) or _why_not(i for own in added for i in own.values())
    if reason or None not in found:
        return [own or Test(None, reason) for own in found]
    numbers = value_numbers(graph, session.values)
    here = [
        n
        for n, a in enumerate(graph.alternatives)
        if found[n] is None and a.computation == module.program.entry and _is_exposable(graph, n)
    ]
    for number in here:
        alternative = graph.alternatives[number]
        found[number] = session.values.lookup(numbers[alternative.value], numbers[alternative.replacement])
    open_ones = [number for number in here if found[number] is None]
    if open_ones:
        try:
            for number, own in zip(open_ones, _exposed_tests(session, graph, open_ones, seed), strict=True):
                alternative = graph.alternatives[number]
                session.values.record(numbers[alternative.value], numbers[alternative.replacement], own)
                found[number] = own
        except XlaError as error:
            for number in open_ones:
                found[number] = Test(None, str(error))
    rest = [number for number, own in enumerate(found) if own is None or own.agrees is None]
    module = module if graph.program is module.program else module.replaced(graph.program)
    for number, own in zip(rest, _applied_tests(session, module, graph, rest, seed), strict=True):
        found[number] = own
    return [own or Test(None, "not run") for own in found]


def _is_exposable(graph: AlternativeGraph, number: int) -> bool:
    """Whether value and replacement are arrays of one dtype and shape, so that they can be outputs."""
    a = graph.alternatives[number]
    own = graph.program.computations[a.computation].instructions
    pool = graph.pool.get(a.computation, {})
    shapes = [(own[n] if n in own else pool[n]).shape for n in (a.value, a.replacement)]
    plain = all(shape.element not in ("tuple", "token", "opaque") for shape in shapes)
    return plain and (shapes[0].element, shapes[0].sizes) == (shapes[1].element, shapes[1].sizes)


def exposed(graph: AlternativeGraph, numbers: Sequence[int]) -> Module:
    """The entry with the values and the replacements of some of its alternatives as outputs, in turn."""
    program = graph.program
    main = program.main
    instructions: dict[str, Instruction] = {**main.instructions, **graph.pool.get(main.name, {})}
    names = [
        n for number in numbers for n in (graph.alternatives[number].value, graph.alternatives[number].replacement)
    ]
    root = "exposed.values"
    instructions[root] = make_tuple(root, [instructions[name] for name in names])
    whole = replace(main, instructions=instructions, root=root)
    everything = {**program.computations, **graph.computations}
    return enterable(remove_dead_code(with_entry(replace(program, computations=everything, fields=()), whole)))


def _exposed_tests(session: Session, graph: AlternativeGraph, numbers: Sequence[int], seed: int) -> list[Test]:
    program = exposed(graph, numbers)
    probe = HloModule(write(program))
    wide = HloModule(write(widen_module(program)))
    found: list[Test] = [Test(None, "not run")] * len(numbers)
    worst_seen: list[Agreement] = [Agreement(True, 0.0, 0.0)] * len(numbers)
    telling, exact = [False] * len(numbers), [True] * len(numbers)
    for draw, turn in product(DRAWS, seeds_of(probe, seed)):
        inputs = draw_inputs(probe, turn, draw)
        values = session.execute(probe, inputs, "quick")
        truth = _Reference(session, probe, wide, inputs, values)
        telling = [own or says_something(values[2 * place : 2 * place + 1]) for place, own in enumerate(telling)]
        for place in range(len(numbers)):
            left, right = 2 * place, 2 * place + 1
            own = compare(values[left], values[right], truth.of(left), truth.spread(left), truth.output(right))
            exact[place] = exact[place] and values[left].tobytes() == values[right].tobytes()
            if worst_seen[place].equal and (not own.equal or own.difference >= worst_seen[place].difference):
                worst_seen[place] = own
                found[place] = Test(own.equal, f"{draw} inputs: {own}")
    found = [replace(own, is_exact=is_exact) for own, is_exact in zip(found, exact, strict=True)]
    return [own if tells or not own.agrees else Test(None, _NOTHING) for own, tells in zip(found, telling, strict=True)]


class _Reference:
    """The outputs of a module in float64 on the inputs that it got, and how far they move where the inputs do.

    Where the module does not run in float64 nothing is known of the outputs, and they move as it moves them itself.
    """

    def __init__(
        self, session: Session, module: HloModule, wide: HloModule | None, inputs: Sequence[Array], own: Sequence[Array]
    ) -> None:
        self._session, self._inputs, self._own = session, inputs, own
        self._module, self._wide = module, wide

    @cached_property
    def outputs(self) -> list[Array] | None:
        """All outputs in float64, which are computed when they are asked for."""
        if self._wide is None:
            return None
        same = [x.astype(dtype) for x, dtype in zip(self._inputs, self._dtypes(self._wide), strict=True)]
        try:
            return self._session.execute(self._wide, same, "quick")
        except XlaError:
            return None

    def _dtypes(self, module: HloModule) -> list[np.dtype[Any]]:
        return [dtype_of(shape) for shape in module.parameter_shapes()]

    def of(self, place: int) -> Array | None:
        """One output."""
        return None if self.outputs is None else self.outputs[place]

    def output(self, place: int) -> Callable[[], Array | None]:
        """One output, when it is asked for."""
        return lambda: self.of(place)

    def spread(self, place: int) -> Callable[[], Array | None]:
        """How far the elements of an output move, when that is asked for."""
        return lambda: self._spreads[place] if self._spreads is not None else None

    @cached_property
    def _spreads(self) -> list[Array] | None:
        module = self._module if self.outputs is None or self._wide is None else self._wide
        still = self._own if self.outputs is None else self.outputs
        found = [np.zeros(own.shape) for own in still]
        for seed in range(_MOST_MOVED):
            try:
                moved = self._session.execute(module, nearby(self._inputs, self._dtypes(module), seed), "quick")
            except XlaError:
                return None
            for place, (own, other) in enumerate(zip(still, moved, strict=True)):
                if own.dtype.kind not in "biu":
                    found[place] = np.maximum(found[place], _apart(own, other))
        return found


def _apart(left: Array, right: Array) -> Array:
    """How far apart elements are; infinitely far where one is a number, and no distance where none is."""
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        left, right = left.astype(wide), right.astype(wide)
        numbers = np.isfinite(left), np.isfinite(right)
        distance = np.where(numbers[0] & numbers[1], np.abs(left - right), np.inf)
    return np.where(~numbers[0] & ~numbers[1], 0.0, distance)


def _applied_tests(
    session: Session, module: HloModule, graph: AlternativeGraph, numbers: Sequence[int], seed: int
) -> list[Test]:
    """Tests by the outputs of the module: all at once, and one by one where they do not agree."""
    if not numbers:
        return []
    together = _applied_test(session, module, graph, numbers, seed)
    if together.agrees or len(numbers) == 1 or (together.agrees is None and len(numbers) > _MOST_ALONE):
        return [together] * len(numbers)
    return [_applied_test(session, module, graph, [number], seed) for number in numbers]


def _applied_test(
    session: Session, module: HloModule, graph: AlternativeGraph, numbers: Sequence[int], seed: int
) -> Test:
    try:
        after = module.replaced(graph.apply(numbers))
        return compare_modules(session, module, after, seed)
    except RewrightError as error:
        return Test(None, str(error))


def compare_modules(
    session: Session, before: HloModule, after: HloModule, seed: int = 0, draws: Sequence[Draw] = DRAWS
) -> Test:
    """Whether two modules give equal outputs on random inputs, where running them says anything.

    Raises XlaError where one does not run.
    """
    reason = why_not_run(before) or why_not_run(after)
    if reason:
        return Test(None, reason)
    wide, wider = (None if own.late else HloModule(write(widen_module(own.program))) for own in (before, after))
    found = Agreement(True, 0.0, 0.0)
    text, telling = "", False
    for draw, turn in product(draws, seeds_of(before, seed)):
        inputs = draw_inputs(before, turn, draw)
        values, others = session.execute(before, inputs, "quick"), session.execute(after, inputs, "quick")
        telling = telling or says_something(values)
        truth = _Reference(session, before, wide, inputs, values)
        rewritten = _Reference(session, after, wider, inputs, others)
        asked = [(truth.spread(place), rewritten.output(place)) for place in range(len(values))]
        own = worst(values, others, truth.outputs, *([own[k] for own in asked] for k in (0, 1)))
        if not own.equal or own.difference >= found.difference:
            found, text = own, f"{draw} inputs: outputs {own}"
        if not own.equal:
            return Test(False, text)
    return Test(True, text) if telling else Test(None, _NOTHING)
