"""Rules of the library as laws of scalars with loops.

Both sides of a rule are read through the denotations of their operators, as programs are (``reading``). Broadcasts and
layouts vanish there, and what is left are two expressions over the elements of the rule's inputs: a law that holds
whatever loops are around it, so that a rule of matrices is used in programs of any rank. A load of an input stands for
any expression that depends on no more of the reductions in the pattern than the load does. An input without axes
stands for a number that depends on nothing, and conditions on it are decided by its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.optimize.planning.reading import Reader
from rewright.optimize.scalars.constants import closed_value
from rewright.optimize.scalars.expressions import Bound, Expression, Table
from rewright.rules.concrete import concrete
from rewright.rules.library import EVIDENCE, Registry, scales
from rewright.rules.record import load
from rewright.rules.rule import Rule
from rewright.terms.index import variable

Holds = Callable[[str, Expression], bool]
"""Whether a value is known to satisfy ``differs from 0`` or ``above 0``, named as the comparison."""
_SIZES = (3, 5, 7, 11)
_SWAPPED = ("add", "multiply")


@dataclass(frozen=True)
class Side:
    """One side of a rule as an expression; a load of tensor n is one of the input ``labels[n]``."""

    value: Expression
    labels: Mapping[int, str]


@dataclass(frozen=True)
class Law:
    """A proved rule as two expressions, and what has to be known of the values that its inputs stand for."""

    rule: Rule
    left: Side
    right: Side
    scalars: frozenset[str]
    conditions: tuple[tuple[str, str], ...]
    """Comparisons with zero, each with the label of an input."""

    def instances(self, table: Table, e: Expression, holds: Holds) -> Iterator[Expression]:
        """What the law makes of an expression, once for every way in which it applies to it as a whole."""
        for found in _matches(self, self.left.value, e, _Match()):
            if all(self._known(found, kind, label, holds) for kind, label in self.conditions):
                yield _Writer(table, self, found, e.dtype).value(self.right.value)

    def _known(self, found: _Match, kind: str, label: str, holds: Holds) -> bool:
        value = closed_value(found.values[label])
        if value is None:
            return holds(kind, found.values[label])
        return value > 0 if kind == "compare_GT" else value != 0


@dataclass(frozen=True)
class _Match:
    """Values of inputs, reductions of the pattern by their index, and sizes by those of the pattern."""

    values: dict[str, Expression] = field(default_factory=dict[str, Expression])
    loops: dict[str, str] = field(default_factory=dict[str, str])
    sizes: dict[int, int] = field(default_factory=dict[int, int])


def _matches(law: Law, pattern: Expression, e: Expression, known: _Match) -> Iterator[_Match]:
    if pattern.op == "load":
        label = law.left.labels[pattern.tensor]
        if known.values.get(label, e) is not e or not _fits(law, pattern, label, e, known):
            return
        yield _Match({**known.values, label: e}, known.loops, known.sizes)
    elif _is_number(law, pattern) and closed_value(e) is not None:
        yield from _matches(law, pattern.arguments[0], e, known)
    elif pattern.bound is not None:
        if e.bound is None or e.bound.kind != pattern.bound.kind:
            return
        if known.sizes.get(pattern.bound.count, e.bound.count) != e.bound.count:
            return
        loops = {**known.loops, pattern.bound.index: e.bound.index}
        sizes = {**known.sizes, pattern.bound.count: e.bound.count}
        yield from _matches(law, pattern.arguments[0], e.arguments[0], _Match(known.values, loops, sizes))
    elif not pattern.arguments:
        if pattern.op == e.op and pattern.value == e.value and pattern.dtype.is_float == e.dtype.is_float:
            yield known
    elif _same_function(pattern, e):
        orders = [e.arguments, e.arguments[::-1]] if e.op in _SWAPPED else [e.arguments]
        for arguments in orders:
            states = [known]
            for inner, argument in zip(pattern.arguments, arguments, strict=True):
                states = [found for state in states for found in _matches(law, inner, argument, state)]
            yield from states


def _fits(law: Law, pattern: Expression, label: str, e: Expression, known: _Match) -> bool:
    """Whether an input may stand for an expression."""
    if e.dtype.is_float != pattern.dtype.is_float:
        return False
    if label in law.scalars:
        return closed_value(e) is not None
    return not any(mine not in pattern.free and theirs in e.free for mine, theirs in known.loops.items())


def _is_number(law: Law, pattern: Expression) -> bool:
    """Whether a pattern is a converted number: numbers are the same in every float type."""
    if not pattern.op.startswith("convert_") or pattern.arguments[0].op != "load":
        return False
    return law.left.labels[pattern.arguments[0].tensor] in law.scalars


def _same_function(pattern: Expression, e: Expression) -> bool:
    if pattern.op.startswith("convert_"):
        return e.op.startswith("convert_") and e.dtype.is_float and e.arguments[0].dtype.is_float
    return pattern.op == e.op and pattern.dtype.is_float == e.dtype.is_float


@dataclass
class _Writer:
    """The right side of a law with values filled in."""

    table: Table
    law: Law
    found: _Match
    dtype: DType
    done: dict[int, Expression] = field(default_factory=dict[int, Expression])

    def value(self, pattern: Expression) -> Expression:
        """The expression that a part of the right side is."""
        if pattern.number not in self.done:
            self.done[pattern.number] = self._value(pattern)
        return self.done[pattern.number]

    def _value(self, pattern: Expression) -> Expression:
        if pattern.op == "load":
            return self.found.values[self.law.right.labels[pattern.tensor]]
        arguments = tuple(self.value(a) for a in pattern.arguments)
        if pattern.bound is not None:
            index, size = self.found.loops[pattern.bound.index], self.found.sizes[pattern.bound.count]
            return self.table.reduce(Bound(pattern.bound.kind, index, size), arguments[0])
        if pattern.op.startswith("convert_"):
            return self.table.apply(f"convert_{self.dtype.value}", arguments[0])
        if not arguments:
            return self.table.constant(pattern.value, self.dtype)
        return self.table.apply(pattern.op, *arguments)


def law(rule: Rule) -> Law:
    """A rule as a law; raises NotScalar where an operator of it has no scalar denotation."""
    sizes = dict(zip(rule.parameters, _SIZES, strict=False))
    table = Table()
    left, right = (_side(table, concrete(graph, sizes)) for graph in (rule.left, rule.right))
    scalars = {name for name, position in rule.left.inputs.items() if not rule.left.nodes[position].type.rank}
    conditions: list[tuple[str, str]] = []
    if rule.facts is not None:
        facts = concrete(rule.facts, sizes)
        for name in facts.outputs:
            found = _side(table, facts, name)
            value, zero = found.value.arguments
            assert value.op == "load" and zero.op == "constant" and zero.value == 0, rule.name
            conditions.append((found.value.op, found.labels[value.tensor]))
    return Law(rule, left, right, frozenset(scalars), tuple(conditions))


def _side(table: Table, graph: Graph, output: str = "0") -> Side:
    position = graph.outputs[output]
    places = tuple(variable(f"i{axis}") for axis in range(graph.nodes[position].type.rank))
    labels = {place: name for name, place in graph.inputs.items()}
    return Side(Reader(graph, table, set(labels)).value(position, places), labels)


@lru_cache(maxsize=1)
def laws() -> Mapping[str, Law]:
    """The laws of the table of scales by name; raises RewrightError where one has no evidence."""
    registry = Registry(load(EVIDENCE))
    for rule in scales.RULES:
        registry.register(rule)
    return {rule.name: law(rule) for rule in registry.rules}
