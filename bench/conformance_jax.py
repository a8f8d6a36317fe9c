"""Captures of JAX functions against JAX itself, on generated arguments: ``make conformance-jax``.

Every case is a function of ``jax.lax`` or ``jax.numpy`` with some attributes on some arrays. It is captured, the graph
is executed in float64, and what comes out is compared with what JAX computes on the CPU. A case ends *equal*,
*refused* (the capture says in one sentence that it does not take the program), *differs*, or as a *foreign error*.
Nothing may end in one of the last two. ``python -m bench.conformance_jax --every 10`` takes each tenth case.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import rewright as rw
from bench.conformance_jax_arrays import structured
from bench.conformance_jax_elements import elementwise
from bench.conformance_jax_values import Case
from rewright.interp.program import run
from rewright.ir.errors import RewrightError

_CLOSE = {"float64": (1e-8, 1e-10), "float32": (3e-4, 1e-5), "float16": (2e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}
"""How far a result of a dtype may be off, relative and absolute: JAX rounds, and the graph is computed in float64."""
WRONG = ("differs", "foreign error")


@dataclass(frozen=True)
class Outcome:
    """How a case ended, and why."""

    case: Case
    kind: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.case}: {self.why}"


def cases() -> list[Case]:
    """All cases, the same ones in every run."""
    return [*elementwise(), *structured()]


def judge(case: Case) -> Outcome:
    """Capture a case, execute the graph, and compare it with JAX."""
    with jax.enable_x64(True):
        try:
            expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(case.function)(*case.arguments))]
        except Exception as error:
            return Outcome(case, "no case", f"JAX itself: {type(error).__name__}: {error!s:.100}")
        try:
            graph = rw.capture(case.function, case.arguments, framework="jax", validate=False)
            given = {f"xs.{place}": np.asarray(x) for place, x in enumerate(case.arguments)}
            found = list(run(graph, {name: _wide(given[name]) for name in graph.inputs}).values())
        except RewrightError as error:
            return Outcome(case, "refused", str(error))
        except Exception as error:
            return Outcome(case, "foreign error", f"{type(error).__name__}: {error}")
    for place, (own, other) in enumerate(zip(found, expected, strict=True)):
        why = difference(own, other)
        if why:
            return Outcome(case, "differs", f"result {place} {why}")
    return Outcome(case, "equal")


def _wide(x: Any) -> Any:
    """Floats that numpy does not have on its own, such as bfloat16, as float64."""
    return x.astype(np.float64) if x.dtype.kind in "fV" else x


def difference(found: Any, expected: Any) -> str:
    """Where and how two arrays differ; empty where they do not."""
    if found.shape != expected.shape:
        return f"has shape {found.shape}, and JAX {expected.shape}"
    is_float = str(expected.dtype) in _CLOSE
    if is_float != (found.dtype.kind == "f") or (not is_float and found.dtype != expected.dtype):
        return f"is of {found.dtype}, and JAX's of {expected.dtype}"
    if not is_float:
        wrong = found != expected
    else:
        relative, absolute = _CLOSE[str(expected.dtype)]
        with np.errstate(all="ignore"):
            wide = expected.astype(np.float64)
            wrong = ~np.isclose(found, wide, rtol=relative, atol=absolute, equal_nan=True)
    if not np.any(wrong):
        return ""
    at = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
    own, other = np.atleast_1d(found)[at], np.atleast_1d(expected)[at]
    return f"is {own} at {list(at)}, and JAX's {other}; {int(np.sum(wrong))} of {found.size} elements"


def table(outcomes: Sequence[Outcome]) -> str:
    """Counts of all cases, and by function those that were refused."""
    kinds = Counter(one.kind for one in outcomes)
    functions = {one.case.name for one in outcomes if one.kind != "no case"}
    equal = {one.case.name for one in outcomes if one.kind == "equal"}
    lines = [
        f"{sum(kinds.values()) - kinds['no case']} cases of {len(functions)} functions: {kinds['equal']} equal, "
        f"{kinds['refused']} refused, {kinds['differs']} differ, {kinds['foreign error']} foreign errors; "
        f"{len(equal)} functions are equal in some case"
    ]
    refused = Counter(one.case.name for one in outcomes if one.kind == "refused")
    for name, count in sorted(refused.items()):
        why = next(one.why for one in outcomes if one.case.name == name and one.kind == "refused")
        lines.append(f"  {name}: {count} refused, such as: {why}")
    return "\n".join(lines)


def main(every: int, only: str, verbose: bool) -> int:
    """Print how the cases end; 1 where one is wrong."""
    chosen = [case for case in cases() if only in case.name][::every]
    outcomes: list[Outcome] = []
    for case in chosen:
        outcomes.append(judge(case))
        if outcomes[-1].kind in WRONG or (verbose and outcomes[-1].kind != "equal"):
            print(outcomes[-1], flush=True)
        if len(outcomes) % 200 == 0:
            jax.clear_caches()  # programs that will not run again
    print(table(outcomes))
    return 1 if any(one.kind in WRONG for one in outcomes) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take each so many cases")
    parser.add_argument("--only", default="", help="functions whose name holds this")
    parser.add_argument("--verbose", action="store_true", help="print what is refused, too")
    chosen = parser.parse_args()
    sys.exit(main(chosen.every, chosen.only, chosen.verbose))
