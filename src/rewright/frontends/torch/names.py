"""Names of the tensors of a program: arguments by parameter name, results by their path in what is returned."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

import torch

from rewright.ir.errors import CaptureError

Named = tuple[str, Any]
ASSERTED = "asserted:"
"""How the name of an output begins that says whether a program's own assertion holds."""


def bind_arguments(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name; variadic ones are named ``args.0`` and by keyword.

    Raises CaptureError where the arguments do not fit the signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {f"args.{i}": value for i, value in enumerate(args)} | dict(kwargs)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise CaptureError(
            f"the arguments do not fit {_title(function)}{signature}: {error}; pass what it takes"
        ) from None
    found: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found |= {f"{name}.{i}": item for i, item in enumerate(value)}
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        else:
            found[name] = value
    return found


def bind_some(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The first arguments of a function by parameter name, as far as its signature is known."""
    try:
        return dict(inspect.signature(function).bind_partial(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {f"args.{i}": value for i, value in enumerate(args)} | dict(kwargs)


def leaves(name: str, value: Any) -> Iterator[Named]:
    """Every leaf of a nested value with its dotted path; containers are walked, everything else is a leaf."""
    children = list(_children(value))
    if not children:
        yield name, value
    for key, child in children:
        yield from leaves(f"{name}.{key}" if name else key, child)


def replace(name: str, value: Any, table: Mapping[str, Any]) -> Any:
    """The nested value with the leaves whose path is in ``table`` exchanged; containers are rebuilt."""
    if name in table:
        return table[name]
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return type(items)((k, replace(f"{name}.{k}", v, table)) for k, v in items.items())
    if isinstance(value, (list, tuple)):
        kind = cast("type[Any]", type(cast("object", value)))
        parts = [replace(f"{name}.{i}", v, table) for i, v in enumerate(cast("Sequence[Any]", value))]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)  # a named tuple takes its fields apart
    return value


def result_names(value: Any) -> list[Named]:
    """The tensors that a program returns, by name: ``output``, ``output.0``, or the keys of a returned mapping.

    A ``ModelOutput`` of Transformers is a mapping, so that its fields give ``loss`` and ``logits``.
    """
    named = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {"output": value}
    found = leaves("", dict(named))
    return [(name, leaf) for name, leaf in found if isinstance(leaf, torch.Tensor)]


def _children(value: Any) -> Iterator[Named]:
    if isinstance(value, (torch.Tensor, torch.nn.Module, str, type)):
        return
    if isinstance(value, Mapping):
        for key, child in cast("Mapping[Any, Any]", value).items():
            yield str(key), child
    elif isinstance(value, (list, tuple)):
        for position, child in enumerate(cast("Sequence[Any]", value)):
            yield str(position), child
    elif is_dataclass(value):
        for field in fields(value):
            yield field.name, getattr(value, field.name)
    elif hasattr(value, "layers") and hasattr(value, "get_seq_length"):  # a key and value cache of Transformers
        for position, layer in enumerate(value.layers):
            for part in ("keys", "values"):
                if isinstance(getattr(layer, part, None), torch.Tensor):
                    yield f"{position}.{part}", getattr(layer, part)


def _title(function: Callable[..., Any]) -> str:
    owner = getattr(function, "__self__", None)
    return type(owner).__name__ if owner is not None else getattr(function, "__name__", "function")
