"""The parameters and buffers of the modules that a program uses, and how to exchange them while it is traced."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import nn

from rewright.frontends.torch.names import bind_some, leaves
from rewright.frontends.torch.replicated import is_replicated, reducing
from rewright.frontends.torch.wrappers import refuse_wrappers

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Owners:
    """Modules by name prefix; an empty prefix where there is only one, so that names are the module's own."""

    modules: tuple[tuple[str, nn.Module], ...]

    @staticmethod
    def of(target: Any, arguments: Mapping[str, Any], *, wrappers: bool = False) -> Owners:
        """The modules that a program uses: itself, those among its arguments, and those that a function refers to.

        Raises CaptureError for wrappers whose work cannot be traced (:mod:`rewright.frontends.torch.wrappers`), unless
        ``wrappers`` are welcome.
        """
        every = (leaf for name, value in arguments.items() for leaf in leaves(name, value))
        found = {name: value for name, value in every if isinstance(value, nn.Module)}
        own = {"": target} if isinstance(target, nn.Module) else _modules(target)
        found = _independent({**found, **{name: value for name, value in own.items() if name not in found}})
        if len(found) == 1:
            found = {"": next(iter(found.values()))}
        for module in () if wrappers else found.values():
            for name, part in _submodules(module):
                refuse_wrappers(name, part)
        return Owners(tuple(found.items()))

    def named_modules(self) -> list[tuple[str, nn.Module]]:
        """Every submodule with its qualified name, the modules themselves included."""
        return [(_join(prefix, name), m) for prefix, owner in self.modules for name, m in _submodules(owner)]

    def parameters(self) -> dict[str, nn.Parameter]:
        """Parameters by qualified name; a tied one appears under each of its names."""
        return {
            _join(prefix, name): value
            for prefix, owner in self.modules
            for name, value in _plain(owner, owner.named_parameters(remove_duplicate=False))
        }

    def buffers(self) -> dict[str, torch.Tensor]:
        """Buffers by qualified name; a shared one appears under each of its names."""
        return {
            _join(prefix, name): value
            for prefix, owner in self.modules
            for name, value in _plain(owner, owner.named_buffers(remove_duplicate=False))
        }

    @contextmanager
    def substitute(self, parameters: Mapping[str, Any], buffers: Mapping[str, Any]) -> Generator[None]:
        """Run with these values in place of the modules' own; afterwards every attribute is put back.

        A forward that keeps a tensor in an attribute would otherwise leave a fake one behind.
        """
        saved = [_Saved(module) for _, owner in self.modules for module in owner.modules()]
        by_path = dict(self._paths())
        try:
            for table, values in (("_parameters", parameters), ("_buffers", buffers)):
                for name, value in values.items():
                    path, _, last = name.rpartition(".")
                    getattr(by_path[path], table)[last] = value  # past any __setattr__ of the module
            with reducing([module for _, owner in self.modules for module in owner.modules()]):
                yield
        finally:
            for each in saved:
                each.restore()

    def _paths(self) -> Iterator[tuple[str, nn.Module]]:
        """Every path to a submodule: a module that is used twice appears under both."""
        for prefix, owner in self.modules:
            for name, module in _submodules(owner, remove_duplicate=False):
                yield _join(prefix, name), module


class _Saved:
    """The attributes of one module, to be put back."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._attributes = dict(vars(module))
        self._tables = [(table, dict(table)) for name in ("_parameters", "_buffers") for table in (vars(module)[name],)]

    def restore(self) -> None:
        own = vars(self._module)
        own.clear()
        own.update(self._attributes)
        for table, entries in self._tables:
            table.clear()
            table.update(entries)


def _independent(modules: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """The modules without those that are the same as another one, or a part of it: these have its names."""
    kept: dict[str, nn.Module] = {}
    for name, module in modules.items():
        others = [other for key, other in modules.items() if key != name and (key in kept or other is not module)]
        if not any(part is module for other in others for part in other.modules()):
            kept[name] = module
    return kept


def first_names(values: Mapping[str, Any]) -> dict[str, str]:
    """For every name the first name of the same object: tied parameters have one canonical name."""
    seen: dict[int, str] = {}
    return {name: seen.setdefault(id(value), name) for name, value in values.items()}


def referenced_objects(target: Any, kind: type[_Value]) -> dict[str, _Value]:
    """Objects of a kind that a function closes over, names globally, or is bound to; containers are walked."""
    owner = getattr(target, "__self__", None)
    every = (leaf for name, value in _scope(target, owner).items() for leaf in leaves(name, value))
    return {name: value for name, value in every if isinstance(value, kind)}


def _modules(target: Any) -> dict[str, nn.Module]:
    """The module that a function is a method of, else those that it says it stands for, else those it refers to."""
    known = getattr(target, "owners", None)
    if isinstance(known, Owners):
        return dict(known.modules)
    owner = getattr(target, "__self__", None)
    return {"": owner} if isinstance(owner, nn.Module) else referenced_objects(target, nn.Module)


def _scope(target: Any, owner: Any) -> dict[str, Any]:
    """What a function can name besides its arguments."""
    if isinstance(target, functools.partial):
        bound = cast("functools.partial[Any]", target)
        given = bind_some(bound.func, bound.args, bound.keywords)
        return {**_scope(bound.func, getattr(bound.func, "__self__", None)), **given}
    if inspect.ismethod(target):
        return {**_scope(target.__func__, None), **getattr(owner, "__dict__", {})}
    if not inspect.isfunction(target):
        return {}
    scope = inspect.getclosurevars(target)
    return {**scope.globals, **scope.nonlocals}


def _submodules(module: nn.Module, *, remove_duplicate: bool = True) -> Iterator[tuple[str, nn.Module]]:
    untyped: Any = module
    return _plain(module, untyped.named_modules(remove_duplicate=remove_duplicate))


def _plain(module: nn.Module, named: Iterable[tuple[str, _Value]]) -> Iterator[tuple[str, _Value]]:
    """Names without the ``module`` that data parallelism puts into them, so that ranks name what one device names."""
    untyped: Any = module
    wrapped = {path for path, part in untyped.named_modules(remove_duplicate=False) if is_replicated(part)}
    for name, value in named:
        parts = name.split(".")
        kept = [part for i, part in enumerate(parts) if part != "module" or ".".join(parts[:i]) not in wrapped]
        yield ".".join(kept), value


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name
