"""The table of a run: counts, and what is not supported and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from bench.conformance.results import WRONG, State, Variant
from bench.conformance.samples import DTYPES, name_of

NEEDED = 570
"""So many of all variants must be supported."""
KINDS = ("equal", "rounded", "guarded", "refused", "differs", "foreign", "skipped")
STATES: dict[State, str] = {
    "whole": "supported, every sample of the main dtype",
    "part": "supported, some samples of the main dtype are refused",
    "refused": "not supported",
    "wrong": "wrong: a sample differs, or ends in another error",
    "nothing": "nothing to compare: PyTorch gives no tensor",
}
INTRODUCTION = """\
# Conformance with PyTorch

Every sample of PyTorch's own operator database (`torch.testing._internal.common_methods_invocations.op_db`) is
captured, the graph is executed, and the outputs, what was written and, backward, the gradients of all operands are
compared with what PyTorch computes itself. `make conformance` runs all of them and writes this page; the test suite
runs a tenth.

A sample is

- *equal* where all results agree within the tolerance of its dtype. Where PyTorch leaves open which of equal elements
  is chosen (`topk`, an unstable sort), the chosen values must agree, and the indices must lead to them.
- *rounded* where the graph, which does not round floats, computes what PyTorch computes of the same numbers in double
  precision, and PyTorch's own result in the dtype of the sample is further away than the tolerance; or, of integers,
  where it computes what PyTorch does once its floats are single precision.
- *guarded* where a row is masked as a whole, PyTorch's kernel has an infinity, and the graph has no number; it agrees
  where it is captured with `guards_queries=True`. The record of a capture names such calls.
- *refused* where the capture ends in `CaptureError` or `UnsupportedOperator`, with a reason.
- *skipped* where PyTorch itself raises an error, or returns no tensor.
- Otherwise it *differs*, or it is a *foreign* error. Neither may happen.

A variant is *supported* where in its main dtype, the first one below in which PyTorch runs it, at least one sample is
equal, rounded or guarded, and no sample differs or ends in a foreign error in any dtype, forward or backward.
"""


def report(variants: Sequence[Variant], most: int | None, every: int) -> Iterator[str]:
    """The page, line by line."""
    yield from INTRODUCTION.splitlines()
    yield ""
    if most is not None:
        yield f"This run took {most} sample{'s' if most > 1 else ''} of each variant, dtype and direction."
        yield ""
    if len(variants) < every:
        yield f"It took {len(variants)} of the {every} variants of the database."
        yield ""
    yield from _states(variants)
    yield ""
    yield from _counts(variants)
    for state in ("wrong", "refused", "part", "nothing"):
        found = [variant for variant in variants if variant.state == state]
        if found:
            yield ""
            yield f"## {STATES[state][0].upper()}{STATES[state][1:]}"
            yield ""
            yield from _reasons(found)


def supported(variants: Iterable[Variant]) -> int:
    """How many variants are supported."""
    return sum(variant.state in ("whole", "part") for variant in variants)


def _states(variants: Sequence[Variant]) -> Iterator[str]:
    yield "| variants | |"
    yield "|---|---|"
    for state, text in STATES.items():
        yield f"| {text} | {sum(variant.state == state for variant in variants)} |"
    yield f"| **supported, of {len(variants)}** | **{supported(variants)}** |"


def _counts(variants: Sequence[Variant]) -> Iterator[str]:
    yield "| samples | " + " | ".join(KINDS) + " |"
    yield "|---|" + "---|" * len(KINDS)
    for backward in (False, True):
        for dtype in DTYPES:
            name = name_of(dtype)
            lines = [x for v in variants for x in v.lines if (x.dtype, x.backward) == (name, backward)]
            if lines:
                counts = [sum(line.counts.get(kind, 0) for line in lines) for kind in KINDS]
                yield f"| {name}, {'backward' if backward else 'forward'} | " + " | ".join(map(str, counts)) + " |"


def _reasons(variants: Sequence[Variant]) -> Iterator[str]:
    """Variants by why they are not supported, those that many share first."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for variant in variants:
        grouped[_reason(variant)].append(variant.name)
    yield "| why | variants |"
    yield "|---|---|"
    for why, names in sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| {why} | {', '.join(f'`{name}`' for name in names)} |"


def _reason(variant: Variant) -> str:
    main = variant.main
    lines = variant.lines if variant.state == "wrong" or main is None else [main]
    for kind in (*WRONG, "refused", "skipped"):
        for line in lines:
            if kind in line.reasons:
                return _plain(line.reasons[kind])
    return "no sample"


def _plain(why: str) -> str:
    """A reason without the places in this benchmark, as a cell of a table."""
    why = re.sub(r"( stopped)? at samples\.py:\d+( \(backward\))?", "", why).replace("tracing program: ", "")
    why = re.sub(r"node %\d+ ", "", why)
    return why.replace("|", "/").replace("<", "(").replace(">", ")").replace("\n", " ")
