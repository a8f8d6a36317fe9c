"""TTIR in tokens. Ends of lines are tokens too: an operation ends where its line does, or with its last region."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewright.ir.errors import UnsupportedOperator

END_OF_LINE = "\n"
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<name>[%#@^][\w$.-]+(?:\#\d+)?)
    |(?P<number>-?\d+\.\d+(?:[eE][-+]?\d+)?|0x[0-9A-Fa-f]+(?!\w)|-?\d+(?![\w.]))
    |(?P<dims>\d+x)
    |(?P<word>!?[A-Za-z_][\w.$]*)
    |(?P<mark>->|::|[(){}<>\[\],:=*?+-])
    |(?P<end>\n)
    |(?P<space>[ \t\r]+|//[^\n]*)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text and what it is: string, name, number, dims (``32x``), word, mark or end."""

    kind: str
    text: str


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text, without spaces and comments; raises UnsupportedOperator for other characters."""
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            line = text.count("\n", 0, place) + 1
            raise UnsupportedOperator(f"line {line} of the TTIR has {text[place : place + 20]!r}, which is not read")
        place = found.end()
        if found.lastgroup != "space":
            yield Token(str(found.lastgroup), found.group())
