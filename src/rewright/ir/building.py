"""Types, sizes and operators from what files say of them, with a reason for what is none."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Union, cast

from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.operator import Operator
from rewright.ir.sizes_in_text import parse_dim
from rewright.ir.types import DType, TensorType

_SIZE = re.compile(r"(?:\[([^\[\]]*)\]|(\d+))x")


@lru_cache(maxsize=65536)
def parse_type(text: str) -> TensorType:
    """Read what ``str`` prints for a type, such as ``2x[b*s]xf32``; raises RewrightError."""
    shape: list[Dim] = []
    position = 0
    while found := _SIZE.match(text, position):
        shape.append(int(found[2]) if found[2] else parse_size(found[1]))
        position = found.end()
    try:
        return TensorType(tuple(shape), DType(text[position:]))
    except ValueError:
        raise RewrightError(f"{text!r} is no tensor type; write one such as 2x[batch]xf32") from None


def parse_size(text: str) -> Dim:
    """Read a size such as ``2*b*s+1``; raises RewrightError."""
    try:
        if text.strip():
            return parse_dim(text)
    except ValueError:
        pass
    raise RewrightError(f"{text!r} is no size; write an integer or a polynomial such as 2*b*s+1")


def build_operator(registry: Mapping[str, type[Operator]], name: str, values: Mapping[str, object]) -> Operator:
    """The operator of that name with these attributes.

    Raises RewrightError for an unknown operator, for attributes that are missing or unknown, and for values of the
    wrong kind.
    """
    operator = registry.get(name)
    if operator is None:
        raise RewrightError(f"there is no operator {name!r}; `rewright` knows StableHLO's names, such as dot_general")
    hints, required = _fields(operator)
    for given, value in values.items():
        if given not in hints:
            raise RewrightError(f"{name} has no attribute {given!r}; it has {', '.join(hints) or 'none'}")
        if not _fits(value, hints[given]):
            raise RewrightError(f"{name} attribute {given!r} must be {_describe(hints[given])} and is {value!r:.80}")
    for missing in required:
        if missing not in values:
            raise RewrightError(f"{name} needs attribute {missing!r}")
    return cast(Any, operator)(**values)


@lru_cache(maxsize=1024)
def _fields(operator: type[Operator]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Annotations by attribute name, and the attributes without a default."""
    hints = typing.get_type_hints(operator)
    fields = dataclasses.fields(cast(Any, operator))
    required = tuple(f.name for f in fields if f.default is dataclasses.MISSING)
    return {f.name: hints[f.name] for f in fields}, required


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of the annotated kind; booleans are no integers here, integers are no floats."""
    if hint is object or hint is Any:
        return True
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in typing.get_args(hint)
    if origin is tuple:
        return _fits_tuple(value, typing.get_args(hint))
    return type(value) is hint


def _fits_tuple(value: object, hints: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    items = cast(tuple[object, ...], value)
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(_fits(item, hints[0]) for item in items)
    return len(items) == len(hints) and all(_fits(i, h) for i, h in zip(items, hints, strict=True))


def _describe(hint: Any) -> str:
    """An annotation in words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments)
    if origin is Literal:
        return "one of " + ", ".join(str(option) for option in arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return f"a list of {_describe(arguments[0])}"
    if origin is tuple:
        return "a list of " + ", ".join(_describe(a) for a in arguments)
    names = {SizeExpr: "a size", TensorType: "a tensor type", DType: "a dtype", str: "a string", type(None): "none"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))
