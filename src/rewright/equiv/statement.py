"""What a certificate of two implementations is about: both programs over the same inputs, and nothing rewritten.

The map is put in front of the programs, tables that nothing relates are constants, and inputs and outputs have one
element type. What is compared is made of this, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rewright.equiv.inputs.dtypes import is_alike, of_one_kind
from rewright.equiv.inputs.expressions import names_in
from rewright.equiv.inputs.given import differing
from rewright.equiv.inputs.tables import bind_values
from rewright.equiv.inputs.weights import Shared, Side, WeightMap, inputs_read, rename_output, share_inputs
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ops.base import Array

Values = tuple[Mapping[str, Array], Mapping[str, Array]]


@dataclass(frozen=True)
class Stated:
    """Both programs over the same inputs."""

    left: Graph
    right: RankProgram
    tables: Values
    """The inputs of either side that are constants, with their values."""
    unread: tuple[tuple[Side, str], ...] = ()

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """Both programs, the left one first; of the right one those of all ranks."""
        return (self.left, *self.right.graphs)


def unify_inputs(left: Graph, right: RankProgram, weights: WeightMap, values: Values | None) -> Stated:
    """Both programs over the same inputs.

    Raises RewrightError for outputs of other shapes and for a map that is partial or contradicts itself.
    """
    mine, other, both = _shared_inputs(left, right, weights, values)
    given: Values = values or ({}, {})
    theirs = rename_output(left, right).graphs[0].inputs
    tables = (
        {name: given[0][name] for name in left.inputs if name not in mine.inputs},
        {name: given[1][name] for name in theirs if name not in other.graphs[0].inputs},
    )
    return Stated(both.left, of_one_kind(both.left, both.right), tables, both.unread)


def as_captured(left: Graph, right: RankProgram, weights: WeightMap, values: Values | None) -> Shared:
    """The captured programs over the same inputs, in their own element types; raises as :func:`unify_inputs`."""
    return _shared_inputs(left, right, weights, values)[-1]


def _shared_inputs(
    left: Graph, right: RankProgram, weights: WeightMap, values: Values | None
) -> tuple[Graph, RankProgram, Shared]:
    """Both programs with tables as constants, and both with the map in front."""
    right = rename_output(left, right)
    _check(left, right)
    mine, other = _bound(left, right, weights, values)
    return mine, other, share_inputs(mine, other, weights)


def _bound(left: Graph, right: RankProgram, weights: WeightMap, values: Values | None) -> tuple[Graph, RankProgram]:
    """Both programs with tables that nothing relates as constants; raises RewrightError for a partial map."""
    if values is None:
        return left, right
    related = {name for d in weights.definitions for name in (d.name, *names_in(d.text))}
    parted = differing(left, right.graphs[0], values) - related
    mine = bind_values(left, values[0], related | (set(right.graphs[0].inputs) - parted))
    others = related | (set(left.inputs) - parted)
    for name in sorted(parted):
        if name in mine.inputs:
            raise ContradictoryRelations(
                f"{name!r} was given other values for either side, and nothing relates them; relate it by an equation "
                "under [relations]"
            )
    bounds = tuple(bind_values(graph, values[1], others) for graph in right.graphs)
    tables = [name for name in left.inputs if name not in mine.inputs]
    read = inputs_read(bounds[-1])
    loose = [name for name in bounds[-1].inputs if name in read and name not in left.inputs and name not in related]
    if len(bounds) > 1 and tables and loose:
        raise RewrightError(
            f"the weight map is partial: {', '.join(loose[:3])} of the ranks and {', '.join(tables[:3])} of the left "
            "program are related to nothing; relate them by equations under [relations]"
        )
    return mine, replace(right, graphs=bounds)


def _check(left: Graph, right: RankProgram) -> None:
    """Raise RewrightError for outputs that one program has not, or in another shape or another kind of number."""
    if len(right.graphs) != 1:
        return
    graph = right.graphs[0]
    missing = [name for name in left.outputs if name not in graph.outputs]
    if missing:
        raise RewrightError(
            f"output {missing[0]!r} of the left program is none of the right one, which returns "
            f"{', '.join(list(graph.outputs)[:3])}; return the same outputs in both"
        )
    for name, position in left.outputs.items():
        kinds = left.nodes[position].type, graph.nodes[graph.outputs[name]].type
        if kinds[0].shape != kinds[1].shape:
            raise RewrightError(
                f"output {name!r} is {kinds[0]} in the left program and {kinds[1]} in the right one; "
                "compare programs of one configuration (vocabulary, batch and sequence)"
            )
        if not is_alike(kinds[0].dtype, kinds[1].dtype):
            raise RewrightError(
                f"output {name!r} is {kinds[0]} in the left program and {kinds[1]} in the right one; "
                "compare outputs of one kind of number"
            )
