"""The text form of graphs, close to StableHLO: printing, one node per line.

    graph "linear" {
      %0 = input {label = "x"} : tensor<[b]x3xf32>
      %1 = input {label = "w"} : tensor<3x4xf32>
      %2 = dot_general(%0, %1) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], ...} : tensor<[b]x4xf32>
        loc("model.py":12 function "forward" module "model.layers.0" scope "softmax" backward)      (on the same line)
      output "y" = %2
    }

Values of attributes are integers, floats (they always have a point, an exponent, ``inf`` or ``nan``), ``true``,
``false``, ``none``, strings as in JSON, lists in brackets, dtypes (``f32``), types (``tensor<2xf32>``) and symbolic
sizes (``<2*b+1>``). An attribute ``tensor`` that is the type of the result is not repeated. Inputs are named by their
nodes; where a graph names them differently the text has lines ``input "name" = %0``. Parsing is in
:mod:`rewright.ir.parser`, and gives back an equal graph.
"""

from __future__ import annotations

import json
from typing import cast

from rewright.ir.attributes import attributes, nondefault_attributes
from rewright.ir.dims import SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import NO_SPAN, Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, SourceSpan, TensorType


def print_graph(graph: Graph, spans: bool = True) -> str:
    """The text form of a graph, with source locations unless ``spans`` is false."""
    lines = [f"graph {json.dumps(graph.name)} {{"]
    lines += [f"  metadata {json.dumps(k)} = {json.dumps(v)}" for k, v in graph.metadata.items()]
    lines += ["  " + print_node(position, node, spans) for position, node in enumerate(graph.nodes)]
    if graph.inputs != default_inputs(graph.nodes) or list(graph.inputs) != list(default_inputs(graph.nodes)):
        lines += [f"  input {json.dumps(name)} = %{position}" for name, position in graph.inputs.items()]
    lines += [f"  output {json.dumps(name)} = %{position}" for name, position in graph.outputs.items()]
    return "\n".join([*lines, "}", ""])


def print_node(position: int, node: Node, spans: bool = True) -> str:
    """One line for a node."""
    operands = "(" + ", ".join(f"%{operand}" for operand in node.operands) + ")" if node.operands else ""
    fields = print_attributes(node.op, node.type)
    place = f" {print_span(node.span)}" if spans and node.span != NO_SPAN else ""
    return f"%{position} = {node.op.name}{operands}{' ' if fields else ''}{fields} : tensor<{node.type}>{place}"


def print_attributes(op: Operator, result: TensorType | None = None) -> str:
    """The attributes in braces, without the one that only repeats the type of the result; empty for none."""
    shown = [
        f"{name} = {print_value(value)}"
        for name, value in nondefault_attributes(op).items()
        if not (name == "tensor" and value == result)
    ]
    return "{" + ", ".join(shown) + "}" if shown else ""


def print_value(value: object) -> str:
    """An attribute's value; raises RewrightError for one that has no text form."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, SizeExpr):
        return f"<{value}>"
    if isinstance(value, TensorType):
        return f"tensor<{value}>"
    if isinstance(value, DType):
        return value.value
    if isinstance(value, tuple):
        return "[" + ", ".join(print_value(item) for item in cast(tuple[object, ...], value)) + "]"
    raise RewrightError(f"an attribute of type {type(value).__name__} cannot be written; use numbers, strings, tuples")


def print_span(span: SourceSpan) -> str:
    """A source location: ``loc("model.py":12 function "forward" module "layers.0" scope "softmax" backward)``."""
    parts = [f"{json.dumps(span.file)}:{span.line}"] if span.file or span.line else []
    named = (("function", span.function), ("module", span.module_path), ("scope", span.scope))
    parts += [f"{word} {json.dumps(text)}" for word, text in named if text]
    parts += ["backward"] if span.backward else []
    return f"loc({' '.join(parts)})"


def default_inputs(nodes: tuple[Node, ...]) -> dict[str, int]:
    """Input nodes by their label, in order: what a graph's inputs are unless it names them differently."""
    found: dict[str, int] = {}
    for position, node in enumerate(nodes):
        if node.op.name == "input":
            found.setdefault(str(attributes(node.op).get("label", "")), position)
    return found
