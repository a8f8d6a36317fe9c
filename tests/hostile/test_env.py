"""Claims about HLO that a hostile user made, and what the environment says of them; each test says what it said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from rewright.env import Session, dry_run
from rewright.env.certificate import audit, certify
from rewright.env.custom import Rewrite
from rewright.env.episode import Episode, Settings
from rewright.env.evidence import Evidence, evidence_for
from rewright.env.hloenv import HloEnv
from rewright.env.hloenv_pipelines import GeneralFusionPipeline

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def xla() -> Iterator[Session]:
    with Session() as session:
        yield session


def _becomes(xla: Session, name: str, after: str) -> Rewrite:
    """A rewrite of any program into that of a text."""
    target = xla.canonical(xla.parse(after)).program
    return Rewrite(name, lambda _: target)


def _said(xla: Session, before: str, after: str, tested: bool = True) -> list[Evidence]:
    """The evidence of every site in which one text becomes another."""
    run = dry_run(xla, xla.parse(before), [], tested=tested, patterns=[_becomes(xla, f"{before}{after}", after)])
    return [evidence_for(run.graph, n, run.tests[n] if tested else None, 3) for n in range(len(run))]


# --- numbers of devices


@pytest.mark.parametrize("operator", ["partition-id", "replica-id"])
@pytest.mark.parametrize("tested", [True, False])
def test_the_number_of_a_device_is_not_zero(xla: Session, operator: str, tested: bool) -> None:
    """It was proved, bit for bit, and device 3 of four has 3."""
    header = "HloModule m, num_partitions=4, replica_count=1\nENTRY main {\n ROOT r = u32[] "
    said = _said(xla, f"{header}{operator}()\n}}", f"{header}constant(0)\n}}", tested)
    assert [own.status for own in said] == ["unknown"]


def test_no_certificate_says_that_the_number_of_a_device_is_zero(xla: Session) -> None:
    """The certificate was complete, audited, and of the grade ``move``."""
    text = "HloModule m, num_partitions=4\nENTRY main {\n x = f32[4] parameter(0)\n ROOT r = u32[] %s\n}"
    zero = _becomes(xla, "zero", text % "constant(0)")
    episode = Episode(xla, xla.parse(text % "partition-id()"), Settings((), patterns=(zero,)))
    assert episode.choose(0)
    assert len(audit(certify(episode).document).open) == 1


@pytest.mark.parametrize("where", ["while", "conditional", "call"])
def test_the_number_of_a_device_inside_of_a_computation_is_not_zero(xla: Session, where: str) -> None:
    text = """HloModule m, num_partitions=4
    zero { n = u32[] parameter(0)
      z = u32[] %s
      ROOT r = u32[] add(n, z) }
    again { n = u32[] parameter(0)
      two = u32[] constant(2)
      ROOT r = pred[] compare(n, two), direction=LT }
    ENTRY main { n = u32[] parameter(0)
      p = pred[] parameter(1)
      ROOT r = u32[] %s }"""
    calls = {
        "while": "while(n), condition=again, body=zero",
        "conditional": "conditional(p, n, n), true_computation=zero, false_computation=zero",
        "call": "call(n), to_apply=zero",
    }
    said = _said(xla, text % ("partition-id()", calls[where]), text % ("constant(0)", calls[where]), tested=False)
    assert not all(own.status == "proved" for own in said)


# --- names of regions, hashes, fusions


_REGIONS = """HloModule m
add_f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,6] parameter(0)
  i = f32[] parameter(1)
"""


def test_a_rewrite_of_one_reduction_into_two_is_offered_and_applies(xla: Session) -> None:
    """The alternatives were ``parameter of a region = parameter of a region``, of which XLA takes none."""
    one = _REGIONS + " ROOT v = f32[] reduce(x, i), dimensions={0,1}, to_apply=add_f\n}"
    two = _REGIONS + " t = f32[4] reduce(x, i), dimensions={1}, to_apply=add_f\n"
    two += " ROOT v = f32[] reduce(t, i), dimensions={0}, to_apply=add_f\n}"
    run = dry_run(xla, xla.parse(one), [], tested=False, patterns=[_becomes(xla, "nested", two)])
    assert len(run) == 1
    inputs = [np.arange(24, dtype=np.float32).reshape(4, 6), np.ones((), np.float32)]
    assert xla.execute(run.apply([0]), inputs) == xla.execute(xla.parse(two), inputs) == [276 + 5]
    said = evidence_for(run.graph, 0, None, 3)
    # The start is added once on the left, and five times on the right.
    assert said.status == "unknown"
    assert "5*v1[]" in said.text


def test_regions_that_changed_their_names_are_the_same(xla: Session) -> None:
    """XLA numbers regions anew, so that a rewrite that only adds one gave another one its name."""
    body = _REGIONS.replace(
        "ENTRY", "max_f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\nENTRY"
    )
    before = body + " v = f32[4] reduce(x, i), dimensions={1}, to_apply=add_f\n ROOT w = f32[4] negate(v)\n}"
    after = body + " m = f32[4] reduce(x, i), dimensions={1}, to_apply=max_f\n"
    after += " v = f32[4] reduce(x, i), dimensions={1}, to_apply=add_f\n ROOT w = f32[4] subtract(m, v)\n}"
    run = dry_run(xla, xla.parse(before), [], tested=False, patterns=[_becomes(xla, "more", after)])
    assert {a.computation for a in run.graph.alternatives} == {run.graph.program.entry}
    inputs = [np.arange(24, dtype=np.float32).reshape(4, 6), np.ones((), np.float32)]
    found = xla.execute(run.apply(range(len(run))), inputs)[0]
    np.testing.assert_array_equal(found, xla.execute(xla.parse(after), inputs)[0])


def test_hashes_of_a_module_and_of_its_environment_are_equal(xla: Session) -> None:
    """HloEnv compares them; here the one was a number and the other a text."""
    env = HloEnv(
        "HloModule m\nENTRY main {\n x = f32[4] parameter(0)\n ROOT y = f32[4] negate(x)\n}", "txt", "cpu", xla
    )
    assert env.clone_hlo().hash() == env.get_hlo_module_hash()


SAFE_MASK = """HloModule m
ENTRY main {
  p = pred[3,3]{1,0} parameter(0)
  x = f32[3,3]{1,0} parameter(1)
  zero = f32[] constant(0)
  zeros = f32[3,3]{1,0} broadcast(zero), dimensions={}
  safe = f32[3,3]{1,0} select(p, x, zeros)
  root = f32[3,3]{1,0} sqrt(safe)
  ROOT out = f32[3,3]{1,0} select(p, root, zeros)
}"""


def test_general_fusion_with_the_first_choice_everywhere_can_be_evaluated(xla: Session) -> None:
    """XLA ended its process: ``Check failed: has_layout()``, on two of the three modules of HloEnv's own example."""
    env = HloEnv(SAFE_MASK, "txt", "cpu", xla)
    pipeline = GeneralFusionPipeline(env)
    env.run(pipeline.pre_pass_optimizations)
    before = env.get_hlo_module()
    for _ in range(20):
        env.run(pipeline.pre_dry_pass_passes)
        env.run(pipeline.pass_dry_run)
        graph = env.get_hlo_graph(do_hash_verification=False)
        if not len(graph.alternative_indices):
            break
        first = np.asarray([[graph.node_features.uids[a], 1] for a in graph.alternative_indices])
        env.apply_alternatives(first)
        env.run(pipeline.post_dry_pass_passes)
    env.run(pipeline.post_pass_optimizations)
    assert min(env.evaluate(3).durations) > 0
    assert env.has_equal_output_as(before)
