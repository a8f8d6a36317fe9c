"""Graphs in files: text (``.rwt``) and JSON (``.json``, ``.json.gz``) with the operators of this package."""

from __future__ import annotations

import json
import os

from rewright.ir.errors import RewrightError
from rewright.ir.files import decode_json, prefix_errors, read_text, write_text
from rewright.ir.graph import Graph
from rewright.ir.json_form import from_json, to_json
from rewright.ir.parser import parse_graph
from rewright.ir.text import print_graph
from rewright.ops import REGISTRY

EXTENSIONS = (".rwt", ".json", ".json.gz")


def parse(text: str) -> Graph:
    """The graph of a text form; raises RewrightError with the line number."""
    return parse_graph(text, REGISTRY)


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a graph; the form follows from the extension.

    Raises RewrightError for an unknown extension, a file that cannot be read, and contents that are no graph.
    """
    is_text = extension_of(path) == ".rwt"
    text = read_text(path)
    return prefix_errors(path, lambda: parse(text) if is_text else from_json(decode_json(text), REGISTRY))


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph; the form follows from the extension, and a file is replaced as a whole or not at all.

    Raises RewrightError for an unknown extension and where the file cannot be written.
    """
    if extension_of(path) == ".rwt":
        write_text(path, print_graph(graph))
    else:
        write_text(path, json.dumps(to_json(graph), allow_nan=False, separators=(",", ":")))


def extension_of(path: str | os.PathLike[str]) -> str:
    """One of ``EXTENSIONS``; raises RewrightError for any other."""
    name = os.fspath(path)
    for extension in sorted(EXTENSIONS, key=len, reverse=True):
        if name.endswith(extension):
            return extension
    raise RewrightError(f"{name} has no known extension; name a file that ends in {', '.join(EXTENSIONS)}")
