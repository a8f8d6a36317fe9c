"""Kernels as one operator of PyTorch, which ``torch.export`` keeps: packages carry this file as it is."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Run = Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]
Types = Callable[[Sequence[torch.Tensor]], Sequence[tuple[Sequence[Any], torch.dtype]]]
"""Shapes and dtypes of results, from tensors that may have no values, and symbols for sizes."""
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


def register(
    name: str, inputs: Sequence[str], outputs: Sequence[str], run: Run, types: Types, device: str = "cpu"
) -> Callable[..., Any]:
    """``torch.ops.<namespace>.<name>``: it takes tensors in the order of ``inputs``, and has no gradient.

    It returns one tensor, or a tuple of them in the order of ``outputs``, each row by row in memory of its own. What
    had this name before is replaced. Raises ValueError for a name that is no ``namespace::name``, and where nothing is
    returned.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an operator; write namespace::name")
    if not outputs:
        raise ValueError(f"nothing is returned by {name}; an operator returns tensors")

    def kernels(*tensors: torch.Tensor) -> Any:
        found = run(dict(zip(inputs, tensors, strict=True)))
        return _packed(_apart([found[output] for output in outputs], tensors))

    def stand_in(*tensors: torch.Tensor) -> Any:
        return _packed([torch.empty(tuple(shape), dtype=dtype, device=device) for shape, dtype in types(tensors)])

    def refuse(context: Any, *gradients: Any) -> None:
        raise RuntimeError(f"{name} runs kernels that have no gradient; differentiate the program that they are for")

    library: Any = torch.library
    taken = ", ".join(f"Tensor {argument}" for argument in _identifiers(inputs))
    given = "Tensor" if len(outputs) == 1 else f"({', '.join(['Tensor'] * len(outputs))})"
    operator = library.custom_op(name, kernels, mutates_args=(), device_types=device, schema=f"({taken}) -> {given}")
    operator.register_fake(stand_in)
    operator.register_autograd(refuse)
    namespace, own = name.split("::")
    found: Callable[..., Any] = getattr(getattr(torch.ops, namespace), own)
    return found


def _packed(tensors: Sequence[torch.Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _apart(results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Results in memory that no input and no other result has, row by row."""
    used = {value.untyped_storage().data_ptr() for value in inputs}
    found: list[torch.Tensor] = []
    for value in results:
        place = value.untyped_storage().data_ptr()
        found.append(value.clone(memory_format=torch.contiguous_format) if place in used else value.contiguous())
        used.add(found[-1].untyped_storage().data_ptr())
    return found


def _identifiers(names: Sequence[str]) -> list[str]:
    """Names for the arguments of a schema, each once."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name)
        plain = f"_{plain}" if keyword.iskeyword(plain) or not plain.isidentifier() else plain
        while plain in found:
            plain += "_"
        found.append(plain)
    return found
