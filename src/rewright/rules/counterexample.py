"""Where the two sides of a rule differ: at which sizes, for which elements, and how."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from rewright.interp.decimals import Decimals, close
from rewright.ir.errors import NotKnown, RewrightError, TypeMismatch
from rewright.ir.graph import Graph
from rewright.rules.concrete import applies, both_sides, concrete
from rewright.rules.elements import NoDenotation, Place, Program
from rewright.rules.instances import Instance, filled_inputs, lift_inputs, sample_inputs, sample_sizes, satisfies
from rewright.rules.rule import Rule


@dataclass(frozen=True)
class Counterexample:
    """An instance at which the sides differ, with the first difference in words."""

    sizes: Mapping[str, int]
    inputs: Mapping[str, Mapping[Place, Any]]
    difference: str

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in sorted(self.sizes.items()))
        shown = "; ".join(f"{name}={_array(values)}" for name, values in sorted(self.inputs.items()))
        return f"{sizes or 'no sizes'}: {self.difference}" + (f" ({shown})" if shown else "")


@dataclass(frozen=True)
class Comparison:
    """How two sides compare on an instance: the first difference, and whether anything was defined at all."""

    difference: str | None
    compared: int
    values: tuple[Any, ...] = ()
    """The elements of the left side that were compared."""


def compare(rule: Rule, instance: Instance) -> Comparison:
    """Both sides at an instance, element by element, to 35 digits."""
    left, right = both_sides(rule, instance.sizes)
    if isinstance(right, TypeMismatch):
        return Comparison(f"the right side is not valid: {_reason(right)}", 0)
    for name in left.outputs:
        types = [graph.nodes[graph.outputs[name]].type for graph in (left, right)]
        if types[0] != types[1]:
            return Comparison(f"the left side has type {types[0]} and the right side {types[1]}", 0)
    return compare_programs(left, right, instance)


def compare_programs(left: Graph, right: Graph, instance: Instance) -> Comparison:
    """Two programs with outputs of the same types on the same elements."""
    arithmetic = Decimals()
    programs = [Program(graph, lift_inputs(graph, instance.inputs), arithmetic) for graph in (left, right)]
    values: list[Any] = []
    for name, index in programs[0].outputs():
        first, second = (_element(program, name, index) for program in programs)
        if isinstance(first, NotKnown) or isinstance(second, NotKnown):
            continue
        if isinstance(first, RewrightError) and isinstance(second, RewrightError):
            continue
        where = f"element {list(index)}" if len(left.outputs) == 1 else f"element {list(index)} of result {name}"
        for one, other, side in ((first, second, "left"), (second, first, "right")):
            if isinstance(one, RewrightError):
                text = f"{where} is not defined on the {side} ({one}) and {_number(other)} on the other side"
                return Comparison(text, len(values))
        if not close(first, second):
            return Comparison(
                f"{where} is {_number(first)} on the left and {_number(second)} on the right", len(values)
            )
        values.append(first)
    return Comparison(None, len(values), tuple(values))


def _element(program: Program, name: str, index: Place) -> Any:
    """An element, or why it is not defined or not known; raises NoDenotation where nothing is known of the operator."""
    try:
        return program.output(name, index)
    except NoDenotation:
        raise
    except RewrightError as error:
        return error


def find(
    rule: Rule, hint: Mapping[str, int] | None = None, tries: int = 60, seed: int = 0, seconds: float = 5.0
) -> Counterexample | None:
    """The smallest instance found at which the sides differ: a hint first, then small sizes, then larger ones."""
    deadline = time.monotonic() + seconds
    source = random.Random(seed)
    candidates: list[Mapping[str, int]] = []
    if hint is not None and _complete(rule, hint) and applies(rule, hint, form=False):
        candidates.append(hint)
    drawn: list[dict[str, int]] = []
    for number in range(tries):
        if time.monotonic() > deadline:
            break
        sizes = sample_sizes(rule, source, most=2 + number % 4, tries=800, form=False)
        if sizes is None:
            continue
        drawn.append(sizes)
    drawn.sort(key=lambda sizes: (sum(abs(v) for v in sizes.values()), sorted(sizes.items())))
    ordered = [*_distinct(drawn), *candidates]
    attempts = max(8, 4 * tries // max(1, len(ordered)))
    for sizes in ordered:
        for attempt in range(attempts):
            if time.monotonic() > deadline:
                return None
            found = _at(rule, sizes, source, attempt)
            if found is not None:
                return _smallest(rule, found)
    return None


_FILLINGS = (0, -1)


def _complete(rule: Rule, sizes: Mapping[str, int]) -> bool:
    return rule.parameters.keys() <= sizes.keys()


def _distinct(drawn: list[dict[str, int]]) -> list[dict[str, int]]:
    return list({tuple(sorted(sizes.items())): sizes for sizes in drawn}.values())


def _at(rule: Rule, sizes: Mapping[str, int], source: random.Random, attempt: int) -> Counterexample | None:
    """A difference at sizes: for elements that are all zero, all minus one, then random ones."""
    if attempt < len(_FILLINGS):
        inputs = filled_inputs(concrete(rule.left, sizes), _FILLINGS[attempt])
        if not satisfies(rule, sizes, inputs):
            return None
    else:
        inputs = sample_inputs(rule, sizes, source)
    if inputs is None:
        return None
    try:
        found = compare(rule, Instance(sizes, inputs))
    except (TypeMismatch, NoDenotation, RecursionError):
        return None
    return Counterexample(sizes, inputs, found.difference) if found.difference is not None else None


def _smallest(rule: Rule, found: Counterexample) -> Counterexample:
    """The same sizes with elements replaced by zero or one wherever the sides still differ."""
    for label in sorted(found.inputs):
        for place in sorted(found.inputs[label]):
            old = found.inputs[label][place]
            for value in _simpler(old):
                if value == old:
                    break
                changed = {**found.inputs, label: {**found.inputs[label], place: value}}
                if not satisfies(rule, found.sizes, changed):
                    continue
                again = compare(rule, Instance(found.sizes, changed))
                if again.difference is not None:
                    found = Counterexample(found.sizes, changed, again.difference)
                    break
    return found


def _simpler(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (False,)
    return (0, 1) if isinstance(value, int) else (Fraction(0), Fraction(1))


def _number(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, Decimal) else str(value)


def _reason(error: TypeMismatch) -> str:
    return str(error).rpartition(": ")[2] or str(error)


def _array(values: Mapping[Place, Any]) -> str:
    """Elements as nested lists where they are few, else how many there are."""
    if len(values) > 12:
        return f"{len(values)} elements"
    if set(values) == {()}:
        return str(values[()])
    return "[" + ", ".join(str(values[place]) for place in sorted(values)) + "]"
