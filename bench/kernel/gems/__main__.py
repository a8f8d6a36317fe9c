"""``python -m bench.kernel.gems [NAME ...]``: FlagGems' operators, as it registers them, against ATen's own.

Arguments are those that PyTorch's tests give the functions (its OpInfo), the first call of each operator.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module, metadata
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from bench.kernel.gems.arguments import Call, overload, recorded
from bench.kernel.gems.device import pretend, pretend_of_tensors
from rewright.frontends.torch.forks import Asked
from rewright.ir.errors import RewrightError

_SECONDS = 90.0


def registered() -> dict[str, Callable[..., Any]]:
    """FlagGems' functions by the operator that each stands for, without block pointers, which Triton has no more."""
    pretend()
    logging.disable(logging.CRITICAL)
    package: Any = import_module("flag_gems")
    settings: Any = import_module("flag_gems.utils.codegen_config_utils")
    plain = settings.CodeGenConfig
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()) if getattr(module, "__name__", "").startswith("flag_gems") else ():
            if isinstance(getattr(value, "config", None), plain):
                value.config.prefer_block_pointer = False
    found: dict[str, Callable[..., Any]] = {}
    for name, function, *_ in package._FULL_CONFIG:
        found.setdefault(name, function)
    return found


def of_tensors(function: Callable[..., Any], call: Call) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """A function of the tensors of a call alone, and these."""
    flat, spec = tree_flatten((call.args, dict(call.kwargs)))
    places = [n for n, value in enumerate(flat) if isinstance(value, torch.Tensor)]

    def go(*tensors: torch.Tensor) -> Any:
        values = list(flat)
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        args, kwargs = tree_unflatten(values, spec)
        return function(*args, **kwargs)

    names = ", ".join(f"x{n}" for n in range(len(places)))
    scope: dict[str, Any] = {"go": go}
    exec(f"def call({names}):\n    return go({names})", scope)
    return scope["call"], [flat[place] for place in places]


def verdict(name: str, function: Callable[..., Any], call: Call) -> tuple[str, str, int, float]:
    """The status of an operator, why, on how many inputs it was run, and the seconds of CPU."""
    import rewright as rw

    started = time.process_time()
    try:
        reference, args = of_tensors(overload(name), call)
        found = rw.kernel(reference, of_tensors(function, call)[0], args, budget=20, explain=False)
        status, reason, runs = found.status, found.reason, found.runs
    except RewrightError as error:
        status, reason, runs = "error", str(error), 0
    return status, reason, runs, time.process_time() - started


def rows(wanted: list[str]) -> Iterator[tuple[str, str, str, int, float]]:
    """The operators that PyTorch's tests reach, with their verdicts, each from a process of its own."""
    functions = registered()
    found = recorded(functions)
    pretend_of_tensors()
    for name, calls in found.items():
        if not wanted or name in wanted:
            asked = Asked(partial(verdict, name, functions[name], calls[0]))
            found = asked.answer(_SECONDS) or ("unknown", f"no answer in {_SECONDS:.0f} s", 0, _SECONDS)
            asked.end()
            yield name, *found


def main() -> int:
    print(f"flag_gems {metadata.version('flag_gems')}, triton {metadata.version('triton')}\n")
    print("| operator | verdict | runs | seconds of CPU |\n|---|---|---|---|")
    counts: Counter[str] = Counter()
    for name, status, reason, runs, seconds in rows(sys.argv[1:]):
        counts[status] += 1
        text = status if status == "proved" else f"{status}: {' '.join(reason.split())[:160]}"
        print(f"| {name} | {text} | {runs} | {seconds:.1f} |", flush=True)
    print(f"\n{', '.join(f'{count} {status}' for status, count in sorted(counts.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
