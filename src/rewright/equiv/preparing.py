"""Both programs over the same inputs and over the reals, from what was captured and from what relates them.

Proof and audit both start here, so that a certificate has to say only what this is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rewright.analysis.ends import Bound
from rewright.analysis.obligations import Obligation, obligations, sentences
from rewright.equiv.cases import cases_alike
from rewright.equiv.casts import without_casts
from rewright.equiv.choices import chosen_alike
from rewright.equiv.codes import codes_alike
from rewright.equiv.computed import with_computed
from rewright.equiv.convolutions import shifted_alike
from rewright.equiv.expressions import names_in
from rewright.equiv.fills import filled_alike
from rewright.equiv.floors import without_floors
from rewright.equiv.guessing import differing
from rewright.equiv.ideal import idealised
from rewright.equiv.kinds import is_alike, of_one_kind
from rewright.equiv.orders import in_order
from rewright.equiv.picked import with_values
from rewright.equiv.placed import placed_alike
from rewright.equiv.ranges import Ranges, told
from rewright.equiv.shares import shares_alike
from rewright.equiv.starts import without_starts
from rewright.equiv.tables import bound
from rewright.equiv.truths import with_masks_chosen
from rewright.equiv.weights import Shared, Side, WeightMap, inputs_read, renamed, shared
from rewright.equiv.wholes import with_wholes
from rewright.ir.digest import digest
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ops.base import Array
from rewright.proof.certificate import Certificate
from rewright.proof.rewriting.taken import MOST
from rewright.proof.wrapping import counted, questioned, wrapping
from rewright.refine.narrow import narrowed
from rewright.refine.unknowns import Question, questions, said

Values = tuple[Mapping[str, Array], Mapping[str, Array]]
_ANY: Ranges = MappingProxyType({})


@dataclass(frozen=True)
class Prepared:
    """What is compared, and what it took for granted."""

    left: Graph
    right: RankProgram
    assumptions: tuple[str, ...]
    tables: Values = field(repr=False)
    """The inputs of either side that became constants, with their values."""
    unread: tuple[tuple[Side, str], ...] = ()
    written: tuple[Graph, ...] = ()
    """Both programs before numbers that masks are filled with became minus infinity, the left one first."""
    ranges: Ranges = field(default_factory=dict[str, Bound])
    """The bounds of inputs that short integers are made of which may not fit otherwise."""
    violated: str = ""
    """A condition of the programs that no input meets, in words."""
    wraps: str = ""
    """Where short integers may not fit, in words, and are not counted from the other end."""


def prepared(
    left: Graph,
    right: RankProgram,
    weights: WeightMap,
    values: Values | None,
    most: float = MOST,
    *,
    held: Ranges = _ANY,
    counts: bool = False,
) -> Prepared:
    """The map in front of the programs, tables that nothing relates as constants, and what rounding made put right.

    ``most`` is how much the rounding of a held table may explain, relative to its largest element. ``held`` are bounds
    of inputs by name. With ``counts`` short integers count from the other end where they do not fit.

    Raises RewrightError for outputs of other shapes and for a map that is partial or contradicts itself.
    """
    right, mine, other, both = _shared(left, right, weights, values)
    both = replace(both, right=of_one_kind(both.left, both.right))
    # Before numbers that are made of numbers are put together, and once more for masks as they are read then.
    first, taken = with_computed([both.left, *both.right.graphs], most)
    first = tuple(with_masks_chosen(graph) for graph in first)
    first = codes_alike(first)
    ranges = {name: held[name] for name in questioned(first) if name in held}
    wraps = "" if counts else wrapping(first, ranges)
    whole, cut_off = with_wholes([counted(graph, ranges) for graph in first] if counts else first)
    ideal = idealised(whole, masks_choose=len(first) > 2)
    given: Values = values or ({}, {})
    tables = (
        {name: given[0][name] for name in left.inputs if name not in mine.inputs},
        {name: given[1][name] for name in right.graphs[0].inputs if name not in other.graphs[0].inputs},
    )
    same, more = with_computed(ideal.graphs, most)
    same = tuple(in_order(without_casts(without_starts(graph))) for graph in shifted_alike(same))
    graphs = placed_alike(cases_alike(shares_alike(chosen_alike(filled_alike(without_floors(same))))))
    graphs = tuple(with_values(graph) for graph in graphs)
    program = replace(both.right, graphs=graphs[1:])
    removed = _removed(first, graphs)
    violated = "".join(sentences([one for one in removed if one.is_violated])[:1])
    conditions = sentences(removed)
    said_before = tuple(dict.fromkeys((*told(ranges), *cut_off, *ideal.assumptions, *taken, *more, *conditions)))
    return Prepared(graphs[0], program, said_before, tables, both.unread, first, ranges, violated, wraps)


def as_captured(left: Graph, right: RankProgram, weights: WeightMap, values: Values | None) -> Shared:
    """The captured programs over the same inputs, and nothing else changed; raises RewrightError as ``prepared``."""
    return _shared(left, right, weights, values)[-1]


def _shared(
    left: Graph, right: RankProgram, weights: WeightMap, values: Values | None
) -> tuple[RankProgram, Graph, RankProgram, Shared]:
    """The right program with the left one's names, both with tables as constants, and both with the map in front."""
    right = renamed(left, right)
    _check(left, right)
    mine, other = _bound(left, right, weights, values)
    return right, mine, other, shared(mine, other, weights)


