"""The source that Inductor generates for a traced program, on a machine without a GPU."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from rewright.frontends.torch.fakes import assumptions
from rewright.frontends.torch.forks import Asked, are_possible
from rewright.frontends.torch.trace import Trace, quiet
from rewright.ir.errors import CaptureError
from rewright.kernel.inductor.device import cuda_on_paper

_SECONDS = 600.0
_CUDA = torch.device("cuda", 0)
_NOWHERE = torch.device("meta")
"""Where a program is taken apart: PyTorch without CUDA indexes no tensors of that device, not even fake ones."""


@dataclass(frozen=True)
class Generated:
    """A module of Python that launches Triton kernels."""

    source: str
    """Its function ``call`` takes sizes that are symbols, the inputs of the traced program, then its constants."""
    sizes: tuple[tuple[int, int], ...] = ()
    """The input and axis of each size."""
    written: tuple[int, ...] = ()
    """The inputs whose new values come before the results in what ``call`` returns."""
    assumptions: tuple[str, ...] = ()
    """What Inductor took for granted of sizes that are symbols."""


def generate(traced: Trace) -> tuple[Generated, tuple[torch.Tensor, ...]]:
    """What Inductor makes of a traced program for CUDA, and the constants of the program.

    It is done in a copy of this process. Raises CaptureError with Inductor's reason.
    """
    with quiet():
        import_module("torch._inductor.compile_fx")  # here, so that copies need not
    if not are_possible():
        raise CaptureError("this process cannot be copied, and Inductor runs in a copy")
    module, constants, sizes = _with_all_inputs(traced)
    asked = Asked(partial(_generate, module, constants))
    try:
        found = asked.answer(_SECONDS)
    finally:
        asked.end()
    if not isinstance(found, Generated):
        raise CaptureError(f"Inductor does not compile the program: {found or 'its process ended'}")
    written = tuple(place - len(sizes) for place in found.written)
    return replace(found, sizes=tuple(sizes), written=written), constants


def _symbols(places: Sequence[torch.fx.Node]) -> list[tuple[torch.SymInt, tuple[int, int]]]:
    """The sizes of inputs that are one symbol, each with the input and the axis where it is found."""
    found: dict[str, tuple[torch.SymInt, tuple[int, int]]] = {}
    for number, place in enumerate(places):
        for axis, size in enumerate(place.meta["val"].shape):
            inner: Any = size
            if isinstance(size, torch.SymInt) and inner.node.expr.is_symbol:
                found.setdefault(str(size), (size, (number, axis)))
    return list(found.values())


def _with_all_inputs(
    traced: Trace,
) -> tuple[torch.fx.GraphModule, tuple[torch.Tensor, ...], list[tuple[int, int]]]:
    """The program's graph, which returns what it returns and no more, its constants, and where its symbols are sizes.

    Symbols are its first inputs, as those of Dynamo's graphs are, and tensors that it holds the last ones.
    """
    program = traced.program
    for node in program.module.graph.nodes:
        if str(getattr(node.target, "namespace", "")).startswith("rewright_random"):
            raise CaptureError("the program draws random numbers, and Inductor draws others")
    graph = copy.deepcopy(program.module.graph)
    places = [node for node in graph.nodes if node.op == "placeholder"]
    constants: list[torch.Tensor] = []
    sizes = _symbols(places)
    if sizes:
        with graph.inserting_before(places[0]):
            for number, (size, _) in enumerate(sizes):
                graph.placeholder(f"size_{number}").meta["val"] = size
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value: Any = program.module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise CaptureError(f"the program holds a {type(value).__name__}, which is not read")
        with graph.inserting_after(places[-1]) if places else graph.inserting_before(None):
            place = graph.placeholder(f"constant_{len(constants)}")
        place.meta["val"] = value
        places.append(place)
        constants.append(value)
        node.replace_all_uses_with(place)
        graph.erase_node(node)
    end: Any = graph.output_node()
    end.args = (tuple(end.args[0][: len(program.outputs)]),)
    return torch.fx.GraphModule(program.module, graph), tuple(constants), [place for _, place in sizes]


def _generate(module: torch.fx.GraphModule, constants: Sequence[torch.Tensor]) -> Generated | str:
    """The source, or why there is none; it changes what Inductor remembers of this process."""
    try:
        with quiet(), cuda_on_paper():
            return _compiled(module)
    except Exception as error:
        lines = [line for line in str(error).strip().splitlines() if line]
        return lines[0] if lines else type(error).__name__


def _compiled(module: torch.fx.GraphModule) -> Generated:
    compiler: Any = import_module("torch._inductor.compile_fx")
    config: Any = import_module("torch._inductor.config")
    lowering: Any = import_module("torch._inductor.graph").GraphLowering
    inputs: list[Any] = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    modes = [value.fake_mode for value in inputs if hasattr(value, "fake_mode")]
    symbols = modes[0].shape_env if modes else None
    mode = FakeTensorMode(shape_env=symbols, allow_non_fake_inputs=True)
    found: list[Generated] = []

    def on_cuda(graph: torch.fx.GraphModule, given: Sequence[Any], **kwargs: Any) -> Any:
        _place(graph, _CUDA)
        return compiler.compile_fx_inner(graph, _on(mode, given, _CUDA), **kwargs)

    _place(module, _NOWHERE)
    own = {"fx_graph_cache": False, "compile_threads": 1, "joint_graph_constant_folding": False}
    with mock.patch.object(lowering, "compile_to_module", _noting(found)), config.patch(own):
        compiler.compile_fx(module, _on(mode, inputs, _NOWHERE), inner_compile=on_cuda)
    if len(found) != 1:
        raise CaptureError(f"there are {len(found)} graphs of one program")
    guards = () if symbols is None else tuple(f"Inductor compiled for sizes with {t}" for t in assumptions(mode))
    return replace(found[0], assumptions=guards)


def _on(mode: FakeTensorMode, values: Sequence[Any], device: torch.device) -> list[Any]:
    """Fake tensors on a device; what is no tensor as it is."""

    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)

    with mode:
        return [one(value) for value in values]


def _place(module: torch.fx.GraphModule, device: torch.device) -> None:
    """Make what a graph creates be on a device."""
    for node in module.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": device}
        node.args = tuple(device if isinstance(argument, torch.device) else argument for argument in node.args)
    module.recompile()


def _noting(found: list[Generated]) -> Callable[[Any], Any]:
    """In the place of loading the module that was generated: note its source."""

    def compile_to_module(graph: Any) -> Any:
        if graph.constants:
            raise CaptureError("a constant that Inductor computes is no number")
        code, _ = graph.codegen()
        known: Any = import_module("torch._guards").TracingContext.get().fw_metadata
        found.append(Generated(code.value, written=tuple(known.mutated_inp_runtime_indices)))
        return SimpleNamespace(call=_nothing, __file__="")

    return compile_to_module


def _nothing(*_: object) -> None:
    """Run nothing."""
