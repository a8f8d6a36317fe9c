"""Programs that are graphs already: an ExportedProgram, a ``.pt2`` file, an fx.GraphModule.

They are interpreted node by node under the same tracer as everything else, so that one operator vocabulary reaches
the lowering, and every new node gets the source line that the graph's own node carries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
import torch.fx
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from rewright.ir.errors import CaptureError
from rewright.ir.types import SourceSpan

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


class InterpretedProgram:
    """Callable that runs a graph module node by node and tells a listener each node's source span."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self.module = module
        self.__name__ = "the graph module"
        self.listener: Callable[[SourceSpan | None], None] = lambda span: None

    def names(self) -> list[str]:
        """Names of the inputs: the graph's placeholders."""
        return [str(node.target) for node in self.module.graph.nodes if node.op == "placeholder"]

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments as the placeholders take them; raises CaptureError where their structure differs."""
        expected: Any = getattr(self.module, "_in_spec", None)
        if expected is not None:
            structure: Any
            leaves, structure = pytree.tree_flatten(
                (tuple(args), {key: kwargs[key] for key in _order(expected, kwargs)})
            )
            if structure != expected:
                raise CaptureError(
                    "the arguments do not have the structure that the program was exported with; pass the same"
                )
            return leaves
        names = self.names()
        values = [*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs)]
        if len(values) != len(names):
            raise CaptureError(
                f"the graph takes {len(names)} arguments {names}, and {len(values)} are given; pass each"
            )
        return values

    def __call__(self, *values: Any) -> Any:
        outer = self

        class Interpreter(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                outer.listener(node_span(n))
                return super().run_node(n)

        try:
            flat = Interpreter(self.module).run(*values, enable_io_processing=False)
        finally:
            self.listener(None)
        return self.module.graph.process_outputs(flat)


def as_program(
    program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[InterpretedProgram, list[Any]] | None:
    """An interpreted program with its flat arguments for what is a graph already; None for anything else.

    Without arguments an exported program takes the shapes, symbolic ones included, that it was exported with.
    """
    if isinstance(program, (str, os.PathLike)):
        program = load(cast("str | os.PathLike[str]", program))
    if isinstance(program, ExportedProgram):
        interpreted = InterpretedProgram(program.module(check_guards=False))
        if not args and not kwargs:
            return interpreted, _own_examples(interpreted)
        return interpreted, interpreted.flatten(args, kwargs)
    if isinstance(program, torch.fx.GraphModule):
        interpreted = InterpretedProgram(program)
        return interpreted, interpreted.flatten(args, kwargs)
    return None


def load(path: str | os.PathLike[str]) -> ExportedProgram:
    """The program in a ``.pt2`` file; raises CaptureError where it cannot be read."""
    if not os.path.exists(path):
        raise CaptureError(f"there is no file {os.fspath(path)}; give the path of an exported program")
    try:
        return torch.export.load(path)
    except Exception as error:
        raise CaptureError(
            f"{os.fspath(path)} cannot be read as an exported program ({type(error).__name__}); write it with "
            "torch.export.save"
        ) from error


def node_span(node: torch.fx.Node) -> SourceSpan | None:
    """The span in a node's metadata: the last frame of its stack trace and the innermost module."""
    stack = cast("str | None", node.meta.get("stack_trace"))
    modules = cast("Mapping[str, Any]", node.meta.get("nn_module_stack") or {})
    path = str(list(modules.values())[-1][0]) if modules else ""
    frames = list(_FRAME.finditer(stack)) if stack else []
    if not frames:
        return SourceSpan(module_path=path) if path else None
    last = frames[-1]
    return SourceSpan(last["file"], int(last["line"]), last["function"], path)


def _own_examples(program: InterpretedProgram) -> list[Any]:
    return [node.meta.get("val") for node in program.module.graph.nodes if node.op == "placeholder"]


def _order(expected: Any, kwargs: Mapping[str, Any]) -> list[str]:
    """Keyword names in the order of the export, the unknown ones last."""
    known: list[str] = list(expected.child(1).context) if expected.num_children == 2 else []
    return [*(key for key in known if key in kwargs), *(key for key in kwargs if key not in known)]
