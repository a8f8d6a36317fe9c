"""Every model of the zoo, under every plan it has, is proved, and execution of both programs agrees."""

from functools import cache
from typing import Any

import pytest

import zoo
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph
from rewright.refine import refine
from tests.versions import of_transformers_5
from tests.zoo.agreement import disagreements

pytest.importorskip("transformers", reason="the zoo needs the extra rewright[models]")

DTENSOR = ("dtensor", "dtensor_sp", "dtensor_loss", "dtensor_sp_loss")
DECODERS = ("llama", "qwen2", "qwen3", "phi3", "mixtral")
PAIRS = [
    *((name, plan) for name in DECODERS for plan in (*DTENSOR, "tp_plan")),
    *(("gemma2", plan) for plan in DTENSOR),
    *((name, plan) for name in ("bert", "vit") for plan in ("dtensor", "tp_plan")),
    *(("gpt2", plan) for plan in ("dtensor", "dtensor_loss")),
    *(("decoder", plan) for plan in ("megatron", "megatron_sp")),
]
QUICK = {("llama", "tp_plan"), ("gpt2", "dtensor"), ("decoder", "megatron_sp")}
LONG = {("llama", "dtensor_sp_loss"), ("mixtral", "dtensor"), ("bert", "dtensor")}


def listed(pair: tuple[str, str]) -> Any:
    """A few pairs; more are long tests, and the others slow ones."""
    return pair if pair in QUICK else pytest.param(*pair, marks=pytest.mark.long if pair in LONG else pytest.mark.slow)


@cache
def on_one_device(name: str, degree: int, backward: bool, tied: bool) -> Graph:
    """The sequential program, which all plans share."""
    return capture(*zoo.sequential(name, degree=degree, backward=backward, tied=tied), backward=backward)


def agrees(name: str, plan: str, degree: int, *, backward: bool, tied: bool = True) -> None:
    sequential = on_one_device(name, degree, backward, tied)
    build = zoo.parallel(name, plan, degree=degree, backward=backward, tied=tied)
    program = capture_ranks(build, {"tp": degree}, backward=backward)
    assert all(set(graph.inputs) == set(sequential.inputs) for graph in program.graphs)
    assert disagreements(sequential, program) == {}
    verdict = refine(sequential, program)
    assert verdict.status == "proved", verdict.reason


@of_transformers_5("splits only models that it loads")
@pytest.mark.parametrize(("name", "plan"), [listed(pair) for pair in PAIRS])
def test_loss_logits_and_gradients_agree(name: str, plan: str) -> None:
    agrees(name, plan, 2, backward=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plan"), PAIRS)
def test_inference_agrees(name: str, plan: str) -> None:
    agrees(name, plan, 2, backward=False)


@pytest.mark.parametrize(
    ("name", "plan", "degree"),
    [
        pytest.param("decoder", "megatron_sp", 3, marks=pytest.mark.long),
        *(
            pytest.param(*pair, degree, marks=pytest.mark.slow)
            for pair in [("llama", "dtensor_sp"), ("decoder", "megatron_sp")]
            for degree in (3, 4, 8)
            if (*pair, degree) != ("decoder", "megatron_sp", 3)
        ),
    ],
)
def test_other_degrees_split_the_vocabulary_unevenly_or_further(name: str, plan: str, degree: int) -> None:
    agrees(name, plan, degree, backward=True)


@pytest.mark.parametrize(
    ("name", "degree"),
    [
        pytest.param("gemma2", 4, marks=pytest.mark.long),
        pytest.param("phi3", 8, marks=pytest.mark.slow),
        pytest.param("llama", 16, marks=pytest.mark.slow),
    ],
)
def test_one_head_for_each_rank(name: str, degree: int) -> None:
    agrees(name, "dtensor", degree, backward=True)


@of_transformers_5("splits only models that it loads")
@pytest.mark.parametrize("backward", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_batch_and_sequence_at_once(backward: bool) -> None:
    names = ("input_ids", "labels") if backward else ("input_ids",)
    dynamic = {name: {0: "batch", 1: "sequence"} for name in names}
    sequential = capture(*zoo.sequential("llama", backward=backward), backward=backward, dynamic=dynamic)
    build = zoo.parallel("llama", "tp_plan", backward=backward)
    program = capture_ranks(build, {"tp": 2}, backward=backward, dynamic=dynamic)
    verdict = refine(sequential, program)
    assert verdict.status == "proved", verdict.reason
    assert any("batch >= 2" in text for text in verdict.assumptions)


@pytest.mark.slow
def test_untied_embeddings_let_transformers_split_gemma2() -> None:
    agrees("gemma2", "tp_plan", 2, backward=True, tied=False)


def test_published_shapes_need_no_memory() -> None:
    graph = capture(*zoo.sequential("gpt2", "small"))
    assert [str(size) for size in graph.nodes[graph.outputs["logits"]].type.shape] == ["1", "1024", "50257"]


@pytest.mark.parametrize(
    ("name", "plan", "message"),
    [
        ("gpt5", "dtensor", "no model 'gpt5'"),
        ("llama", "pipeline", "no plan 'pipeline'"),
        ("llama", "megatron", "does not fit 'llama'"),
        ("gpt2", "tp_plan", "Conv1D"),
        ("gemma2", "tp_plan", "tied=False"),
        ("vit", "dtensor_sp", "no sequence-parallel plan for vit"),
    ],
)
def test_what_cannot_be_built_says_why(name: str, plan: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        capture_ranks(zoo.parallel(name, plan), {"tp": 2})


def test_unknown_sizes_are_refused() -> None:
    with pytest.raises(CaptureError, match="no size '9b'"):
        zoo.sequential("llama", "9b")
