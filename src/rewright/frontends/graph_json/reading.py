"""Documents of all ranks as programs of the IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, cast

from rewright.frontends.aten.context import Communicator, Context
from rewright.frontends.aten.pruning import prune_graph
from rewright.frontends.aten.ties import with_ties
from rewright.frontends.aten.views import Tensor
from rewright.frontends.frontend import File
from rewright.frontends.graph_json.document import Document, Record, parse
from rewright.frontends.graph_json.walk import Walk
from rewright.frontends.unknowns import Unknowns
from rewright.frontends.validation.record import Validation
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.unknowns import NUMBERED
from rewright.ops.reference.simplifying import SimplifyingBuilder

_SIZED = {
    "all_gather_into_tensor": 1,
    "all_gather_into_tensor_out": 1,
    "all_gather_into_tensor_coalesced": 1,
    "reduce_scatter_tensor": 2,
    "reduce_scatter_tensor_out": 2,
    "reduce_scatter_tensor_coalesced": 2,
}
"""Collectives that say how many ranks take part, and the place of that argument."""


def read_file(file: File, devices: int | None, validate: bool) -> Graph:
    """The graph in a file of a program of one rank; see :func:`read_alone`."""
    return read_alone(file.json, validate=validate)


def read_files(files: Sequence[File], validate: bool) -> Sequence[Graph]:
    """The graphs of all ranks, each in a file of its own; see :func:`read_ranks`."""
    return read_ranks([file.json for file in files], validate=validate).graphs


def read_alone(data: object, *, validate: bool = True) -> Graph:
    """The graph of a program of one rank.

    With ``validate`` PyTorch, where it is installed, runs every distinct call beside what it was lowered to.

    Raises RewrightError for a document that is malformed or one of several ranks, UnsupportedOperator, and CaptureError
    for a call that PyTorch computes otherwise.
    """
    document = parse(data)
    largest = max((size for _, size in _sizes(document)), default=1)
    if document.rank or largest > 1:
        raise RewrightError(
            f"this is the graph of rank {document.rank} of {max(largest, document.rank + 1)} or more; give the files "
            "of all ranks together, or their folder"
        )
    graph = _lower(document, _Groups(document, _namers([document])), data)
    return _check([document]).attach_to(graph) if validate else graph


def read_ranks(documents: Sequence[object], *, validate: bool = True) -> RankProgram:
    """The program of all ranks, each from one document, in any order; the rest is as for one.

    Raises RewrightError for documents that are malformed or do not number the ranks from 0, UnsupportedOperator, and
    CaptureError.
    """
    parsed = sorted(((parse(data), data) for data in documents), key=lambda pair: pair[0].rank)
    found = [document.rank for document, _ in parsed]
    if found != list(range(len(parsed))):
        raise RewrightError(f"the files are of ranks {found[:8]}; give each rank from 0 on once")
    namers = _namers([document for document, _ in parsed])
    groups = [_Groups(document, namers) for document, _ in parsed]
    alike = _alike([_walk(document, own, data) for (document, data), own in zip(parsed, groups, strict=True)])
    graphs = tuple(_lower(document, own, data, alike) for (document, data), own in zip(parsed, groups, strict=True))
    if validate:
        record = _check([document for document, _ in parsed])
        graphs = tuple(map(record.attach_to, graphs))
    return RankProgram(graphs, Mesh.of({"rank": len(graphs)}), {}, {})


def _check(documents: Sequence[Document]) -> Validation:
    """What PyTorch says of the calls of documents, if it is installed."""
    try:
        checking = import_module("rewright.frontends.torch.validation.documents")
    except ModuleNotFoundError as error:
        return Validation(program=f"the package {error.name} is not installed")
    return checking.checked(documents)


def _walk(document: Document, groups: _Groups, data: object, alike: Mapping[int, float] | None = None) -> Walk:
    """A walk that has lowered all nodes; ``alike`` are the gathers of what is one number on all ranks."""
    builder = SimplifyingBuilder()
    unknowns = Unknowns(builder)
    context = Context(builder, groups, document.rank, unknowns.make, trusts_indices=True)
    walk = Walk(context, document, unknowns, _collectives(data), alike or {})
    walk.run()
    return walk


def _alike(walks: Sequence[Walk]) -> dict[int, float]:
    """The gathers, by the number of their node, to which every rank gives the same number everywhere."""
    first = walks[0]
    return {
        place: value
        for place, value in first.gathered.items()
        if all(
            walk.gathered.get(place) == value
            and walk.document.record(place).target == first.document.record(place).target
            and walk.c.groups == first.c.groups
            for walk in walks
        )
    }


def _lower(document: Document, groups: _Groups, data: object, alike: Mapping[int, float] | None = None) -> Graph:
    walk = _walk(document, groups, data, alike)
    builder = walk.c.b
    for place, value in enumerate(_leaves(walk.result)):
        if isinstance(value, Tensor):
            builder.output(f"output.{place}", value.read(builder))
    graph, ties = with_ties(builder.build(), walk.c.ties, builder.superseded)
    graph = walk.unknowns.attach_to(prune_graph(graph, builder.superseded))
    notes = {NUMBERED: "true"}
    if walk.c.assumptions or ties:
        notes["assumptions"] = "; ".join((*walk.c.assumptions, *ties))
    if document.rank == 0 and not graph.outputs:
        raise RewrightError("the graph returns no tensor; capture what it computes")
    return replace(graph, metadata=graph.metadata | notes)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in cast("Sequence[Any]", value):
            yield from _leaves(item)
    else:
        yield value


class _Groups(Mapping[str, Communicator]):
    """Process groups are only names: each is the ranks whose captures name it."""

    def __init__(self, document: Document, namers: Mapping[str, tuple[int, ...]]) -> None:
        self._namers = namers
        for name, size in _sizes(document):
            if size != len(namers.get(name, ())):
                raise RewrightError(
                    f"a collective of rank {document.rank} is on {size} ranks of group {name!r:.40}, which "
                    f"{len(namers.get(name, ()))} of the files name; give the files of all ranks"
                )

    def __getitem__(self, name: str) -> Communicator:
        ranks = self._namers[name]
        return Communicator(ranks, sorted(other for other, r in self._namers.items() if r == ranks).index(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._namers)

    def __len__(self) -> int:
        return len(self._namers)


def _namers(documents: Sequence[Document]) -> dict[str, tuple[int, ...]]:
    """By group the ranks that use its name in a call."""
    found: dict[str, list[int]] = {}
    for document in documents:
        words = {word for record in document.records for word in _words(record.args) if _communicates(record)}
        for word in sorted(words):
            found.setdefault(word, []).append(document.rank)
    return {name: tuple(ranks) for name, ranks in found.items()}


def _words(arguments: Sequence[Any]) -> Iterator[str]:
    return (argument for argument in arguments if isinstance(argument, str))


def _communicates(record: Record) -> bool:
    """Whether a call may name a process group."""
    return record.op == "call_function" and any(record.target.startswith(prefix) for prefix in _COMMUNICATING)


_COMMUNICATING = ("_c10d_functional", "c10d.", "vllm.", "_dtensor.", "rewright.")


def _sizes(document: Document) -> Iterator[tuple[str, int]]:
    """Names of groups with the sizes that collectives state."""
    for record in document.records:
        stated = _stated_collective(record)
        if stated is not None:
            yield stated


def _stated_collective(record: Record) -> tuple[str, int] | None:
    parts = record.target.split(".")
    if len(parts) != 3 or not parts[0].startswith("_c10d_functional") or parts[1] not in _SIZED:
        return None
    place = _SIZED[parts[1]]
    if len(record.args) <= place + 1:
        return None
    size, name = record.args[place], record.args[place + 1]
    return (name, size) if isinstance(size, int) and isinstance(name, str) else None


def _collectives(data: object) -> frozenset[int]:
    """Ids of the nodes that the document lists as communication."""
    listed: object = cast("Mapping[str, object]", data).get("collectives")
    if not isinstance(listed, list):
        return frozenset()
    entries = [cast("Mapping[str, object]", e) for e in cast("list[object]", listed) if isinstance(e, dict)]
    return frozenset(node for entry in entries if isinstance(node := entry.get("node"), int))
