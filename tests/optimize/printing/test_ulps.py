"""Scalar functions of kernels in C++ have the errors that they state, and loops over them are vector code."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest

from rewright.ops.functions import FUNCTIONS
from rewright.optimize.printing.cpp.runtime import HEADER
from rewright.optimize.running.building import FLAGS, build, compiler

SINGLE = {
    "exponential": ("std::exp(x)", 1.2),
    "exponential_minus_one": ("std::expm1(x)", 1.4),
    "log": ("std::log(x)", 0.9),
    "log_plus_one": ("std::log1p(x)", 1.4),
    "logistic": ("1 / (1 + std::exp(-x))", 2.5),
    "tanh": ("std::tanh(x)", 1.3),
    "erf": ("std::erf(x)", 1.9),
    "sine": ("std::sin(x)", 1.6),
    "cosine": ("std::cos(x)", 1.6),
}
"""Functions in C++'s own double precision, and how many units in the last place the float32 one may be off."""
DOUBLE = {
    "exponential": (mpmath.exp, 1.2),
    "exponential_minus_one": (mpmath.expm1, 2.0),
    "log": (mpmath.log, 1.0),
    "log_plus_one": (mpmath.log1p, 1.4),
    "tanh": (mpmath.tanh, 2.6),
    "erf": (mpmath.erf, 1.3),
}
"""Functions to fifty digits, and how many units the float64 one may be off."""
POWERS = {
    "power_of_two": ("exp2_(x)", "std::exp2(x)"),
    **{
        f"power_of_two_{number}": (f"exp2_(x, {high}f, {low}f)", f"std::exp2(x * ((double){high}f + {low}f))")
        for number, (high, low) in enumerate([(0.7213475, 9.6298149e-9), (-1.442695, -1.92596e-8), (14426.95, 2e-4)])
    },
}
"""Two to a power, and to a multiple of it by a sum of two numbers."""
SCAN = """
static double unit(float f) {{ return std::ldexp(1.0, std::max(std::ilogb(f) - 23, -149)); }}
static bool is_same(float a, float b) {{ return a != a ? b != b : a == b && std::signbit(a) == std::signbit(b); }}
template <class F, class G> static long scan(F mine, G exact, double* worst) {{
  long wrong = 0;
  for (uint64_t bits = 0; bits < (1ul << 32); bits += {step}) {{
    const float x = bits_to_float((int32_t)(uint32_t)bits), y = mine(x);
    const double r = exact((double)x);
    const float f = (float)r;
    if (std::isnan(f) || std::isinf(f) || f == 0 || !std::isfinite(y)) wrong += !is_same(f, y);
    else *worst = std::max(*worst, std::abs((double)y - r) / unit(f));
  }}
  return wrong;
}}
"""


def loop(name: str, kind: str, *chain: str) -> str:
    """A function in C++ that computes a scalar function of arrays, or some of them one of the other."""
    value = "x[i]"
    for function in reversed(chain or (name,)):
        value = str(FUNCTIONS[function].code.cpp).format(value, "y[i]")
    arguments = f"{kind}* __restrict x, {kind}* __restrict y, {kind}* __restrict to"
    return f'extern "C" void {name}_{kind}({arguments}, long n) {{ for (long i = 0; i < n; ++i) to[i] = {value}; }}'


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if compiler() is None:
        pytest.skip("no C++ compiler")
    lines = [HEADER, "#include <algorithm>", SCAN.format(step=1009)]
    for name, (exact, _) in SINGLE.items():
        mine = str(FUNCTIONS[name].code.cpp).format("x")
        call = f"scan([](float x) {{ return {mine}; }}, [](double x) {{ return {exact}; }}, worst)"
        lines.append(f'extern "C" long {name}_scan(double* worst) {{ return {call}; }}')
    for name, (mine, exact) in POWERS.items():
        call = f"scan([](float x) {{ return {mine}; }}, [](double x) {{ return {exact}; }}, worst)"
        lines.append(f'extern "C" long {name}_scan(double* worst) {{ return {call}; }}')
    lines += [loop(name, "double") for name in DOUBLE] + [loop("power", "float")]
    return build("\n".join(lines), Path(tmp_path_factory.mktemp("kernels")))


def applied(function: object, *operands: np.ndarray) -> np.ndarray:
    """The values of a function of the library on arrays."""
    found = np.empty_like(operands[0])
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (operands[0], operands[-1], found)]
    function(*pointers, ctypes.c_long(found.size))  # type: ignore[operator]
    return found


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_is_within_its_units(name: str, library: ctypes.CDLL) -> None:
    """Every 1009th float: infinities, zeros, numbers below the normal ones and NaN are among them, or their like."""
    worst = ctypes.c_double(0.0)

    wrong = getattr(library, f"{name}_scan")(ctypes.byref(worst))

    assert wrong == 0
    assert 0.5 <= worst.value <= SINGLE[name][1]


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_two_are_within_their_units(name: str, library: ctypes.CDLL) -> None:
    """Whatever the exponent is: infinity, zero, below the normal numbers, and NaN of any bits."""
    worst = ctypes.c_double(0.0)

    wrong = getattr(library, f"{name}_scan")(ctypes.byref(worst))

    assert wrong == 0
    assert 0.5 <= worst.value <= 1.2


