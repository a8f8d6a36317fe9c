"""Stack frames of an HLO module: where in the user's program an instruction was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rewright.ir.types import SourceSpan

_DEEPEST = 100
_LIBRARIES = ("/site-packages/", "/dist-packages/")


@dataclass(frozen=True)
class Frame:
    """One call; ``parent`` is the number of the frame that called, its own number where none did."""

    file: str
    line: int
    function: str
    parent: int


@dataclass(frozen=True)
class Frames:
    """Frames by number."""

    table: Mapping[int, Frame] = field(default_factory=dict[int, Frame])

    def span(self, number: int, label: str) -> SourceSpan:
        """The innermost frame that is not of an installed library, else the innermost one."""
        frame = self.table.get(number)
        if frame is None:
            return SourceSpan(module_path=label, backward=is_backward(label))
        at, chosen = number, frame
        for _ in range(_DEEPEST):
            if not any(folder in frame.file for folder in _LIBRARIES):
                chosen = frame
                break
            following = self.table.get(frame.parent)
            if following is None or frame.parent == at:
                break
            at, frame = frame.parent, following
        return SourceSpan(chosen.file, chosen.line, chosen.function, label, backward=is_backward(label))


def is_backward(label: str) -> bool:
    """Whether the name of an operation says that JAX made it by transposing, which is how it makes gradients."""
    return "transpose(" in label
