"""A traced torch program on its way from the tracer to the lowering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch.fx

from rewright.frontends.aten.context import Communicator
from rewright.ir.types import SourceSpan


@dataclass(frozen=True)
class TracedProgram:
    """One flat ATen graph over fake tensors, with the names that the program's tensors get in the IR.

    ``module`` has one placeholder per entry of ``inputs`` (parameters, buffers, arguments, in that order of the
    placeholders) and returns a flat sequence with one entry per entry of ``outputs``; it may contain in-place
    and aliasing operators and ``_c10d_functional`` collectives. Constants are real tensors that are attributes of
    ``module``. ``groups`` gives the ranks of each process group by name; ``rank`` is the rank that ran the program
    (0 for a sequential one). After the outputs ``module`` returns one entry per entry of ``perhaps``: each is called
    ``updated:<input>``, and is an output only where the program writes that input. ``ran`` says whether the program
    ran for real, so that constants are of the run. ``spans`` gives the place in the user's source that a node comes
    from.
    """

    module: torch.fx.GraphModule
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    spans: Callable[[torch.fx.Node], SourceSpan]
    groups: dict[str, Communicator] = field(default_factory=dict[str, Communicator])
    rank: int = 0
    perhaps: tuple[str, ...] = ()
    ran: bool = False
