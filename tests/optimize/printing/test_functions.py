"""Scalar functions in C++ and torch compute what numpy does; texts for Triton name the arguments that there are."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from rewright.ops.functions import FUNCTIONS
from rewright.optimize.printing.cpp.runtime import HEADER
from rewright.optimize.printing.triton.helpers import needed_helpers
from rewright.optimize.running.building import build, compiler
from tests.ops.drawn import arguments, is_of_integers, values

PRINTED = {name: f.code.cpp for name, f in FUNCTIONS.items() if f.code.cpp is not None}
BY_TORCH = {name: text for name, f in FUNCTIONS.items() if (text := f.in_torch) is not None}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every function that has a text in C++, on three arrays of numbers or of integers."""
    if compiler() is None:
        pytest.skip("no C++ compiler")
    lines = [HEADER]
    for name, text in PRINTED.items():
        kind = "long" if is_of_integers(FUNCTIONS[name]) else "double"
        first = "bool" if name == "select" else kind
        value = text.format("x", "y", "z")
        lines.append(
            f'extern "C" void {name}_of({kind}* a, {kind}* b, {kind}* c, {kind}* found, long count) {{\n'
            "  for (long i = 0; i < count; ++i) {\n"
            f"    {first} x = a[i]; {kind} y = b[i], z = c[i]; found[i] = {value};\n  }}\n}}"
        )
    return build("\n".join(lines), Path(tmp_path_factory.mktemp("kernels")))


@pytest.mark.parametrize("name", PRINTED)
def test_cpp(name: str, library: ctypes.CDLL) -> None:
    operands = arguments(name)
    kind = np.int64 if is_of_integers(FUNCTIONS[name]) else np.float64
    given = [x.astype(kind) for x in (*operands, *operands, *operands)][:3]
    found = np.empty_like(given[0])
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*given, found)]
    getattr(library, f"{name}_of")(*pointers, ctypes.c_long(len(found)))
    np.testing.assert_allclose(found, values(name, operands), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", BY_TORCH)
def test_torch(name: str) -> None:
    operands = arguments(name)
    tensors = [torch.from_numpy(x) for x in operands]
    text = BY_TORCH[name].format(*(f"x[{k}]" for k in range(len(tensors))))
    found = eval(text, {"torch": torch, "x": tensors})
    np.testing.assert_allclose(found.numpy(), values(name, operands), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if f.code.triton is not None])
def test_triton(name: str) -> None:
    """The interpreter computes them in tests of kernels; a helper is written where it is called."""
    function = FUNCTIONS[name]
    triton = function.code.triton
    assert triton is not None
    assert set(re.findall(r"\{(\d)\}", triton.text)) == {str(k) for k in range(function.operands.count)}
    helper = re.search(r"\bdef (\w+)\(", triton.source)
    assert helper[1] in triton.text if helper else "_(" not in triton.text
    assert needed_helpers(triton.text).strip() == triton.source.strip()
