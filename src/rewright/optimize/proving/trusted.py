"""How a plan is known to be right, as a record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rewright.ir.graph import Graph

Allow = Literal["proved", "tested"]
"""The least evidence with which a plan is used."""


@dataclass
class Trust:
    """How a plan is known to be right."""

    evidence: str = "tested"
    """``proved`` by the checker or the prover, or only ``tested``."""
    reason: str = ""
    certificate: Any = None
    assumptions: tuple[str, ...] = ()
    """What the certificate takes for granted."""
    program: Graph | None = None
    graph: Graph | None = None
    """The program, and the plan as a graph, which the certificate is about."""
    updates: list[str] = field(default_factory=list[str])
    """The identities of the running states, in words."""
    rules: dict[str, int] = field(default_factory=dict[str, int])
    """The rules of the library that the plan was rewritten by, and how often."""
    unproved: tuple[int, ...] = ()
    """The stored tensors that have no proof, where the others have one or may have."""
    seconds: float = 0.0
    """Of the processor."""
    kernels: Any = None
    """The verdict on the Triton kernels as they are printed, where it was asked for."""
