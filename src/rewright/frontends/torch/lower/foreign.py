"""Calls that have no lowering, as opaque calls that say in full what PyTorch is to run.

What is optimised may leave a part of a program to PyTorch. A call is written down with everything that is no tensor;
calls that hand on complex tensors, which the IR has not, are written down together, up to real tensors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.fx
from torch.utils import _pytree as pytree

from rewright import ops
from rewright.frontends.aten.views import Tensor
from rewright.frontends.torch.lower.nodes import example, memory
from rewright.frontends.torch.lower.sizes import type_of
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import GraphBuilder

TARGET = "torch"
"""The target of such opaque calls."""
COMPUTING = frozenset({"aten", "prims", "inductor_prims"})
"""Namespaces of operators of PyTorch's own that do nothing but compute."""
_PLACES = frozenset({"device", "layout", "pin_memory"})
"""Keywords that say where a result is: where the operands are."""
_KINDS: dict[type, str] = {torch.dtype: "dtype", torch.memory_format: "memory_format"}
_BY_MEMORY = "as_strided"
"""How the names of operators begin that read another element where the operand lies in memory otherwise."""
_REFUSED = ("nondeterministic_seeded", "dynamic_output_shape", "data_dependent_output")
Call = tuple[str, tuple[Any, ...], tuple[tuple[str, Any], ...]]
"""An operator with its arguments and keywords, in which tensors are places."""


@dataclass(frozen=True)
class _Place:
    """A tensor: an operand, by its node in the IR, or a result of a call."""

    node: int | None
    call: Call | None = None
    result: int = 0


@dataclass(frozen=True)
class Complex:
    """A complex tensor: a result of calls that have not become a node yet."""

    place: _Place


