"""Agents and the e-graph: what they end with computes what the original computes, and costs no more where promised."""

from __future__ import annotations

import numpy as np
import pytest

from rewright.env.agents import AGENTS
from rewright.env.combine import combine
from rewright.env.cost import cost_of
from rewright.env.dryrun import DryRun, dry_run
from rewright.env.episode import Episode, Settings
from rewright.env.rewards import static_cost
from rewright.env.session import Session
from rewright.env.testing import compare_modules
from tests.env.modules import RATES

PASSES = ("algsimp", "cse")


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_keeps_the_meaning(xla: Session, name: str) -> None:
    episode = Episode(xla, xla.parse(RATES), Settings(PASSES))
    before = episode.cost.seconds
    end = AGENTS[name](episode, np.random.default_rng(0))
    assert end.validate().agrees
    if name in ("greedy", "beam", "tree-search", "e-graph"):
        assert end.cost.seconds <= before


def test_the_e_graph_is_never_dearer_than_all_or_nothing(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), PASSES)
    found = combine(run)
    assert found.unions == len(run)
    assert found.after <= min(run.module.cost.seconds, run.apply(range(len(run))).cost.seconds)
    assert compare_modules(xla, run.module, found.module).agrees


def test_congruence_merges_what_no_pass_was_asked_for(xla: Session) -> None:
    source = """HloModule m
    ENTRY main { x = f32[64] parameter(0)
      a = f32[64] cosine(x) b = f32[64] exponential(a) c = f32[64] sine(x) d = f32[64] exponential(a)
      ROOT r = (f32[64], f32[64]) tuple(b, d) }"""
    module = xla.parse(source)
    from rewright.env.alternatives import AlternativeGraph

    found = combine(DryRun(module, AlternativeGraph(module.program)))
    assert [i.opcode for i in found.module.program.main.instructions.values()].count("exponential") == 1


@pytest.mark.parametrize("made", ["rng(a, b), distribution=rng_uniform", "call(a, b), to_apply=drawn"])
def test_random_numbers_are_not_merged(xla: Session, made: str) -> None:
    source = f"""HloModule m
    drawn {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = f32[64] rng(p, q), distribution=rng_uniform }}
    ENTRY main {{ a = f32[] parameter(0) b = f32[] parameter(1) x = f32[64] {made} y = f32[64] {made}
      ROOT r = f32[64] subtract(x, y) }}"""
    module = xla.parse(source)
    from rewright.env.alternatives import AlternativeGraph

    found = combine(DryRun(module, AlternativeGraph(module.program)))
    assert [i.opcode for i in found.module.program.main.instructions.values()].count(made.split("(")[0]) == 2


def test_cost_counts_work_traffic_and_kernels(xla: Session) -> None:
    source = """HloModule m
    ENTRY main { a = f32[8,16] parameter(0) b = f32[16,4] parameter(1)
      ROOT c = f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    module = xla.parse(source)
    found = cost_of(module.program)
    assert (found.flops, found.kernels) == (2 * 8 * 16 * 4, 1)
    assert found.bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert xla.analysis(module)["flops"] == found.flops
    assert static_cost(xla, module, "analysis") > 0
