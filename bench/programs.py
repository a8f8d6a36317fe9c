"""Captured programs of the zoo, with the seconds that the captures took."""

from __future__ import annotations

import time
from dataclasses import dataclass

import zoo
from bench.mixer import mixer
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram

DTENSOR = ("dtensor", "dtensor_sp", "dtensor_loss", "dtensor_sp_loss")
DECODERS = ("llama", "qwen2", "qwen3", "phi3", "mixtral")
PAIRS = (
    *((name, plan) for name in DECODERS for plan in (*DTENSOR, "tp_plan")),
    *(("gemma2", plan) for plan in DTENSOR),
    *((name, plan) for name in ("bert", "vit") for plan in ("dtensor", "tp_plan")),
    *(("gpt2", plan) for plan in ("dtensor", "dtensor_loss")),
    *(("decoder", plan) for plan in ("megatron", "megatron_sp")),
)
"""Every model with every plan that it has."""


@dataclass(frozen=True)
class Pair:
    """A sequential program and one for all ranks."""

    sequential: Graph
    distributed: RankProgram
    sequential_seconds: float
    distributed_seconds: float


def captured(
    name: str, plan: str, size: str, degree: int, backward: bool, jobs: int = 1, all_ranks: bool = False
) -> Pair:
    """Capture a model of the zoo on one device and on a mesh of one axis; ``mixer`` is one of its own, on two axes."""
    start = time.perf_counter()
    if name == "mixer":
        return Pair(*mixer(), 0.0, time.perf_counter() - start)
    module, args, kwargs = zoo.sequential(name, size, degree=degree, backward=backward)
    sequential = capture(module, args, kwargs, backward=backward)
    middle = time.perf_counter()
    build = zoo.parallel(name, plan, size, degree=degree, backward=backward)
    distributed = capture_ranks(build, {"tp": degree}, backward=backward, jobs=jobs, all_ranks=all_ranks)
    return Pair(sequential, distributed, middle - start, time.perf_counter() - middle)
