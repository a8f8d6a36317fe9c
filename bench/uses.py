"""Time to prove by phase, and uses of laws, of programs of the zoo as JSON: ``python -m bench.uses [NAME ..]``.

Forward and backward, over two ranks, at tiny sizes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from bench.programs import captured
from rewright.ir.errors import RewrightError
from rewright.refine import refine

PROGRAMS = (
    ("llama", "dtensor"),
    ("llama", "dtensor_sp_loss"),
    ("qwen2", "dtensor_loss"),
    ("qwen3", "tp_plan"),
    ("mixtral", "tp_plan"),
    ("gemma2", "dtensor_sp"),
    ("gpt2", "dtensor_loss"),
    ("bert", "dtensor"),
    ("vit", "tp_plan"),
    ("decoder", "megatron_sp"),
)


def measure(name: str, plan: str) -> dict[str, Any]:
    """What one program took, and which laws it used how often."""
    head = {"program": f"{name}, {plan.replace('_', ' ')}"}
    try:
        pair = captured(name, plan, "tiny", 2, True)
        start = time.perf_counter()
        verdict = refine(pair.sequential, pair.distributed)
        seconds = time.perf_counter() - start
    except RewrightError as error:
        return {**head, "status": "failed", "error": str(error)}
    phases = {"capture": pair.sequential_seconds + pair.distributed_seconds, **verdict.stats.seconds}
    return {**head, "status": verdict.status, "seconds": seconds, "phases": phases, "laws": verdict.stats.laws}


def main(arguments: Sequence[str]) -> None:
    """Print a list of measurements."""
    chosen = [pair for pair in PROGRAMS if not arguments or pair[0] in arguments]
    print(json.dumps({"programs": [measure(*pair) for pair in chosen]}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
