"""Running states in C++: the partial result of a tile, and how a state takes it in and follows the others."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.optimize.constants import power_of_two
from rewright.optimize.cpp_scalars import CLAUSE, COMBINE, JOIN, ctype, function, literal, power, wrapped
from rewright.optimize.cpp_values import Values
from rewright.optimize.estimates import Estimate
from rewright.optimize.expressions import Expression, Table, walk
from rewright.optimize.growing import Growth
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.scopes import Scope
from rewright.optimize.values import identity

SHORT = 16
"""Sums of so few elements, as those of a window, are double throughout: there is no vector of them to fill."""


def is_state(e: Expression) -> bool:
    """Whether a value is a reduction, or the placeholder of one: no tensor in memory has it."""
    return e.op == "reduce" or (e.op == "load" and e.tensor < 0)


class States(Values):
    """Prints states, each a number per row, or one per row and feature."""

    def __init__(self, graph: Graph, table: Table) -> None:
        super().__init__(graph, table)
        self.state: dict[int, str] = {}
        """The memory of every state."""
        self.features = 0
        self.states_of: dict[int, str] = {}
        """The states of a row's features, as text, by the number of the reduction."""

    def state_type(self, running: Running) -> str:
        """The type of a state in memory: sums of many tiles are kept in double, one addition a row and tile."""
        kind = ctype(running.value.dtype, self.real)
        assert running.value.bound is not None
        plain = running.value.bound.kind == "sum" and running.factors is None
        return "double" if plain and running.value.dtype.is_float else kind

    def partial(self, row: Scope, loop: Scope, sweep: Sweep, running: Running, body: Expression) -> list[str]:
        """The reduction of a tile; returns the clauses of the vector loop."""
        assert running.value.bound is not None
        number, kind = running.value.number, running.value.bound.kind
        part, flag = f"part{number}", running.value.dtype is DType.BOOL
        first = literal(identity(kind), running.value.dtype, self.real)
        wide = kind == "sum" and self.state_type(running) == "double" and sweep.lane.size <= SHORT
        row.line(f"{'int' if flag else 'double' if wide else ctype(running.value.dtype, self.real)} {part} = {first};")
        text = self.text(body)
        loop.line(COMBINE[kind].format(part=part, value=text))
        clauses = [f"reduction({CLAUSE[kind]}:{part})"]
        if number in sweep.exact:
            row.line(f"int nan{number} = 0;")
            loop.line(f"nan{number} |= {text} != {text};")
            clauses.append(f"reduction(|:nan{number})")
        return clauses

    def renew(self, row: Scope, sweep: Sweep, running: Running) -> None:
        """The new state after a tile."""
        number = running.value.number
        assert running.value.bound is not None
        state, kind = self.state[number], running.value.bound.kind
        factor = self.factor(row, running)
        old = f"{state}[r]" if factor is None else f"{state}[r] * {factor}"
        wide = self.state_type(running)
        if running.update.reset is not None:
            old = self.reset(row, running, old)
        if running.update.growth is not None:
            old = f"({state}[r] + {self.growth(running, running.update.growth)})" + (f" * {factor}" if factor else "")
        real = ctype(running.value.dtype, self.real)
        if number in sweep.exact:
            row.line(f"part{number} = nan{number} ? std::numeric_limits<{real}>::quiet_NaN() : part{number};")
        new = wrapped(JOIN[kind].format(old=old, part=f"part{number}"), running.value.dtype)
        row.line(f"const {real} old{number} = {state}[r];")
        row.line(f"const {wide} next{number} = {new};")
        row.line(f"{state}[r] = next{number};")
        row.line(f"const {real} new{number} = next{number};")
        row.names[number] = self.reading(row, sweep, running, real)
        row.names[self.table.renewed(running.value).number] = f"new{number}"

    def renew_features(self, row: Scope, running: Running) -> None:
        """The states of a row's features before a tile is added to them; those that others grow by come after these."""
        if running.is_shared:
            return
        factor, growth = self.factor(row, running), running.update.growth
        state = self.feature_state(running)
        loop = f"for (long f = 0; f < {self.features}; ++f)"
        if growth is not None:
            known = self.followed(running, "from", "safe") | growth.names()
            rates = {e.number: self.scopes.fresh("rate") for e in growth.coefficients}
            for e in growth.coefficients:
                row.line(f"const {self.real} {rates[e.number]} = {self.closed(e, known)};")
            text = growth.text(lambda e: rates[e.number], lambda e: self.states_of.get(e.number, f"old{e.number}"))
            scaled = f"({state} + {text}) * {factor}" if factor else f"{state} + {text}"
            row.line(f"{loop} {state} = {scaled};")
        elif factor is not None:
            row.line(f"if ({factor} != 1) {loop} {state} *= {factor};")

    def settle_row(self, row: Scope, sweep: Sweep) -> None:
        """The states of a row at the end of a sweep, moved from the last estimates of means to the means."""
        size, names = sweep.lane.size, dict[int, str]()
        for estimate, left in sweep.remainders:
            number, total = estimate.leaf.number, self.state[estimate.sum.number]
            gap = self.table.plain("subtract", (estimate.renewed, estimate.leaf))
            names[gap.number] = f"rest{number}"
            row.line(f"const double rest{number} = {self.state[left.value.number]}[r] / {size};")
            guess = f"({self.real}){total}[r] * (({self.real}){estimate.count!r} / {size})"
            row.line(f"const double mean{number} = {guess} + rest{number};")
        for running in sweep.settled:
            assert running.update.growth is not None
            text = running.update.growth.text(lambda e: self.closed(e, names), self.any_state, str(size))
            loop = f"for (long f = 0; f < {self.features}; ++f) " if running.factors is not None else ""
            row.line(f"{loop}{self.any_state(running.value)} += {text};")
        for estimate, _ in sweep.remainders:
            row.line(f"{self.state[estimate.sum.number]}[r] = {size} * mean{estimate.leaf.number};")

    def any_state(self, e: Expression) -> str:
        """The state of a reduction, of a row or of a feature of it."""
        return self.states_of.get(e.number, f"{self.state[e.number]}[r]")

    def feature_state(self, running: Running) -> str:
        """The state of a feature of a row."""
        name = self.state[running.value.number]
        return f"{name}[f]" if running.is_shared else f"{name}[r * {self.features} + f]"

    def reading(self, row: Scope, sweep: Sweep, running: Running, real: str) -> str:
        """What the other states of the pass read of a state."""
        number, bound = running.value.number, running.value.bound
        assert bound is not None
        if bound.kind in ("maximum", "minimum") and running.value.dtype.is_float:
            first = literal(identity(bound.kind), running.value.dtype, self.real)
            row.line(
                f"const {real} safe{number} = new{number} == {first} ? ({real})0 : new{number};"
                "  // nothing yet: any number will do"
            )
            if number in sweep.grown:
                row.line(f"const {real} from{number} = old{number} == {first} ? ({real})0 : old{number};")
            return f"safe{number}"
        return f"new{number}"

    def estimate(self, row: Scope, sweep: Sweep, estimate: Estimate) -> None:
        """What is taken for a value that is known at the end only, from before and after the tile."""
        number, total = estimate.leaf.number, estimate.sum.number
        real = ctype(estimate.leaf.dtype, self.real)
        if estimate.weight is None:
            count = f"({real}){estimate.count!r}"
            row.line(f"const {real} guess{number} = new{total} * ({count} / (begin + cols));")
            row.line(f"const {real} was{number} = begin ? old{total} * ({count} / begin) : ({real})0;")
        else:
            for name, state in (("guess", "new"), ("was", "old")):
                top, bottom = f"{state}{total}", f"{state}{estimate.weight.number}"
                row.line(f"const {real} {name}{number} = {bottom} == 0 ? ({real})0 : {top} / {bottom};")
        row.names[number] = f"guess{number}"

    def reset(self, row: Scope, running: Running, old: str) -> str:
        """The state, or what it starts again from where the extremum that it follows has moved."""
        assert running.update.reset is not None
        (e,), number = running.update.depends, running.value.number
        row.line(
            f"const bool kept{number} = begin == 0 || new{e.number} == old{e.number} || old{e.number} != old{e.number};"
        )
        return f"(kept{number} ? {old} : {self.text(running.update.reset.value)})"

    def growth(self, running: Running, growth: Growth) -> str:
        """What a state grows by, for all that was seen."""
        known = self.followed(running, "from", "safe") | growth.names()
        return growth.text(lambda coefficient: self.closed(coefficient, known))

    def factor(self, row: Scope, running: Running) -> str | None:
        """What the state is multiplied with when the states that it follows have changed."""
        update = running.update
        if update.factor is None:
            return None
        name = self.scopes.fresh("factor")
        tests = " || ".join(self.is_empty(f"old{e.number}", e) for e in update.extrema)
        text = self.closed(update.factor, self.followed(running, "old", "safe"))
        row.line(f"const {self.real} {name} = {tests} ? ({self.real})0 : {text};")
        return name

    def is_empty(self, state: str, extremum: Expression) -> str:
        """Whether an extremum has seen nothing but its own neutral element."""
        assert extremum.bound is not None
        return f"{state} == {literal(identity(extremum.bound.kind), extremum.dtype, self.real)}"

    @staticmethod
    def followed(running: Running, before: str, after: str) -> dict[int, str]:
        """The names of the values that a state follows, from before and after the tile."""
        pairs = zip(running.update.depends, running.update.renewed, strict=True)
        named = [((e.number, f"{before}{e.number}"), (r.number, f"{after}{e.number}")) for e, r in pairs]
        return dict(one for both in named for one in both)

    def closed(self, e: Expression, names: Mapping[int, str]) -> str:
        """An expression over named values as one text; what it does not name is printed where it belongs."""
        if e.number in names:
            return names[e.number]
        if not any(x.number in names for x in walk(e)):
            return self.text(e)
        if (exponent := power_of_two(e)) is not None:
            return power(exponent, lambda x: self.closed(x, names), self.real)
        return function(e, [self.closed(a, names) for a in e.arguments], self.real)
