"""What the user may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 5


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """``did you mean 'logits'?``, or the first known names where none is close."""
    names = list(dict.fromkeys(known))
    close = get_close_matches(given, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "there is none at all"
    if len(names) == 1:
        return f"there is only {names[0]!r}"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}"
