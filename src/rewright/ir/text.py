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

from rewright.ir.attributes import attributes
from rewright.ir.graph import NO_SPAN, Graph, Node
from rewright.ir.printing import print_attributes, print_span


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


def default_inputs(nodes: tuple[Node, ...]) -> dict[str, int]:
    """Input nodes by their label, in order: what a graph's inputs are unless it names them differently."""
    found: dict[str, int] = {}
    for position, node in enumerate(nodes):
        if node.op.name == "input":
            found.setdefault(str(attributes(node.op).get("label", "")), position)
    return found
