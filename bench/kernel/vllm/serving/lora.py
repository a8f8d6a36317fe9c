"""vLLM's products with adapters of low rank: seven tokens, of which three use one adapter, and four another one."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.kernel.rows import Row, Tensor, normal
from bench.kernel.vllm import vllm
from bench.kernel.vllm.serving.batches import whole

OPS = "lora.ops.triton_ops"
USED = torch.tensor([0, 0, 0, 1, 1, 1, 1])
"""Which of the adapters in use each token has, in the order in which tokens are sorted by it."""


def rows() -> Iterator[Row]:
    """The functions, in order."""
    order, which = whole(5, 0, 3, 1, 6, 2, 4), whole(2, 0)
    shrink = (normal(7, 40), normal(3, 10, 40), order, which)
    yield Row("_lora_shrink_kernel", _shrunk, _shrink_kernel, shrink)
    yield Row("_lora_shrink_kernel (two parts of the inner axis)", _summed, _split_kernel, shrink)
    yield Row("_lora_shrink_kernel, _lora_shrink_reduce_kernel", _shrunk, _reduce_kernel, shrink)
    yield Row("_lora_shrink_kernel (one adapter)", _single, _single_kernel, shrink[:2])
    expand = (normal(7, 10), normal(3, 20, 10), order, which, normal(7, 20) + 1)
    yield Row("_lora_expand_kernel", _expanded, _expand_kernel, expand[:4])
    yield Row("_lora_expand_kernel (added to what is there)", _added, _add_kernel, expand)
    yield Row("_lora_expand_kernel (one adapter)", _grown, _grow_kernel, expand[:2])


def _each(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    mine = w.index_select(0, which.index_select(0, USED))
    return torch.einsum("tk,tnk->tn", x.index_select(0, order), mine)


def _product(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    """Each token times its adapter's matrix."""
    return torch.zeros(x.shape[0], w.shape[1]).index_copy(0, order.long(), _each(x, w, order, which))


def _summed(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    """The same where a token that is there twice counts twice."""
    return torch.zeros(7, 10).index_add(0, order.long(), 0.5 * _each(x, w, order, which))


def _shrunk(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    return 0.5 * _product(x, w, order, which)


def _shrink(
    x: Tensor, w: Tensor, order: Tensor, which: Tensor, parts: int, counts: tuple[int, ...], out: Tensor, stored: bool
) -> Tensor:
    starts = whole(0, *counts).cumsum(0).int()
    vllm(f"{OPS}.lora_shrink_op")._lora_shrink_kernel[(parts * 2 * 2, 1, len(counts))](
        x, w, out, 7, 10, 40, order, whole(*counts), starts, which, 0.5, 40, 1, 400, 40, 1, out.stride(0),
        out.stride(-2), out.stride(-1), 4, 8, 16, False, parts, 8, 1, False, False, STORE_PARTIALS=stored,
        output_split_stride=70 if stored else 0, PARTIAL_N=10, PARTIAL_K=40,
    )  # fmt: skip
    return out


def _shrink_kernel(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    return _shrink(x, w, order, which, 1, (3, 4), torch.zeros(1, 7, 10), False)[0]


def _split_kernel(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    return _shrink(x, w, order, which, 2, (3, 4), torch.zeros(1, 7, 10), False)[0]


def _reduce_kernel(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    parts, out = _shrink(x, w, order, which, 2, (3, 4), torch.empty(1, 2, 7, 10), True), torch.zeros(1, 7, 10)
    vllm(f"{OPS}.lora_shrink_op")._lora_shrink_reduce_kernel[(4, 1, 2)](
        parts, out, 7, 10, order, whole(3, 4), whole(0, 3, 7), which, 0.5, *parts.stride(), *out.stride(), 4, 8, 2, 8
    )
    return out[0]


def _single(x: Tensor, w: Tensor) -> Tensor:
    return 0.5 * (x @ w[1].T)


def _single_kernel(x: Tensor, w: Tensor) -> Tensor:
    order = torch.arange(7, dtype=torch.int32)
    return _shrink(x, w, order, whole(1), 1, (7,), torch.zeros(1, 7, 10), False)[0]


def _expanded(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    return _product(x, w, order, which)


def _expand(
    x: Tensor, w: Tensor, order: Tensor, which: Tensor, counts: tuple[int, ...], out: Tensor, added: bool
) -> Tensor:
    starts = whole(0, *counts).cumsum(0).int()
    vllm(f"{OPS}.lora_expand_op")._lora_expand_kernel[(2 * 3, 1, len(counts))](
        x, w, out, 7, 20, 10, order, whole(*counts), starts, which, 0, 70, 10, 1, 200, 10, 1, 20, 1, 20, 4, 8, 16,
        False, added, False, 1, True, False, False,
    )  # fmt: skip
    return out


def _expand_kernel(x: Tensor, w: Tensor, order: Tensor, which: Tensor) -> Tensor:
    return _expand(x, w, order, which, (3, 4), torch.zeros(7, 20), False)


def _added(x: Tensor, w: Tensor, order: Tensor, which: Tensor, out: Tensor) -> Tensor:
    return out + _product(x, w, order, which)


def _add_kernel(x: Tensor, w: Tensor, order: Tensor, which: Tensor, out: Tensor) -> Tensor:
    return _expand(x, w, order, which, (3, 4), out.clone(), True)


def _grown(x: Tensor, w: Tensor) -> Tensor:
    return x @ w[1].T


def _grow_kernel(x: Tensor, w: Tensor) -> Tensor:
    return _expand(x, w, torch.arange(7, dtype=torch.int32), whole(1), (7,), torch.zeros(7, 20), False)
