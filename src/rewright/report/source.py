"""Places in the user's source, with the text of the line."""

from __future__ import annotations

import linecache
from pathlib import Path

from rewright.ir.types import SourceSpan


def line_text(span: SourceSpan) -> str:
    """The source line without indentation; empty where the file cannot be read."""
    return linecache.getline(span.file, span.line).strip() if span.file and span.line else ""


def excerpt(span: SourceSpan, around: int = 2) -> list[tuple[int, str]]:
    """Numbered lines around a place, without common indentation; empty where the file cannot be read."""
    if not line_text(span):
        return []
    numbers = range(max(1, span.line - around), span.line + around + 1)
    lines = [(number, linecache.getline(span.file, number).rstrip().expandtabs()) for number in numbers]
    margin = min((len(text) - len(text.lstrip()) for _, text in lines if text), default=0)
    return [(number, text[margin:]) for number, text in lines if text or number <= span.line]


def place(span: SourceSpan) -> str:
    """What is there, file and line: ``softmax at src/model.py:88 (in layers.3.mlp)``.

    A file below the working folder is shown with its path, an installed or any other one with its name alone.
    """
    text = str(span)
    if not span.file:
        return text
    path = Path(span.file)
    if path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts:
        text = text.replace(f"{path.name}:", f"{path.relative_to(Path.cwd())}:", 1)
    return f"{text} (in {span.module_path})" if span.module_path else text