def foreign(b: GraphBuilder, node: torch.fx.Node, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """The results of a call as opaque ones; raises UnsupportedOperator where the call does more than to compute them.

    A call that draws numbers, writes, shares memory or has results of unknown size is none that may be left out.
    """
    target: Any = node.target
    if not _only_computes(target):
        raise UnsupportedOperator("it does more than to compute its results from its operands")
    if target.overloadpacket.__name__.startswith(_BY_MEMORY):
        raise UnsupportedOperator("it depends on how its operand lies in memory")
    if any(r.alias_info is not None for r in target._schema.returns) and _memories([node]) & _written_to(node.graph):
        raise UnsupportedOperator("its result shares memory, which the program writes")
    given = {key: value for key, value in keywords.items() if key not in _PLACES}
    call: Call = (
        str(target),
        tuple(_write(b, a) for a in arguments),
        tuple((key, _write(b, value)) for key, value in given.items()),
    )
    value = example(node)
    if isinstance(value, (tuple, list)):
        several = cast("Sequence[Any]", value)
        return tuple(_result(b, call, index, tensor) for index, tensor in enumerate(several))
    return _result(b, call, 0, value)


def _only_computes(target: Any) -> bool:
    """Whether a function is an operator of PyTorch that draws no numbers, writes nothing, and has a known result."""
    kind: type = torch._ops.OpOverload  # pyright: ignore[reportPrivateUsage]
    if type(target) is not kind:
        return False
    return not target._schema.is_mutable and {str(tag).split(".")[-1] for tag in target.tags}.isdisjoint(_REFUSED)


def is_foreign(arguments: Any) -> bool:
    """Whether there are complex tensors among arguments."""
    return any(isinstance(leaf, Complex) for leaf in pytree.tree_leaves(arguments))


def _memories(nodes: Sequence[torch.fx.Node]) -> set[int]:
    """The memory that the (fake) results of nodes are in."""
    found = [leaf for node in nodes for leaf in pytree.tree_leaves(example(node)) if isinstance(leaf, torch.Tensor)]
    return {memory(leaf) for leaf in found}


def _written_to(graph: torch.fx.Graph) -> set[int]:
    """The memory that some operator of a graph may write."""
    schemas = [(node, getattr(node.target, "_schema", None)) for node in graph.nodes]
    writers = [node for node, schema in schemas if schema is not None and schema.is_mutable]
    return _memories([operand for node in writers for operand in node.all_input_nodes])


def _result(b: GraphBuilder, call: Call, index: int, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        raise UnsupportedOperator("a result of it is no tensor")
    if value.is_complex():
        return Complex(_Place(None, call, index))
    calls: list[Any] = []
    operands: list[int] = []
    _order(call, calls, operands, {})
    text = json.dumps(calls)
    return Tensor.fresh(
        b.add(ops.CustomCall(TARGET, (("calls", text),), (type_of(value),) * (index + 1), index), *operands)
    )


def _write(b: GraphBuilder, argument: Any) -> Any:
    """An argument that says all: tensors by place, the others as what JSON can hold."""
    if isinstance(argument, Tensor):
        return _Place(argument.read(b))
    if isinstance(argument, Complex):
        return argument.place
    if isinstance(argument, (list, tuple)):
        return tuple(_write(b, item) for item in cast("Sequence[Any]", argument))
    if type(argument) in _KINDS:
        return (_KINDS[type(argument)], str(argument).removeprefix("torch."))
    if isinstance(argument, complex):
        return ("complex", str(argument))
    if argument is None or type(argument) in (bool, int, float, str):
        return argument
    raise UnsupportedOperator(f"an argument of it is a {type(argument).__name__}")


def _order(call: Call, calls: list[Any], operands: list[int], known: dict[Call, int]) -> int:
    """The number of a call in a list of calls, to which it and what it needs are added."""
    if call in known:
        return known[call]

    def place(value: Any) -> Any:
        if isinstance(value, _Place):
            if value.call is not None:
                return {"call": _order(value.call, calls, operands, known), "result": value.result}
            assert value.node is not None
            if value.node not in operands:
                operands.append(value.node)
            return {"operand": operands.index(value.node)}
        if isinstance(value, tuple):
            several = cast("tuple[Any, ...]", value)
            if len(several) == 2 and several[0] in (*_KINDS.values(), "complex"):
                return {"kind": several[0], "name": several[1]}
            return [place(item) for item in several]
        return value

    name, arguments, keywords = call
    entry = [name, [place(a) for a in arguments], {key: place(value) for key, value in keywords}]
    calls.append(entry)
    known[call] = len(calls) - 1
    return known[call]


def names(op: ops.CustomCall) -> list[str]:
    """The operators that such a call is made of."""
    return [name for name, _, _ in _calls(op)]


def not_repeatable(op: ops.CustomCall) -> str:
    """What must not be run more often than the program runs it; empty where all are PyTorch's own and only compute.

    Of operators of others nothing is known. A collective that one rank runs once more than its peers leaves all of them
    waiting.
    """
    found = names(op) if op.target == TARGET else [] if op.is_unspecified else [op.target]
    return next((name for name in found if name.partition(".")[0] not in COMPUTING), "")


def _calls(op: ops.CustomCall) -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Operators with arguments and keywords; raises UnsupportedOperator where the text has another form."""
    try:
        found: Any = json.loads(str(dict(op.attributes)["calls"]))
        return [(str(name), list(arguments), dict(keywords)) for name, arguments, keywords in found]
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedOperator(f"an opaque call of {TARGET} does not say what is called") from error


def run(op: ops.CustomCall, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """The result of such a call; raises UnsupportedOperator for other functions than :func:`foreign` writes down."""
    done: list[Any] = []

    def value(entry: Any) -> Any:
        if isinstance(entry, list):
            return [value(item) for item in cast("list[Any]", entry)]
        if not isinstance(entry, dict):
            return entry
        fields = cast("dict[str, Any]", entry)
        if "operand" in fields:
            return operands[int(fields["operand"])]
        if "kind" in fields and fields["kind"] == "complex":
            return complex(fields["name"])
        if "kind" in fields:
            found = getattr(torch, str(fields["name"]), None)
            if not isinstance(found, tuple(_KINDS)):
                raise UnsupportedOperator(f"{fields['name']} is none of PyTorch's types or memory formats")
            return found
        return _part(done[fields["call"]], fields["result"])

    for name, arguments, keywords in _calls(op):
        done.append(_function(name)(*(value(a) for a in arguments), **{k: value(v) for k, v in keywords.items()}))
    return _part(done[-1], op.result)


def _part(results: Any, number: int) -> Any:
    """One result of a call that may have several."""
    several = cast("Sequence[Any]", results)
    return several[number] if isinstance(results, (tuple, list)) else results


def _function(name: str) -> Callable[..., Any]:
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    if not _only_computes(found):
        raise UnsupportedOperator(f"{name} is no operator of PyTorch that only computes its results")
    function: Callable[..., Any] = found
    return function
