"""Everything in the zoo: whether it is proved, the checker confirms it and the twin agrees, by ``make zoo``.

``python -m bench.zoo NAME ..`` takes some models only, or ``steps`` or ``patterns``: the training steps, and the bugs
that people have had. ``--degrees 2,4`` chooses degrees. Sizes are tiny,
or with ``--published`` the smallest that was published of each model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.programs import PAIRS, Pair, captured
from bench.steps import PATTERN_COLUMNS, STEP_COLUMNS, pattern_rows, step_rows
from bench.tables import print_table
from rewright.ir.errors import RewrightError
from rewright.ir.operator import Unsupported
from rewright.refine import refine
from rewright.refine.relations.known import complete_relations, input_relations, output_expectations
from rewright.refine.twin.twin import make_twin
from zoo import SIZES


def row(name: str, plan: str, size: str, degree: int, backward: bool) -> list[object]:
    """One row of the table."""
    head: list[object] = [f"{name} {size}", plan, degree, "forward + backward" if backward else "forward"]
    try:
        pair = captured(name, plan, size, degree, backward)
        start = time.perf_counter()
        verdict = refine(pair.sequential, pair.distributed, audit=True)
        seconds = time.perf_counter() - start
        agrees = twin(pair)
    except RewrightError as error:
        return [*head, "error", "", "", "", "", "", "", str(error)]
    capture_seconds = pair.sequential_seconds + pair.distributed_seconds
    reason = "" if verdict.status == "proved" else verdict.reason
    checked = verdict.stats.seconds.get("audit", 0.0)
    found = [verdict.status, str(verdict.evidence), len(verdict.relation), agrees]
    return [*head, *found, capture_seconds, seconds - checked, checked, reason]


def twin(pair: Pair) -> str:
    """What execution in float64 says, on inputs that the proof has not seen."""
    known = complete_relations(
        pair.sequential, pair.distributed, input_relations(pair.sequential, pair.distributed, None), {}
    )
    program = replace(pair.distributed, inputs=known.placements)
    made = make_twin(pair.sequential, program)
    if isinstance(made, Unsupported):
        return made.why
    result = made.compare(expect=output_expectations(pair.sequential, program, None))
    return "agrees" if result.agrees else result.reason


def rows(names: Sequence[str], degrees: Sequence[int], *, published: bool) -> Iterator[list[object]]:
    """All rows, as they are measured."""
    for name, plan in PAIRS:
        if not names or name in names:
            for degree in degrees:
                for backward in (False, True):
                    yield row(name, plan, SIZES[name][1] if published else "tiny", degree, backward)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--degrees", default="2,3,4,8,16", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--published", action="store_true")
    options = parser.parse_args()
    header = ["model", "plan", "degree", "program", "status", "evidence", "outputs", "twin", "capture s", "prove s"]
    header += ["audit s", "reason"]
    chosen = set(options.names)
    if not chosen or chosen - {"steps", "patterns"}:
        print_table(header, rows(options.names, options.degrees, published=options.published))
    if not chosen or "steps" in chosen:
        print()
        print_table(STEP_COLUMNS, step_rows())
    if not chosen or "patterns" in chosen:
        print()
        print_table(PATTERN_COLUMNS, pattern_rows())
