"""Kernels of layers that are alike are one function; what differs in more than names is not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.ir.types import DType
from rewright.optimize.printing.cpp.functions import ELEMENTS, language
from rewright.optimize.printing.cpp.renderer import _NUMBERED, _SHARED, Source, translation_unit
from tests.optimize.programs import normal


def layers(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """Rows normalised and multiplied by a matrix, once for each."""
    for w in weights:
        x = x + F.gelu(F.layer_norm(x, (x.shape[-1],)) @ w)
    return x


def test_equal_layers_are_compiled_once() -> None:
    args = normal(6, 300), *(normal(300, 300, seed=seed) for seed in range(1, 5))
    found = rw.optimize(layers, args, target="cpu", floor=False, remember=False)

    assert found.printed is not None and found.status == "proved"
    text = found.printed.files["kernels.cpp"]
    assert text.count("(tensors, threads); }") >= 2
    torch.testing.assert_close(found(*args), layers(*args), rtol=1e-4, atol=1e-4)


def test_no_type_or_function_counts_as_a_name_of_a_kernel() -> None:
    words = {*ELEMENTS.values(), *language(DType.F32).types.values()}
    assert not {word for word in words if _NUMBERED.fullmatch(word)} - _SHARED


def source(name: str, body: str) -> Source:
    return Source(name, f'extern "C" void {name}(void** tensors, long threads) {{\n{body}}}\n', (), frozenset())


BODY = (
    "  float* t7 = (float*)tensors[0];  // reads x\n  const float* t9 = (float*)tensors[1];\n  t7[0] = exp2(t9[3]);\n"
)


@pytest.mark.parametrize(
    ("changed", "shares"),
    [
        (BODY.replace("t7", "t1").replace("reads x", "reads y"), True),
        (BODY.replace("t7", "t10").replace("t9", "t7").replace("t10", "t9"), True),
        (BODY.replace("t9[3]", "t7[3]"), False),
        (BODY.replace("exp2", "exp10"), False),
        (BODY.replace("[3]", "[4]"), False),
        (BODY.replace("float*", "double*"), False),
        (BODY.replace("tensors[0]", "tensors[2]"), False),
    ],
)
def test_only_names_of_a_kernel_may_differ(changed: str, shares: bool) -> None:
    text = translation_unit([source("kernel0", BODY), source("kernel1", changed)])

    assert ("void kernel1(void** tensors, long threads) { kernel0(tensors, threads); }" in text) == shares
