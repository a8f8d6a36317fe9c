"""The GPT of Megatron-core, the package itself: ranks against one, and what is wrong with its label smoothing."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest import mock

import pytest
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.engine import answer
from zoo import megatron_core
from zoo.megatron_core import GPT, MODELS

pytestmark = pytest.mark.skipif(find_spec("megatron") is None, reason="megatron-core has wheels for Linux only")


def verdict(gpt: GPT, build: Any) -> rw.Verdict:
    with megatron_core.on_cpu():
        whole = rw.capture_ranks(megatron_core.sequential(gpt, backward=True), mesh={"tp": 1}).graphs[0]
        program = rw.capture_ranks(build, mesh={"tp": gpt.degree})
    return answer(whole, program, suggest=False)


def test_a_step_with_sequence_parallelism_is_proved_without_a_word_about_placements() -> None:
    gpt = GPT(2, layers=1, **MODELS["qwen3"])
    found = verdict(gpt, megatron_core.parallel(gpt, sequence=True, backward=True))
    assert found.status == "proved", found.reason
    assert found.relation["grad:decoder.layers.0.mlp.linear_fc1.weight"].placement == "StridedShard(0, 2)"
    assert found.relation["grad:decoder.layers.0.input_layernorm.weight"].placement == "Replicate()"


def test_a_norm_without_its_mark_is_never_reduced() -> None:
    gpt = GPT(2, layers=1, **MODELS["llama"])
    right = megatron_core.parallel(gpt, sequence=True, backward=True)

    def build(mesh: DeviceMesh) -> Any:
        step, (model, *rest) = right(mesh)
        model.decoder.final_layernorm.weight.sequence_parallel = False
        return step, (model, *rest)

    found = verdict(gpt, build)
    assert found.status == "refuted"
    assert [f.kind for f in found.findings] == ["missing_reduction"]
    assert "grad:decoder.final_layernorm.weight" in found.findings[0].message


@pytest.mark.parametrize("recomputed", [False, True])
def test_dropout_is_drawn_by_megatrons_own_tracker(recomputed: bool) -> None:
    gpt = GPT(2, layers=1, dropout=0.1, recomputed=recomputed, **MODELS["llama"])
    found = verdict(gpt, megatron_core.parallel(gpt, sequence=True, backward=True))
    assert found.status == "proved", found.reason


def test_dropout_of_heads_without_the_tracker_is_the_same_on_all_ranks() -> None:
    gpt = GPT(2, layers=1, dropout=0.1, **MODELS["llama"])
    with megatron_core.on_cpu():
        random = import_module("megatron.core.tensor_parallel.random")
    with mock.patch.object(random.CudaRNGStatesTracker, "fork", return_value=nullcontext()):
        found = verdict(gpt, megatron_core.parallel(gpt, backward=True))
    assert found.status == "refuted"
    (finding,) = found.findings
    assert finding.kind == "random_numbers"
    assert str(finding.distributed).startswith("dot_product_attention.py")


@pytest.mark.long
def test_label_smoothing_over_the_local_vocabulary_is_found_where_it_is() -> None:
    """Megatron-LM #737: the number of tokens and the mean of their log-probabilities are those of one rank."""
    gpt = GPT(2, layers=1, smoothing=0.1, **MODELS["llama"])
    found = verdict(gpt, megatron_core.parallel(gpt, backward=True))
    assert found.status == "refuted"
    assert {str(finding.distributed).partition(":")[0] for finding in found.findings} == {"cross_entropy.py"}
    assert "is 8, and the sequential program has 16" in found.findings[0].message
