"""Kernels that take sizes, compiled and tested before they run: at small sizes, and beyond a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols, with_sizes
from rewright.optimize.planning.outline import Outline
from rewright.optimize.running.checked import Checked
from rewright.optimize.running.checking import check
from rewright.optimize.scalars.expressions import number_of
from rewright.optimize.sizes.runner import FlexibleRunner
from rewright.optimize.sizes.variants import Compiled, Unit, Variants

SMALL, SOME, LARGE = (1, 1, 1), (2, 3, 5), (71, 1031)
"""Sizes that kernels are tested at: one element, less than a tile, and for one symbol at a time more than one tile."""
MOST = 1 << 18
"""Elements of the largest tensor at such sizes; the first ones are tested however large the rest is, up to"""
MOST_OF_ALL = 1 << 26
"""elements of all tensors: half a gigabyte in float64."""


def compiled_runner(plan: Outline, units: Sequence[Unit], tests: Tests | None, known: int = 0) -> FlexibleRunner:
    """What runs printed kernels; so many units are known to be right. Raises RewrightError where the first is wrong."""

    def check(kernels: Compiled) -> None:
        if tests is not None:
            tests.run(FlexibleRunner(plan, lambda sizes: kernels.runner(plan, sizes)))

    variants = Variants(plan, units, check, known)
    return FlexibleRunner(plan, variants, variants)


class Tests:
    """A program at small sizes, against which kernels are tested before they run; at those of an example for want.

    Raises RewrightError where it is too large to be computed in float64.
    """

    def __init__(self, captured: Graph, hints: Mapping[str, int]) -> None:
        symbols = size_symbols(captured)
        self.done = Checked(False, 0.0, "not run on numbers")
        self.graphs: list[tuple[str, Graph]] = []
        some = dict(zip(symbols, SOME, strict=False))
        tuples = [dict(zip(symbols, SMALL, strict=False)), some]
        for sizes in [*tuples, *({**some, name: size} for size in LARGE for name in symbols)]:
            try:
                self._add(sizes, with_sizes(captured, sizes))
            except TypeMismatch:  # a program need not be for all sizes
                continue
        if not self.graphs:
            self._add(hints, with_sizes(captured, hints))

    def _add(self, sizes: Mapping[str, int], graph: Graph) -> None:
        """Test at these sizes, where the program is small there or is tested at no others."""
        counts = [number_of(node.type.size()) for node in graph.nodes]
        if self.graphs and max(counts) > MOST:
            return
        if sum(counts) > MOST_OF_ALL:
            raise RewrightError(f"it has {sum(counts):,} elements, too many to test kernels that take its sizes")
        self.graphs.append((", ".join(f"{name} = {n}" for name, n in sizes.items()), graph))

    def run(self, runner: FlexibleRunner) -> None:
        """Run kernels on numbers; raises RewrightError where they are wrong."""
        worst = 0.0
        for sizes, graph in self.graphs:
            found = check(graph, runner)
            if not found.passed:
                raise RewrightError(f"kernels failed where {sizes}: {found.reason}")
            worst = max(worst, found.error)
            self.done = Checked(True, worst, f"{found.reason}, where {'; '.join(said for said, _ in self.graphs)}")


__all__ = ["Tests", "compiled_runner"]
