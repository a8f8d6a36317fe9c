"""Whole models of Transformers, forward and backward: the IR gives what the traced ATen graph gives in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.trace import trace
from rewright.frontends.torch.traced import TracedProgram
from rewright.interp.program import run
from rewright.ir.graph import Graph, validate
from tests.versions import of_transformers_5
from zoo import sequential

FAMILIES = ["llama", "qwen2", "qwen3", "gpt2", "gemma2", "phi3", "mixtral", "bert", "vit"]


@pytest.fixture(autouse=True, scope="module")
def transformers() -> Any:
    """These models come from Transformers."""
    return pytest.importorskip("transformers", reason="the models come from Transformers; install rewright[models]")


def inputs(program: TracedProgram) -> dict[str, torch.Tensor]:
    """Random float64 weights, and small integers that are legal tokens and labels of every model."""
    generator = torch.Generator().manual_seed(3)
    found: dict[str, torch.Tensor] = {}
    nodes = [node for node in program.module.graph.nodes if node.op == "placeholder"]
    for name, node in zip(program.inputs, nodes, strict=True):
        fake = node.meta["val"]
        if fake.is_floating_point():
            found[name] = torch.randn(fake.shape, generator=generator, dtype=torch.float64) * 0.3
        else:
            found[name] = torch.randint(0, 2, fake.shape, generator=generator)
    return found


class InDouble(torch.fx.Interpreter):
    """The traced graph with every float32 constant and conversion in float64."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(lambda x: torch.float64 if x is torch.float32 else x, (args, kwargs))
        return super().call_function(target, args, kwargs)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = super().get_attr(target, args, kwargs)
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def in_double(program: TracedProgram, values: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """What PyTorch computes from the traced graph."""
    result = InDouble(program.module).run(*(x.clone() for x in values.values()), enable_io_processing=False)
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def lowered_and_equal(name: str, *, backward: bool) -> Graph:
    module, args, kwargs = sequential(name, backward=backward)
    program = trace(module, args, kwargs, backward=backward).program
    graph = lower(program)
    validate(graph)
    values = inputs(program)
    found = run(graph, {n: x.numpy() for n, x in values.items()})
    expected = in_double(program, values)
    assert list(found) == list(program.outputs)  # the models overwrite nothing
    for (output, ours), theirs in zip(found.items(), expected[: len(found)], strict=True):
        scale = max(1.0, float(theirs.abs().max()))
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=1e-10 * scale, err_msg=output)
    return graph


@of_transformers_5("has no choice of experts")
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FAMILIES)
def test_forward_and_backward(name: str) -> None:
    graph = lowered_and_equal(name, backward=True)
    gradients = [output for output in graph.outputs if output.startswith("grad:")]
    assert len(gradients) > 5
    scopes = {node.span.scope for node in graph.nodes}
    assert "cross entropy" in scopes
    assert scopes & {"softmax", "attention"}


@pytest.mark.parametrize("name", ["llama", "gpt2", "vit"])
def test_forward(name: str) -> None:
    lowered_and_equal(name, backward=False)


def test_no_mask_or_table_is_stored() -> None:
    graph = lowered_and_equal("llama", backward=True)
    assert max(len(getattr(node.op, "values", ())) for node in graph.nodes) == 1
    assert not [name for name in graph.inputs if name.startswith("const:")]


def test_batch_and_sequence_may_be_symbols() -> None:
    module, _, _ = sequential("llama")
    tokens = torch.zeros(2, 8, dtype=torch.long)
    traced = trace(module, (), {"input_ids": tokens}, dynamic={"input_ids": {0: "batch", 1: "sequence"}})
    graph = lower(traced.program)
    assert {str(size) for size in graph.nodes[graph.outputs["logits"]].type.shape[:2]} == {"batch", "sequence"}
    values = inputs(trace(module, (), {"input_ids": torch.zeros(3, 5, dtype=torch.long)}).program)
    found = run(graph, {n: x.numpy() for n, x in values.items()})
    static = trace(module, (), {"input_ids": torch.zeros(3, 5, dtype=torch.long)}).program
    np.testing.assert_allclose(found["logits"], in_double(static, values)[0].numpy(), atol=1e-10)
