"""``rewright.equiv``: the verdict on two implementations of one model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rewright.equiv.alignment import Numbers
from rewright.equiv.ideal import idealised
from rewright.equiv.lemmas import Lemma, Prover, described
from rewright.equiv.sweep import Sweep, Swept
from rewright.equiv.weights import WeightMap, read_map, shared
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Mesh, RankProgram
from rewright.refine.check import attempt
from rewright.refine.engine import answer
from rewright.refine.relations import input_relations
from rewright.refine.twin.twin import make_twin
from rewright.refine.verdict import Verdict

Given = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Equivalence(Verdict):
    """A verdict on two implementations, with what it rests on besides the certificate."""

    equations: tuple[str, ...] = ()
    """The weight map, printed."""
    lemmas: tuple[Lemma, ...] = ()
    """What was proved about parts of the two programs; the certificate is about the right program with these parts
    as the left one has them."""
    left: Graph | None = field(default=None, repr=False, compare=False)
    right: RankProgram | None = field(default=None, repr=False, compare=False)
    """The programs that the certificate is about."""


def equiv(
    left: Graph,
    right: Graph | RankProgram | Sequence[Graph],
    relations: Given | None = None,
    budget: float | None = None,
    *,
    audit: bool = False,
    prover: Prover | None = None,
) -> Equivalence:
    started = time.perf_counter()
    deadline = None if budget is None else time.monotonic() + budget
    program = _program(right)
    weights = read_map(relations, left, program)
    both = shared(left, program, weights)
    ideal = idealised([both.left, *both.right.graphs])
    new_left = ideal.graphs[0]
    program = replace(both.right, graphs=ideal.graphs[1:])
    prepared = time.perf_counter() - started
    swept = _swept(new_left, program, weights, prover or Prover(), deadline)
    if swept is not None and swept.merges:
        program = replace(program, graphs=(swept.program,))
    sweeping = time.perf_counter() - started - prepared
    verdict = answer(new_left, program, weights.placements or None, None, budget, audit=audit)
    verdict.stats.seconds.update({"weights and constants": prepared, "lemmas": sweeping})
    lemmas = tuple(swept.lemmas.values()) if swept else ()
    fields = {name: getattr(verdict, name) for name in verdict.__dataclass_fields__}
    fields["assumptions"] = (*verdict.assumptions, *ideal.assumptions, *weights.guessed)
    fields["notes"] = (*verdict.notes, *(described(lemma, {}) for lemma in lemmas))
    return Equivalence(
        **fields, equations=tuple(map(str, weights.definitions)), lemmas=lemmas, left=new_left, right=program
    )


def _program(right: Graph | RankProgram | Sequence[Graph]) -> RankProgram:
    if isinstance(right, RankProgram):
        return right
    graphs = (right,) if isinstance(right, Graph) else tuple(right)
    if not graphs:
        raise RewrightError("no right program was given; give a graph")
    return RankProgram(graphs, Mesh.of({"rank": len(graphs)}), {}, {})


def _swept(
    left: Graph, program: RankProgram, weights: WeightMap, prover: Prover, deadline: float | None
) -> Swept | None:
    if len(program.graphs) != 1:
        return None
    known = input_relations(left, program, weights.placements or None)
    known = replace(known, placements={**known.inferred.first, **known.placements})
    proof = attempt(left, program, known, {}, deadline)
    if not proof.failed or proof.mismatch or proof.out_of_time:
        return None
    twin = make_twin(left, replace(program, inputs=known.placements))
    numbers = None if isinstance(twin, Unsupported) else Numbers(twin)
    if numbers is None or not numbers.trials:
        return None
    return Sweep(left, program, known, numbers).run(prover, deadline)
