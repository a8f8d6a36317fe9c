"""vLLM's tensor-parallel ranks, two of them, against the model of Transformers on one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.pairs import vllm
from bench.pairs.families import FAMILIES
from bench.pairs.reference import Pair

DEGREE = 2
PAIRS = {name: family.mutants for name, family in FAMILIES.items()}


def pair(name: str, changed: Mapping[str, Any] | None) -> Pair:
    """One device against all ranks, whose configuration has some fields changed."""
    return vllm.ranks(name, changed, DEGREE)
