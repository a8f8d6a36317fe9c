"""FlexAttention's template as Inductor writes it for a GPU that need not be there.

The graph is traced on the CPU, without the device; then Inductor is asked for code for a device that is described to
it, and stopped before it looks for one.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.flex_attention import flex_attention

from rewright.optimize.running.triton_launch import load_module
from rewright.optimize.running.triton_tuning import Tiles

MULTIPROCESSORS = 132
"""Of the device: among so many Inductor would split rows that are few, and these are not."""


@dataclass(frozen=True)
class Template:
    """A kernel of Inductor's: its module, its name, and the types of its arguments."""

    text: str
    name: str
    signature: dict[str, str]
    tiles: Tiles


def compile_template(template: Template, capability: int) -> Any:
    """The kernel compiled for ``sm_<capability>``."""
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    compiler = importlib.import_module("triton.compiler")
    source = compiler.ASTSource(
        fn=getattr(load_module(template.text), template.name),
        signature=template.signature,
        attrs={(i,): [["tt.divisibility", 16]] for i in range(len(template.signature))},
    )
    options = {"num_warps": template.tiles.warps, "num_stages": template.tiles.stages}
    return compiler.compile(source, target=target, options=options)


class _CaughtError(Exception):
    """Inductor's code, before anything of it is loaded."""


def flex_template(settings: Mapping[str, Any], shape: tuple[int, ...], capability: int) -> Template:
    """What Inductor makes of ``flex_attention`` with these settings for float16 tensors of a shape."""
    graph, given = _trace(settings, shape)
    flex = importlib.import_module("torch._higher_order_ops.flex_attention")
    with _described_device(capability), mock.patch.object(flex, "_permute_strides", _as_it_is):
        with FakeTensorMode() as mode:
            fakes = [torch.empty(t.shape, dtype=t.dtype, device="cuda") for t in given]
        compile_fx = importlib.import_module("torch._inductor.compile_fx").compile_fx
        try:
            with torch._guards.tracing(torch._guards.TracingContext(mode)):
                compile_fx(graph, fakes)
        except Exception as error:  # Inductor wraps what it raises
            return _read_template(_caught_code(error))
    raise AssertionError("Inductor's code was not caught")


def _trace(settings: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """Dynamo's graph, and what it is given."""
    found: list[tuple[torch.fx.GraphModule, list[torch.Tensor]]] = []

    def kept(graph: torch.fx.GraphModule, given: list[torch.Tensor]) -> Callable[..., Any]:
        found.append((graph, given))
        for node in graph.graph.nodes:
            node.meta.pop("example_value", None)
        return lambda *_: tuple(torch.zeros(()) for _ in graph.graph.output_node().args[0])

    q, k, v = (torch.empty(shape, dtype=torch.float16) for _ in range(3))
    torch.compile(lambda q, k, v: flex_attention(q, k, v, **settings), backend=kept, fullgraph=True)(q, k, v)
    return found[0]


def _as_it_is(out: torch.Tensor, _: object) -> torch.Tensor:
    return torch.empty_strided(out.shape, out.stride(), dtype=out.dtype, device=out.device)


def _caught_code(error: BaseException) -> str:
    while not isinstance(error, _CaughtError):
        cause = error.__cause__ or error.__context__
        if cause is None:
            raise error
        error = cause
    return str(error)


def _read_template(code: str) -> Template:
    """The kernel in Inductor's code."""
    (name, body) = re.search(r"async_compile\.triton\('(triton_tem_\w+)', '''(.*?)''', device_str", code, re.S).groups()
    head, rest = body.split("@triton_heuristics.template", 1)
    setting, kernel = rest.split("@triton.jit", 1)
    number = {key: int(re.search(rf"{key} *(?:: tl\.constexpr)? *= *(\d+)", body)[1]) for key in _NUMBERS}
    kinds = dict(re.findall(r"'(\w+)': '(\*?\w+)'", re.search(r"'signature': \{(.*?)\}", setting)[1]))
    return Template(f"{head}@triton.jit{kernel}", name, kinds, Tiles(*number.values()))


_NUMBERS = ("BLOCK_M", "BLOCK_N", "num_warps", "num_stages")


@contextmanager
def _described_device(capability: int) -> Iterator[None]:
    """With a device that PyTorch is told of."""
    interface = importlib.import_module("torch._dynamo.device_interface").CudaInterface
    passes = [importlib.import_module(f"torch._inductor.fx_passes.{name}") for name in ("joint_graph", "post_grad")]
    hints = importlib.import_module("torch._inductor.runtime.hints").DeviceProperties
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering
    fakes = importlib.import_module("torch._subclasses.fake_tensor")
    config = importlib.import_module("torch._inductor.config")
    driver = importlib.import_module("triton.runtime").driver
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    known = {
        "multi_processor_count": MULTIPROCESSORS,
        "major": capability // 10,
        "regs_per_multiprocessor": 65536,
        "max_threads_per_multi_processor": 2048,
        "max_threads_per_block": 1024,
        "warp_size": 32,
    }
    device = SimpleNamespace(**known, minor=0, name="a GPU", gcnArchName="", shared_memory_per_block_optin=232448)

    def stop(graph: Any) -> None:
        raise _CaughtError(graph.codegen()[0].value)

    told: list[tuple[Any, str, Any]] = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "is_initialized", lambda: False),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "get_device_capability", lambda _=None: (capability // 10, 0)),
        (torch.cuda, "get_device_properties", lambda _=None: device),
        (torch.cuda, "get_rng_state", lambda _=None: torch.zeros(1)),
        (torch.cuda, "set_rng_state", lambda *_: None),
        (torch.cuda, "_exchange_device", lambda _: 0),
        (torch.cuda, "_maybe_exchange_device", lambda _: 0),
        (torch.version, "cuda", "13.0"),
        (importlib.import_module("torch._inductor.scheduler"), "has_triton", lambda: True),
        (fakes, "init_gpu_context", lambda _: None),
        (interface, "is_available", staticmethod(lambda: True)),
        (interface, "get_compute_capability", staticmethod(lambda _=None: capability)),
        (interface, "raise_if_triton_unavailable", staticmethod(lambda _=None: None)),
        (interface.Worker, "get_device_properties", staticmethod(lambda _=None: device)),
        (interface.Worker, "current_device", staticmethod(lambda: 0)),
        (hints, "create", classmethod(lambda c, _: c(type="cuda", index=0, cc=capability, **known))),
        (lowering, "compile_to_module", stop),
        *((one, "lazy_init", lambda *_, **__: None) for one in passes),
        (config, "pattern_matcher", False),
        (config, "compile_threads", 1),
    ]
    with ExitStack() as stack:
        for owner, name, value in told:
            stack.enter_context(mock.patch.object(owner, name, value))
        driver.set_active(SimpleNamespace(get_current_target=lambda: target, get_current_device=lambda: 0))
        try:
            yield
        finally:
            driver._active = None
