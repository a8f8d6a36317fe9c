"""What a claim assumes: conditions on sizes, solved where they are equations, and facts about elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewright.ir.dims import Dim, Rounded, SizeExpr
from rewright.ir.graph import Graph
from rewright.terms.claim import Claim, all_sizes
from rewright.terms.conditions import AtMost, IsFloor, Same, Simple
from rewright.terms.normal.arithmetic.division import floor_quotient
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.denoting.denote import Denoter
from rewright.terms.normal.facts.context import Context, Signed
from rewright.terms.normal.facts.guards import Choice, Guard, Value, at_least, is_zero, with_value
from rewright.terms.normal.polynomials.atoms import ONE, ZERO, Element, Polynomial, Symbol, polynomial, symbol
from rewright.terms.parameters import Sort, parameters, sort_of


class Restricted(Exception):
    """A side whose symbolic form holds for fewer sizes than the side itself."""


def _nothing(_: object) -> tuple[()]:
    return ()


class Assumptions:
    """One case of the conditions of a claim as facts of a context; sizes in the symbols of the proof."""

    def __init__(self, claim: Claim, case: tuple[Simple, ...], context: Context) -> None:
        self.claim = claim
        self.case = case
        self.context = context
        self.solved: dict[str, Polynomial] = {}
        self.sorts = parameters(all_sizes(claim))
        self._sizes: dict[Dim, Polynomial] = {}

    # --- sizes

    def size(self, expression: Dim) -> Polynomial:
        """A size in the symbols of the proof, those that equations determine replaced."""
        found = self._sizes.get(expression)
        if found is None:
            found = self._sizes[expression] = substitute(self.context, self._translate(expression), self.solved)
        return found

    def _translate(self, expression: Dim) -> Polynomial:
        if not isinstance(expression, SizeExpr):
            return polynomial(expression)
        total = ZERO
        for names, coefficient in expression.terms:
            product = polynomial(coefficient)
            for name in names:
                product = product * self._symbol(name)
            total = total + product
        return total

    def _symbol(self, name: str) -> Polynomial:
        parameter, sort = sort_of(name)
        if isinstance(name, Rounded):
            top, bottom = self._translate(name.numerator), self._translate(name.denominator)
            return ONE - floor_quotient(self.context, -top, bottom)
        if sort == "constant":
            return polynomial(int(parameter))
        if sort == "natural":
            return symbol(parameter) + 1
        if sort == "integer":
            return symbol(parameter) + 1 if name.endswith("__high") else ONE
        return symbol(parameter)

    def solve(self) -> None:
        """Equations as substitutions: of a symbol with coefficient one, attributes before sizes."""
        waiting = [(p, None) for c in self.case if isinstance(c, Same) for p in [self._difference(c.left, c.right)]]
        floors = [c for c in self.case if isinstance(c, IsFloor)]
        waiting += [(self._translate(c.result), c) for c in floors]
        self.residue: list[Polynomial] = []
        for value, floor in waiting:
            if floor is not None:
                top = substitute(self.context, self._translate(floor.numerator), self.solved)
                bottom = substitute(self.context, self._translate(floor.denominator), self.solved)
                value = value - floor_quotient(self.context, top, bottom)
            equation = substitute(self.context, value, self.solved)
            found = self._pivot(equation)
            if found is None:
                self.residue.append(equation)
                continue
            name, solution = found
            one = {name: solution}
            self.solved = {k: substitute(self.context, v, one) for k, v in self.solved.items()}
            self.solved[name] = solution

    def _difference(self, left: Dim, right: Dim) -> Polynomial:
        return self._translate(left) - self._translate(right)

    def _pivot(self, equation: Polynomial) -> tuple[str, Polynomial] | None:
        order = {"integer": 0, "natural": 1, "size": 2}
        names = (n for n in equation.free if n in self.sorts)
        for name in sorted(names, key=lambda n: (order[self.sorts[n]], n)):
            split = equation.linear(name)
            if split is not None and split[0] in (1, -1):
                return name, split[1] * -split[0]
        return None

    def assume(self) -> None:
        for name, sort in self.sorts.items():
            low: dict[Sort, int] = {"size": 1, "natural": 0}
            if name not in self.solved:
                if sort in low:
                    self.context.size(name, low[sort])
            elif sort in low:
                self.context.add(at_least(self.solved[name], low[sort]))
        for equation in self.residue:
            self.context.add(is_zero(substitute(self.context, equation, self.solved)))
        for condition in self.case:
            if isinstance(condition, AtMost):
                self.context.add(at_least(self.size(condition.high), self.size(condition.low)))
            elif isinstance(condition, IsFloor):
                self.context.add(at_least(self.size(condition.denominator), 1))

    def assume_facts(self) -> list[tuple[Signed, ...]]:
        """Facts about all elements of inputs, to be instantiated where an element occurs.

        Returns the ways in which facts about scalars hold, of which one does.
        """
        facts = self.claim.facts
        if facts is None:
            return [()]
        self.assume_valid(facts)
        alternatives: list[tuple[Signed, ...]] = [()]
        for position in facts.outputs.values():
            names = [self.context.fresh("u") for _ in facts.nodes[position].type.shape]
            denoter = Denoter(self.context, facts, self.size)
            ways = list(_ways_to_hold(denoter.value(position, tuple(symbol(name) for name in names))))
            if not names:
                alternatives = [(*before, *way) for before in alternatives for way in ways]
            elif len(ways) == 1:
                for guard, polarity in ways[0]:
                    for element in (a for a in guard.value.atoms() if isinstance(a, Element)):
                        self._instantiate(element, names, guard, polarity)
        return alternatives

    def fact_may_hold(self) -> Iterator[bool]:
        """For each fact about elements, whether one element may satisfy it with all other facts about what it reads.

        A fact about a tensor that may be empty may hold.
        """
        facts = self.claim.facts
        assert facts is not None, "only asked where there are facts"
        for position in facts.outputs.values():
            sizes = [self.size(size) for size in facts.nodes[position].type.shape]
            names = [self.context.fresh("u") for _ in sizes]
            if not all(self.context.holds(at_least(size, 1)) for size in sizes):
                continue
            with self.context.ranges([(name, ZERO, size) for name, size in zip(names, sizes, strict=True)]):
                value = Denoter(self.context, facts, self.size).value(position, tuple(symbol(name) for name in names))
                yield any(self._is_possible(way) for way in _ways_to_hold(value))

    def _is_possible(self, way: tuple[Signed, ...]) -> bool:
        with self.context.scope():
            for guard, polarity in way:
                self.context.add(guard, polarity)
            return not self.context.contradictory()

    def demands(self, graph: Graph, form: bool = True) -> Iterator[tuple[str, Guard | bool]]:
        """What the operators of a graph need to be valid; without ``form``: to be valid at numbers."""
        for node in graph.nodes:
            demands = getattr(node.op, "demands", None)
            if demands is not None:
                for demand in demands([graph.nodes[p].type for p in node.operands]):
                    if form or not demand.form:
                        yield f"{demand.what} ({node.op.name})", at_least(self.size(demand.high), self.size(demand.low))
            for size in node.type.shape:
                yield f"sizes of at least 0 ({node.op.name})", at_least(self.size(size), 0)

    def assume_valid(self, graph: Graph) -> None:
        """Assume that a graph is valid; raises Restricted where its symbolic form needs more than that."""
        for node in graph.nodes:
            for demand in getattr(node.op, "demands", _nothing)([graph.nodes[p].type for p in node.operands]):
                guard = at_least(self.size(demand.high), self.size(demand.low))
                if demand.form and not self.context.holds(guard):
                    raise Restricted(f"{node.op.name} needs {demand.what}")
                self.context.add(guard)
            for size in node.type.shape:
                self.context.add(at_least(self.size(size), 0))

    def names(self) -> list[str]:
        """The parameters that no equation determines."""
        return [name for name in self.sorts if name not in self.solved]

    def _instantiate(self, pattern: Element, names: Sequence[str], guard: Guard, polarity: bool) -> None:
        """A fact that is used wherever the tensor is read: the pattern's index must be the fact's own variables."""
        own = [i.atom() for i in pattern.index]
        bound = [a.name for a in own if isinstance(a, Symbol)]
        if len(bound) != len(own) or set(bound) != set(names) or len(set(bound)) != len(bound):
            return

        def make(element: Element) -> Iterator[tuple[Guard | bool, bool]]:
            values = dict(zip(bound, element.index, strict=True))
            value = substitute(self.context, guard.value, values)
            yield with_value(guard, value), polarity

        self.context.universal.setdefault(pattern.tensor, []).append(make)


def _ways_to_hold(value: Value) -> Iterator[tuple[Signed, ...]]:
    """The paths on which a truth value is true."""
    if isinstance(value, Choice):
        for polarity, arm in ((True, value.yes), (False, value.no)):
            for way in _ways_to_hold(arm):
                yield (value.guard, polarity), *way
    elif value != ZERO:
        yield ()
