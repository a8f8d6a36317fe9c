"""What every front end has to do, shown on an example of its own: the conformance kit.

The example of every front end is one program, ``y = 2 x + 1`` on three numbers, whatever its world writes for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rewright
from rewright.frontends.frontend import Files, Frontend, Function, Programs
from rewright.frontends.registry import FRONTENDS
from rewright.interp.program import run
from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph

GIVEN, EXPECTED = (-1.0, 0.0, 2.5), (-1.0, 1.0, 6.0)
GARBAGE = (b"", b"\x00\xff" * 40, b"{}", b"{", b"nothing that anybody reads\n")


@dataclass(frozen=True)
class Example:
    """The program in Python with its arguments, and a function that writes it into a file of a name."""

    program: Callable[[], tuple[Any, Sequence[Any]]] | None = None
    file: Callable[[Path], object] | None = None
    name: str = ""
    """Of that file."""
    wrong: Callable[[], tuple[Any, Sequence[Any]]] | None = None
    """A program that is none."""


def check(frontend: Frontend, example: Example, folder: Path) -> list[str]:
    """Check all that a front end offers, and return what was checked; raises AssertionError."""
    done = [_check_functions(frontend)]
    if frontend.programs is not None:
        done += _check_programs(frontend.name, frontend.programs, example)
    if frontend.files is not None:
        done += _check_files(frontend.files, example, folder)
    return done


def _check_functions(frontend: Frontend) -> str:
    """Whatever is named by text exists."""
    for facet in (frontend.programs, frontend.files):
        for value in vars(facet).values() if facet is not None else ():
            if isinstance(value, Function):
                module, _, name = value.place.partition(":")
                assert callable(getattr(import_module(module), name)), value
    return "its functions exist"


def _check_programs(name: str, own: Programs, example: Example) -> list[str]:
    assert example.program is not None, f"{name} has programs in Python; give an example of one"
    program, arguments = example.program()
    computes(rewright.capture(program, arguments))
    assert rewright.capture(program, arguments, framework=name) == rewright.capture(program, arguments)
    assert example.wrong is not None, f"{name} has programs in Python; give an example of a wrong one"
    refuses(lambda: rewright.capture(*example.wrong(), framework=name))  # type: ignore[misc]
    for option, why in own.refused.items():
        assert option not in own.options
        with pytest.raises(CaptureError) as caught:
            own.given({option: "something"})
        assert str(caught.value) == why.format(f"{option}='something'")
    return ["it captures its example", "it is found by what its programs are made of", "its errors are a line"]


def _check_files(own: Files, example: Example, folder: Path) -> list[str]:
    assert example.file is not None, "it reads files; give an example of one"
    path = folder / example.name
    example.file(path)
    found = rewright.load(path)
    assert isinstance(found, Graph)
    computes(found)
    for ending in own.extensions:
        others = [one.files for one in FRONTENDS if one.files is not None and ending in one.files.extensions]
        assert all(one.knows is not None for one in others[:-1]), f"{ending}: which front end is a file of?"
    for number, contents in enumerate((*GARBAGE, path.read_bytes()[:-20])):
        damaged = folder / f"damaged{number}{example.name[example.name.index('.') :]}"
        damaged.write_bytes(contents)
        refuses(lambda: rewright.load(damaged), damaged)  # noqa: B023
    refuses(lambda: rewright.load(folder / f"missing{own.extensions[0]}"))
    done = ["it reads its example", "what is damaged is refused in a line"]
    if own.write is not None:
        rewright.save(found, path)
        assert rewright.load(path) == found
        done.append("what it writes comes back equal")
    return done


def computes(graph: Graph) -> None:
    """Assert that a graph computes the example."""
    (name,), (output,) = graph.inputs, graph.outputs
    assert run(graph, {name: np.array(GIVEN)})[output].tolist() == list(EXPECTED)


def refuses(read: Callable[[], object], path: Path | None = None) -> None:
    """Assert that reading raises a RewrightError of one line, which names the file."""
    with pytest.raises(RewrightError) as caught:
        read()
    assert "\n" not in str(caught.value)
    assert path is None or str(path) in str(caught.value)
