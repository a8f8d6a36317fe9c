"""XLA:GPU's passes for a device that is not there, site by site: ``make gpu-passes``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.env.alternatives import AlternativeGraph
from rewright.env.dryrun import DryRun, dry_change, dry_run
from rewright.env.environment import HloRewrite
from rewright.env.episode import Episode, Settings
from rewright.env.evidence import evidence_for
from rewright.env.passes import gpu_pass
from rewright.env.proposers import checked_name
from rewright.env.session import Session
from rewright.env.xla.adapter import cuda_plugin
from rewright.env.xla.targets import TARGETS, target_text
from rewright.ir.errors import RewrightError
from tests.env.modules import LOOP, RATES


def _missing() -> str:
    try:
        cuda_plugin()
    except RewrightError as error:
        return str(error)
    return ""


plugin = pytest.mark.skipif(bool(_missing()), reason=_missing() or "there is one")

PRODUCTS = """HloModule products
ENTRY main {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,64] tanh(d)
  e = f32[64,64] exponential(t)
  ROOT r = f32[64,64] add(e, t)
}
"""


def _applied(run: DryRun, opcode: str, other: str) -> AlternativeGraph:
    """The alternatives with one operator for another in the computations that they bring in."""
    computations = {
        name: replace(
            c,
            instructions={n: replace(i, opcode=other) if i.opcode == opcode else i for n, i in c.instructions.items()},
        )
        for name, c in run.graph.computations.items()
    }
    return replace(run.graph, computations=computations)


def test_a_device_is_a_name_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.txtpb"
    path.write_text(TARGETS["h100"].text())
    assert target_text(str(path)) == target_text("h100")
    for name in ("tpu", str(tmp_path / "none.txtpb")):
        with pytest.raises(RewrightError) as error:
            target_text(name)
        assert "\n" not in str(error.value)


def test_names_of_gpu_passes() -> None:
    own = gpu_pass("h100:priority-fusion")
    assert own is not None
    assert (own.target, own.name) == ("h100", "priority-fusion")
    assert gpu_pass("priority-fusion") is None
    assert gpu_pass("rule:distribute") is None
    assert checked_name("a100:multi_output_fusion") == "a100:multi_output_fusion"
    with pytest.raises(RewrightError, match="did you mean priority-fusion"):
        checked_name("h100:priority_fusion")
    with pytest.raises(RewrightError, match="no pass 'v5e:algsimp'"):
        checked_name("v5e:algsimp")


@pytest.mark.skipif(not _missing(), reason="the plugin is there")
def test_without_the_plugin_it_is_one_line(xla: Session) -> None:
    with pytest.raises(RewrightError, match=r"run pip install 'jax-cuda12-pjrt>="):
        xla.gpu_changes(xla.parse(RATES), "h100")


@plugin
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_runs_its_pipeline(xla: Session, target: str) -> None:
    names = [change.name for change in xla.gpu_changes(xla.parse(PRODUCTS), target)]
    assert "priority-fusion" in names
    assert "triton-gemm-rewriter" in names


@plugin
def test_every_site_of_the_pipeline_is_proved_and_all_of_them_are_the_pass(xla: Session) -> None:
    seen = 0
    for change in xla.gpu_changes(xla.parse(PRODUCTS), "h100"):
        run = dry_change(xla, change, tested=False)
        if change.name in ("priority-fusion", "algsimp", "cse"):
            together = change.before.replaced(run.graph.apply(range(len(run))))
            assert xla.fingerprint(together) == xla.fingerprint(change.after.pruned())
        for number in range(len(run)):
            assert evidence_for(run.graph, number, None, 5.0).status == "proved"
            seen += 1
    assert seen > 3


@plugin
@pytest.mark.parametrize(("opcode", "other"), [("tanh", "exponential"), ("multiply", "add"), ("cosine", "sine")])
def test_a_fusion_of_another_operator_is_not_proved(xla: Session, opcode: str, other: str) -> None:
    run = dry_run(xla, xla.parse(RATES), ["h100:priority-fusion"], tested=False)
    assert evidence_for(run.graph, 0, None, 5.0).status == "proved"
    broken = _applied(run, opcode, other)
    assert broken.computations != run.graph.computations
    assert evidence_for(broken, 0, None, 5.0).status != "proved"


@plugin
def test_passes_of_both_kinds_are_alternatives_of_one_graph(xla: Session) -> None:
    run = dry_run(xla, xla.parse(RATES), ["algsimp", "h100:priority-fusion"])
    assert {a.provenance.name for a in run.graph.alternatives} == {"algsimp", "h100:priority-fusion"}
    episode = Episode(xla, xla.parse(RATES), Settings(("algsimp", "h100:priority-fusion")))
    number = next(n for n, a in enumerate(run.graph.alternatives) if a.provenance.name != "algsimp")
    assert episode.choose(number)
    assert episode.validate().agrees
    fused = {i.opcode for i in episode.current.program.main.instructions.values()}
    assert "fusion" in fused


@plugin
def test_an_episode_goes_on_from_fusions(xla: Session) -> None:
    env = HloRewrite(xla.parse(LOOP), ["h100:priority-fusion", "h100:multi_output_fusion"], session=xla)
    _, info = env.reset(seed=0)
    ended = False
    while not ended:
        action = next(n for n, free in enumerate(info["action_mask"]) if free)
        _, _, ended, _, info = env.step(action)
    assert env.validate().agrees


@plugin
def test_the_command_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "products.hlo"
    path.write_text(PRODUCTS)
    assert run(["env", "passes", str(path), "--target", "h100"]) == 0
    assert "priority-fusion" in capsys.readouterr().out
    assert run(["env", "passes", str(path), "--target", "abacus"]) == 3
