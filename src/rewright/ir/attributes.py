"""Attributes of operators by name: what files and digests say of an operator."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, cast

from rewright.ir.operator import Operator


def attributes(op: Operator) -> dict[str, Any]:
    """The attributes of an operator by name, in order."""
    return {name: getattr(op, name) for name in field_names(type(op))}


def nondefault_attributes(op: Operator) -> dict[str, Any]:
    """The attributes that have another value than their default, by name, in order."""
    defaults = _defaults(type(op))
    return {name: value for name, value in attributes(op).items() if name not in defaults or value != defaults[name]}


@lru_cache(maxsize=1024)
def _defaults(operator: type[Operator]) -> dict[str, Any]:
    fields = dataclasses.fields(cast(Any, operator))
    return {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}


@lru_cache(maxsize=1024)
def field_names(operator: type[Operator]) -> tuple[str, ...]:
    """Names of the attributes of an operator class, in order."""
    return tuple(field.name for field in dataclasses.fields(cast(Any, operator)))
