"""General fusion: every legal pair, fusions of several results, and that what is chosen is what runs."""

from __future__ import annotations

import random

import pytest

from rewright.env.claims import prove_alternative
from rewright.env.dryrun import dry_run
from rewright.env.fusions import fusion_alternatives, pairs, twins
from rewright.env.session import Session
from rewright.env.testing import compare_modules
from rewright.frontends.hlo.module import Module
from tests.env.modules import RATES

CHAIN = """HloModule chain
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a = f32[8] exponential(x)
  b = f32[8] multiply(a, y)
  c = f32[8] tanh(a)
  ROOT r = (f32[8], f32[8]) tuple(b, c)
}
"""


def opcodes(program: Module) -> list[str]:
    return [i.opcode for i in program.main.instructions.values() if i.opcode != "parameter"]


def test_every_legal_pair_is_there(xla: Session) -> None:
    module = xla.canonical(xla.parse(CHAIN))
    operators = {name: i.opcode for name, i in module.program.main.instructions.items()}
    found = {(operators[a], operators[b]) for a, b in pairs(module.program)}
    assert found == {("exponential", "multiply"), ("exponential", "tanh")}
    both = {(operators[a], operators[b]) for a, b in twins(module.program)}
    assert both == found | {("multiply", "tanh")}


def test_a_fusion_is_the_same_operators_on_the_same_values(xla: Session) -> None:
    graph = fusion_alternatives(xla.canonical(xla.parse(RATES)))
    assert len(graph) > 20
    assert {prove_alternative(graph, n, 0.1).grade for n in range(len(graph))} == {"same"}


def test_a_producer_that_others_read_is_computed_again(xla: Session) -> None:
    run = dry_run(xla, xla.parse(CHAIN), ["general-fusion"])
    first = next(n for n, a in enumerate(run.graph.alternatives) if a.provenance.name == "producer into consumer")
    chosen = run.apply([first])
    assert sorted(opcodes(chosen.program)) == sorted(["exponential", "fusion", "tanh", "tuple"])
    assert compare_modules(xla, run.module, chosen).agrees


def test_both_results_of_one_loop_run(xla: Session) -> None:
    run = dry_run(xla, xla.parse(CHAIN), ["general-fusion"])
    both = [n for n, a in enumerate(run.graph.alternatives) if a.provenance.name == "both results"][-2:]
    chosen = run.apply(both)
    assert opcodes(chosen.program).count("fusion") == 1
    assert compare_modules(xla, run.module, chosen).agrees


def test_fusions_grow_from_round_to_round(xla: Session) -> None:
    module = xla.parse(CHAIN)
    for _ in range(2):
        run = dry_run(xla, module, ["general-fusion"])
        module = run.apply([0])
    assert compare_modules(xla, xla.canonical(xla.parse(CHAIN)), module).agrees


@pytest.mark.parametrize("seed", range(3))
def test_random_fusions_give_the_outputs_of_the_original(xla: Session, seed: int) -> None:
    run = dry_run(xla, xla.parse(RATES), ["general-fusion"])
    chosen: list[int] = []
    for number in random.Random(seed).sample(range(len(run)), len(run)):
        if run.graph.applicable(chosen)[number] and len(chosen) < 6:
            chosen.append(number)
    assert compare_modules(xla, run.module, run.apply(chosen)).agrees
