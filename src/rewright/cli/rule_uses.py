"""Where a rule is used: the laws of the engine by which an instance of its two sides is one value.

The engine rewrites nothing. It takes every program to a normal form, so a rule is used where that form is the same for
both sides, which is found by running the engine and not from a list.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram, place
from rewright.refine.check import attempt
from rewright.refine.relations.known import input_relations, output_expectations
from rewright.rules.concrete import both_sides
from rewright.rules.instances import sample_sizes
from rewright.rules.rule import Rule

_SEED = 7


def laws_of(rule: Rule) -> tuple[str, ...] | None:
    """The laws by which the engine of ``refine`` gives both sides of an instance one value; None where it does not.

    Laws are named after the operators that they are about. Conditions on elements are not known to the engine.
    """
    sizes = sample_sizes(rule, random.Random(_SEED))
    if sizes is None:
        return None
    left, right = both_sides(rule, sizes)
    if not isinstance(right, Graph):
        return None
    mesh = Mesh.of({"rank": 1})
    program = RankProgram((right,), mesh, _whole(left, left.inputs, mesh), _whole(left, left.outputs, mesh))
    try:
        relations = input_relations(left, program, None)
        proof = attempt(left, program, relations, output_expectations(left, program, None))
    except RewrightError:
        return None
    if proof.failed or proof.mismatch or proof.out_of_time:
        return None
    return tuple(sorted(proof.lifter.algebra.laws))


def _whole(graph: Graph, names: Mapping[str, int], mesh: Mesh) -> dict[str, Placement]:
    return {name: place(graph.nodes[position].type.shape, mesh, ["Replicate()"]) for name, position in names.items()}
