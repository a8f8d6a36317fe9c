"""vLLM's model definitions on a CPU, with weights that vLLM's own loader reads from a checkpoint of Transformers."""

from __future__ import annotations

import glob
import importlib
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

import rewright as rw
from bench.pairs import reference
from bench.pairs.families import FAMILIES, Family
from bench.pairs.reference import Pair
from bench.pairs.vllm_kernels import defined, plain_experts, plain_products

_MOST_TOKENS = 64
Held = tuple[Any, str, nn.Module, str]
"""A kernel, its attribute, and the module whose parameter of a name that is."""


class Served(nn.Module):
    """A model of vLLM as a function from tokens (sequences, positions) to logits."""

    def __init__(self, model: nn.Module, configuration: Any, held: Sequence[Held]) -> None:
        super().__init__()
        self.model, self.configuration, self.held = model, [configuration], tuple(held)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        batch, length = input_ids.shape
        context = importlib.import_module("vllm.forward_context").set_forward_context
        operators = importlib.import_module("vllm.ir.op")
        with (
            context(None, self.configuration[0], num_tokens=batch * length),
            operators.enable_torch_wrap(False),
            defined(batch),
            plain_experts(),
            tabled(self.model),
            lent(self.held),
        ):
            positions = torch.arange(length).repeat(batch)
            hidden = self.model(input_ids=input_ids.reshape(-1), positions=positions)
            logits = self.model.compute_logits(hidden)
        return logits.reshape(batch, length, -1)


@contextmanager
def lent(held: Sequence[Held]) -> Generator[None]:
    """Kernels hold the parameters that the model has now: a capture puts others in their places."""
    with ExitStack() as stack:
        for kernel, attribute, owner, name in held:
            stack.enter_context(mock.patch.object(kernel, attribute, getattr(owner, name)))
        yield


@contextmanager
def tabled(model: nn.Module) -> Generator[None]:
    """Rotary tables are computed where they are used, as they are when the model is made."""
    saved: list[tuple[Any, torch.Tensor]] = []
    try:
        for module in model.modules():
            table: Any = getattr(module, "cos_sin_cache", None)
            if table is not None:
                saved.append((module, table))
                maker: Any = module
                maker.cos_sin_cache = maker._compute_cos_sin_cache().to(table.dtype)
        yield
    finally:
        for module, table in saved:
            module.cos_sin_cache = table


def built(configuration: Any, weights: Mapping[str, torch.Tensor], rank: int = 0, degree: int = 1) -> Served:
    """The model of vLLM for a configuration, on one of some ranks, with the weights of a checkpoint."""
    dtype = next(iter(weights.values())).dtype
    with tempfile.TemporaryDirectory() as folder:
        configuration.save_pretrained(folder)
        settings = _settings(folder, dtype, degree)
    scope = importlib.import_module("vllm.config").set_current_vllm_config
    loading = importlib.import_module("vllm.model_executor.model_loader.utils")
    with scope(settings), plain_products(), _default(dtype):
        _join(rank, degree)
        model: Any = loading.initialize_model(vllm_config=settings)
        model.load_weights(list(weights.items()))
        loading.process_weights_after_loading(model.eval(), settings.model_config, torch.device("cpu"))
    return Served(model, settings, _plain_parameters(model))


def hollow(configuration: Any) -> Served:
    """The model of vLLM for a configuration, its weights on the meta device: they have shapes, and no values."""
    with tempfile.TemporaryDirectory() as folder:
        configuration.save_pretrained(folder)
        settings = _settings(folder, torch.float32, 1)
    scope = importlib.import_module("vllm.config").set_current_vllm_config
    loading = importlib.import_module("vllm.model_executor.model_loader.utils")
    with scope(settings), plain_products():
        _join(0, 1)
        with torch.device("meta"):
            model: Any = loading.initialize_model(vllm_config=settings)
        loading.process_weights_after_loading(model.eval(), settings.model_config, torch.device("meta"))
    return Served(model, settings, [])


def checkpoint(model: Any) -> dict[str, torch.Tensor]:
    """What a model of Transformers looks like on disk, where fused experts are apart."""
    load = importlib.import_module("safetensors.torch").load_file
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        found: dict[str, torch.Tensor] = {}
        for file in sorted(glob.glob(f"{folder}/*.safetensors")):
            found |= load(file)
    return found


