"""Files that are damaged at random: bytes, text, and JSON that still parses."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from rewright.frontends.aten.tables import KNOWN

LEAVES: list[Any] = [
    None, 0, -1, 1, 2, 3, 7, 10**6, 2**40, 2**70, -(2**70), 1.5, float("inf"), float("nan"), "", "x", "sum", True, [],
    {}, {"n": 0}, {"n": 10**9}, {"t": []}, {"sym": "s0"}, {"sym": "2*a*b"}, {"sym": "((("}, {"dtype": "float64"}, [1],
    [[]], [0, 0], "aten.add.Tensor",
]  # fmt: skip
TOKENS = ["{", "}", "(", ")", "[", "]", ",", '"', "%", "=", "0", "-1", "9" * 20, "f32[2]", "ROOT ", "while", "\n", "é"]
NAMES = sorted(KNOWN)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself first."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from paths(entry, (*path, key))


def mutated_json(document: Any, draw: random.Random) -> Any:
    """A document with some places changed, left out, doubled, or with other operators."""
    found = copy.deepcopy(document)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        *path, last = draw.choice(list(paths(found))[1:])
        holder = found
        for key in path:
            holder = holder[key]
        how = draw.random()
        if how < 0.5:
            holder[last] = draw.choice(LEAVES)
        elif how < 0.65:
            del holder[last]
        elif how < 0.8 and isinstance(holder[last], int):
            holder[last] += draw.choice([-1, 1, 2, -7])
        else:
            _other_operator(found, draw)
    return found


def _other_operator(document: Any, draw: random.Random) -> None:
    nodes = [node for node in document.get("nodes") or () if isinstance(node, dict)] if "nodes" in document else []
    if nodes:
        draw.choice(nodes)["target"] = draw.choice(NAMES)


def mutated_text(text: str, draw: random.Random) -> str:
    """A text that ends early, or with parts left out, doubled, shuffled or put in."""
    for _ in range(draw.choice([1, 1, 2, 5])):
        start = draw.randrange(len(text) + 1)
        stop = min(len(text), start + draw.choice([1, 1, 3, 10, 60]))
        part, how = text[start:stop], draw.random()
        if how < 0.2:
            text = text[:start]
        elif how < 0.5:
            text = text[:start] + text[stop:]
        elif how < 0.7:
            text = text[:start] + draw.choice(TOKENS) + text[start:]
        elif how < 0.9:
            text = text[:start] + part + text[start:]
        else:
            text = text[:start] + "".join(draw.sample(part, len(part))) + text[stop:]
    return text


def mutated_bytes(contents: bytes, draw: random.Random) -> bytes:
    """Bytes that end early, or are changed, left out or put in."""
    found = bytearray(contents)
    for _ in range(draw.choice([1, 1, 2, 8])):
        if not found:
            break
        start, how = draw.randrange(len(found)), draw.random()
        if how < 0.6:
            found[start] = draw.randrange(256)
        elif how < 0.75:
            del found[start : start + draw.choice([1, 4, 100])]
        elif how < 0.85:
            found[start:start] = draw.randbytes(draw.choice([1, 4]))
        else:
            del found[start:]
    return bytes(found)


def encoded(document: Any) -> bytes:
    """A document as the contents of a file."""
    return json.dumps(document).encode()
