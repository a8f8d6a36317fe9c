"""GPT of Megatron-core, the package itself, with tensor and sequence parallelism, on a machine without a GPU.

Everything here but the sizes is what any user of Megatron-core needs for a capture: :func:`on_cpu` around all of it,
:func:`become` first in what a rank builds, and a norm that takes part in sequence parallelism
(:func:`normalization`), because the one that Megatron-core falls back to without Apex and Transformer Engine does not.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.without_cuda import without_cuda
from rewright.ir.errors import CaptureError

Program = tuple[Callable[..., Any], tuple[Any, ...]]
BATCH, LENGTH = 2, 6
SEED = 1234


@dataclass(frozen=True)
class GPT:
    """Which GPT; widths grow with the largest degree that it is to be split over."""

    degree: int = 2
    layers: int = 2
    gated: bool = False
    """SwiGLU, RMSNorm, no biases, and heads that share keys and values, as in Llama."""
    query_norm: bool = False
    """A norm on the queries and keys of every head, as in Qwen 3."""
    tied: bool = False
    """One weight for embedding and output."""
    positions: str = "rope"
    smoothing: float = 0.0
    """Label smoothing of the loss."""
    dropout: float = 0.0
    """Of embeddings, of attention and of what layers add."""
    recomputed: bool = False
    """Whether layers are computed again in the backward pass."""

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return 8 * self.degree


MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"positions": "learned_absolute"},
    "gpt, rotary": {},
    "gpt, tied": {"tied": True},
    "llama": {"gated": True},
    "qwen3": {"gated": True, "query_norm": True},
}
"""Fields of :class:`GPT` by the model that they make."""


def _module(name: str) -> Any:
    """A module of Megatron-core; raises CaptureError where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that Apex is missing, and the like
            return importlib.import_module(f"megatron.core.{name}")
    except ImportError as error:
        raise CaptureError(f"megatron-core cannot be imported ({error}); install rewright[models] on Linux") from None


@contextmanager
def on_cpu() -> Generator[None]:
    """Inside, Megatron-core can be imported, built and captured without a GPU.

    CUDA's devices, streams and generators are replaced (:func:`rewright.frontends.torch.without_cuda.without_cuda`),
    and nothing is compiled at import. Megatron's tracker of random states warns that it moves the generator of the CPU,
    which stands for that of the GPU. Raises CaptureError where Megatron-core is not installed.
    """
    with without_cuda(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="megatron")
        _module("jit").disable_jit_fuser()  # before the modules that are decorated with it
        tracker = logging.getLogger(_module("tensor_parallel.random").__name__)
        with mock.patch.object(tracker, "disabled", True):
            try:
                yield
            finally:
                _module("parallel_state").destroy_model_parallel()  # its buffers would keep tensors without values


def become(mesh: DeviceMesh, axis: str = "tp") -> None:
    """Make Megatron's global groups for this rank; ranks are captured one after the other in one process."""
    state = _module("parallel_state")
    state.destroy_model_parallel()
    state.initialize_model_parallel(tensor_model_parallel_size=mesh.size(list(mesh.mesh_dim_names or ()).index(axis)))
    _module("tensor_parallel.random").model_parallel_cuda_manual_seed(SEED, force_reset_rng=True)


def normalization(config: Any, hidden_size: int, eps: float = 1e-5, **_: object) -> nn.Module:
    """PyTorch's norm with the mark that Apex's has: under sequence parallelism its gradients are addends."""
    made = (nn.RMSNorm if config.normalization == "RMSNorm" else nn.LayerNorm)(hidden_size, eps=eps)
    for parameter in made.parameters():
        setattr(parameter, "sequence_parallel", config.sequence_parallel)  # noqa: B010
    return made


class _Norm:
    """:func:`normalization` as the class that a layer specification has to name."""

    def __new__(cls, config: Any, hidden_size: int, eps: float = 1e-5, **_: object) -> Any:
        """The norm."""
        return normalization(config, hidden_size, eps)


