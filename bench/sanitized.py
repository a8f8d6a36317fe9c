"""``python -m bench.sanitized [NAME ...]``: printed C++ under sanitizers, on sizes that are awkward for it.

What is proved is the plan and its statements; from these to C++ is a renderer. Each program is compiled once for all
sizes, and again for some sizes alone, with AddressSanitizer and UndefinedBehaviorSanitizer, and run: sizes of zero,
one, and just below, at and above those of vectors and tiles; elements that are infinite or no numbers. A process is
for one program, since a finding ends it. What the sanitizers see is tried on kernels of which a loop runs once too
often.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.api import Optimized
from rewright.optimize.printing.cpp.renderer import translation_unit
from rewright.optimize.running import building
from rewright.optimize.running.execution import native
from tests.optimize.programs import normal

Tensor = torch.Tensor
Sizes = tuple[int, int]
AWKWARD = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 0)
ALONE = ((1, 1), (1, 17), (17, 1), (7, 33), (65, 9), (16, 64))
"""Sizes of which each has kernels of its own."""
_OFF = {"-O3", "-w"}
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-w")


def rows(n: int, m: int) -> tuple[Tensor, ...]:
    """One matrix."""
    return (normal(n, m),)


def attended(n: int, m: int) -> tuple[Tensor, ...]:
    """Queries, keys and values of two heads."""
    return normal(1, 2, n, 16), normal(1, 2, m, 16, seed=1), normal(1, 2, m, 16, seed=2)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention to the keys up to a query's own place."""
    scores = q @ k.transpose(-1, -2) / 4
    keeps = torch.arange(k.shape[-2])[None] <= torch.arange(q.shape[-2])[:, None]
    return torch.softmax(scores.masked_fill(~keeps, -torch.inf), -1) @ v


def mixed(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """A product, a bias and GELU."""
    return F.gelu(x @ w + bias)


def norm(x: Tensor, w: Tensor) -> Tensor:
    """Layer norm with a weight."""
    return F.layer_norm(x, (x.shape[-1],)) * w


def shifted(x: Tensor) -> Tensor:
    """Rows that are moved, and a row of zeros in front."""
    return torch.cat([x[1:], x[:1]]) * x + F.pad(x, (0, 0, 1, 0))[:-1]


def _softmax(x: Tensor) -> Tensor:
    return torch.softmax(x * 2, -1)


def _statistics(x: Tensor) -> tuple[Tensor, ...]:
    return x.argmax(-1), x.amax(-1), torch.logsumexp(x, -1), x.mean(0)


def _long_product(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w)


def _transposed(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.T.exp(), x.T.sum(-1)


def _running(x: Tensor) -> Tensor:
    return x.cumsum(-1) * x


def _looked_up(table: Tensor, ids: Tensor) -> Tensor:
    return table[ids] * 2 + 1


def _whole(x: Tensor) -> tuple[Tensor, ...]:
    return (x * 7 - 3) % 5, x // 3, x.sum(-1)


def _short_floats(x: Tensor) -> Tensor:
    return F.silu(x) * torch.sigmoid(x.float()).bfloat16()


def _of_special(x: Tensor) -> tuple[Tensor, ...]:
    return torch.softmax(x, -1), x.amax(-1), torch.sigmoid(x), torch.where(x > 0, x, 0.0)


Program = tuple[Callable[..., Any], Callable[[int, int], tuple[Tensor, ...]], tuple[str, ...]]
PROGRAMS: dict[str, Program] = {
    "softmax": (_softmax, rows, ("nm",)),
    "statistics": (_statistics, rows, ("nm",)),
    "layer norm": (norm, lambda n, m: (normal(n, m), normal(m, seed=1)), ("nm", "m")),
    "product, bias, GELU": (
        mixed,
        lambda n, m: (normal(n, 24), normal(24, m, seed=1), normal(m, seed=2)),
        ("n_", "_m", "m"),
    ),
    "product over a long axis": (_long_product, lambda n, m: (normal(n, m), normal(m, 24, seed=1)), ("nm", "m_")),
    "causal attention": (causal, attended, ("__n_", "__m_", "__m_")),
    "shifted rows": (shifted, rows, ("nm",)),
    "transposed": (_transposed, rows, ("nm",)),
    "running sums": (_running, rows, ("nm",)),
    "look-ups": (_looked_up, lambda n, m: (normal(max(n, 1), 12), torch.arange(m) % max(n, 1)), ("n_", "m")),
    "whole numbers": (_whole, lambda n, m: (torch.arange(n * m).view(n, m) - 9,), ("nm",)),
    "bfloat16": (_short_floats, lambda n, m: (normal(n, m).bfloat16(),), ("nm",)),
    "special numbers": (_of_special, lambda n, m: (_special(n, m),), ("nm",)),
}
"""The programs, their arguments for two sizes, and which axes have them."""


def _special(n: int, m: int) -> Tensor:
    values = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-40, 3e38, -1.5])
    return values[torch.arange(n * m) * 5 % 8].view(n, m)


