"""FlexAttention as what defines it: scores, a function of each score, a mask, softmax, values.

PyTorch's kernels for it do not run on a CPU with gradients, and its operator hides two functions of the program. Inside
:func:`dense_attention` the operator is PyTorch's own definition of it, whose operators a trace records; the gradient
is that of these. Kernels leave out blocks of scores that the block mask does not list, and do not ask the mask function
about those that it lists as full. The definition asks the function everywhere, so the two have to agree.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from rewright.ir.errors import CaptureError

_MOST_SCORES = 1 << 24
"""Larger masks are not compared with their function."""
ASSUMED = "the block masks of attention say the same as the functions that they were made of"


class _Noted(threading.local):
    """What the capture of this thread assumes, in order; nobody asks where there is none."""

    def __init__(self) -> None:
        self.texts: dict[str, None] | None = None


_noted = _Noted()


@contextmanager
def noting() -> Generator[dict[str, None]]:
    """What is assumed of attention inside of the block, by the capture that this thread makes."""
    before, _noted.texts = _noted.texts, {}
    try:
        yield _noted.texts
    finally:
        _noted.texts = before


@contextmanager
def dense_attention() -> Generator[None]:
    """FlexAttention inside of the block is plain operators, for all threads: enter it once for all of them.

    Where a block mask cannot be compared with its function, because its values are not known, that is noted
    (:func:`noting`); where they differ, CaptureError is raised.
    """
    operator: Any = importlib.import_module("torch._higher_order_ops.flex_attention")
    module: Any = importlib.import_module("torch.nn.attention.flex_attention")

    def called(_: object, query: Any, key: Any, value: Any, score: Any, block_mask: Any, *rest: Any) -> Any:
        known = _agrees(module, query, key, block_mask, rest[3] if len(rest) > 3 else ())
        if not known and _noted.texts is not None:
            _noted.texts[ASSUMED] = None
        return operator.math_attention(query, key, value, score, block_mask, *rest)

    def accepted(*_: object) -> None:
        """Kernels have no gradient on a CPU; the definition has."""

    empty = module._create_empty_block_mask

    def untraced(*args: Any) -> Any:
        with _disable_current_modes():  # what stands for no block mask is no part of the program
            return empty(*args)

    with ExitStack() as stack:
        stack.enter_context(torch.compiler.set_stance("force_eager"))  # it is compiled where it is used
        stack.enter_context(mock.patch.object(operator.FlexAttentionHOP, "__call__", called))
        stack.enter_context(mock.patch.object(module, "_validate_device", accepted))
        stack.enter_context(mock.patch.object(module, "_create_empty_block_mask", untraced))
        stack.enter_context(mock.patch.object(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True))
        yield


def _agrees(module: Any, query: Any, key: Any, block_mask: Any, buffers: Any) -> bool:
    """Whether a block mask is known to list the blocks that its function leaves.

    Raises CaptureError where it is known not to.
    """
    sizes, function = block_mask[-3:-1], block_mask[-1]
    if function is module.noop_mask and sizes == (module._LARGE_SPARSE_BLOCK_SIZE,) * 2:
        return True  # what stands for no block mask: one block
    shape = (*query.shape[:3], key.shape[2])
    tables = block_mask[2:6]
    known = not any(isinstance(x, FakeTensor) for x in (*tables, *buffers)) and all(isinstance(n, int) for n in shape)
    if not known or math.prod(shape) > _MOST_SCORES:
        return False

    def asks(b: Any, h: Any, i: Any, j: Any) -> Any:
        return function(b, h, i, j, *buffers)

    with _disable_current_modes():
        try:
            asked = module.create_mask(asks, *shape, device="cpu")
        except Exception:  # it reads tensors that have no values here
            return False
        partial, full = (_listed_blocks(counts, blocks, sizes, shape) for counts, blocks in (tables[:2], tables[2:]))
        agrees = bool(torch.equal((partial & asked) | full, asked))
    if not agrees:
        raise CaptureError(
            "a block mask leaves out scores that its mask function keeps, or keeps what it does not; make it with "
            "create_block_mask from that function"
        )
    return True


def _listed_blocks(counts: Any, indices: Any, sizes: tuple[int, int], shape: tuple[int, ...]) -> Any:
    """Which scores are in a block of a list: for every row of blocks the first so many of ``indices``."""
    if counts is None:
        return torch.zeros(shape, dtype=torch.bool, device="cpu")
    blocks: Any = torch.zeros(indices.shape, dtype=torch.bool, device=indices.device)
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    blocks = blocks.scatter_reduce(-1, indices.long(), listed, "amax")
    for axis, size in ((-2, sizes[0]), (-1, sizes[1])):
        blocks = blocks.repeat_interleave(size, axis)
    return blocks[..., : shape[2], : shape[3]].expand(shape)