def build(gpt: GPT, mesh: DeviceMesh, *, sequence: bool = False) -> nn.Module:
    """This rank's part of the model, with real weights; ``sequence`` is sequence parallelism."""
    become(mesh)
    specs = _module("models.gpt.gpt_layer_specs")
    layer = specs.get_gpt_layer_local_spec(qk_layernorm=gpt.query_norm)
    layer.submodules.input_layernorm = layer.submodules.pre_mlp_layernorm = _Norm
    if gpt.query_norm:
        inner = layer.submodules.self_attention.submodules
        inner.q_layernorm = inner.k_layernorm = _Norm
    block = _module("transformer.transformer_block").TransformerBlockSubmodules
    made: nn.Module = _module("models.gpt").GPTModel(
        config=_configuration(gpt, mesh.size(), sequence),
        transformer_layer_spec=block(layer_specs=[layer] * gpt.layers, layer_norm=_Norm),
        vocab_size=gpt.vocabulary,
        max_sequence_length=2 * _length(gpt),
        share_embeddings_and_output_weights=gpt.tied,
        position_embedding_type=gpt.positions,
    )
    # What wrapping in Megatron's DistributedDataParallel would set, and what its reduction of gradients asks for.
    vars(made)["ddp_config"] = _module("distributed").DistributedDataParallelConfig()
    return made


_RECOMPUTED: dict[str, Any] = {
    "recompute_granularity": "full",
    "recompute_method": "uniform",
    "recompute_num_layers": 1,
}


def _configuration(gpt: GPT, degree: int, sequence: bool) -> Any:
    return _module("transformer.transformer_config").TransformerConfig(
        num_layers=gpt.layers,
        hidden_size=8 * gpt.degree,
        num_attention_heads=2 * gpt.degree,
        num_query_groups=gpt.degree if gpt.gated else 2 * gpt.degree,
        ffn_hidden_size=12 * gpt.degree,
        tensor_model_parallel_size=degree,
        sequence_parallel=sequence,
        use_cpu_initialization=True,
        hidden_dropout=gpt.dropout,
        attention_dropout=gpt.dropout,
        normalization="RMSNorm" if gpt.gated else "LayerNorm",
        gated_linear_unit=gpt.gated,
        activation_func=nn.functional.silu if gpt.gated else nn.functional.gelu,
        add_bias_linear=not gpt.gated,
        qk_layernorm=gpt.query_norm,
        bias_dropout_fusion=False,
        bias_activation_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        **(_RECOMPUTED if gpt.recomputed else {}),
    )


def sequential(gpt: GPT, *, backward: bool) -> Callable[[DeviceMesh], Program]:
    """What to build on the one rank of a mesh ``{"tp": 1}``."""
    return parallel(gpt, backward=backward)


def parallel(gpt: GPT, *, sequence: bool = False, backward: bool) -> Callable[[DeviceMesh], Program]:
    """What to build on every rank of a mesh with the axis ``tp``, inside of :func:`on_cpu`."""

    def built(mesh: DeviceMesh) -> Program:
        model = build(gpt, mesh, sequence=sequence)
        length = _length(gpt)
        tokens = torch.zeros(BATCH, length, dtype=torch.long)
        mask = torch.zeros(1, 1, length, length, dtype=torch.bool)
        if not backward:
            return forward, (model, tokens, tokens, mask)
        step = smoothed_step(gpt.smoothing) if gpt.smoothing else train_step
        return step, (model, tokens, tokens, mask, tokens)

    return built


def _length(gpt: GPT) -> int:
    """Tokens of a sequence, which sequence parallelism divides among the ranks."""
    return LENGTH * max(1, gpt.degree // 2)


def forward(
    model: nn.Module, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The logits of this rank's part of the vocabulary; ``mask`` is true where a query must not look."""
    return {"logits": model(tokens, positions, mask)}


def train_step(
    model: nn.Module, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Loss over the split vocabulary, gradients, and Megatron's reduction of those that are addends."""
    loss = model(tokens, positions, mask, labels=labels).mean()
    loss.backward()
    finalize(model)
    return {"loss": loss}


def smoothed_step(smoothing: float) -> Callable[..., dict[str, torch.Tensor]]:
    """The same with label smoothing in Megatron's loss over the split vocabulary."""

    def step(
        model: nn.Module, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        logits = model(tokens, positions, mask).transpose(0, 1).contiguous()
        entropy = _module("tensor_parallel").vocab_parallel_cross_entropy
        loss = entropy(logits, labels.transpose(0, 1).contiguous(), smoothing).mean()
        loss.backward()
        finalize(model)
        return {"loss": loss}

    return step


def finalize(model: nn.Module) -> None:
    """Megatron's own reduction of gradients over the tensor-parallel ranks, which its training loop calls."""
    untyped: Any = model
    reduction = _module("distributed.finalize_model_grads")
    reduction._allreduce_non_tensor_model_parallel_grads([model], untyped.config)
