"""All mutants of a program, or a deterministic sample of each kind."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, get_args

from bench.mutants import communication, computation
from bench.mutants.model import Mutant, Place, apply, places
from bench.mutants.placements import loading_bugs
from rewright import ops
from rewright.blame.editing import Replacement
from rewright.ir.placement import RankProgram

MutantKind = Literal[
    "bias_before_reduction",
    "doubled_collective",
    "dropped_collective",
    "dropped_gradient_term",
    "dropped_mask",
    "dropped_residual",
    "missing_gradient_reduction",
    "reversed_operands",
    "shifted_bound",
    "shifted_positions",
    "shifted_slice",
    "stale_shard",
    "swapped_shards",
    "wrong_axis",
    "wrong_exchange",
    "wrong_group",
    "wrong_reduction",
    "wrong_scale",
]
KINDS: tuple[str, ...] = get_args(MutantKind)


def generate(program: RankProgram, seed: int = 0, per_kind: int | None = None) -> Iterator[Mutant]:
    """Wrong versions of a program, one bug each.

    Args:
        program: the programs of all ranks; it is not changed.
        seed: chooses the sample, where ``per_kind`` limits it.
        per_kind: at most so many mutants of each kind; all of them by default, in the order of the program.

    The same arguments give the same mutants. Some are true equivalences: ask ``is_equivalent``.
    """
    makers: defaultdict[str, list[_Maker]] = defaultdict(list)
    for place in places(program):
        for maker in _bugs_at(place):
            makers[maker.kind].append(maker)
    loaded: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in loading_bugs(program):
        loaded[mutant.kind].append(mutant)
    for kind in KINDS:
        found: list[_Maker | Mutant] = [*makers[kind], *loaded[kind]]
        if per_kind is not None:
            random.Random(f"{seed} {kind}").shuffle(found)
        count = 0
        for item in found:
            mutant = item if isinstance(item, Mutant) else item.make()
            if mutant is not None and (per_kind is None or count < per_kind):
                count += 1
                yield mutant


class _Maker:
    """A bug that is built only when it is its turn: building one copies the programs of all ranks."""

    def __init__(self, place: Place, kind: str, description: str, build: Replacement, only: int | None) -> None:
        self.place, self.kind, self.description, self.build, self.only = place, kind, description, build, only

    def make(self) -> Mutant | None:
        return apply(self.place, self.kind, self.description, self.build, self.only)


def _bugs_at(place: Place) -> Iterator[_Maker]:
    for family in communication.FAMILIES + computation.FAMILIES:
        for kind, description, build in family(place):
            yield _Maker(place, kind, description, build, None)
            # A bug on the last rank alone: constants that depend on the rank are often wrong on one only.
            if kind == "shifted_bound" and isinstance(place.node.op, ops.Constant) and len(place.site) > 1:
                yield _Maker(place, kind, description, build, max(place.site))
