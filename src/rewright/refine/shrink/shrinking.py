"""Both programs of a pair at small sizes, or the reason why no consistent small sizes were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewright.analysis.meetings import Schedule
from rewright.ir.dims import product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Placement, RankProgram
from rewright.refine.shrink.collecting import collect
from rewright.refine.shrink.rewriting import Failure, Rewriter, small_placement
from rewright.refine.shrink.solving import Solution
from rewright.refine.shrink.space import AxisSpace
from rewright.refine.shrink.units import Scale

MOST_ATTEMPTS = 30


@dataclass(frozen=True)
class Shrunk:
    """A pair of programs with the nodes of the original pair, at small sizes."""

    sequential: Graph
    program: RankProgram
    scales: dict[str, tuple[Scale, ...]]
    """For every sequential output, how positions along its axes became smaller."""


def elements(graphs: tuple[Graph, ...]) -> int:
    """Elements of all tensors of some graphs; sizes must be numbers."""
    return sum(int(str(product(node.type.shape))) for graph in graphs for node in graph.nodes)


def shrink(sequential: Graph, program: RankProgram, schedule: Schedule) -> Shrunk | Unsupported:
    """The same programs at small sizes, node for node.

    Every relation between axes that the operators, the collectives and the placements state holds again, and
    every node is checked by its operator. Sizes that cannot be scaled stay. Raises RewrightError for symbolic sizes.
    """
    graphs = (sequential, *program.graphs)
    for graph in graphs:
        if not all(node.type.is_static() for node in graph.nodes):
            raise RewrightError(f"graph {graph.name} has symbolic sizes; give every size symbol a number first")
    space = collect(sequential, program, schedule)
    solution = Solution(space)
    for _ in range(MOST_ATTEMPTS):
        small, failures = _rewrite(graphs, space, solution)
        if not failures:
            placed = _place(sequential, program, small[1:], space, solution)
            return Shrunk(small[0], placed, _output_scales(sequential, space, solution))
        solution.weaken([axis for failure in failures for axis in failure.axes])
        solution.solve()
    return Unsupported("no consistent small sizes were found for these programs")


def _rewrite(
    graphs: tuple[Graph, ...], space: AxisSpace, solution: Solution
) -> tuple[tuple[Graph, ...], list[Failure]]:
    small: list[Graph] = []
    failures: list[Failure] = []
    for graph, offsets, attributes in zip(graphs, space.offsets, space.attributes, strict=True):
        rewritten, failed = Rewriter(graph, offsets, attributes, solution).rewrite()
        small.append(rewritten)
        failures.extend(failed)
    return tuple(small), failures


def _output_scales(sequential: Graph, space: AxisSpace, solution: Solution) -> dict[str, tuple[Scale, ...]]:
    return {name: _scales(sequential, p, space, solution) for name, p in sequential.outputs.items()}


def _scales(sequential: Graph, position: int, space: AxisSpace, solution: Solution) -> tuple[Scale, ...]:
    first = space.offsets[0][position]
    return tuple(solution.scale(first + axis) for axis in range(sequential.nodes[position].type.rank))


def _place(
    sequential: Graph, program: RankProgram, graphs: tuple[Graph, ...], space: AxisSpace, solution: Solution
) -> RankProgram:
    def small(table: Mapping[str, Placement], where: Mapping[str, int]) -> dict[str, Placement]:
        return {
            name: small_placement(placement, _scales(sequential, where[name], space, solution))
            for name, placement in table.items()
            if name in where
        }

    inputs, outputs = small(program.inputs, sequential.inputs), small(program.outputs, sequential.outputs)
    return replace(program, graphs=graphs, inputs=inputs, outputs=outputs)