@dataclass(frozen=True)
class Asked:
    """The programs of a certificate, and all that was taken for granted before its proof began."""

    left: Graph
    right: RankProgram
    taken: tuple[str, ...]


def asked(pair: Prepared, program: RankProgram, core: Certificate) -> Asked | None:
    """The prepared programs, ``program`` being the right one, with unknown tensors matched as a certificate has them.

    None where it is about other programs.
    """
    wanted = core.sequential, core.ranks
    for question in _meant(pair, program):
        left, right = question.sequential, question.program
        if wanted == (digest(left), tuple(digest(graph) for graph in right.graphs)):
            taken = *pair.assumptions, *question.assumptions, *said(left, core.relations)
            return Asked(left, right, taken)
    return None


def _meant(pair: Prepared, program: RankProgram) -> Iterator[Question]:
    """What may have been proved: a question, and the same where numbers are in range."""
    for question in questions(pair.left, program):
        yield question
        narrow = narrowed(question)
        if narrow is not None:
            yield narrow


def _bound(left: Graph, right: RankProgram, weights: WeightMap, values: Values | None) -> tuple[Graph, RankProgram]:
    """Both programs with tables that nothing relates as constants; raises RewrightError for a partial map."""
    if values is None:
        return left, right
    related = {name for d in weights.definitions for name in (d.name, *names_in(d.text))}
    parted = differing(left, right.graphs[0], values) - related
    mine = bound(left, values[0], related | (set(right.graphs[0].inputs) - parted))
    others = related | (set(left.inputs) - parted)
    for name in sorted(parted):
        if name in mine.inputs:
            raise ContradictoryRelations(
                f"{name!r} was given other values for either side, and nothing relates them; relate it by an equation "
                "under [relations]"
            )
    bounds = tuple(bound(graph, values[1], others) for graph in right.graphs)
    tables = [name for name in left.inputs if name not in mine.inputs]
    read = inputs_read(bounds[-1])
    loose = [name for name in bounds[-1].inputs if name in read and name not in left.inputs and name not in related]
    if len(bounds) > 1 and tables and loose:
        raise RewrightError(
            f"the weight map is partial: {', '.join(loose[:3])} of the ranks and {', '.join(tables[:3])} of the left "
            "program are related to nothing; relate them by equations under [relations]"
        )
    return mine, replace(right, graphs=bounds)


def _removed(before: Sequence[Graph], after: Sequence[Graph]) -> list[Obligation]:
    """Conditions of the programs as they were written that are none of what they were rewritten to.

    A form in front of a proof holds where both are defined: what it no longer needs is still needed for it.
    """
    left = {_key(one) for one in obligations(after)}
    return [one for one in obligations(before) if _key(one) not in left]


def _key(one: Obligation) -> tuple[str, str, str]:
    return one.node.op.name, one.condition, str(one.node.span)


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
