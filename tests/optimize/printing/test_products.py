"""Products of tiles in C++, and rows of tensors as their columns."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from rewright.optimize.printing.cpp.runtime import HEADER
from rewright.optimize.running.building import build, compiler

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]
ELEMENTS = {"float": torch.float32, "double": torch.float64, "half_t": torch.float16, "bfloat_t": torch.bfloat16}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if compiler() is None:
        pytest.skip("no C++ compiler")
    sizes = "long m, long n, long k"
    lines = [
        HEADER,
        f'extern "C" void multiply({sizes}, float* a, float* b, float* c) '
        "{ tile_product<float>(m, n, k, a, k, b, n, c, n, false); }",
    ]
    lines.append(
        f'extern "C" void multiply_bfloats({sizes}, float* a, float* b, float* c) '
        "{ tile_product_of_bfloats(m, n, k, a, k, b, n, c, n, false); }"
    )
    for name in ELEMENTS:
        to = "double" if name == "double" else "float"
        lines.append(
            f'extern "C" void turn_{name}(long rows, long depth, long stride, {name}* from, {to}* to, long width) '
            f"{{ turn_rows<{to}>(rows, depth, from, stride, to, width); }}"
        )
    return build("\n".join(lines), Path(tmp_path_factory.mktemp("kernels")))


def rounded(a: np.ndarray) -> np.ndarray:
    """The nearest numbers of bfloat16."""
    return torch.from_numpy(a).bfloat16().float().numpy()


@pytest.fixture(params=["multiply", "multiply_bfloats"])
def product(library: ctypes.CDLL, request: pytest.FixtureRequest) -> Product:
    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        found = np.empty((a.shape[0], b.shape[1]), np.float32)
        sizes = (a.shape[0], b.shape[1], a.shape[1])
        getattr(library, request.param)(
            *map(ctypes.c_long, sizes), *(ctypes.c_void_p(x.ctypes.data) for x in (a, b, found))
        )
        return found

    return multiply


@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(1, 16, 1), (6, 64, 64), (7, 80, 65), (48, 64, 300), (11, 16, 0)]
)
def test_a_product_of_tiles_is_one(rows: int, columns: int, depth: int, product: Product) -> None:
    draws = np.random.default_rng(rows)
    a, b = (rounded(draws.normal(size=shape).astype(np.float32)) for shape in ((rows, depth), (depth, columns)))

    np.testing.assert_allclose(product(a, b), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-5)


def test_the_same_product_has_the_same_bits_in_whatever_tile_it_is(product: Product) -> None:
    """A row alone, rows in another place, and the other operand as rows: sums over the depth have one order."""
    draws = np.random.default_rng(3)
    a, b = (rounded(draws.normal(size=shape).astype(np.float32)) for shape in ((48, 200), (200, 64)))
    whole = product(a, b)

    assert np.array_equal(product(np.ascontiguousarray(a[5:6]), b), whole[5:6])
    assert np.array_equal(product(np.ascontiguousarray(a[7:20]), np.ascontiguousarray(b[:, 16:32])), whole[7:20, 16:32])
    assert np.array_equal(product(np.ascontiguousarray(b.T), np.ascontiguousarray(a.T)), whole.T)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 16, 1), (7, 80, 65), (48, 64, 300)])
def test_a_product_of_bfloats_rounds_its_operands(rows: int, columns: int, depth: int, library: ctypes.CDLL) -> None:
    """Both, on every machine that has such products; no machine is further off."""
    draws = np.random.default_rng(rows)
    a, b = (draws.normal(size=shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    found = np.empty((rows, columns), np.float32)
    pointers = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, found))
    library.multiply_bfloats(*map(ctypes.c_long, (rows, columns, depth)), *pointers)

    as_rounded, as_they_are = rounded(a).astype(np.float64) @ rounded(b), a.astype(np.float64) @ b
    assert any(np.allclose(found, c, rtol=1e-4, atol=1e-4) for c in (as_rounded, as_they_are))


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize(("rows", "depth"), [(64, 32), (35, 21), (3, 40), (16, 16), (20, 5)])
def test_rows_of_a_tensor_become_columns(name: str, rows: int, depth: int, library: ctypes.CDLL) -> None:
    tensor = torch.randn(rows, depth + 7).to(ELEMENTS[name])
    found = torch.full((depth, 64), -1.0, dtype=torch.float64 if name == "double" else torch.float32)

    pointers = (ctypes.c_void_p(tensor.data_ptr()), ctypes.c_void_p(found.data_ptr()))
    getattr(library, f"turn_{name}")(*map(ctypes.c_long, (rows, depth, depth + 7)), *pointers, ctypes.c_long(64))

    assert torch.equal(found[:, :rows], tensor[:, :depth].T.to(found.dtype))
    assert (found[:, rows:] == -1).all()
