"""HloEnv's interface, row by row of docs/reference/hloenv.md, and its two agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rewright.env.hloenv import AltPipeline, HloEnv, HloPass, Pass, Pipeline
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
