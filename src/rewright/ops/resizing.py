"""Operators with other sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from rewright.ir.dims import Dim, SizeExpr
from rewright.ops.sizes import Attributes, Mark

Op = TypeVar("Op")


def with_sizes(op: Op, attributes: Attributes, size: Callable[[Mark], Dim]) -> Op:
    """The operator with other sizes: what its attributes say stands for them is looked up."""

    def given(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(given, cast("tuple[Any, ...]", value)))
        return value if value is None or isinstance(value, int | SizeExpr) else size(value)

    changed = {name: given(value) for name, value in attributes.items()}
    if "tensor" in changed:
        changed["tensor"] = cast(Any, op).tensor.with_shape(changed["tensor"])
    return replace(cast(Any, op), **changed) if changed else op
