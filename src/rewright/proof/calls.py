"""What calls of a function a certificate is for, where its programs were captured for some calls alone.

A program that ``rewright optimize`` wrote is that of calls with certain shapes, numbers and flags. Its metadata says
so, a condition a line, and the certificate says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewright.ir.graph import Graph
from rewright.proof.refusal import OtherPrograms

KEY = "calls"
"""Where a graph's metadata has it."""


def check_calls(stated: Sequence[str], graphs: Iterable[Graph]) -> None:
    """Verify that programs are for the calls that a certificate states, where they say for which; or OtherPrograms."""
    for graph in graphs:
        own = graph.metadata.get(KEY)
        if own is not None and tuple(own.splitlines()) != tuple(stated):
            lines = [line for line in own.splitlines() if line not in stated] or ["fewer conditions"]
            raise OtherPrograms(f"the certificate is not about calls of the kind that the programs are for: {lines[0]}")
