"""Running both programs where a proof failed, and making the counterexample small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rewright.ir.errors import RewrightError
from rewright.ir.operator import Unsupported
from rewright.ops.agreement import CollectiveMismatch
from rewright.ops.base import Array
from rewright.refine.case import Case, Ran
from rewright.refine.proof import Proof
from rewright.refine.relations.solving import reads
from rewright.refine.twin.resizing import Resize
from rewright.refine.twin.twin import TwinResult, make_twin, shrink_programs
from rewright.refine.verdict import Counterexample

_FEW = 64
"""Inputs with no more elements than this are as small as anyone needs them."""

_TIMES, _ENOUGH = 4, 16
"""How many times as many inputs as special values need are tried, where that is no more than so many: a bug may show
only where one rank has the largest element, say."""


def compare(case: Case, given: Mapping[str, Array] | None = None) -> Ran:
    """Run the programs where they can be run, and compare their outputs as they are expected to be held.

    ``given`` are values of inputs, at the sizes at which the programs are run.
    """
    try:
        solved = reads(case.relations.equations, case.sequential, case.program)
        twin = make_twin(case.sequential, case.program, solved=solved)
    except CollectiveMismatch as error:
        return Ran(TwinResult(False, str(error)))
    if isinstance(twin, Unsupported):
        return Ran(TwinResult(None, f"the numeric twin cannot run: {twin.why}"))
    expected = {name: p for name, p in case.expected.items() if name in case.sequential.outputs}
    twin = replace(twin, draws=replace(twin.draws, given={**twin.draws.given, **(given or {})}))
    return Ran(twin.compare(expect=expected), twin)


def conclude_from_values(case: Case, ran: Ran, proof: Proof) -> Ran:
    """What values say of a proof; a placement that was proved but not asked for decides by itself."""
    result = ran.result
    expected = {name: p for name, p in case.expected.items() if name in case.sequential.outputs}
    if ran.twin is not None and result.agrees is True:
        needed = ran.twin.draws.trials
        if needed < _ENOUGH:
            result = ran.twin.compare(expect=expected, trials=min(_TIMES * needed, _ENOUGH))
    if result.agrees is True:
        partial = [n for n in proof.failed if "Partial" in proof.relations[n].placement and n not in expected]
        if partial:
            reason = f"{partial[0]} is a sum that is never reduced over the ranks"
            result = replace(result, agrees=False, reason=reason, wrong_outputs=tuple(partial))
        else:
            reason = f"values agree on {result.trials} random inputs, so no proof is not a bug"
            result = replace(result, reason=reason)
    return Ran(result, ran.twin)


def smallest(case: Case, ran: Ran) -> Counterexample | None:
    """A counterexample at sizes as small as both programs allow, where there are smaller ones; else the one found."""
    found = ran.result.counterexample
    if found is None or ran.twin is None or ran.twin.shrunk or ran.twin.solved or _elements(found) <= _FEW:
        return found
    twin = ran.twin
    try:
        shapes = {name: twin.sequential.nodes[p].type.shape for name, p in twin.sequential.outputs.items()}
        tiny = shrink_programs(twin.sequential, twin.program, twin.schedule, Resize(shapes))
        if isinstance(tiny, Unsupported):
            return found
        expected = twin.rescale({name: p for name, p in case.expected.items() if name in case.sequential.outputs})
        example = tiny.compare(expect=expected, stop_early=True).counterexample
    except RewrightError:
        return found
    return example if example is not None and _elements(example) < _elements(found) else found


def _elements(example: Counterexample) -> int:
    return sum(math.prod(shape) for shape in example.sizes.values())
