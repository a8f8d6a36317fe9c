"""Attributes, sizes and places as text, in the form that :mod:`rewright.ir.text` describes."""

from __future__ import annotations

import json
from typing import cast

from rewright.ir.attributes import nondefault_attributes
from rewright.ir.dims import SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.operator import Operator
from rewright.ir.types import DType, SourceSpan, TensorType


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
