"""Valid files spoiled at random are read or refused in one line; nothing else comes out."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, validate
from rewright.ir.json_form import from_json, to_json
from rewright.ir.text import print_graph
from rewright.ops import REGISTRY
from rewright.ops.files import parse

PROGRAMS = [path.read_text() for path in sorted((Path(__file__).parent / "programs").glob("*.txt"))]
TEXTS = [print_graph(parse(text)) for text in PROGRAMS]
FILES = [json.dumps(to_json(parse(text))) for text in PROGRAMS]
VALUES = [
    *(-1, 0, 1, 7, 10**30, 0.5, True, None, "", "x", "sum", "2xf32", "[b]x3xf32"),
    *([], [0], [-1], [0, 0], {}, {"size": "b"}, {"size": "-b"}, {"float": "nan"}, {"tensor": "f32"}, {"dtype": "i1"}),
]
PIECES = ["", "-", "9", "x", "[", "]", "{", '"', "<b>", "%", "\n", " ", ":", "1e999", "tensor<", "\\", "//"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something is inside a JSON value."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


def message(read: Callable[[], Graph]) -> str:
    """What a reader says; nothing where the file is still a graph."""
    try:
        validate(read())
    except RewrightError as error:
        return str(error)
    return ""


@settings(max_examples=300)
@given(st.data())
def test_spoiled_json(data: st.DataObject) -> None:
    spoiled = json.loads(data.draw(st.sampled_from(FILES)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(spoiled))))
        target = spoiled
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = json.loads(json.dumps(data.draw(st.sampled_from(VALUES))))
    assert "\n" not in message(lambda: from_json(spoiled, REGISTRY))


@settings(max_examples=300)
@given(st.data())
def test_spoiled_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    at, dropped = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    spoiled = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + dropped :]
    assert "\n" not in message(lambda: parse(spoiled))
