"""What ``torch.compile`` calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch._dynamo.exc import RestartAnalysis

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.backend.others import by_inductor, said

_LOG = logging.getLogger("rewright.optimize")


def backend(
    module: torch.fx.GraphModule, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: object
) -> Callable[..., Any]:
    """What ``torch.compile`` calls with each graph: a callable with kernels for it, and for its backward.

    AOTAutograd makes ATen graphs without side effects of it, which keep their guards: one for inference, or one
    forward and one backward, cut as ``saving`` says. Each is optimised by itself when it is called first. What has no
    kernels runs as Inductor compiles it, else as it is; one line of the log ``rewright.optimize`` says why.

    Args:
        module: the graph that Dynamo captured.
        examples: its arguments, fake or real.
        options: those of :func:`rewright.optimize.api.optimize`: ``target``, ``allow``, ``budget``, ``verify``,
            ``floor``, ``remember``.

    Raises:
        RewrightError: for options that there are not.
    """
    chosen = dict(options or {})
    _check(chosen)
    try:
        return _by_autograd(module, examples, chosen)
    except RestartAnalysis:  # Dynamo captures the graph anew
        raise
    except Exception as error:  # what AOTAutograd does not take, Inductor says itself
        _LOG.warning("left to Inductor: AOTAutograd does not take the graph (%s)", said(error))
    return by_inductor(module, examples)


def _check(options: Mapping[str, Any]) -> None:
    """Raise RewrightError for options that are none."""
    from rewright.optimize.api import request

    try:
        request(Graph((), {}, {}), **options)
    except TypeError as error:
        raise RewrightError(f"options of torch.compile: {error}; use those of rewright.optimize") from None


def _by_autograd(
    module: torch.fx.GraphModule, examples: Sequence[Any], options: Mapping[str, Any]
) -> Callable[..., Any]:
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    from rewright.optimize.backend.choosing import AGAIN, EAGER, MOST_BYTES, SAVED, WORTH, Choice
    from rewright.optimize.backend.inferring import Inference, has_own_tensors
    from rewright.optimize.backend.known import Known
    from rewright.optimize.backend.saving import Saving
    from rewright.optimize.running import targets

    tensors = [a for a in examples if isinstance(a, torch.Tensor)]
    target = targets.choose(options.get("target"), tensors)
    device = next((a.device for a in tensors if a.is_cuda), torch.device("cpu"))
    saving, stepped = Saving(targets.machine(target, device)), threading.Event()
    again = _cut_by(saving, module, examples, options, stepped)
    floor = options.get("floor", True)
    remember = options.get("remember", True)
    beside_eager = targets.is_timed(target) and (floor is True or (floor and "eager" in floor))
    if saving.is_inference:
        if not beside_eager or not saving.only_computes or has_own_tensors(module):
            return again
        known = Known.of(module, f"inference {floor} {target}", remember=remember)
        return Inference(again, module.forward, known, is_flexible=any(map(_is_open, examples)))
    if not floor or saving.bytes > MOST_BYTES or not saving.only_computes:
        return again
    known = Known.of(module, f"gradients {floor} {target}", remember=remember)
    calls: dict[str, Callable[..., Any]] = {AGAIN: again}
    if saving.share > 1.0 - WORTH and known.recall() in (None, SAVED):  # else there is not enough to win
        calls[SAVED] = _cut_by(min_cut_rematerialization_partition, module, examples, options)
    if beside_eager:
        calls[EAGER] = module.forward
    return Choice(calls, saving.bytes, stepped, known) if len(calls) > 1 else again


def _is_open(example: Any) -> bool:
    """Whether an argument is a size, or has one, that Dynamo keeps open."""
    sizes = example.shape if isinstance(example, torch.Tensor) else (example,)
    return any(isinstance(size, torch.SymInt) for size in sizes)


def _cut_by(
    cut: Callable[..., Any],
    module: torch.fx.GraphModule,
    examples: Sequence[Any],
    options: Mapping[str, Any],
    stepped: threading.Event | None = None,
) -> Callable[..., Any]:
    """The graph by AOTAutograd, with this cut between forward and backward; a gradient of it sets ``stepped``."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table

    from rewright.optimize.backend.saving import Saving

    def compiling(kind: str, event: threading.Event | None = None) -> Callable[..., Any]:
        return partial(_deferred, kind, options, event)

    def inferring(module: torch.fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        if isinstance(cut, Saving):
            cut.look_at(module.graph)
        return compiling("inference")(module, examples)

    compiler = aot_autograd(
        fw_compiler=compiling("forward"),
        bw_compiler=compiling("backward", stepped),
        inference_compiler=inferring,
        partition_fn=cut,
        decompositions=select_decomp_table,
    )
    return compiler(module, examples)


def _deferred(
    kind: str,
    options: Mapping[str, Any],
    event: threading.Event | None,
    module: torch.fx.GraphModule,
    examples: Sequence[Any],
) -> Callable[[list[Any]], Sequence[Any]]:
    """A graph of AOTAutograd's, to be optimised when it is called; its arguments are one list, which is emptied.

    A call sets the event, if there is one.
    """
    from rewright.optimize.backend.effects import without_tokens
    from rewright.optimize.backend.graphs import GraphCalls

    calls = GraphCalls(without_tokens(module), kind, options)

    def boxed(arguments: list[Any]) -> Sequence[Any]:
        given = tuple(arguments)
        arguments.clear()
        if event is not None:
            event.set()
        return calls(given)

    boxed.__dict__["_boxed_call"] = True
    return boxed
