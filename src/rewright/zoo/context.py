"""Attention over a split sequence as ``torch``'s ``context_parallel`` computes it: keys travel around, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.experimental._context_parallel import _attention

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]

HEADS, TOKENS, WIDTH = 2, 4, 4

_parallel: Any = _attention
_torch: Any = torch


def flash(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, is_causal: bool = False, **_: Any
) -> torch.Tensor:
    """The kernel that ``scaled_dot_product_attention`` takes on an accelerator; the CPU's has no parallel form."""
    return _torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, is_causal)[0]


flash.__name__ = F.scaled_dot_product_attention.__name__


@contextmanager
def around(mesh: DeviceMesh, *, balanced: bool, rotation: str) -> Generator[None]:
    """Attention inside goes around the mesh; ``rotation`` is ``allgather`` or ``alltoall``."""
    options = _parallel._cp_options
    changed = {"enable_load_balance": balanced, "rotate_method": _parallel._RotateMethod[ROTATIONS[rotation]]}
    with mock.patch.multiple(options, **changed), mock.patch.object(F, "scaled_dot_product_attention", flash):
        _parallel._enable_context_parallel_dispatcher_impl(seq_dim=2, mesh=mesh)
        try:
            yield
        finally:
            _parallel._disable_context_parallel_dispatcher_impl()


ROTATIONS = {"allgather": "ALL_GATHER", "alltoall": "ALL_TO_ALL"}
"""How keys and values travel, as ``set_rotate_method`` calls it."""


def step(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, weight: torch.Tensor, causal: bool) -> Any:
    """Attention, and a loss that weighs each of its numbers."""
    output = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    loss = (output * weight).sum()
    loss.backward()
    return {"output": output, "loss": loss}


def inputs(length: int) -> dict[str, torch.Tensor]:
    """Queries, keys, values and weights of some tokens."""
    found = {name: torch.randn(1, HEADS, length, WIDTH) for name in ("query", "key", "value", "weight")}
    for name in ("query", "key", "value"):
        found[name].requires_grad_()
    return found


def sequential(degree: int, *, causal: bool) -> Program:
    return step, (), {**inputs(TOKENS * degree), "causal": causal}


def parallel(degree: int, *, causal: bool, balanced: bool = False, rotation: str = "allgather") -> Callable[[DeviceMesh], Program]:
    def build(mesh: DeviceMesh) -> Program:
        def program(**given: torch.Tensor) -> Any:
            with around(mesh, balanced=balanced, rotation=rotation):
                return step(**given, causal=causal)

        return program, (), inputs(TOKENS)

    return build