def _settings(folder: str, dtype: torch.dtype, degree: int) -> Any:
    arguments = importlib.import_module("vllm.engine.arg_utils").EngineArgs(
        model=folder,
        tokenizer=folder,
        skip_tokenizer_init=True,
        dtype=str(dtype).removeprefix("torch."),
        load_format="dummy",
        enforce_eager=True,
        max_model_len=_MOST_TOKENS,
        max_num_seqs=2,
        block_size=16,
        tensor_parallel_size=degree,
        compilation_config={"mode": 0, "custom_ops": ["none"]},
    )
    registry = importlib.import_module("vllm.model_executor.models.registry")
    with mock.patch.object(registry, "_run_in_subprocess", lambda function: function()):
        return arguments.create_engine_config()


def _join(rank: int, degree: int) -> None:
    """vLLM's process groups for one of some ranks, made anew: nothing may communicate before a capture begins.

    One process makes a process group of its own; ranks have the one under which they are captured. What vLLM would do
    through shared memory goes through ``torch.distributed``.
    """
    state: Any = importlib.import_module("vllm.distributed.parallel_state")
    communicator = importlib.import_module("vllm.distributed.device_communicators.cpu_communicator").CpuCommunicator
    queue = importlib.import_module("vllm.distributed.device_communicators.shm_broadcast").MessageQueue
    for name, value in list(vars(state).items()):
        if isinstance(value, state.GroupCoordinator):
            setattr(state, name, None)
    alone = mock.patch.object(communicator, "_all_group_ranks_share_shm_group_name", return_value=False)
    near = mock.patch.object(state, "in_the_same_node_as", return_value=[True] * degree)
    with alone, near, mock.patch.object(queue, "create_from_process_group", return_value=None):
        place = Path(tempfile.mkdtemp()) / "group"
        state.init_distributed_environment(degree, rank, f"file://{place}", 0, "gloo")
        state.initialize_model_parallel(degree, 1)
    for value in vars(state).values():
        if isinstance(value, state.GroupCoordinator):
            value.use_custom_op_call = False


@contextmanager
def _default(dtype: torch.dtype) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _kernels(module: nn.Module) -> list[Any]:
    """What a module has that is none, and holds tensors: the kernel of attention, and how experts are quantised."""
    experts = getattr(module, "moe_quant_config", None)
    found = (getattr(module, "impl", None), getattr(experts, "_w1", None), getattr(experts, "_w2", None))
    return [kernel for kernel in found if kernel is not None]


def _plain_parameters(model: nn.Module) -> list[Held]:
    """Parameters of vLLM's own kinds as plain ones, and which of them kernels hold; what is shared stays shared."""
    plain: dict[int, nn.Parameter] = {}
    owners: dict[int, tuple[nn.Module, str]] = {}
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                owners.setdefault(value.data_ptr(), (module, name))
                made = nn.Parameter(value.data.as_subclass(torch.Tensor), requires_grad=False)
                module._parameters[name] = plain.setdefault(id(value), made)
    kernels = [kernel for module in model.modules() for kernel in _kernels(module)]
    held = [(k, name, value) for k in kernels for name, value in vars(k).items() if isinstance(value, torch.Tensor)]
    return [(k, name, *owners[value.data_ptr()]) for k, name, value in held if value.data_ptr() in owners]


PAIRS = {name: family.mutants for name, family in FAMILIES.items()}


def pair(name: str, changed: Mapping[str, Any] | None) -> Pair:
    """A model of Transformers, and vLLM's for a configuration with some fields changed."""
    return _pair(FAMILIES[name], changed)


def second(name: str) -> Pair:
    """The same of another model of the family, of other sizes."""
    return _pair(FAMILIES[name].resized(), None)


def _pair(family: Family, changed: Mapping[str, Any] | None) -> Pair:
    model = reference.built(family)
    served = built(reference.configuration(family, changed), checkpoint(model))
    return reference.pair(reference.Logits(model), served, (reference.tokens(),))


def ranks(name: str, changed: Mapping[str, Any] | None, degree: int) -> Pair:
    """A model of Transformers on one device, and vLLM's tensor-parallel ranks."""
    family, tokens = FAMILIES[name], reference.tokens()
    model = reference.built(family)
    weights = checkpoint(model)  # not on a rank: only the first of them would write it
    held: list[dict[str, torch.Tensor]] = []

    def build(mesh: Any) -> tuple[nn.Module, tuple[torch.Tensor]]:
        served = built(reference.configuration(family, changed), weights, mesh.get_local_rank(), degree)
        held.append(reference.values(served))
        return served, (tokens,)

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    start, left = time.perf_counter(), reference.Logits(model)
    programs = rw.capture(left, (tokens,)), rw.capture_ranks(build, {"tp": degree})
    return Pair(*programs, (reference.values(left), held), time.perf_counter() - start)
