"""Stack frames of an HLO module: where in the user's program an instruction was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rewright.frontends.hlo.wire import Fields, blobs, integer, messages, string
from rewright.ir.types import SourceSpan

_DEEPEST = 100
_LIBRARIES = ("/site-packages/", "/dist-packages/")
OP_NAME, SOURCE_FILE, SOURCE_LINE, STACK_FRAME = 2, 3, 4, 15
"""Fields of OpMetadata."""
FILES, FUNCTIONS, PLACES, CALLS = 1, 2, 3, 4
"""Fields of StackFrameIndexProto, whose rows are numbered from one."""


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

    def span(self, metadata: Fields) -> SourceSpan:
        """The place that an OpMetadata names, else its innermost frame that is not of an installed library."""
        file, label = string(metadata, SOURCE_FILE), string(metadata, OP_NAME)
        backward = is_backward(label)
        if file:
            return SourceSpan(file, _line(integer(metadata, SOURCE_LINE)), module_path=label, backward=backward)
        number = integer(metadata, STACK_FRAME)
        frame = self.table.get(number)
        if frame is None:
            return SourceSpan(module_path=label, backward=backward)
        chosen = self._own(number, frame)
        return SourceSpan(chosen.file, chosen.line, chosen.function, label, backward=backward)

    def _own(self, number: int, frame: Frame) -> Frame:
        """The innermost frame that is not of an installed library, else the innermost one."""
        at, innermost = number, frame
        for _ in range(_DEEPEST):
            if not any(folder in frame.file for folder in _LIBRARIES):
                return frame
            following = self.table.get(frame.parent)
            if following is None or frame.parent == at:
                break
            at, frame = frame.parent, following
        return innermost


def read_frames(fields: Fields) -> Frames:
    """The frames in a StackFrameIndexProto."""
    files, functions = ([own.decode("utf-8", "replace") for own in blobs(fields, n)] for n in (FILES, FUNCTIONS))
    places = [(integer(m, 1), integer(m, 2), integer(m, 3)) for m in messages(fields, PLACES)]
    found: dict[int, Frame] = {}
    for number, call in enumerate(messages(fields, CALLS), 1):
        location = integer(call, 1)
        if 0 < location <= len(places):
            file, function, line = places[location - 1]
            texts = [
                names[at - 1] if 0 < at <= len(names) else "" for names, at in ((files, file), (functions, function))
            ]
            found[number] = Frame(texts[0], _line(line), texts[1], integer(call, 2))
    return Frames(found)


def _line(value: int) -> int:
    """A line as the file has it; lines out of range are not known."""
    return value if 0 <= value < 1 << 31 else 0


def is_backward(label: str) -> bool:
    """Whether the name of an operation says that JAX made it by transposing, which is how it makes gradients."""
    return "transpose(" in label
