"""What a program can read beside the tensors of its inputs: every object that it reaches, as facts to compare.

A program reaches what its function closes over, the globals and defaults of every function that it ran, the attributes
of its objects and of their classes, and its arguments. What is reached and cannot be looked into is not known to stay
as it is.
"""

from __future__ import annotations

import collections
import contextvars
import enum
import functools
import inspect
import logging
import re
import types
import typing
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch

from rewright.optimize.calls.ran import GLOBAL, Ran, is_installed
from rewright.optimize.calls.snapshot import MISSING, Held, Snapshot, entries_of
from rewright.optimize.calls.tensors import describe, other_tensor, state_of

MOST = 300_000
"""Objects that are looked at; a program that reaches more is not known."""
DEEPEST = 6
"""So many modules are named one within another."""
_any: Any = torch
_np: Any = np
_collections: Any = collections
_PLAIN: Any = (
    *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, np.generic, np.dtype),
)
"""Values that never change, by their types."""
_FIXED: Any = (
    *(
        logging.Logger,
        logging.Handler,
        re.Pattern,
        inspect.Signature,
        types.GenericAlias,
        types.UnionType,
        types.CodeType,
    ),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.ClassMethodDescriptorType, typing.TypeVar, _np.ufunc, _any.finfo, _any.iinfo, _any._ops.OpOverload),
    *(_any._ops.OpOverloadPacket, _any._ops._OpNamespace, type(typing.Any), type(typing.Union[int, str])),
    *(type(_collections.namedtuple("N", "a").a), torch.fx.Graph, torch.fx.Node),
)
"""What gives no values to a program, or none that change."""

_LOOKED_INTO: Any = (
    *(torch.Tensor, type, types.ModuleType, types.FunctionType, types.MethodType, dict, list, tuple, set, frozenset),
    *(deque, np.ndarray, functools.partial, property, weakref.ref, contextvars.ContextVar),
)


@dataclass
class State:
    """What was found."""

    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """By path: a type and a value, a code, a class."""
    held: list[Held] = field(default_factory=list[Held])
    """Tensors that are no inputs."""
    snapshot: Snapshot = field(default_factory=Snapshot)
    unknown: str = ""
    """What could not be looked into; empty where nothing was."""

    def differs(self, other: State) -> str:
        """The first path at which two states differ; empty where none does."""
        for path, fact in self.facts.items():
            if path not in other.facts or not same(fact, other.facts[path]):
                return path
        return next((path for path in other.facts if path not in self.facts), "")


def same(one: Any, other: Any) -> bool:
    """Whether two facts are equal; -0.0 and 0.0, 1 and True are not, and undefined values are."""
    return type(one) is type(other) and (one is other or bool(one == other))


