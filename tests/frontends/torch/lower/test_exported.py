"""Graphs of torch.export, which keep attention, linear layers and gradient modes as single operators."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from rewright.frontends.torch.lower import lower
from rewright.ir.graph import Graph
from tests.frontends.torch.lower.executing import execute, integers, numbers, operators, program


class Block(nn.Module):
    """Attention over tokens, with a table that is made without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.project = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)
        self.register_buffer("scale", torch.arange(1.0, 9.0))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, sequence) to (batch, sequence, 8)."""
        x = self.embedding(tokens)
        with torch.no_grad():
            place = torch.arange(tokens.shape[1], device=tokens.device)[:, None] * self.scale
            waves = place.sin()
        batch, length, _ = x.shape
        q, k, v = self.project(x + waves).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.norm(x + mixed.transpose(1, 2).reshape(batch, length, 8)).contiguous()


def exported(tokens: torch.Tensor, **options: Any) -> tuple[Graph, list[torch.Tensor], torch.Tensor]:
    """The lowered graph, its inputs and the expected result."""
    torch.manual_seed(0)
    module = Block().double().eval()
    found = torch.export.export(module, (tokens,), strict=False, **options)
    state = module.state_dict()
    signature = found.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    nodes = [node.name for node in found.graph.nodes if node.op == "placeholder"]
    return lower(program(found.graph_module)), [state[names[n]] for n in nodes if n in names], module(tokens)


def test_attention_linear_layers_and_gradient_modes() -> None:
    tokens = integers(0, 11, 3, 5)
    graph, state, expected = exported(tokens)
    np.testing.assert_allclose(execute(graph, [*state, tokens])[0], expected.detach().numpy(), atol=1e-12)
    assert {"attention", "layer norm", "embedding"} <= {node.span.scope for node in graph.nodes}


def test_symbolic_sizes() -> None:
    dims = {"tokens": {0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("length", min=2)}}
    graph, state, _ = exported(integers(0, 11, 3, 5), dynamic_shapes=dims)
    (output,) = graph.outputs.values()
    assert [isinstance(size, int) for size in graph.nodes[output].type.shape] == [False, False, True]
    tokens = integers(0, 11, 2, 7, seed=4)
    _, _, expected = exported(tokens)
    np.testing.assert_allclose(execute(graph, [*state, tokens])[0], expected.detach().numpy(), atol=1e-12)


def test_masks_are_no_constants() -> None:
    graph, _, _ = exported(integers(0, 11, 3, 5))
    assert "iota" in operators(graph)
    assert all(len(node.op.values) == 1 for node in graph.nodes if node.op.name == "constant")  # type: ignore[attr-defined]


def test_numbers_that_depend_on_sizes() -> None:
    """A size used as a number is a sum of ones, for every value of its symbol."""

    class Mean(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum(0) / x.shape[0] + torch.arange(x.shape[1]) * x.shape[0] + x.mean(0)

    dims = {"x": {0: torch.export.Dim("n", min=2)}}
    x = numbers(4, 3)
    found = torch.export.export(Mean(), (x,), strict=False, dynamic_shapes=dims)
    graph = lower(program(found.graph_module))
    for rows in (2, 5):
        y = numbers(rows, 3, seed=rows)
        np.testing.assert_allclose(execute(graph, [y])[0], Mean()(y).numpy(), atol=1e-12)
