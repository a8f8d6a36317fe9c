"""What the engine claims of nodes, in the language of certificates, and the conditions under which its proof holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial

from rewright.claims import language
from rewright.claims.language import Input, Tensor
from rewright.ir.dims import divide
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.lifting.programs import UNKNOWN
from rewright.lifting.terms.value import Pieces, Value
from rewright.ops.facts import Facts
from rewright.proof.conditions import Open, conditions, open_obligations, within
from rewright.refine.proof import Proof
from rewright.refine.relations.given import Relations


class NotCertified(RewrightError):
    """A proof that the certificate's language cannot express; the message says what is missing."""


def as_tensor(value: Value, name: Callable[[int], int] = int) -> Tensor:
    """A value of the engine as a tensor of the language, with a name for each term."""
    if isinstance(value, Pieces):
        lengths = [divide(part.shape[value.axis], value.outer) for part in value.parts]
        if any(length is None for length in lengths):
            raise NotCertified(f"pieces along {value.outer} rows of unequal length")
        parts = tuple(as_tensor(part, name) for part in value.parts)
        return language.Pieces(value.axis, value.outer, tuple(n for n in lengths if n is not None), parts)
    addends = (
        language.Addend(
            Fraction(a.coefficient), name(a.term), a.access, tuple((name(hole), region) for hole, region in a.parts)
        )
        for a in value.addends
    )
    return language.View(value.dims, tuple(addends))


def claim_at(proof: Proof, program: int, position: int) -> Tensor | None:
    """What a node is claimed to hold, the sequential program being number 0; None where that is not known."""
    lifted = proof.ranks[program - 1] if program else proof.sequential
    found = lifted.values[position]
    try:
        return None if found == UNKNOWN else as_tensor(proof.lifter.values[found])
    except NotCertified:
        return None


def obligations_of(proof: Proof, relations: Relations) -> Open:
    """The obligations of the programs of a proof."""
    summed = [name for name, held in relations.placements.items() if held.partial]
    graphs = proof.sequential.graph, *(rank.graph for rank in proof.ranks)
    return open_obligations(graphs, _known_inputs(proof, graphs[0]), summed)


def conditions_of(proof: Proof, asked: Open) -> tuple[str, ...]:
    """The conditions under which a proof holds, in words."""
    return conditions(asked, partial(claim_at, proof))


def _known_inputs(proof: Proof, sequential: Graph) -> Mapping[str, Facts]:
    """Between which numbers the whole of an integer input lies wherever the sequential program is defined."""
    terms, facts = proof.lifter.algebra.terms, proof.lifter.algebra.facts
    found: dict[str, Facts] = {}
    for term, region in facts.known.items():
        label = terms.label(term)
        position = sequential.inputs.get(label.name) if isinstance(label, Input) else None
        if not isinstance(label, Input) or position is None:
            continue
        whole = tuple((0, n) for n in sequential.nodes[position].type.shape)
        known = within(region)
        if known is not None and whole in facts.looked_up[term]:
            found[label.name] = known
    return found
