"""Lower small functions and execute both sides: PyTorch on real tensors, the IR in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from rewright.frontends.aten.context import Communicator
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.traced import TracedProgram
from rewright.interp.program import run
from rewright.ir.graph import Graph, validate
from rewright.ir.types import SourceSpan

Function = Callable[..., Any]


def traced(function: Function, *arguments: torch.Tensor, symbolic: bool = False) -> TracedProgram:
    """The ATen graph of a function, inputs named x0, x1, .. and outputs y0, y1, .."""
    mode = "symbolic" if symbolic else "fake"

    def flat(*operands: torch.Tensor) -> Any:
        return function(*operands)

    module = make_fx(flat, tracing_mode=mode, _allow_non_fake_inputs=True)(*arguments)
    return program(module)


def program(module: torch.fx.GraphModule, groups: dict[str, tuple[int, ...]] | None = None) -> TracedProgram:
    """Numbered names and one made-up source line for a graph."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    results = [leaf for leaf in pytree.tree_leaves(module.graph.output_node().args[0]) if leaf is not None]
    return TracedProgram(
        module,
        tuple(f"x{i}" for i in range(len(placeholders))),
        tuple(f"y{i}" for i in range(len(results))),
        lambda _: SourceSpan("model.py", 7),
        {name: Communicator(ranks) for name, ranks in (groups or {}).items()},
    )


def lowered(function: Function, *arguments: torch.Tensor) -> Graph:
    """The IR graph of a function of some tensors."""
    return lower(traced(function, *arguments))


def execute(graph: Graph, arguments: Sequence[torch.Tensor]) -> list[np.ndarray]:
    """The outputs in order."""
    values = {f"x{i}": x.detach().numpy() for i, x in enumerate(arguments) if f"x{i}" in graph.inputs}
    return list(run(graph, values).values())


def agree(function: Function, *arguments: torch.Tensor, tolerance: float = 1e-10) -> Graph:
    """Assert that the lowered function gives what PyTorch gives; returns the graph."""
    graph = lowered(function, *(x.clone() for x in arguments))
    validate(graph)
    expected = [leaf for leaf in pytree.tree_leaves(function(*(x.clone() for x in arguments))) if leaf is not None]
    found = execute(graph, arguments)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        near = 1e-5 if theirs.dtype == torch.float32 else tolerance
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=near, atol=near, equal_nan=True)
    return graph


def gradients(function: Function) -> Function:
    """The function that also returns the gradients of its floating operands under a fixed random-like seed."""

    def program(*arguments: torch.Tensor) -> Any:
        leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in arguments]
        result = function(*leaves)
        weight = torch.cos(torch.arange(result.numel(), dtype=result.dtype)).reshape(result.shape)
        wanted = [x for x in leaves if x.requires_grad]
        return result, torch.autograd.grad((result * weight).sum(), wanted)

    return program


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal random float64 numbers."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def integers(low: int, high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    """Random integers, ``high`` excluded."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def operators(graph: Graph) -> list[str]:
    """Names of the operators in order."""
    return [node.op.name for node in graph.nodes]
