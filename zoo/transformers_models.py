"""Modules of Transformers from configuration values, on the meta device."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from rewright.ir.errors import CaptureError
from zoo.experts import dense_experts
from zoo.families import Family, split_size

EXPERTS = "rewright_dense"


def transformers_module() -> Any:
    """The transformers package; raises CaptureError where it is not installed."""
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise CaptureError("the zoo needs Transformers; install rewright[models]") from None


def build_model(family: Family, size: str, degree: int, *, train: bool, tied: bool = True) -> nn.Module:
    """A module of the family without weights, in train or evaluation mode; ``tied=False`` unties the embeddings."""
    transformers = transformers_module()
    values = {k: v for k, v in family.values(size, degree).items() if k != "example_sequence"}
    values |= {} if tied else {"tie_word_embeddings": False}
    with quiet():  # a small vocabulary does not hold the default special tokens
        configuration = getattr(transformers, family.configuration)(**values)
    configuration._attn_implementation = family.attention
    if hasattr(configuration, "num_experts_per_tok"):
        choose_dense_experts(configuration)
    with quiet(), torch.device("meta"):
        model: nn.Module = getattr(transformers, family.model)(configuration)
    untyped: Any = model
    if getattr(untyped, "loss_type", "") is None:  # GPT-2's class name does not tell which loss it has
        untyped.loss_type = "ForCausalLM"
    return model.train() if train else model.eval()


def example_inputs(family: Family, size: str, degree: int, *, labels: bool) -> dict[str, torch.Tensor]:
    """Keyword arguments of the model's forward, on the meta device; with labels it returns a loss."""
    tiny = split_size(size)[0] == "tiny"
    batch = 2 if tiny else 1
    with torch.device("meta"):
        if family.kind == "image":
            side = 16 if tiny else 224
            found = {"pixel_values": torch.zeros(batch, 3, side, side)}
            return found | ({"labels": torch.zeros(batch, dtype=torch.long)} if labels else {})
        tokens = torch.zeros(batch, family.sequence(size, degree), dtype=torch.long)
        found = {"input_ids": tokens}
        return found | ({"labels": torch.zeros_like(tokens)} if labels else {})


@contextmanager
def quiet() -> Generator[None]:
    """Without the hints that Transformers logs about configurations made by hand."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def choose_dense_experts(configuration: Any) -> None:
    """Mixtures compute every expert on every token, weighted by the router: no data-dependent shapes."""
    importlib.import_module("transformers.integrations.moe").ALL_EXPERTS_FUNCTIONS.register(EXPERTS, dense_experts)
    configuration._experts_implementation = EXPERTS
