"""The parameters of a reference and of what launches kernels: two functions of the same arguments, by any names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from rewright.frontends.torch.names import bind_arguments
from rewright.ir.graph import Graph, Node
from rewright.ops import Input


def with_one_signature(reference: Any, launcher: Any, count: int) -> tuple[Any, Any]:
    """Both functions, where one that takes any number of arguments has the parameters of the other one.

    Where both do, and have another number of parameters in front, they have as many as there are arguments.
    """
    mine, other = _takes_any(reference), _takes_any(launcher)
    if mine and other:
        signatures = inspect.signature(reference), inspect.signature(launcher)
        shared = _with_parameters(*signatures, count)
        return (reference, launcher) if shared is None else (_as(reference, shared), _as(launcher, shared))
    if mine is False and other is True:
        return reference, _as(launcher, inspect.signature(reference))
    if mine is True and other is False:
        return _as(reference, inspect.signature(launcher)), launcher
    return reference, launcher


def _with_parameters(mine: inspect.Signature, other: inspect.Signature, count: int) -> inspect.Signature | None:
    """One parameter for each argument, the first ones by the names of ``mine``; None where both have as many."""
    kinds = {p.kind for signature in (mine, other) for p in signature.parameters.values()}
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if len(mine.parameters) == len(other.parameters) or kinds != {plain, inspect.Parameter.VAR_POSITIONAL}:
        return None
    names = [p.name for p in mine.parameters.values() if p.kind is plain]
    names += [f"argument{number}" for number in range(len(names), count)]
    return inspect.Signature([inspect.Parameter(name, plain) for name in names[:count]])


def _takes_any(function: Any) -> bool | None:
    """Whether a function takes any number of arguments; None of modules and of functions that do not say."""
    try:
        found = None if isinstance(function, torch.nn.Module) else inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return None if found is None else any(p.kind is p.VAR_POSITIONAL for p in found.parameters.values())


def _as(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """A function that says that it has some parameters."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    called.__qualname__ = getattr(function, "__qualname__", called.__qualname__)
    called.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return called


def parameters_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    return list(bind_arguments(function.forward if isinstance(function, torch.nn.Module) else function, args, kwargs))


def renamed(
    dynamic: Mapping[str, Mapping[int, str]], names: Sequence[str], others: Sequence[str]
) -> dict[str, Mapping[int, str]]:
    """Sizes that are symbols by the names of another function's parameters."""
    return {other: dynamic[name] for name, other in zip(names, others, strict=False) if name in dynamic}


def with_names(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with its inputs named by other parameters: ``x.key`` is ``y.key`` where ``names`` says that x is y."""
    renamed: dict[str, str] = {}
    for name in graph.inputs:
        own, dot, rest = name.partition(".")
        renamed[name] = f"{names.get(own, own)}{dot}{rest}"
    if len(set(renamed.values())) < len(renamed) or all(name == new for name, new in renamed.items()):
        return graph
    nodes = list(graph.nodes)
    for name, position in graph.inputs.items():
        node: Node = nodes[position]
        nodes[position] = replace(node, op=Input(renamed[name], node.type))
    inputs = {renamed[name]: position for name, position in graph.inputs.items()}
    return replace(graph, nodes=tuple(nodes), inputs=inputs)
