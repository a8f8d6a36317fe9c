"""The parameters and buffers of the modules that a program uses, and how to exchange them while it is traced."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rewright.ir.errors import CaptureError


@dataclass(frozen=True)
class Owners:
    """Modules by name prefix; an empty prefix where there is only one, so that names are the module's own."""

    modules: tuple[tuple[str, nn.Module], ...]

    @staticmethod
    def of(target: Any, arguments: Mapping[str, Any]) -> Owners:
        """The target if it is a module, and every module among the arguments.

        Raises CaptureError for a DistributedDataParallel wrapper: its C++ reducer does not run while tracing, so its
        all-reduces would be missing from the program without a word.
        """
        found = {"": target} if isinstance(target, nn.Module) else {}
        found |= {name: value for name, value in arguments.items() if isinstance(value, nn.Module)}
        if len(found) == 1:
            found = {"": next(iter(found.values()))}
        for module in found.values():
            _refuse_reducers(module)
        return Owners(tuple(found.items()))

    def named_modules(self) -> list[tuple[str, nn.Module]]:
        """Every submodule with its qualified name, the modules themselves included."""
        return [(_join(prefix, name), m) for prefix, owner in self.modules for name, m in _submodules(owner)]

    def parameters(self) -> dict[str, nn.Parameter]:
        """Parameters by qualified name; a tied one appears under each of its names."""
        return {
            _join(prefix, name): value
            for prefix, owner in self.modules
            for name, value in owner.named_parameters(remove_duplicate=False)
        }

    def buffers(self) -> dict[str, torch.Tensor]:
        """Buffers by qualified name; a shared one appears under each of its names."""
        return {
            _join(prefix, name): value
            for prefix, owner in self.modules
            for name, value in owner.named_buffers(remove_duplicate=False)
        }

    @contextmanager
    def exchanged(self, parameters: Mapping[str, Any], buffers: Mapping[str, Any]) -> Generator[None]:
        """Run with these values in place of the modules' own; those are put back afterwards."""
        old_parameters, old_buffers = self.parameters(), self.buffers()
        self._put("_parameters", parameters)
        self._put("_buffers", buffers)
        try:
            yield
        finally:
            self._put("_parameters", old_parameters)
            self._put("_buffers", old_buffers)

    def _put(self, table: str, values: Mapping[str, Any]) -> None:
        """Set table entries directly: module attributes may be guarded by ``__setattr__`` and hooks."""
        by_path = dict(self.named_modules_with_duplicates())
        for name, value in values.items():
            path, _, last = name.rpartition(".")
            getattr(by_path[path], table)[last] = value

    def named_modules_with_duplicates(self) -> Iterator[tuple[str, nn.Module]]:
        """Every path to a submodule: a module that is used twice appears under both."""
        for prefix, owner in self.modules:
            for name, module in _submodules(owner, remove_duplicate=False):
                yield _join(prefix, name), module


def first_names(values: Mapping[str, Any]) -> dict[str, str]:
    """For every name the first name of the same object: tied parameters have one canonical name."""
    seen: dict[int, str] = {}
    return {name: seen.setdefault(id(value), name) for name, value in values.items()}


def _submodules(module: nn.Module, *, remove_duplicate: bool = True) -> Iterator[tuple[str, nn.Module]]:
    untyped: Any = module
    return untyped.named_modules(remove_duplicate=remove_duplicate)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name


def _refuse_reducers(module: nn.Module) -> None:
    for name, part in _submodules(module):
        if isinstance(part, nn.parallel.DistributedDataParallel):
            where = f"submodule {name!r}" if name else "the module"
            raise CaptureError(
                f"{where} is a DistributedDataParallel, whose C++ reducer is silent while tracing, so that its "
                "gradient all-reduces would be missing; pass its .module and reduce the gradients in the step function"
            )
