"""HloEnv's interface (Apache-2.0, sail-sg/hloenv, 2022) on stock jaxlib: ``import rewright.env.compat as hloenv``.

Agents written for HloEnv run with that import line; nothing else of this package imports it. Read ``environment`` first
(passes, pipelines and the loop of an agent), then ``features`` (what an agent sees); ``pipelines`` holds the passes
that HloEnv runs around its choices. ``docs/reference/hloenv.md`` lists what is the same and what differs.
"""

from rewright.env.compat.config import GpuBackend
from rewright.env.compat.environment import (
    AltPipeline,
    EvaluationResult,
    HloEnv,
    HloPass,
    Pass,
    Pipeline,
    hlo_pass,
)
from rewright.env.compat.features import HloGraph
from rewright.env.compat.module import HloModule

__all__ = [
    "AltPipeline",
    "EvaluationResult",
    "GpuBackend",
    "HloEnv",
    "HloGraph",
    "HloModule",
    "HloPass",
    "Pass",
    "Pipeline",
    "hlo_pass",
]
