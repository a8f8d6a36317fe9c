"""Every operator that captures of Transformers models were found to contain has a lowering."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rewright.frontends.aten.__main__ import main, table
from rewright.frontends.aten.lowering import PLACEMENT
from rewright.frontends.aten.tables import FAMILIES, IGNORED, PURE, VIEWS, WRITES, functional_name, supported_operators

EXPORTED = [
    "view", "permute", "mul", "add", "_assert_tensor_metadata", "unsqueeze", "expand", "clone", "mm", "slice", "bmm",
    "pow", "mean", "rsqrt", "addmm", "arange", "index", "cat", "where", "_softmax", "scalar_tensor", "sub",
    "logical_not", "neg", "native_layer_norm", "full", "bitwise_and", "_to_copy", "full_like", "sigmoid", "embedding",
    "cumsum", "split_with_sizes", "eq", "any", "alias", "gelu", "le", "sum", "ne", "div", "cos", "sin", "topk",
    "sort", "histc", "empty_permuted", "index_put", "exp", "constant_pad_nd", "bitwise_not", "copy", "slice_scatter",
    "ge", "convolution", "relu", "logical_and", "clamp", "minimum", "tanh", "empty", "gather", "select", "gt", "lt",
    "log", "scatter", "max", "repeat", "abs", "squeeze", "log1p", "scaled_dot_product_attention", "linear",
    "layer_norm",
]  # fmt: skip
JOINT = [
    "t", "transpose", "_unsafe_view", "detach", "squeeze", "slice_backward", "select_backward", "new_zeros",
    "native_layer_norm_backward", "embedding_dense_backward", "silu_backward", "gelu_backward", "tanh_backward",
    "sigmoid_backward", "threshold_backward", "softplus_backward", "_softmax_backward_data", "_log_softmax",
    "_log_softmax_backward_data", "nll_loss_forward", "nll_loss_backward",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_safe_softmax", "convolution_backward", "scatter_add", "flip", "tril", "ones_like", "masked_fill", "copy_",
    "add_", "div_", "scatter_", "logical_and_", "bernoulli_",
]  # fmt: skip


@pytest.mark.parametrize("name", EXPORTED + JOINT)
def test_the_operators_of_real_models(name: str) -> None:
    entries = {*PURE, *VIEWS, *WRITES, *IGNORED}
    names = {entry.split(".")[1] for entry in entries if entry.startswith("aten.")}
    assert name in names or name.removesuffix("_") in names


def parameters(function: Callable[..., Any]) -> tuple[list[inspect.Parameter], bool, bool]:
    """Those that take operands, and whether further positional and keyword arguments are taken and ignored."""
    every = list(inspect.signature(function).parameters.values())[1:]
    kinds = {parameter.kind for parameter in every}
    named = [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return named, inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds


def equal_defaults(ours: Any, theirs: Any) -> bool:
    """A number may stand for a list of equal numbers, and None for False or an empty list."""
    if isinstance(theirs, list) and theirs:
        return set(theirs) == (set(ours) if isinstance(ours, tuple) else {ours})
    return ours == theirs or (not ours and not theirs)


@pytest.mark.parametrize("name", [name for table in FAMILIES.values() for name in table if name.startswith("aten.")])
def test_defaults_are_those_of_the_schema(name: str) -> None:
    """A traced node leaves out what equals PyTorch's default, so ours must be the same."""
    _, operator, overload = name.split(".")
    schema = getattr(getattr(torch.ops.aten, operator), overload)._schema
    function = next(table[name] for table in FAMILIES.values() if name in table)
    named, more, keywords = parameters(function)
    positional = iter([p for p in named if p.kind is p.POSITIONAL_OR_KEYWORD])
    by_name = {p.name: p for p in named}
    for argument in schema.arguments:
        ours = by_name.get(argument.name) if argument.kwarg_only else next(positional, None)
        if ours is None:
            assert argument.name in PLACEMENT or (keywords if argument.kwarg_only else more), argument.name
        elif argument.has_default_value():
            assert equal_defaults(ours.default, argument.default_value), argument.name


def test_no_operator_is_in_two_tables() -> None:
    every = [name for names in supported_operators().values() for name in names]
    assert len(every) == len(set(every))
    assert not IGNORED & set(every)


def test_in_place_operators_use_their_functional_form() -> None:
    assert functional_name("aten.add_.Tensor") == "aten.add.Tensor"
    assert functional_name("aten.add.Tensor") is None
    assert functional_name("aten.__and__.Tensor") is None


def test_the_table_for_the_documentation_has_a_row_for_each_family() -> None:
    rows = table().splitlines()
    assert len(rows) == len(FAMILIES) + 2
    assert any("`aten.embedding_dense_backward.default`" in row for row in rows)


def test_the_module_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    assert capsys.readouterr().out.startswith("| family |")
    with pytest.raises(SystemExit, match="usage:"):
        main([])
