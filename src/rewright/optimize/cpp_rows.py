"""Rows of a block in C++: what is known of a row, and whether it is a number, so that a mask makes a tile simpler."""

from __future__ import annotations

from collections.abc import Iterable

from rewright.ir.graph import Graph
from rewright.optimize.constants import closed_value
from rewright.optimize.cpp_scalars import ctype
from rewright.optimize.cpp_states import States
from rewright.optimize.expressions import Expression, Table, contains
from rewright.optimize.finite import needs
from rewright.optimize.kernel import Kernel, Running, Sweep
from rewright.optimize.phases import Test
from rewright.optimize.scopes import Scope

LANES = "for (long c = 0; c < cols; ++c)"


class Rows(States):
    """Prints what is finished in a row, for one kernel."""

    def __init__(self, graph: Graph, table: Table, kernel: Kernel) -> None:
        super().__init__(graph, table)
        self.kernel = kernel
        self.row_name = kernel.rows.name if kernel.rows else "row0"
        self.done: list[Running] = []
        """The reductions of the sweeps before."""

    def simpler(self, tile: Scope, sweep: Sweep, test: Test, taken: Iterable[Expression]) -> str:
        """Whether conditions have these values in the whole tile, and what is taken to be finite then is so.

        Nothing where that is not known before the tile is computed.
        """
        known = " && ".join(f"known{n} == {int(v)}" for n, v in test)
        values = needs(self.graph, self.table, self.kernel, sweep, taken)
        if not values:
            return known if values is not None else ""
        name = self.scopes.fresh("simpler")
        tile.line(f"int {name} = {known};  // a row without elements is no number, masked or not")
        tile.line(f"if ({name}) {{")
        for e in values:
            self.check(tile, sweep, e, name)
        tile.line("}")
        return name

    def check(self, tile: Scope, sweep: Sweep, e: Expression, name: str) -> None:
        """Unset a flag where a value of a row, or of an element of the lane, is not finite."""
        inner = self.scopes.push(self.row_name, sweep.lane.name)
        inner.indent = tile.indent + 1
        loops: list[str] = []
        if self.row_name in e.free or any(contains(e, r.value) for r in self.done):
            loops.append("for (long r = 0; r < rows; ++r)")
            self.enter_row(inner)
        if sweep.lane.name in e.free:
            loops.append(LANES)
            inner.line(f"const long {sweep.lane.name} = begin + c;")
        inner.line(f"{name} &= std::abs({self.text(e)}) <= std::numeric_limits<{self.real}>::max();")
        self.scopes.pop()
        if loops == [LANES]:
            tile.line(f"#pragma omp simd reduction(&:{name})")
        tile.line(f"{' '.join(loops)} {{")
        tile.lines += inner.lines
        tile.line("}")

    def enter_row(self, row: Scope) -> None:
        """The row index, and reductions that are finished."""
        row.line(f"const long {self.row_name} = first + r;")
        for running in self.done:
            if running.factors is None:
                self.bind_state(row, running, f"{self.state[running.value.number]}[r]")

    def bind_state(self, scope: Scope, running: Running, text: str) -> None:
        """Give the value of a finished reduction a name."""
        nothing = f"std::numeric_limits<{self.real}>::quiet_NaN()"
        for weight in running.update.weights:
            text = f"({self.state[weight.number]}[r] == 0 ? {nothing} : {text})"
        for e in running.update.undefined:
            text = f"({self.is_empty(self.state[e.number] + '[r]', e)} ? {nothing} : {text})"
        finish = running.update.finish
        if finish is not None:
            inverse = self.wide_inverse(finish)
            text = f"({text} * {self.text(finish)})" if inverse is None else f"({self.real})({text} * {inverse})"
        name = self.scopes.fresh("v")
        scope.line(f"const {ctype(running.value.dtype, self.real)} {name} = {text};")
        scope.names[running.value.number] = name

    def wide_inverse(self, finish: Expression) -> str | None:
        """One over a sum of the row in double, as its state is; None for another value."""
        if finish.op != "divide" or closed_value(finish.arguments[0]) != 1:
            return None
        total = next((r for r in self.done if r.value is finish.arguments[1]), None)
        if total is None or self.state_type(total) != "double" or total.update.finish is not None:
            return None
        row = next(s for s in reversed(self.scopes.stack) if total.value.number in s.names)
        name = self.scopes.fresh("inverse")
        row.line(f"const double {name} = 1.0 / {self.state[total.value.number]}[r];")
        return name
