"""What was checked of a capture, and what was not and why: kept in the metadata of the graph as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from rewright.interp.adversarial import Kind
from rewright.ir.graph import Graph

KEY = "validation"
EQUAL = "equal"
KINDS = (Kind.USUAL, Kind.CONSTANTS, Kind.TIES, Kind.ZEROS, Kind.LARGE, Kind.INFINITE)
"""What a call is run on."""
_NAMED = 2
"""The most reasons named in a sentence, and the most operators for each."""


@dataclass(frozen=True)
class Validation:
    """The calls of a capture that agree with the framework, by signature, and how the whole program did."""

    calls: tuple[str, ...] = ()
    """Signatures of distinct calls whose lowering gives what the framework gives, in order."""
    difference: float = 0.0
    """The largest difference of two numbers that were taken to be equal, relative to one or to the number."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Operators that were not run, with the reason."""
    program: str = ""
    """``equal``, or why the whole program was not run beside its graph."""
    seed: int = 0
    """What the draws of the whole program start from; those of a call start from its signature."""

    def __str__(self) -> str:
        parts: list[str] = []
        if self.calls:
            parts.append(self._calls())
        if self.program == EQUAL:
            parts.append("whole program run: equal")
        title = "capture checked: " if parts else "the capture was not checked"
        if self.skipped:
            parts.append(f"not checked: {self._names()}" if parts else f": {self._names()}")
        if self.program not in ("", EQUAL):
            parts.append(f"whole program not run: {self.program}" if parts else f": {self.program}")
        return title + "; ".join(parts)

    def _calls(self) -> str:
        several = "1 distinct call" if len(self.calls) == 1 else f"{len(self.calls)} distinct calls"
        return f"{several} on {len(KINDS)} draws each, largest difference {self.difference:.0e}"

    def _names(self) -> str:
        """Some operators that were not run, with their reasons."""
        reasons: dict[str, list[str]] = {}
        for name, why in self.skipped:
            reasons.setdefault(why, []).append(name)
        shown = [f"{', '.join(names[:_NAMED])} ({why})" for why, names in list(reasons.items())[:_NAMED]]
        more = sum(map(len, reasons.values())) - sum(len(names[:_NAMED]) for names in list(reasons.values())[:_NAMED])
        return "; ".join(shown) + (f"; and {more} more" if more else "")

    def attach_to(self, graph: Graph) -> Graph:
        """The graph with this record among its metadata, which no digest counts."""
        return replace(graph, metadata=graph.metadata | {KEY: self.text()})

    def text(self) -> str:
        """As JSON."""
        table = {"calls": list(self.calls), "difference": self.difference, "skipped": list(map(list, self.skipped))}
        return json.dumps(table | {"program": self.program, "seed": self.seed})


def validation_of(graph: Graph) -> Validation | None:
    """The record that a graph came with; None for one that has none, or a damaged one."""
    return read(graph.metadata[KEY]) if KEY in graph.metadata else None


def read(text: str) -> Validation | None:
    """The record that a text is; None where it is none."""
    try:
        table = cast("dict[str, Any]", json.loads(text))
        skipped = tuple((str(name), str(why)) for name, why in table["skipped"])
        calls = tuple(map(str, table["calls"]))
        return Validation(calls, float(table["difference"]), skipped, str(table["program"]), int(table["seed"]))
    except (KeyError, TypeError, ValueError):
        return None


def join_validations(records: Iterable[Validation]) -> Validation:
    """What was checked of several captures together; the program was run where each was."""
    every = list(records)
    programs = list(dict.fromkeys(record.program for record in every if record.program))
    return Validation(
        tuple(dict.fromkeys(call for record in every for call in record.calls)),
        max((record.difference for record in every), default=0.0),
        tuple(dict.fromkeys(entry for record in every for entry in record.skipped)),
        next((program for program in programs if program != EQUAL), programs[0] if programs else ""),
        next((record.seed for record in every), 0),
    )


def validation_note(graphs: Iterable[Graph]) -> str:
    """One line on what was checked of graphs that a verdict is about."""
    found = _of_all(graphs)
    if not found:
        return "the capture was not checked: the graphs come with no record of a program that they were captured from"
    return str(join_validations(found))


def text_of(graphs: Iterable[Graph]) -> str:
    """The record of graphs together, as JSON; empty where none came with one."""
    found = _of_all(graphs)
    return join_validations(found).text() if found else ""


def _of_all(graphs: Iterable[Graph]) -> list[Validation]:
    return [record for graph in graphs if (record := validation_of(graph)) is not None]
