"""Attention over a split sequence as ``torch``'s ``context_parallel`` computes it, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.distributed._functional_collectives as collectives
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.experimental import _context_parallel as context_parallel

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]

HEADS, TOKENS, WIDTH = 2, 4, 4
NAMES: tuple[str, ...] = ("query", "key", "value", "weight")

_parallel: Any = context_parallel
_attention: Any = _parallel._attention
_torch: Any = torch
_collectives: Any = collectives

ROTATIONS = {"allgather": "ALL_GATHER", "alltoall": "ALL_TO_ALL"}
"""How keys and values travel, as ``set_rotate_method`` calls it."""


def flash(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, is_causal: bool = False, **_: Any
) -> torch.Tensor:
    """The kernel that ``scaled_dot_product_attention`` takes on an accelerator; that of the CPU is not parallel."""
    return _torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, is_causal)[0]


flash.__name__ = F.scaled_dot_product_attention.__name__


@contextmanager
def around(mesh: DeviceMesh, *, balanced: bool, rotation: str) -> Generator[None]:
    """Attention inside of the block goes around the ranks of a mesh."""
    options = _attention._cp_options
    rotate = _attention._RotateMethod[ROTATIONS[rotation]]
    with ExitStack() as stack:
        # What shards a model's attention modules leaves this at its own way, for the whole process.
        function = _attention._DispatchMode.MONKEY_PATCH
        stack.enter_context(mock.patch.object(_attention, "_dispatch_mode", function))
        stack.enter_context(mock.patch.object(options, "enable_load_balance", balanced))
        stack.enter_context(mock.patch.object(options, "rotate_method", rotate))
        stack.enter_context(mock.patch.object(F, "scaled_dot_product_attention", flash))
        _attention._enable_context_parallel_dispatcher_impl(seq_dim=2, mesh=mesh)
        try:
            yield
        finally:
            _attention._disable_context_parallel_dispatcher_impl()


def step(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, weight: torch.Tensor, *, causal: bool
) -> dict[str, torch.Tensor]:
    """Attention, and a loss in which each of its numbers has a weight of its own."""
    output = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    loss: Any = (output * weight).sum()
    loss.backward()
    return {"output": output, "loss": loss}


def inputs(length: int, degree: int = 1) -> dict[str, torch.Tensor]:
    """Queries, keys, values and weights of some tokens, (1, heads, tokens, width) each; heads for so many ranks."""
    found = {name: torch.randn(1, HEADS * degree, length, WIDTH) for name in NAMES}
    for name in ("query", "key", "value"):
        found[name].requires_grad_()
    return found


def sequential(degree: int, *, causal: bool, heads: int = 1) -> Program:
    """All tokens on one device."""
    return step, (), {**inputs(TOKENS * degree, heads), "causal": causal}


def parallel(
    degree: int, *, causal: bool, balanced: bool = False, rotation: str = "allgather"
) -> Callable[[DeviceMesh], Program]:
    """What to build on each rank, which holds its share of the tokens; ``balanced`` shares are of head and tail."""

    def build(mesh: DeviceMesh) -> Program:
        def program(**given: torch.Tensor) -> dict[str, torch.Tensor]:
            with around(mesh, balanced=balanced, rotation=rotation):
                return step(**given, causal=causal)

        return program, (), inputs(TOKENS)

    return build


def exchanged(x: torch.Tensor, mesh: DeviceMesh, split: int, joined: int) -> torch.Tensor:
    """Every rank's part of an axis for all of another, by all-to-all, with gradients."""
    size = mesh.size()
    parts = torch.stack(x.chunk(size, split))
    shape = parts.shape
    moved = _collectives.all_to_all_single_autograd(parts.flatten(0, 1), None, None, mesh.get_group())
    return torch.cat(list(moved.view(shape)), joined)


def ulysses(degree: int, *, causal: bool) -> Callable[[DeviceMesh], Program]:
    """Tokens are exchanged for heads around the attention, as DeepSpeed-Ulysses does."""

    def build(mesh: DeviceMesh) -> Program:
        def program(
            query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, weight: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            q, k, v = (exchanged(x, mesh, 1, 2) for x in (query, key, value))
            output = exchanged(F.scaled_dot_product_attention(q, k, v, is_causal=causal), mesh, 2, 1)
            loss: Any = (output * weight).sum()
            loss.backward()
            return {"output": output, "loss": loss}

        return program, (), inputs(TOKENS, degree)

    return build
