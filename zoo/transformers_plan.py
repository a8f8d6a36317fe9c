"""Transformers' own tensor-parallel plans (``tp_plan``), applied without an accelerator or a launcher."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rewright.ir.errors import CaptureError

OWN_PLANS: dict[str, dict[str, str]] = {
    "bert": {
        "bert.encoder.layer.*.attention.self.query": "colwise",
        "bert.encoder.layer.*.attention.self.key": "colwise",
        "bert.encoder.layer.*.attention.self.value": "colwise",
        "bert.encoder.layer.*.attention.output.dense": "rowwise",
        "bert.encoder.layer.*.intermediate.dense": "colwise",
        "bert.encoder.layer.*.output.dense": "rowwise",
    },
    "vit": {
        "vit.layers.*.attention.q_proj": "colwise",
        "vit.layers.*.attention.k_proj": "colwise",
        "vit.layers.*.attention.v_proj": "colwise",
        "vit.layers.*.attention.o_proj": "rowwise",
        "vit.layers.*.mlp.fc1": "colwise",
        "vit.layers.*.mlp.fc2": "rowwise",
    },
}
"""Plans in Transformers' words for families that ship without one."""


def apply_transformers_plan(name: str, model: nn.Module, mesh: DeviceMesh, experts: str | None = None) -> nn.Module:
    """Distribute a model by its ``tp_plan``, and with ``experts`` by its ``ep_plan`` too, in that implementation.

    The mesh must have one axis, over which the model is split. Raises CaptureError where Transformers cannot.
    """
    if mesh.ndim != 1:
        raise CaptureError(f"tp_plan needs a mesh of one axis, not {mesh.mesh_dim_names}; use one axis")
    if name == "gpt2":
        raise CaptureError("Transformers has no tensor-parallel style for GPT-2's Conv1D layers; use the dtensor plan")
    if name == "gemma2" and model.get_parameter("lm_head.weight") is model.get_parameter("model.embed_tokens.weight"):
        raise CaptureError("Transformers cannot apply gemma2's tp_plan to tied embeddings; build it with tied=False")
    if not hasattr(model, "prepare_distribute_model"):
        raise CaptureError("Transformers before 5 splits only models that it loads; install 5, or use the dtensor plan")
    with launched():
        configuration: Any = import_module("transformers.distributed.configuration_utils")
        settings: dict[str, Any] = {"tp_size": mesh.size()}
        if experts is not None:
            settings |= {"ep_size": mesh.size(), "ep_implementation": experts}
        if name in OWN_PLANS:
            settings["tp_plan"] = OWN_PLANS[name]
        wanted = configuration.DistributedConfig(**settings)
        kind: Any = type(model)
        prepared, _, meshes = kind.prepare_distribute_model(wanted)
        return kind.maybe_distribute_model(model, prepared, meshes)


@contextmanager
def launched() -> Generator[None]:
    """What Transformers asks a launcher and the hardware for: the world size, and a CPU as the accelerator.

    Which rank this is it asks the process group.
    """
    variables = {"WORLD_SIZE": str(dist.get_world_size()), "LOCAL_RANK": "0"}
    with mock.patch.dict(os.environ, variables), mock.patch("torch._C._get_accelerator", _cpu):
        yield


def _cpu(*_: object) -> torch.device:
    return torch.device("cpu")