class Walker:
    """Looks at all that is reached; ``names`` are those of tensors that are inputs, by their ``id``.

    Stand-ins of tensors have no ``marks``, which are attributes that somebody set.
    """

    def __init__(self, ran: Ran, names: Mapping[int, str], marks: bool = True) -> None:
        self.ran, self.names, self.marks, self.state = ran, names, marks, State()
        self._read = ran.names
        self._asked = ran.asked
        self._asks_by_text = bool(self._read & {"getattr", "vars", "__dict__", "attrgetter", "eval", "exec"})
        self._seen: dict[int, str] = {}
        self._kept: list[Any] = []
        self._waiting: list[tuple[str, Any]] = []
        self._attributes_of: set[tuple[int, int]] = set()

    def look(self, path: str, value: Any) -> None:
        """Look at an object and all that it reaches."""
        self._waiting.append((path, value))
        self._go_on()

    def scopes(self) -> None:
        """The globals that the code names which ran."""
        for code, scope in self.ran.own:
            self._globals(code, scope)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            self._visit(*self._waiting.pop())

    # --- one object

    def _visit(self, path: str, value: Any) -> None:
        facts = self.state.facts
        if isinstance(value, torch.Tensor):
            self._tensor(path, value)
        elif isinstance(value, enum.Enum):
            facts[path] = ("enum", type(value), value.name)
        elif isinstance(value, _PLAIN):
            facts[path] = (type(value).__name__, repr(value))
        elif id(value) in self._seen:
            facts[path] = ("same as", self._seen[id(value)])
        elif len(self._seen) >= MOST:
            self._fail(f"it reaches more than {MOST} objects")
        else:
            self._seen[id(value)] = path
            self._kept.append(value)
            self._kind(value)(path, value)

    def _kind(self, value: Any) -> Callable[[str, Any], None]:
        kinds: tuple[tuple[Any, Callable[[str, Any], None]], ...] = (
            (types.FunctionType, self._function),
            (types.MethodType, self._method),
            (type, self._class),
            (types.ModuleType, self._load),
            ((types.BuiltinFunctionType, types.MethodWrapperType), self._builtin),
            ((dict, types.MappingProxyType), self._mapping),
            ((list, tuple, deque), self._sequence),
            ((set, frozenset), self._set),
            (np.ndarray, self._array),
            (functools.partial, self._partial),
            ((property, classmethod, staticmethod, functools.cached_property), self._descriptor),
            (types.CellType, self._cell),
            (weakref.ref, self._reference),
            (contextvars.ContextVar, self._variable),
            (_FIXED, self._fixed),
        )
        for kind, method in kinds:
            if isinstance(value, kind):
                return method
        if hasattr(value, "__wrapped__") and type(value).__module__ == "functools":
            return self._wrapper
        return self._object

    def _fail(self, why: str) -> None:
        self.state.unknown = self.state.unknown or why

    def _tensor(self, path: str, value: torch.Tensor) -> None:
        name = self.names.get(id(value))
        if name is None:
            self.state.facts[path] = ("tensor", id(value), describe(value))
            if id(value) not in self._seen:
                self._kept.append(value)
                self._seen[id(value)] = path
                self.state.held.append(Held.of(path, value))
        else:
            self.state.facts[path] = ("input", name)
            self._state_of(path, value)
        marks = vars(value) if self.marks else {}
        if marks and id(marks) not in self._seen:
            self._waiting.append((f"{path}.__dict__", marks))

    def _state_of(self, path: str, value: torch.Tensor) -> None:
        """What the code reads of an input beside its values; stand-ins have a state of their own."""
        asked = self._asked if self.marks else ()
        if not asked:
            return
        if other := other_tensor(value, asked):
            self._fail(f"{path}.{other} is a tensor that is read and is no input")
        said = state_of(value, asked)
        self.state.facts[f"{path}:state"] = said
        self.state.snapshot.tensors.append((value, asked, said))

    def _mapping(self, path: str, value: Any) -> None:
        self.state.snapshot.mapping(value)
        keys = [
            (type(k).__name__, repr(k)) if isinstance(k, _PLAIN) else self._key(path, n, k) for n, k in enumerate(value)
        ]
        self.state.facts[path] = ("mapping", type(value), keys)
        for key, item in entries_of(value):
            self._waiting.append((f"{path}[{key!r}]" if isinstance(key, _PLAIN) else f"{path}[{id(key)}]", item))
        self._attributes(path, value)

    def _key(self, path: str, number: int, key: Any) -> Any:
        self._waiting.append((f"{path}.key {number}", key))
        return ("key", id(key))

    def _sequence(self, path: str, value: Any) -> None:
        self.state.snapshot.sequences.append((value, list(value)))
        self.state.facts[path] = ("sequence", cast("object", type(value)), len(value))
        for number, item in enumerate(value):
            self._waiting.append((f"{path}[{number}]", item))
        self._attributes(path, value)

    def _set(self, path: str, value: Any) -> None:
        self.state.snapshot.sets.append((value, frozenset(value)))
        items = sorted(repr(item) if isinstance(item, _PLAIN) else f"{id(item)}" for item in value)
        self.state.facts[path] = ("set", cast("object", type(value)), items)
        for item in value:
            if not isinstance(item, _PLAIN):
                self._waiting.append((f"{path}.{id(item)}", item))

    def _array(self, path: str, value: Any) -> None:
        if value.dtype.hasobject:
            self._fail(f"{path} is an array of objects, of which nothing says whether they change")
            return
        data = value.tobytes()
        self.state.snapshot.arrays.append((value, data))
        self.state.facts[path] = ("array", str(value.dtype), value.shape, value.strides, data)

    def _function(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("function", value.__code__)
        self.state.snapshot.attributes.append((value, "__code__", value.__code__))
        parts = ["__defaults__", "__kwdefaults__", "__dict__"] if value.__code__ in self.ran else ["__dict__"]
        for name in parts:
            part = getattr(value, name)
            if name != "__dict__":
                self.state.snapshot.attributes.append((value, name, part))
            if part:
                self._waiting.append((f"{path}.{name}", part))
        if value.__code__ in self.ran:
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                self._waiting.append((f"{path}.{name}" if path else name, cell))

    def _cell(self, path: str, value: Any) -> None:
        try:
            inside = value.cell_contents
        except ValueError:
            self.state.facts[path] = ("cell", "empty")
            return
        self.state.facts[f"{path}(cell)"] = ("cell",)
        self.state.snapshot.attributes.append((value, "cell_contents", inside))
        self._waiting.append((path, inside))

    def _method(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("method",)
        self._waiting += [(f"{path}.__self__", value.__self__), (f"{path}.__func__", value.__func__)]

    def _builtin(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("builtin", value.__name__, getattr(value, "__module__", None))
        owner = value.__self__
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            self._waiting.append((f"{path}.__self__", owner))

    def _partial(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("partial", cast("object", type(value)))
        for name in ("func", "args", "keywords"):
            self._waiting.append((f"{path}.{name}", getattr(value, name)))

    def _descriptor(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("descriptor", cast("object", type(value)))
        for name in ("fget", "__func__", "func"):
            if getattr(value, name, None) is not None:
                self._waiting.append((f"{path}.{name}", getattr(value, name)))

    def _wrapper(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("wrapper", cast("object", type(value)))
        self._waiting.append((f"{path}.__wrapped__", value.__wrapped__))

    def _reference(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("reference",)
        self._waiting.append((f"{path}()", value()))

    def _variable(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("variable",)
        inside = value.get(MISSING)
        self.state.snapshot.variables.append((value, inside))
        if inside is not MISSING:
            self._waiting.append((f"{path}.get()", inside))

    def _fixed(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("fixed", cast("object", type(value)), id(value))

    def _load(self, path: str, value: Any) -> None:
        self._fixed(path, value)
        self._module(value, tuple(self._read), 0)

    def _class(self, path: str, value: Any) -> None:
        self.state.facts[path] = ("class", value)
        if is_installed(value.__module__):
            return
        own: dict[str, Any] = {
            name: item
            for name, item in cast("Mapping[str, Any]", vars(value)).items()
            if (not name.startswith("__") or isinstance(item, (types.FunctionType, property))) and name != "_abc_impl"
        }
        self.state.snapshot.entries += [(vars(value), name, item) for name, item in own.items()]
        self.state.facts[f"{path}:names"] = sorted(own)
        for name, item in own.items():
            self._attribute(path, name, item)
        for base in value.__bases__:
            self._waiting.append((f"class {base.__module__}.{base.__qualname__}", base))

    def _object(self, path: str, value: Any) -> None:
        kind = cast("type[Any]", type(value))
        self.state.facts[path] = ("object", kind)
        if id(kind) not in self._seen:
            self._waiting.append((f"class {kind.__module__}.{kind.__qualname__}", kind))
        slots = [name for c in kind.__mro__ for name in _slots(c)]
        if value is GLOBAL:  # a program that drew from it is refused
            self._attribute(path, "gauss_next", value.gauss_next)
            return
        if _is_opaque(value):
            self._fail(f"{path or 'the program'} is a {kind.__name__}, of which nothing says whether it changes")
            return
        for name in slots:
            item = getattr(value, name, MISSING)
            self.state.snapshot.attributes.append((value, name, item))
            if item is not MISSING:
                self._attribute(path, name, item)
        self._attributes(path, value)

    def _attributes(self, path: str, value: Any) -> None:
        """The attributes that an object has of its own."""
        own = getattr(value, "__dict__", None)
        if not isinstance(own, dict):
            return
        table = cast("dict[str, Any]", own)
        self.state.snapshot.mapping(table)
        self.state.snapshot.owners.append((value, table))
        self.state.facts[f"{path}:names"] = sorted(table)
        for name, item in table.items():
            self._attribute(path, name, item)

    def _attribute(self, path: str, name: str, item: Any) -> None:
        """One attribute; one that cannot be looked into does not matter where no code has its name."""
        if self._asks_by_text or name in self._read or not _is_opaque(item):
            self._waiting.append((f"{path}.{name}" if path else name, item))

    # --- globals

    def _globals(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        home = scope.get("__name__", "")
        for name in code.co_names:
            key = (id(scope), hash(name))
            value = scope.get(name, MISSING)
            if key not in self._attributes_of:
                self._attributes_of.add(key)
                self.state.snapshot.entries.append((scope, name, value))
                if value is not MISSING and not isinstance(value, types.ModuleType):
                    self._waiting.append((f"{home}.{name}", value))
            if isinstance(value, types.ModuleType):
                self._module(value, code.co_names, 0)

    def _module(self, module: types.ModuleType, names: tuple[str, ...], depth: int) -> None:
        """The attributes of a module that code may name."""
        scope = vars(module)
        for name in names:
            value = scope.get(name, MISSING)
            key = (id(scope), hash(name))
            if value is MISSING or value is module:
                continue
            if key not in self._attributes_of:
                self._attributes_of.add(key)
                self.state.snapshot.entries.append((scope, name, value))
                self._waiting.append((f"{module.__name__}.{name}", value))
            if isinstance(value, types.ModuleType) and depth < DEEPEST:
                self._module(value, names, depth + 1)


def _slots(kind: type[Any]) -> tuple[str, ...]:
    found: Any = vars(kind).get("__slots__", ())
    names = cast("tuple[str, ...]", (found,) if isinstance(found, str) else tuple(found))
    prefix = f"_{kind.__name__.lstrip('_')}"
    hidden = (f"{prefix}{n}" if n.startswith("__") and not n.endswith("__") else n for n in names)
    return tuple(n for n in hidden if n not in ("__dict__", "__weakref__"))


def _is_opaque(value: Any) -> bool:
    """Whether an object has a state that cannot be looked into: more memory than attributes of Python's take.

    What can be called, of a package that does not change, is a function.
    """
    kind = cast("type[Any]", type(value))
    if isinstance(value, (*_PLAIN, *_FIXED, *_LOOKED_INTO)) or (callable(value) and is_installed(kind.__module__)):
        return False
    slots = sum(len(_slots(c)) for c in kind.__mro__)
    return kind.__basicsize__ > object.__basicsize__ + 8 * (slots + 2)
