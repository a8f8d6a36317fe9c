"""Calls of PyTorch's operators as programs of their tensors: every sample of the database, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

DTYPES = (
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)
SEED = 11


@dataclass(frozen=True)
class Case:
    """One call: ``program(tensors)`` makes it, on tensors that :meth:`tensors` gives anew."""

    variant: str
    dtype: torch.dtype
    number: int
    backward: bool
    program: Callable[[list[torch.Tensor]], Any]
    given: tuple[torch.Tensor, ...]

    def tensors(self) -> list[torch.Tensor]:
        """Fresh operands: a program may write into them."""
        return [_fresh(x, x.dtype, self.backward) for x in self.given]

    def wide(self) -> list[torch.Tensor]:
        """The same numbers in double precision."""
        wider = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64}
        wider |= {torch.complex64: torch.complex128}
        return [_fresh(x, wider.get(x.dtype, x.dtype), self.backward) for x in self.given]


def _fresh(x: torch.Tensor, dtype: torch.dtype, backward: bool) -> torch.Tensor:
    copy = x.detach().clone().to(dtype)
    return copy.requires_grad_(backward and x.requires_grad)


def name_of(dtype: torch.dtype) -> str:
    """``float64``."""
    return str(dtype).removeprefix("torch.")


def database() -> dict[str, Any]:
    """PyTorch's operators by the name of the variant. Importing it sets global switches of PyTorch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {op.formatted_name: op for op in op_db}


def cases(op: Any, dtype: torch.dtype, *, backward: bool, most: int | None = None) -> Iterator[Case]:
    """The samples of an operator in a dtype, in the order of the database; the first ``most`` of them."""
    torch.manual_seed(SEED)
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=backward)):
        if most is not None and number >= most:
            return
        yield _case(op, dtype, number, sample, backward)


def supports(op: Any, dtype: torch.dtype, *, backward: bool) -> bool:
    """Whether PyTorch has the operator in a dtype, with gradients where they are asked for."""
    if backward and not (dtype.is_floating_point and op.supports_autograd):
        return False
    known = op.supported_backward_dtypes("cpu") if backward else op.supported_dtypes("cpu")
    return dtype in known


def _case(op: Any, dtype: torch.dtype, number: int, sample: Any, backward: bool) -> Case:
    leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    given = tuple(leaves[i] for i in places)

    def program(tensors: list[torch.Tensor]) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        result = op.op(first, *args, **kwargs)
        return _differentiated(sample.output_process_fn_grad(result)) if backward else result

    return Case(op.formatted_name, dtype, number, backward, program, given)


def _differentiated(result: Any) -> Any:
    """The results, after the gradients of a sum of them that weighs all elements differently were asked for."""
    loss: Any = None
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            flat = torch.view_as_real(leaf) if leaf.is_complex() else leaf
            ramp = torch.arange(flat.numel(), dtype=flat.dtype).reshape(flat.shape)
            term = (flat * ((ramp % 7) / 8 + 0.25)).sum()
            loss = term if loss is None else loss + term
    if loss is not None:
        loss.backward()
    return result