@pytest.mark.parametrize("name", DOUBLE)
def test_double_precision_is_within_its_units(name: str, library: ctypes.CDLL) -> None:
    exact, units = DOUBLE[name]
    draws = np.random.default_rng(5)
    x = np.concatenate([draws.normal(size=300), draws.normal(size=100) * 20, draws.normal(size=100) * 1e-3])
    x = np.concatenate([x, [1e-300, 5e-324, 709.7, -745.0, 1.0, -0.99, 1e300]])
    if name.startswith("log"):
        x = np.maximum(np.abs(x) - (name == "log_plus_one") * 0.5, -0.999)
    x = x[x < 709.75] if name.startswith("exp") else x

    found = applied(getattr(library, f"{name}_double"), x)

    with mpmath.workdps(50):
        for argument, value in zip(x.tolist(), found.tolist(), strict=True):
            real = exact(mpmath.mpf(argument))
            assert abs(mpmath.mpf(value) - real) <= units * np.spacing(abs(float(real))), argument


@pytest.mark.parametrize("name", DOUBLE)
def test_double_precision_has_the_special_values_of_numpy(name: str, library: ctypes.CDLL) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 800.0, -800.0, 1e308])

    found = applied(getattr(library, f"{name}_double"), x)

    with np.errstate(all="ignore"):
        expected = np.asarray(FUNCTIONS[name].values.numpy(x))
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert np.array_equal(
        np.signbit(found)[~np.isnan(x) & (found == found)], np.signbit(expected)[expected == expected]
    )


def test_powers_are_those_of_c99_and_rounded_well(library: ctypes.CDLL) -> None:
    special = [
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        1.5,
        np.inf,
        1e-40,
        3e38,
        16777215.0,
        0.99999994,
        1.0000001,
        127.0,
        149.0,
        151.0,
    ]
    edges = np.array([*special, *(-s for s in special), np.nan], np.float32)
    draws = np.random.default_rng(6)
    bases = np.exp(draws.normal(size=3000) * 20).astype(np.float32)
    x = np.concatenate([np.repeat(edges, edges.size), bases])
    y = np.concatenate([np.tile(edges, edges.size), (draws.uniform(-150, 128, 3000) / np.log2(bases))]).astype(
        np.float32
    )

    found = applied(library.power_float, x, y)

    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
        rounded = expected.astype(np.float32)
    plain = np.isfinite(rounded) & (rounded != 0)
    error = np.abs(found[plain] - expected[plain]) / np.spacing(np.abs(rounded[plain]))
    assert error.max() <= 0.51
    np.testing.assert_array_equal(found[~plain], rounded[~plain])
    assert np.array_equal(np.signbit(found[~np.isnan(rounded)]), np.signbit(rounded[~np.isnan(rounded)]))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_loops_are_vector_code(kind: str, tmp_path: Path) -> None:
    """By what the compiler reports of each loop, on a machine with wide vectors."""
    command = compiler()
    if command is None or not command.endswith("g++"):
        pytest.skip("only g++ reports loops in this way")
    source, flags = tmp_path / "loops.cpp", ["-march=native", *(f for f in FLAGS if f != "-shared")]
    names = [*SINGLE, "power", "sqrt", "rsqrt"] if kind == "float" else [*DOUBLE, "logistic", "sqrt", "rsqrt"]
    bodies = {name: [name] for name in names} | {f"{a}_of_{b}": [a, b] for a in names for b in names[:4] if a != b}
    first = HEADER.count("\n") + 2
    source.write_text("\n".join([HEADER, *(loop(name, kind, *chain) for name, chain in bodies.items())]))
    wide = subprocess.run([command, *flags, "-dM", "-E", str(source)], capture_output=True, text=True, check=True)
    if "__AVX2__" not in wide.stdout:
        pytest.skip("rounding of vectors needs AVX2 here")

    done = subprocess.run(
        [command, *flags, "-fopt-info-vec-optimized", "-S", "-o", str(tmp_path / "loops.s"), str(source)],
        capture_output=True,
        text=True,
        check=True,
    )

    lines = {int(n) for n in re.findall(r"loops\.cpp:(\d+):\d+: optimized: loop vectorized", done.stderr)}
    assert {name for k, name in enumerate(bodies) if first + k not in lines} == set()
