"""Passes of XLA by name, and pipelines of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rewright.env.xla.names import CPU_PASSES, GPU_PASSES
from rewright.env.xla.targets import is_target
from rewright.ir.errors import RewrightError

MOST_LOOPS = 25
"""Times that a pipeline runs at most when it runs to a fixpoint."""


@dataclass(frozen=True)
class XlaPass:
    """One pass of XLA:CPU; raises RewrightError for a name that does not exist."""

    name: str
    known: frozenset[str] = CPU_PASSES

    def __post_init__(self) -> None:
        if self.name not in self.known:
            close = ", ".join(sorted(n for n in self.known if self.name.lower()[:4] in n)[:4])
            hint = f"; did you mean {close}" if close else "; rewright.env.listing.passes lists them"
            raise RewrightError(f"XLA:CPU has no pass {self.name!r:.60}{hint}")


@dataclass(frozen=True)
class GpuPass:
    """One pass of XLA:GPU for a device that need not be there."""

    target: str
    name: str


def gpu_pass(name: str) -> GpuPass | None:
    """The pass that ``h100:priority-fusion`` or ``FILE.txtpb:priority-fusion`` names; None for a name of another form.

    Raises RewrightError for a pass that XLA:GPU does not have.
    """
    target, colon, own = name.rpartition(":")
    if not colon or not is_target(target):
        return None
    if own not in GPU_PASSES:
        close = ", ".join(sorted(n for n in GPU_PASSES if own.lower()[:4] in n)[:4])
        raise RewrightError(f"XLA:GPU has no pass {own!r:.60}" + (f"; did you mean {close}" if close else ""))
    return GpuPass(target, own)


@dataclass(frozen=True)
class Pipeline:
    """Passes in order, ``loop`` times over, or to a fixpoint (-1) in at most 25 rounds; pipelines may be nested."""

    passes: tuple[XlaPass | Pipeline, ...]
    loop: int = 1
    name: str = "pipeline"

    @classmethod
    def of(cls, passes: Sequence[str | XlaPass | Pipeline], loop: int = 1, name: str = "pipeline") -> Pipeline:
        """A pipeline of passes by name; raises RewrightError for an unknown one."""
        return cls(tuple(XlaPass(p) if isinstance(p, str) else p for p in passes), loop, name)

    @property
    def rounds(self) -> int:
        """How often the pipeline runs at most."""
        if self.loop < 0:
            return MOST_LOOPS
        return self.loop

    def names(self) -> Iterator[str]:
        """The names of all passes, in order."""
        for entry in self.passes:
            if isinstance(entry, XlaPass):
                yield entry.name
            else:
                yield from entry.names()


AFTER_LAYOUTS = "simplification_after_layout_assignment"
"""A pipeline that takes layouts for granted: what it makes cannot enter XLA again."""


def all_but(*names: str, known: frozenset[str] = CPU_PASSES) -> str:
    """The comma list that disables all passes but some."""
    return ",".join(sorted(known.difference(names)))
