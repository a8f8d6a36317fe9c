"""Deep programs are lifted as programs of three layers, and nothing is proved by that which is not proved without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram, place
from rewright.refine.check import attempt, prove_with_journal
from rewright.refine.proof import Proof
from rewright.refine.relations.given import Relations
from rewright.refine.relations.known import complete_relations, input_relations, output_expectations
from tests.programs import I64, Builder, Pair

ROWS, HIDDEN, INNER = 3, 4, 8


@dataclass(frozen=True)
class Wiring:
    """For every layer of the forward or the backward pass the layer whose weights, values or names it takes."""

    weights: tuple[int, ...]
    saved: tuple[int, ...]
    gradient_weights: tuple[int, ...]
    named: tuple[int, ...]

    @classmethod
    def right(cls, layers: int) -> Wiring:
        """Every layer takes its own."""
        return cls(*(tuple(range(layers)) for _ in range(4)))


def program(
    build: Builder, layers: int, width: int, world: int, wiring: Wiring, *, backward: bool = True, table: bool = False
) -> Graph:
    """The program of one device, or of one rank of some: residual layers, and the gradients of all weights.

    With a ``table``, all layers multiply by what the first one makes of an input, in its midst.
    """
    x = build.tensor("x", (ROWS, HIDDEN))
    weights = [[build.tensor(f"{k}.{name}", shape) for name, shape in _shapes(width).items()] for k in range(layers)]
    x = build.add(ops.Tanh(), x)
    angles = build.tensor("angles", (HIDDEN,)) if table else 0
    cosines = None
    saved: list[tuple[int, int, int]] = []
    for k in range(layers):
        scale, up, down = weights[wiring.weights[k]]
        scaled = _turned(build, build.add(ops.Multiply(), x, build.spread(scale, x, 1)))
        if table:
            cosines = cosines or build.spread(build.add(ops.Cosine(), angles), x, 1)
            scaled = build.add(ops.Multiply(), scaled, cosines)
        inner = _turned(build, build.add(ops.Tanh(), build.matmul(scaled, up)))
        saved.append((x, scaled, inner))
        out = _turned(build, build.matmul(inner, down))
        x = build.add(ops.Add(), x, build.all_reduce(out, world) if world > 1 else out)
    build.output("y", build.add(ops.Exponential(), x))
    gradient = build.add(ops.Exponential(), x)
    for k in reversed(range(layers)) if backward else ():
        own, values = weights[wiring.gradient_weights[k]], saved[wiring.saved[k]]
        gradient = _backward(build, wiring.named[k], gradient, own, values, world)
    if backward:
        build.output("grad:x", gradient)
    return build.build()


def deep(
    layers: int,
    world: int = 2,
    wiring: Wiring | None = None,
    of_ranks: Sequence[Wiring] | None = None,
    *,
    backward: bool = True,
    table: bool = False,
) -> Pair:
    """Residual layers ``x + tanh(x scale up) down``, tensor parallel."""
    mesh = Mesh.of({"tp": world})
    shapes = _shapes(INNER)
    split = {"scale": "Replicate()", "up": "Shard(1)", "down": "Shard(0)"}
    inputs = {"x": place((ROWS, HIDDEN), mesh, ["Replicate()"])}
    inputs |= {f"{k}.{n}": place(s, mesh, [split[n]]) for k in range(layers) for n, s in shapes.items()}
    inputs |= {"angles": place((HIDDEN,), mesh, ["Replicate()"])} if table else {}
    outputs: dict[str, Placement] = {"y": inputs["x"]}
    if backward:
        outputs |= {f"grad:{name}": placement for name, placement in inputs.items()}
    own = wiring or Wiring.right(layers)
    sequential = program(Builder("model"), layers, INNER, 1, own, backward=backward, table=table)
    ranks = tuple(
        program(Builder("rank"), layers, INNER // world, world, held, backward=backward, table=table)
        for held in of_ranks or [own] * world
    )
    return sequential, RankProgram(ranks, mesh, inputs, outputs)


def _shapes(width: int) -> dict[str, tuple[int, ...]]:
    return {"scale": (HIDDEN,), "up": (HIDDEN, width), "down": (width, HIDDEN)}


def _turned(build: Builder, x: int) -> int:
    """Transposed twice: layers of many nodes."""
    return build.add(ops.Transpose((1, 0)), build.add(ops.Transpose((1, 0)), x))


def _backward(
    build: Builder, k: int, gradient: int, weights: list[int], saved: tuple[int, int, int], world: int
) -> int:
    """The gradients of one layer; returns that of its input."""
    (scale, up, down), (x, scaled, inner) = weights, saved
    across = ops.DotGeneral((), (), (0,), (0,))
    build.output(f"grad:{k}.down", build.add(across, inner, gradient))
    into = build.add(ops.DotGeneral((), (), (1,), (1,)), gradient, down)
    slope = build.add(ops.Subtract(), build.full(1.0, inner), build.add(ops.Multiply(), inner, inner))
    into = _turned(build, build.add(ops.Multiply(), into, slope))
    build.output(f"grad:{k}.up", build.add(across, scaled, into))
    into = build.add(ops.DotGeneral((), (), (1,), (1,)), into, up)
    into = build.all_reduce(into, world) if world > 1 else into
    build.output(f"grad:{k}.scale", build.reduce(build.add(ops.Multiply(), into, x), 0))
    return build.add(ops.Add(), gradient, build.add(ops.Multiply(), into, build.spread(scale, into, 1)))


def claim(pair: Pair) -> tuple[Graph, RankProgram, Relations, dict[str, Placement]]:
    sequential, ranks = pair
    expected = output_expectations(sequential, ranks, None)
    known = complete_relations(sequential, ranks, input_relations(sequential, ranks, None), expected)
    return sequential, ranks, known, expected


def proof_of(pair: Pair) -> Proof:
    return attempt(*claim(pair))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("world", [2, 4])
def test_a_further_layer_costs_no_further_lifting(world: int, backward: bool) -> None:
    few, many = (proof_of(deep(layers, world, backward=backward)) for layers in (9, 30))
    assert not few.failed
    assert not many.failed
    assert many.lifter.steps["lifted"] == few.lifter.steps["lifted"]
    assert many.lifter.steps["left out"] > few.lifter.steps["left out"] > 0


def test_what_the_first_layer_makes_for_all_does_not_set_it_apart() -> None:
    plain, shared = (proof_of(deep(20, backward=False, table=table)) for table in (False, True))
    assert not shared.failed
    # One product in each layer that is lifted, twice, of the model and of both ranks; the table of each program.
    assert shared.lifter.steps["lifted"] <= plain.lifter.steps["lifted"] + 12
    assert shared.lifter.steps["left out"] > plain.lifter.steps["left out"]


def test_every_output_of_every_layer_is_related() -> None:
    sequential, program = deep(20)
    proof = proof_of((sequential, program))
    assert list(proof.relations) == list(sequential.outputs)
    assert proof.relations["grad:13.up"].equation == "grad:13.up = concat([grad:13.up@0, grad:13.up@1], axis=1)"
    assert str(proof.placements["grad:13.scale"]) == "Replicate()"


def bent(random: Random, layers: int) -> tuple[int, ...]:
    """Whose weights or values the layers take: in order, in reverse, shifted, all of one, or two of them exchanged."""
    order = list(range(layers))
    match random.randrange(5):
        case 0:
            return tuple(reversed(order))
        case 1:
            by = random.choice([-2, -1, 1, 2])
            return tuple(order[max(0, min(layers - 1, k + by))] for k in order)
        case 2:
            by = random.choice([-1, 1])
            return tuple(order[(k + by) % layers] for k in order)
        case 3:
            return (random.choice(order),) * layers
        case _:
            one, other = random.sample(order, 2)
            order[one], order[other] = order[other], order[one]
            return tuple(order)


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", [k if k < 18 else pytest.param(k, marks=pytest.mark.slow) for k in range(60)])
def test_layers_that_are_wired_otherwise_are_not_proved_by_those_that_are_lifted(seed: int) -> None:
    """What leaving layers out proves, lifting every node by itself proves; ranks alone may be bent, or both sides."""
    random = Random(seed)
    layers, world = random.choice([9, 10]), 2
    right = Wiring.right(layers)
    fields = ["weights", "saved", "gradient_weights"]
    own = right
    for field in random.sample(fields, random.randrange(3)):
        own = replace(own, **{field: bent(random, layers)})
    other = own
    for field in random.sample([*fields, "named"], random.randrange(1, 3) if random.random() < 0.7 else 0):
        bend = bent(random, layers)
        if field != "named" or len(set(bend)) == layers:
            other = replace(other, **{field: bend})
    pair = deep(layers, world, own, [other if random.random() < 0.8 else own for _ in range(world)])
    proof = proof_of(pair)
    if proof.failed:
        assert proof.lifter.contraction is None or not proof.lifter.contract
        return
    full = prove_with_journal(*claim(pair))
    assert not full.failed
    assert full.relations == proof.relations


def test_a_weight_that_is_placed_otherwise_in_one_layer_is_not_proved_by_the_others() -> None:
    sequential, ranks = deep(12)
    odd = place((HIDDEN, INNER), ranks.mesh, ["Shard(1)"])
    swapped = replace(odd, runs=tuple(reversed(odd.runs)))
    proof = proof_of((sequential, replace(ranks, inputs={**ranks.inputs, "6.up": swapped})))
    assert "y" in proof.failed


def test_an_output_that_is_expected_otherwise_in_one_layer_is_not_related_like_the_others() -> None:
    sequential, ranks = deep(12)
    odd = {**ranks.outputs, "grad:6.down": place((INNER, HIDDEN), ranks.mesh, ["Shard(1)"])}
    proof = proof_of((sequential, replace(ranks, outputs=odd)))
    assert proof.failed == ["grad:6.down"]


def test_an_index_that_one_layer_makes_for_itself_is_assumed_of_every_layer() -> None:
    """Which rows may be looked up is said of each layer, so that layers with look-ups of their own are all lifted."""

    def graph(name: str) -> Graph:
        build = Builder(name)
        x = build.tensor("x", (ROWS, HIDDEN))
        for k in range(9):
            table = build.tensor(f"{k}.table", (5, HIDDEN))
            rows = build.add(ops.Convert(I64), build.reduce(_turned(build, build.add(ops.Tanh(), x)), 1))
            x = build.add(ops.Add(), _turned(build, x), _turned(build, build.take_rows(table, rows)))
        build.output("y", x)
        return build.build()

    sequential, rank = graph("model"), graph("rank")
    proof = proof_of((sequential, RankProgram((rank, rank), Mesh.of({"tp": 2}), {}, {})))
    assert not proof.failed
    assert len([text for text in proof.assumptions if "read out of range" in text or "reads out of range" in text]) == 9
    assert proof.lifter.contraction is None
