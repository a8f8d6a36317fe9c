"""The tables of all operators that lower, and of those that mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rewright.frontends.aten import (
    aliasing,
    attention,
    collectives,
    contraction,
    creation,
    elementary,
    indexing,
    loss,
    mutation,
    normalization,
    pointwise,
    pooling,
    reduction,
    searching,
    special,
    vendor,
)
from rewright.frontends.triton import lowering as triton

FAMILIES: dict[str, dict[str, Callable[..., Any]]] = {
    "pointwise": pointwise.TABLE,
    "elementary functions": elementary.TABLE,
    "special functions": special.TABLE,
    "creation": creation.TABLE,
    "indexing": indexing.TABLE,
    "reduction": reduction.TABLE,
    "searching": searching.TABLE,
    "pooling": pooling.TABLE,
    "contraction": contraction.TABLE,
    "attention": attention.TABLE,
    "normalization": normalization.TABLE,
    "loss": loss.TABLE,
    "slice writes": mutation.TABLE,
    "collectives": collectives.TABLE,
    "vendor kernels": vendor.TABLE,
    "Triton kernels": triton.TABLE,
    "HLO in ATen graphs": vendor.HLO,
    "views": aliasing.TABLE,
    "writes": mutation.WRITES,
}
"""Lowerings by family and by the name of the ATen overload."""

VIEWS = aliasing.TABLE
MUTATING = vendor.MUTATING
"""Kernels that write into their operands, as ``auto_functionalized`` calls them."""
WRITES = mutation.WRITES
PURE: dict[str, Callable[..., Any]] = {
    name: function
    for family, table in FAMILIES.items()
    if family not in ("views", "writes")
    for name, function in table.items()
}

KNOWN = frozenset({*PURE, *VIEWS, *WRITES})

ASSERTIONS = {
    "aten._assert_async.default": False,
    "aten._assert_async.msg": False,
    "aten._linalg_check_errors.default": True,
}
"""What raises an error where its operand is zero, or where it is not."""
IGNORED = frozenset(
    {
        *ASSERTIONS,
        "aten._assert_scalar.default",
        "aten._assert_tensor_metadata.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
        "profiler._record_function_enter.default",
        "profiler._record_function_enter_new.default",
        "profiler._record_function_exit.default",
        "profiler._record_function_exit._RecordFunction",
        "c10d.barrier.default",
        "c10d.monitored_barrier_.default",
        "_assert_scalar",
        "_set_grad_enabled",
        "sym_constrain_range_for_size",
    }
)
"""Operators without a result that matters: assertions, profiler marks, grad modes."""


def functional_name(name: str) -> str | None:
    """``aten.add.Tensor`` for ``aten.add_.Tensor``; None where the operator is not in place."""
    if name.count(".") < 2:
        return None
    namespace, operator, overload = name.split(".", 2)
    if not operator.endswith("_") or operator.startswith("__"):
        return None
    return f"{namespace}.{operator[:-1]}.{overload}"


def returning_form(name: str) -> str | None:
    """``aten.mul.Tensor`` for ``aten.mul.out``, which writes its result into a tensor that is given; else None."""
    operator, _, overload = name.rpartition(".")
    if overload == "out":
        return next((form for o in ("default", "Tensor") if (form := f"{operator}.{o}") in PURE), None)
    form = f"{operator}.{overload.removesuffix('_out')}"
    return form if overload.endswith("_out") and form in PURE else None


def is_known(name: str) -> bool:
    """Whether an operator is in one of the tables, perhaps in the form that returns what this one writes."""
    if name in KNOWN or returning_form(name) is not None:
        return True
    return functional_name(name) in PURE


def supported_operators() -> dict[str, list[str]]:
    """Names of the operators that lower, by family, in alphabetical order."""
    return {family: sorted(table) for family, table in FAMILIES.items()}