def check(name: str) -> str:
    """How many calls of a program kernels ran, and rightly; ends the process where a sanitizer finds something.

    Raises RewrightError where there are no kernels for a program.
    """
    program, make, axes = PROGRAMS[name]
    kernels, ran, left = 0, 0, 0
    made = [(make(9, 20), _names(program, axes), list(product(AWKWARD, AWKWARD)))]
    made += [(make(*sizes), {}, [sizes]) for sizes in ALONE]
    for example, named, calls in made:
        found = rw.optimize(program, example, target="cpu", dynamic=named or None, floor=False, remember=False)
        if found.status != "proved" or found.runner is None or found.plan is None:
            raise RewrightError(f"no kernels for {[list(x.shape) for x in example]}: {found.reason}")
        kernels += len(found.plan.kernels)
        for sizes in calls:
            is_run = _compare(found, program, make(*sizes))
            ran, left = ran + (is_run is True), left + (is_run is False)
    return f"| {name} | {kernels} | {ran} | {left} |"


def _names(program: Callable[..., Any], axes: tuple[str, ...]) -> dict[str, dict[int, str]]:
    code = getattr(program, "__code__", None)
    assert code is not None, "programs are functions"
    own = code.co_varnames[: code.co_argcount]
    return {
        name: {axis: letter for axis, letter in enumerate(letters) if letter != "_"}
        for name, letters in zip(own, axes, strict=True)
    }


def _compare(found: Optimized, program: Callable[..., Any], args: tuple[Tensor, ...]) -> bool | None:
    """Whether kernels ran a call, whose results are right; None where PyTorch has no result."""
    try:
        wanted = program(*args)
    except (RuntimeError, IndexError):
        return None  # the largest element of an empty row
    found.notes.clear()
    is_short = any(x.dtype is torch.bfloat16 for x in args)  # products are rounded once here, and twice by PyTorch
    torch.testing.assert_close(found(*args), wanted, equal_nan=True, atol=1e-4, rtol=1e-2 if is_short else 1e-3)
    return not found.notes  # else the original program ran


def wrong_loops(text: str) -> list[str]:
    """A translation unit with one loop of its kernels after the other that runs once too often."""
    kernels = text.index('extern "C"')
    loops = re.finditer(r"for \([^;]*; \w+ (<) ", text)
    return [text[: loop.start(1)] + "<=" + text[loop.end(1) :] for loop in loops if loop.start() > kernels]


_FOUND = re.compile(r"ERROR: AddressSanitizer|runtime error:")


def sanitize() -> None:
    """Have what is compiled from now on in this process checked as it runs."""
    building.FLAGS = (*(flag for flag in building.FLAGS if flag not in _OFF), *SANITIZED)


def try_wrong_loop(number: int) -> str:
    """Run a softmax of which one loop is wrong; whether its values are. The process ends where a sanitizer sees it."""
    x = normal(7, 33)
    right = rw.optimize(_softmax, (x,), target="cpu", floor=False, remember=False)
    assert right.printed is not None
    (source,) = right.printed.sources
    library = building.build(wrong_loops(translation_unit([source]))[number])
    out = torch.empty(7, 33)
    native(getattr(library, source.name), lambda: 1)([x, out])
    return "same values" if torch.allclose(out, _softmax(x)) else "other values"


def _try_wrong_loops(cache: str) -> str:
    """How many loops that run once too often a sanitizer sees, and what became of the others."""
    right = rw.optimize(_softmax, (normal(7, 33),), target="cpu", floor=False, remember=False)
    assert right.printed is not None
    count = len(wrong_loops(translation_unit(right.printed.sources)))
    found = Counter(
        ("seen" if _FOUND.search(done.stderr) else "failed") if done.returncode else done.stdout.strip()
        for number in range(count)
        for done in [_in_own_process(cache, "--wrong", str(number))]
    )
    return f"of {count} loops that run once too often: {', '.join(f'{n} {what}' for what, n in found.items())}"


def _in_own_process(cache: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.sanitized", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment(cache))


def environment(cache: str) -> dict[str, str]:
    """What a process needs that loads libraries with sanitizers, and keeps them in a folder of its own."""
    command = building.compiler() or ""
    libraries = (
        subprocess.run([command, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    )
    options = "detect_leaks=0:alloc_dealloc_mismatch=0:halt_on_error=1"
    preload, names = " ".join(libraries), ("ASAN_OPTIONS", "XDG_CACHE_HOME", "PYTHONMALLOC", "LD_PRELOAD")
    return {**os.environ, **dict(zip(names, (options, cache, "malloc", preload), strict=True))}


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--one", help="a program to run in this process")
    parser.add_argument("--wrong", type=int, help="a loop that runs once too often, in this process")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if asked.one or asked.wrong is not None:
        sanitize()
        print(check(asked.one) if asked.one else try_wrong_loop(asked.wrong))
        return 0
    print(f"{building.version_of(building.compiler() or 'none')}, {', '.join(SANITIZED[:3])}\n")
    print("| program | kernels | calls that they ran | calls left to PyTorch |\n|---|---|---|---|")
    failed = 0
    with tempfile.TemporaryDirectory() as cache:
        for name in PROGRAMS:
            if asked.names and name not in asked.names:
                continue
            done = _in_own_process(cache, "--one", name)
            failed += done.returncode != 0
            print(
                done.stdout.strip() if done.returncode == 0 else f"| {name} | {_first(done.stderr)} | | |", flush=True
            )
        if not asked.names:
            print(f"\n{_try_wrong_loops(cache)}")
    return 1 if failed else 0


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if _FOUND.search(line)]
    return (lines or text.strip().splitlines()[-1:] or ["ended"])[0][:160]


if __name__ == "__main__":
    sys.exit(main())
