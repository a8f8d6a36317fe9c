"""HloEnv's interface, row by row of docs/reference/hloenv.md, and its two agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rewright.env.compat import AltPipeline, HloEnv, HloModule, HloPass, Pass, Pipeline, hlo_pass
from rewright.env.compat.pipelines import GeneralFusionPipeline, PassPipelines, SingleFusionPipeline
from rewright.env.inputs import draw_inputs
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import RATES


@pytest.fixture
def env(xla: Session) -> HloEnv:
    return HloEnv(RATES, "txt", "cpu", session=xla)


def test_a_pass_and_a_pipeline_run(env: HloEnv) -> None:
    pipeline = Pipeline("main", loop_count=-1)
    pipeline.add_pass(HloPass.AlgebraicSimplifier({"enable_dot_strength_reduction": True}))
    pipeline.add_pass(HloPass.HloDCE(), loop_count=2)
    assert not env.run(pipeline)
    assert "power" not in env.export_hlo_to_str()


@pytest.mark.parametrize("policy", ["uniform", "first"])
def test_the_agents_of_hloenv(env: HloEnv, policy: str) -> None:
    original = env.clone_hlo()
    dry, after = AltPipeline(Pass(HloPass.AlgebraicSimplifier())), Pipeline("after")
    after.add_pass(HloPass.HloCSE(True))
    random = np.random.default_rng(0)
    for _ in range(4):
        if not env.run(dry):
            break
        graph = env.get_hlo_graph()
        nodes = graph.alternative_indices
        decisions = []
        for node in nodes:
            operands = graph.in_edge_indices[graph.in_edge_offsets[node] : graph.in_edge_offsets[node + 1]]
            scores = random.random(len(operands))
            decisions.append((node, int(np.argmax(scores)) if policy == "uniform" else 1))
        env.apply_alternatives(np.array(decisions))
        env.run(after)
    assert env.has_equal_output_as(original)


@pytest.mark.parametrize("pipelines", [GeneralFusionPipeline, SingleFusionPipeline])
@pytest.mark.parametrize("policy", ["uniform", "first"])
def test_the_agent_loop_of_hloenv(xla: Session, pipelines: type[PassPipelines], policy: str) -> None:
    env = HloEnv(HloModule(RATES, "txt", session=xla), "cpu")
    original = env.clone_hlo()
    pipeline, random = pipelines(env), np.random.default_rng(0)
    env.run(pipeline.pre_pass_optimizations)
    for _ in range(3):
        env.run(pipeline.pre_dry_pass_passes)
        env.run(pipeline.pass_dry_run)
        graph = env.get_hlo_graph(do_hash_verification=False)
        nodes = graph.alternative_indices
        if len(nodes) == 0:
            break
        operands = np.split(graph.in_edge_features.srcs, graph.in_edge_offsets[1:-1])
        choice = [np.argmax(random.random(len(operands[n]))) if policy == "uniform" else 1 for n in nodes]
        env.apply_alternatives(np.stack([nodes, choice], axis=1))
        env.run(pipeline.post_dry_pass_passes)
    env.run(pipeline.post_pass_optimizations)
    assert min(env.evaluate(3).durations) > 0
    assert env.has_equal_output_as(original)


def test_the_same_module_by_three_routes(xla: Session, tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(RATES)
    found = [
        HloEnv(str(path), "cpu", session=xla),
        HloEnv(RATES, "txt", "cpu", session=xla),
        HloEnv(HloModule(str(path), session=xla), "cpu"),
    ]
    assert len({env.export_hlo_to_str() for env in found}) == 1
    assert len({env.get_hlo_module().hash() for env in found}) == 1
    assert HloModule(found[0].export_hlo_to_str(), "txt", session=xla).hash() == found[0].get_hlo_module().hash()
    with pytest.raises(RewrightError, match="format 'pdf' is not known"):
        HloModule(RATES, "pdf", session=xla)


def test_a_module_has_the_methods_of_hloenv(xla: Session) -> None:
    module = HloModule(RATES, "txt", session=xla)
    assert module.to_string().startswith("HloModule rates")
    assert (module.instruction_count, module.computation_count, module.is_bef_enabled()) == (17, 1, False)
    assert module.config.seed == 42
    assert {"flops", "transcendentals", "bytes accessed", "optimal_seconds"} <= module.cost_analysis().keys()
    assert module.extract_random_submodule(3, 20) is not None
    assert module.extract_random_submodule(1000, 2) is None
    text, part = module.extract_instructions_as_module(repeat=2)[0]
    assert text == "threes = f32[8,4] broadcast(three)"
    assert xla.execute(part, draw_inputs(part))
    assert module.extract_fusions_as_module() == []


def test_a_pass_runs_on_a_module_in_its_place(xla: Session) -> None:
    module = HloModule(RATES, "txt", session=xla)
    other, before = module.clone(), module.hash()
    assert Pass(HloPass.AlgebraicSimplifier()).Run(module)
    assert "power" not in module.to_string()
    assert (other.hash(), module.hash() == before) == (before, False)
    assert not AltPipeline(Pass(HloPass.HloCSE())).Run(module)
    assert hlo_pass is HloPass


def test_loops_of_pipelines_stop_where_nothing_changes_and_at_their_bound(env: HloEnv) -> None:
    dry = AltPipeline(HloPass.GeneralFusion(), loop_count=2)
    inner = Pipeline("inner")
    inner.add_pass(dry)
    outer = Pipeline("outer", loop_count=3)
    outer.add_pass(inner, loop_count=1)
    stops = 0
    while env.run(outer):
        stops += 1
        # Nothing is chosen: the same alternatives come again.
        env.apply_alternatives([])
    assert stops == 6
    assert outer.changed
    fixed = Pipeline("fixed", loop_count=-1)
    fixed.add_pass(HloPass.AlgebraicSimplifier())
    assert not env.run(fixed)
    assert fixed.changed
    assert not env.run(fixed)
    assert not fixed.changed


def test_two_pipelines_are_never_taken_for_each_other(env: HloEnv) -> None:
    for _ in range(20):
        # Each is gone before the next is made, and may get its place in memory.
        pipeline = Pipeline("short-lived")
        pipeline.add_pass(AltPipeline(Pass(HloPass.AlgebraicSimplifier())))
        assert env.run(pipeline)


def test_dry_runs_are_the_same_again(xla: Session) -> None:
    found = set()
    for _ in range(3):
        env = HloEnv(RATES, "txt", session=xla)
        env.run(AltPipeline(Pass(HloPass.AlgebraicSimplifier())))
        graph = env.get_hlo_graph()
        found.add((graph.hash(), tuple(graph.node_features.uids.tolist()), tuple(graph.alternative_indices.tolist())))
    assert len(found) == 1


def test_choice_zero_everywhere_keeps_the_hash(env: HloEnv) -> None:
    env.run(AltPipeline(Pass(HloPass.AlgebraicSimplifier())))
    before = env.get_hlo_module_hash()
    env.apply_alternatives([(int(node), 0) for node in env.get_hlo_graph().alternative_indices])
    assert env.get_hlo_module_hash() == before


def test_running_the_same_pipeline_again_goes_on_from_there(env: HloEnv) -> None:
    pipeline = Pipeline("main")
    pipeline.add_pass(HloPass.HloDCE())
    pipeline.entries.append(AltPipeline(Pass(HloPass.AlgebraicSimplifier())))
    pipeline.add_pass(HloPass.HloCSE())
    assert env.run(pipeline)
    env.apply_alternatives([(int(node), 1) for node in env.get_hlo_graph().alternative_indices])
    assert not env.run(pipeline)


def test_the_features_have_their_names_and_lengths(env: HloEnv) -> None:
    env.run(AltPipeline(Pass(HloPass.AlgebraicSimplifier())))
    graph = env.get_hlo_graph()
    count = len(graph.node_features.uids)
    assert len(graph.in_edge_offsets) == len(graph.out_edge_offsets) == count + 1
    node, edge = graph.node_features, graph.in_edge_features
    for array in (node.gids, node.num_users, node.num_operands, node.opcodes, node.num_opcode_attrs, node.names):
        assert len(array) == count
    for array in (node.in_tensor_sizes, node.out_tensor_sizes, node.has_max_in_tensor, node.has_max_out_tensor):
        assert len(array) == count
    for array in (node.is_in_fusion, node.normalized_num_group_inst, node.fused_comp_ids, node.opcode_attrs):
        assert len(array) == count
    assert node.is_alternative.nonzero()[0].tolist() == graph.alternative_indices.tolist()
    edges = len(edge.srcs)
    assert edge.dims.shape == edge.layouts.shape == edge.lehmercodes.shape == (edges, 8)
    assert len(edge.types) == len(edge.dtypes) == len(edge.uids) == len(edge.dsts) == edges
    assert edge.get_tensor_size(0) > 0
    assert len(graph.opcode_attr_counts) % 2 == 0
    assert graph.get_graph_load_errors() == []
    assert graph.hash() == env.get_hlo_graph().hash()


def test_state_is_saved_and_loaded(env: HloEnv, tmp_path: Path) -> None:
    before = env.get_hlo_module_hash()
    saved = env.clone_hlo()
    env.optimize_hlo_module()
    assert env.get_hlo_module_hash() != before
    env.load_hlo(saved)
    assert env.get_hlo_module_hash() == before
    (tmp_path / "m.txt").write_text(env.export_hlo_to_str())
    env.load_hlo(str(tmp_path / "m.txt"))
    assert env.get_hlo_module_hash() == before
    env.load_hlo(RATES, "txt")
    assert env.get_hlo_module().instruction_count == 17
    assert env.get_hlo_module().computation_count == 1


def test_it_is_evaluated(env: HloEnv) -> None:
    env.prepare_for_eval()
    found = env.evaluate(times=3)
    assert len(found.durations) == len(found.compute_durations) == len(found.full_durations) == 3
    assert found.output[0].shape == (8, 4)
    assert env.session.analysis(env.get_hlo_module())["flops"] > 0


def test_what_it_cannot_do_is_one_line(xla: Session, env: HloEnv) -> None:
    with pytest.raises(RewrightError, match="no pass for HloEnv's CudnnPadForConvolutions"):
        HloPass.CudnnPadForConvolutions()
    with pytest.raises(RewrightError, match="run an AltPipeline first"):
        env.apply_alternatives([(0, 1)])
    with pytest.raises(RewrightError, match="platform"):
        HloEnv(RATES, "txt", "gpu", session=xla)
    env.run(AltPipeline(Pass(HloPass.AlgebraicSimplifier())))
    with pytest.raises(RewrightError, match="has no choice"):
        env.apply_alternatives([(0, 1)])


def test_general_fusion_offers_every_pair(env: HloEnv) -> None:
    original = env.clone_hlo()
    assert env.run(AltPipeline(Pass(HloPass.GeneralFusion())))
    nodes = env.get_hlo_graph().alternative_indices
    env.apply_alternatives([(int(nodes[0]), 1)])
    assert "fusion(" in env.export_hlo_to_str()
    assert env.has_equal_output_as(original)
    with pytest.raises(RewrightError, match="AltPipeline"):
        env.run(Pass(HloPass.GeneralFusion()))
