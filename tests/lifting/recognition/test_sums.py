"""Sums of the sequential program that a rank takes in other steps: what is found is what the rank holds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.lifting.programs import Lifter
from rewright.lifting.terms.forms import Forms
from rewright.refine.relations.inputs import input_values
from tests.lifting.agreement import rank_differences
from tests.programs import Builder

ROWS, WIDTH, WORLD = 4, 3, 2


def total(build: Builder, random: Random, rows: int) -> int:
    """The sum over rows of ``a x @ w + b x``, or of something like it, in random steps."""
    x, w = build.tensor("x", (rows, WIDTH)), build.tensor("w", (WIDTH, WIDTH))
    factor = float(random.choice([1, 1, 2]))
    other = w if random.random() < 0.7 else build.add(ops.Transpose((1, 0)), w)

    def added(value: int) -> int:
        if random.random() < 0.5:
            return build.reduce(value, 0)
        parts = [build.add(ops.Slice((k, 0), (k + 1, WIDTH), (1, 1)), value) for k in range(rows)]
        random.shuffle(parts)
        parts = [*parts[1:], parts[1]] if random.random() < 0.2 else parts
        first, *rest = [build.reduce(part, 0) for part in parts]
        for part in rest:
            first = build.add(ops.Add(), first, part)
        return first

    def product(value: int) -> int:
        return build.add(ops.DotGeneral((), (), (build.type(value).rank - 1,), (0,)), value, other)

    left = product(added(x)) if random.random() < 0.5 else added(product(x))
    right = added(x)
    right = build.add(ops.Multiply(), right, build.full(factor, right))
    return build.add(ops.Add(), left, right)


def sequential(seed: int) -> Graph:
    build = Builder("whole")
    build.output("y", build.add(ops.Tanh(), total(build, Random(seed), ROWS)))
    return build.build()


def ranks(seed: int) -> RankProgram:
    build = Builder("rank")
    build.output("y", build.add(ops.Tanh(), build.all_reduce(total(build, Random(seed), ROWS // WORLD), WORLD)))
    mesh = Mesh.of({"dp": WORLD})
    placements = {
        "x": place((ROWS, WIDTH), mesh, ("Shard(0)",)),
        "w": place((WIDTH, WIDTH), mesh, ("Replicate()",)),
    }
    return RankProgram((build.build(),) * WORLD, mesh, placements, {})


def is_found(whole: Graph, program: RankProgram) -> bool:
    """Whether a rank's result is the sequential one."""
    lifter = Lifter(forms=Forms(products=True))
    known = input_values(lifter, whole, program, program.inputs, ())
    one = lifter.sequential(whole, known.sequential)
    (first, *_) = lifter.ranks(program.graphs, known.ranks)
    return lifter.values[one.values[-1]] == lifter.values[first.values[-1]]


@pytest.mark.parametrize("block", range(3))
def test_random_sums_in_random_steps(block: int) -> None:
    numbers = np.random.default_rng(block)
    found = {True: 0, False: 0}
    for seed in range(40 * block, 40 * (block + 1)):
        whole, program = sequential(seed), ranks(seed + 1000)
        inputs = {"x": numbers.standard_normal((ROWS, WIDTH)), "w": numbers.standard_normal((WIDTH, WIDTH))}
        assert rank_differences(whole, program, inputs, Forms(products=True)) == [], f"seed {seed}"
        found[is_found(whole, program)] += 1
    assert min(found.values()) > 5, found
