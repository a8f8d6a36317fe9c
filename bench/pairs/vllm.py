"""vLLM's model definitions on a CPU, with weights that vLLM's own loader reads from a checkpoint of Transformers."""

from __future__ import annotations

import glob
import importlib
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from bench.pairs import reference
from bench.pairs.families import BATCH, FAMILIES, SEQUENCE
from bench.pairs.vllm_kernels import defined, plain_experts, plain_products

_MOST_TOKENS = 64


class Served(nn.Module):
    """A model of vLLM as a function from tokens (sequences, positions) to logits."""

    def __init__(self, model: nn.Module, configuration: Any) -> None:
        super().__init__()
        self.model, self.configuration = model, [configuration]

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
        ):
            positions = torch.arange(length).repeat(batch)
            hidden = self.model(input_ids=input_ids.reshape(-1), positions=positions)
            logits = self.model.compute_logits(hidden)
        return logits.reshape(batch, length, -1)


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


def built(configuration: Any, source: nn.Module) -> Served:
    """The model of vLLM for a configuration, with the weights of a model of Transformers."""
    with tempfile.TemporaryDirectory() as folder:
        configuration.save_pretrained(folder)
        settings = _settings(folder, next(source.parameters()).dtype)
    scope = importlib.import_module("vllm.config").set_current_vllm_config
    loading = importlib.import_module("vllm.model_executor.model_loader.utils")
    with scope(settings), plain_products(), _default(next(source.parameters()).dtype):
        _one_process()
        model: Any = loading.initialize_model(vllm_config=settings)
        model.load_weights(list(checkpoint(source).items()))
        loading.process_weights_after_loading(model.eval(), settings.model_config, torch.device("cpu"))
    _plain_parameters(model)
    return Served(model, settings)


def checkpoint(model: Any) -> dict[str, torch.Tensor]:
    """What a model of Transformers looks like on disk, where fused experts are apart."""
    load = importlib.import_module("safetensors.torch").load_file
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        found: dict[str, torch.Tensor] = {}
        for file in sorted(glob.glob(f"{folder}/*.safetensors")):
            found |= load(file)
    return found


def _settings(folder: str, dtype: torch.dtype) -> Any:
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
        compilation_config={"mode": 0, "custom_ops": ["none"]},
    )
    registry = importlib.import_module("vllm.model_executor.models.registry")
    with mock.patch.object(registry, "_run_in_subprocess", lambda function: function()):
        return arguments.create_engine_config()


def _one_process() -> None:
    """The groups of one process; made anew, since a mixture needs one more."""
    state: Any = importlib.import_module("vllm.distributed")
    if torch.distributed.is_initialized():
        state.destroy_model_parallel()
    else:
        place = Path(tempfile.mkdtemp()) / "group"
        state.init_distributed_environment(1, 0, f"file://{place}", 0, "gloo")
    state.initialize_model_parallel(1, 1)


@contextmanager
def _default(dtype: torch.dtype) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _plain_parameters(model: nn.Module) -> None:
    """Parameters of vLLM's own kinds as plain ones; what is shared stays shared."""
    plain: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                made = plain.setdefault(
                    id(value), nn.Parameter(value.data.as_subclass(torch.Tensor), requires_grad=False)
                )
                module._parameters[name] = made


PAIRS = {name: family.mutants for name, family in FAMILIES.items()}


def sides(name: str, changed: Mapping[str, Any] | None) -> tuple[nn.Module, nn.Module, tuple[torch.Tensor]]:
    """A model of Transformers, vLLM's for a configuration with some fields changed, and tokens for both."""
    family = FAMILIES[name]
    model = reference.built(family)
    tokens = torch.randint(1, 128, (BATCH, SEQUENCE), generator=torch.Generator().manual_seed(0))
    return reference.Logits(model), built(reference.configuration(family, changed), model), (tokens,)
