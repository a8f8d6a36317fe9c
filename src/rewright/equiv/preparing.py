"""Both programs over the reals, from what was captured and from what relates them: what a proof begins with.

A rewrite here is trusted by nobody. Each is a step of a draft, which a certificate shows to change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rewright.analysis.ends import Bound
from rewright.analysis.obligations import sentences
from rewright.equiv.inputs.weights import Side, WeightMap
from rewright.equiv.rewrites.computed_tables import with_computed
from rewright.equiv.rewrites.forms import REAL, WHOLE, before_counting, rewrite
from rewright.equiv.rewrites.ideal import idealise
from rewright.equiv.rewrites.ranges import Ranges, describe
from rewright.equiv.statement import Stated, Values, unify_inputs
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.rewriting.numbers.closed import taken_sentences
from rewright.proof.rewriting.numbers.taken import MOST
from rewright.proof.rewriting.replay import lost_needs
from rewright.proof.wrapping import wrapping, wrapping_inputs
from rewright.refine.rewriting.drafts import Draft, graphs_of
from rewright.refine.rewriting.steps import LemmaSearch

_ANY: Ranges = MappingProxyType({})


@dataclass(frozen=True)
class Prepared:
    """What is compared, and what it took for granted."""

    left: Graph
    right: RankProgram
    assumptions: tuple[str, ...]
    stated: Stated = field(repr=False)
    """What the programs were made of."""
    drafts: tuple[Draft, ...] = field(repr=False)
    """Both programs with how they were made, the left one first."""
    written: tuple[Graph, ...] = ()
    """Both programs before numbers that masks are filled with became minus infinity, the left one first."""
    ranges: Ranges = field(default_factory=dict[str, Bound])
    """The bounds of inputs that short integers are made of which may not fit otherwise."""
    conditions: tuple[str, ...] = ()
    """Those among the assumptions that say where the captured programs are defined."""
    violated: str = ""
    """A condition of the programs that no input meets, in words."""
    wraps: str = ""
    """Where short integers may not fit, in words, and are not counted from the other end."""

    def replacing(self, graphs: Sequence[Graph]) -> Prepared:
        """As it is where these are compared: what they no longer need, and the captured programs do, is assumed."""
        gone = lost_needs(self.stated.graphs, graphs)
        violated = "".join(sentences([one for one in gone if one.is_violated])[:1])
        known = tuple(text for text in self.assumptions if text not in self.conditions)
        conditions = tuple(text for text in sentences(gone) if text not in known)
        return replace(self, assumptions=(*known, *conditions), conditions=conditions, violated=violated)

    @property
    def tables(self) -> Values:
        """The inputs of either side that became constants, with their values."""
        return self.stated.tables

    @property
    def unread(self) -> tuple[tuple[Side, str], ...]:
        """Inputs that only one side has."""
        return self.stated.unread


def prepare_pair(
    left: Graph,
    right: RankProgram,
    weights: WeightMap,
    values: Values | None,
    most: float = MOST,
    *,
    held: Ranges = _ANY,
    counts: bool = False,
    proposed: bool = False,
    steps: LemmaSearch | None = None,
) -> Prepared:
    """The map in front of the programs, tables that nothing relates as constants, and what rounding made put right.

    ``most`` is how much the rounding of a held table may explain, relative to its largest element. ``held`` are bounds
    of inputs by name. With ``counts`` short integers count from the other end where they do not fit. With ``proposed``
    programs get the forms that are tried only where there is no proof without them.

    Raises RewrightError for outputs of other shapes and for a map that is partial or contradicts itself.
    """
    base = unify_inputs(left, right, weights, values)
    # Before numbers that are made of numbers are put together, and once more for masks as they are read then.
    forms = before_counting(counts=counts)
    first = [rewrite(draft, forms) for draft in with_computed([Draft(graph) for graph in base.graphs], most)]
    written = tuple(graphs_of(first))
    ranges = {name: held[name] for name in wrapping_inputs(written) if name in held}
    wraps = "" if counts else wrapping(written, ranges)
    whole = [rewrite(draft.insert_wrapping(ranges if counts else None), WHOLE) for draft in first]
    same = with_computed(idealise(whole, masks_choose=len(first) > 2), most)
    drafts = tuple(rewrite(draft, REAL, proposed=proposed) for draft in same)
    graphs = graphs_of(drafts)
    own = steps or LemmaSearch()
    numbers = taken_sentences(one for draft in drafts for one in own.premises(draft))
    program = replace(base.right, graphs=tuple(graphs[1:]))
    ready = Prepared(graphs[0], program, (*describe(ranges), *numbers), base, drafts, written, ranges, wraps=wraps)
    return ready.replacing(graphs)
