"""Programs of the zoo, ready to capture: sequential ones, and what to build on each rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import loss_parallel

from rewright.ir.errors import CaptureError
from zoo.decoder import Decoder, DecoderConfig, decoder_config
from zoo.families import family
from zoo.megatron import ParallelDecoder, train_step
from zoo.plans import Options, apply_plan
from zoo.transformers_models import build_model, example_inputs, quiet
from zoo.transformers_plan import apply_transformers_plan

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""What to call, with its arguments and keyword arguments."""

PLANS: dict[str, str] = {
    "dtensor": "parallelize_module: columns and rows",
    "dtensor_sp": "parallelize_module: columns and rows, activations split along the sequence between blocks",
    "dtensor_loss": "parallelize_module: columns and rows, loss over the split vocabulary",
    "dtensor_sp_loss": "parallelize_module: both of these",
    "tp_plan": "Transformers' own plan",
    "megatron": "hand-written collectives (model 'decoder')",
    "megatron_sp": "hand-written collectives with sequence parallelism (model 'decoder')",
}

_OPTIONS = {
    "dtensor": Options(),
    "dtensor_sp": Options(sequence=True),
    "dtensor_loss": Options(loss=True),
    "dtensor_sp_loss": Options(sequence=True, loss=True),
}


def sequential(name: str, size: str = "tiny", *, degree: int = 2, backward: bool = False, tied: bool = True) -> Program:
    """The model on one device: ``(module, args, kwargs)``, to capture with ``backward`` as given here.

    ``degree`` is that of the parallel program to compare with: it widens the tiny size. ``tied=False`` unties the
    embeddings of families that tie them. Raises CaptureError for an unknown name or size.
    """
    if name == "decoder":
        config = decoder_config(size, degree)
        with torch.device("meta"):
            model = Decoder(config)
        return model, (), _tokens(config, backward)
    chosen = family(name)
    model = build_model(chosen, size, degree, train=backward, tied=tied)
    return model, (), example_inputs(chosen, size, degree, labels=backward) | _constants(chosen.kind)


def parallel(
    name: str,
    plan: str = "dtensor",
    size: str = "tiny",
    *,
    degree: int = 2,
    backward: bool = False,
    tied: bool = True,
) -> Callable[[DeviceMesh], Program]:
    """The function that ``capture_ranks`` calls on every rank of a mesh of one axis.

    Parameters have the names of the sequential model. Raises CaptureError for a name, plan or size that does not exist.
    """
    supported(name, plan)
    if name == "decoder":
        return lambda mesh: _megatron(decoder_config(size, degree), mesh, plan == "megatron_sp", backward)
    chosen = family(name)

    def build(mesh: DeviceMesh) -> Program:
        model = build_model(chosen, size, degree, train=backward, tied=tied)
        kwargs = example_inputs(chosen, size, degree, labels=backward)
        if plan == "tp_plan":
            with quiet():
                model = apply_transformers_plan(name, model, mesh)
        else:
            apply_plan(name, model, mesh, _OPTIONS[plan])
        if plan in _OPTIONS and _OPTIONS[plan].loss and backward:
            return loss_parallel_step, (model,), kwargs
        return model, (), kwargs | _constants(chosen.kind)

    return build


def supported(name: str, plan: str) -> None:
    """Raise CaptureError, saying why, for a plan that a model does not have."""
    if plan not in PLANS:
        raise CaptureError(f"there is no plan {plan!r}; the plans are {', '.join(PLANS)}")
    if (name == "decoder") != plan.startswith("megatron"):
        raise CaptureError(
            f"the plan {plan!r} does not fit {name!r}; 'decoder' is parallelised by hand, the others are not"
        )
    if name != "decoder":
        family(name)


def loss_parallel_step(model: nn.Module, **batch: torch.Tensor) -> dict[str, torch.Tensor]:
    """Forward and backward with logits that stay split over the vocabulary."""
    with loss_parallel():
        results: Any = model(**batch, use_cache=False)
        results.loss.backward()
    return {"loss": results.loss, "logits": results.logits}


def _constants(kind: str) -> dict[str, Any]:
    return {"use_cache": False} if kind == "decoder" else {}


def _tokens(config: DecoderConfig, labels: bool) -> dict[str, Any]:
    with torch.device("meta"):
        tokens = torch.zeros(config.sequence, config.batch, dtype=torch.long)
    return {"tokens": tokens} | ({"labels": torch.zeros_like(tokens)} if labels else {})


def _megatron(config: DecoderConfig, mesh: DeviceMesh, sequence: bool, backward: bool) -> Program:
    with torch.device("meta"):
        model = ParallelDecoder(config, mesh.get_group(0), sequence=sequence)
    kwargs = _tokens(config, backward)
    return (train_step, (model,), kwargs) if backward else (model, (), kwargs)
