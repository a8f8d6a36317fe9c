"""The JSON form of graphs: strict JSON, versioned, with nothing in it that is executed.

An object ``{"format": "rewright.graph", "version": 1, "name", "metadata", "types", "spans", "nodes", "inputs",
"outputs"}``. ``types`` and ``spans`` are tables; a node is ``[operator, operands, type, span, attributes]`` with
numbers into them (a span of -1: none). In attributes lists are tuples, and what JSON lacks is an object with one
key: ``{"float": "inf"}``, ``{"size": "2*b+1"}``, ``{"dtype": "f32"}``, ``{"tensor": "2x[b]xf32"}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from rewright.ir.attributes import nondefault_attributes
from rewright.ir.building import build_operator, parse_size, parse_type
from rewright.ir.dims import SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import NO_SPAN, Graph, Node, validate
from rewright.ir.operator import Operator
from rewright.ir.types import DType, SourceSpan, TensorType

FORMAT = "rewright.graph"
VERSION = 1
_SPAN_FIELDS = (
    ("file", str),
    ("line", int),
    ("function", str),
    ("module_path", str),
    ("scope", str),
    ("backward", bool),
)


def to_json(graph: Graph) -> dict[str, Any]:
    """The graph as JSON values; raises RewrightError for an attribute that has no JSON form."""
    types: dict[TensorType, int] = {}
    spans: dict[SourceSpan, int] = {}
    nodes = [
        [
            node.op.name,
            list(node.operands),
            types.setdefault(node.type, len(types)),
            -1 if node.span == NO_SPAN else spans.setdefault(node.span, len(spans)),
            {name: encode(value) for name, value in nondefault_attributes(node.op).items()},
        ]
        for node in graph.nodes
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "metadata": dict(graph.metadata),
        "types": [str(tensor) for tensor in types],
        "spans": [[getattr(span, field) for field, _ in _SPAN_FIELDS] for span in spans],
        "nodes": nodes,
        "inputs": list(graph.inputs.items()),
        "outputs": list(graph.outputs.items()),
    }


def encode(value: object) -> Any:
    """An attribute's value as JSON; raises RewrightError for one that has no JSON form."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": float.__repr__(value)}
    if isinstance(value, tuple):
        return [encode(item) for item in cast(tuple[object, ...], value)]
    if isinstance(value, SizeExpr):
        return {"size": str(value)}
    if isinstance(value, DType):
        return {"dtype": value.value}
    if isinstance(value, TensorType):
        return {"tensor": str(value)}
    raise RewrightError(f"an attribute of type {type(value).__name__} cannot be saved; use numbers, strings, tuples")


def from_json(data: object, registry: Mapping[str, type[Operator]]) -> Graph:
    """The graph of JSON values; every node is checked.

    Raises RewrightError with the place of the first thing that is wrong.
    """
    table = _object(data, "the file")
    if table.get("format") != FORMAT:
        found = f'expected "format": "{FORMAT}" and found {table.get("format")!r:.60}'
        raise RewrightError(f"this is no graph: {found}; name a file that rewright saved")
    if table.get("version") != VERSION:
        raise RewrightError(f"version {table.get('version')!r:.20} of the graph format is not known; this is {VERSION}")
    types = [parse_type(_expect(t, str, f"types[{i}]")) for i, t in enumerate(_list(table, "types"))]
    spans = [_span(item, i) for i, item in enumerate(_list(table, "spans"))]
    nodes = tuple(_node(item, f"node {i}", registry, types, spans) for i, item in enumerate(_list(table, "nodes")))
    metadata = _object(table.get("metadata", {}), "metadata")
    graph = Graph(
        nodes,
        _name(table, "inputs"),
        _name(table, "outputs"),
        _expect(table.get("name"), str, "name"),
        {key: _expect(value, str, f"metadata {key!r}") for key, value in metadata.items()},
    )
    validate(graph)
    return graph


def _node(
    item: object, where: str, registry: Mapping[str, type[Operator]], types: list[TensorType], spans: list[SourceSpan]
) -> Node:
    fields = _expect(item, list, where)
    if len(fields) != 5:
        raise RewrightError(f"{where} must have 5 entries (operator, operands, type, span, attributes)")
    name = _expect(fields[0], str, f"operator of {where}")
    operands = tuple(_expect(p, int, f"operand of {where}") for p in _expect(fields[1], list, f"operands of {where}"))
    number: int = _expect(fields[2], int, f"type of {where}")
    place: int = _expect(fields[3], int, f"span of {where}")
    if not 0 <= number < len(types) or not -1 <= place < len(spans):
        raise RewrightError(f"{where} refers to type {number} or span {place}, which the tables do not have")
    values = _object(fields[4], f"attributes of {where}")
    try:
        op = build_operator(registry, name, {key: decode(value) for key, value in values.items()})
    except RewrightError as error:
        raise RewrightError(f"{where}: {error}") from None
    return Node(op, operands, types[number], NO_SPAN if place < 0 else spans[place])


def decode(value: object) -> object:
    """An attribute's value from JSON; raises RewrightError for what no value looks like."""
    if isinstance(value, list):
        return tuple(decode(item) for item in cast(list[object], value))
    if not isinstance(value, dict):
        return value
    items = list(cast(dict[str, object], value).items())
    if len(items) == 1 and isinstance(items[0][1], str) and items[0][0] in _DECODERS:
        try:
            return _DECODERS[items[0][0]](items[0][1])
        except ValueError:
            pass
    raise RewrightError(f"{json.dumps(value):.60} is no attribute value")


_DECODERS: dict[str, Callable[[str], object]] = {
    "float": float,
    "size": parse_size,
    "dtype": DType,
    "tensor": parse_type,
}


def _span(item: object, position: int) -> SourceSpan:
    values = _expect(item, list, f"spans[{position}]")
    if len(values) != len(_SPAN_FIELDS):
        raise RewrightError(f"spans[{position}] must have {len(_SPAN_FIELDS)} entries and has {len(values)}")
    fields: dict[str, Any] = {
        field: _expect(value, kind, f"{field} of spans[{position}]")
        for value, (field, kind) in zip(values, _SPAN_FIELDS, strict=True)
    }
    return SourceSpan(**fields)


def _name(table: dict[str, Any], key: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in _list(table, key):
        pair = _expect(item, list, f"an entry of {key}")
        if len(pair) != 2:
            raise RewrightError(f"an entry of {key} must be [name, node] and is {json.dumps(pair):.60}")
        name = _expect(pair[0], str, f"a name in {key}")
        if name in found:
            raise RewrightError(f"{key} name {name!r} twice")
        found[name] = _expect(pair[1], int, f"the node of {name!r} in {key}")
    return found


def _object(value: object, where: str) -> dict[str, Any]:
    return cast(dict[str, Any], _expect(value, dict, where))


def _list(table: dict[str, Any], key: str) -> list[Any]:
    return cast(list[Any], _expect(table.get(key), list, key))


def _expect(value: object, kind: type[Any], where: str) -> Any:
    """The value, if it is of a JSON kind; raises RewrightError saying where it is not."""
    if type(value) is not kind:
        words = {str: "a string", int: "an integer", list: "a list", dict: "an object", bool: "true or false"}
        raise RewrightError(f"{where} must be {words[kind]} and is {json.dumps(value, default=str):.60}")
    return value
