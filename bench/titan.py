"""torchtitan's decoders on ranks against the same model on one: ``python -m bench.titan``, a part of ``make pairs``.

What runs on a rank is torchtitan's own: its ``parallelize`` function, its meshes, its loss over the split vocabulary
and its clipping, in a step as its trainer makes it. The mean is over the labels of all ranks that count.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import runpy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from bench.tables import print_table
from rewright.cli.starting.kinds import begin
from rewright.cli.starting.reading import Repository
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.verdict import Verdict

COLUMNS = ["model", "backend", "mesh", "nodes of all ranks", "status", "evidence", "outputs", "capture s"]
COLUMNS += ["prove and audit s", "reason"]
LAYERS, BATCH, LENGTH = 2, 8, 16
ROUTED_BATCH, ROUTED_LENGTH = 2, 4
"""Of a mixture that is run: every token of every expert is followed."""
BLOCKS = 2
"""Blocks of a mask that a rank has where sequences are split: no block may be cut."""

_flex: Any = importlib.import_module("torch.nn.attention.flex_attention")


@dataclass(frozen=True)
class Family:
    """Where torchtitan has a model: its module, its table of sizes, which of these, and what makes ranks of it."""

    module: str
    table: str
    parallelize: str
    size: str = "debugmodel"
    dtype: torch.dtype = torch.float32
    """Of weights and of what is computed: torchtitan's gpt-oss runs in bfloat16 only."""


FAMILIES = {
    "llama3": Family("llama3", "llama3_configs", "parallelize_llama"),
    "qwen3": Family("qwen3", "qwen3_configs", "parallelize_qwen3"),
    "deepseek_v3": Family("deepseek_v3", "deepseekv3_configs", "parallelize_deepseekv3"),
    "gpt_oss": Family("gpt_oss", "gptoss_configs", "parallelize_gptoss", dtype=torch.bfloat16),
    "qwen3_moe": Family("qwen3", "qwen3_configs", "parallelize_qwen3", "debugmodel_moe"),
}
DENSE = ("llama3", "qwen3")


@dataclass(frozen=True)
class Training:
    """A decoder, how torchtitan says which axes its ranks have, and what the step ends with."""

    family: str
    mesh: Mapping[str, int] = field(default_factory=dict[str, int])
    backend: str = "partial_dtensor"
    sequence: bool = True
    """Whether norms and residuals are split along the sequence."""
    clip: bool = False
    """Whether gradients are clipped, as torchtitan's trainer does it."""
    balance: str | None = None
    """How ranks along a sequence share the work of a causal mask, in torchtitan's word; None is in order."""
    experts: int = 1
    """Over how many ranks the experts of a mixture are spread; these are some of those of the other axes."""
    runs: bool = False
    """Whether the step is run, on tokens that are routed as in that run: splits of an all-to-all are counts."""

    @property
    def length(self) -> int:
        """Of a sequence."""
        split = self.mesh.get("cp", 1)
        if split > 1:
            return split * BLOCKS * int(_flex._DEFAULT_SPARSE_BLOCK_SIZE)
        return ROUTED_LENGTH if self.runs else LENGTH

    @property
    def parts(self) -> int:
        """Of a batch."""
        return math.prod(self.mesh.get(axis, 1) for axis in ("replicate", "shard"))

    def sizes(self) -> dict[str, int]:
        """torchtitan's names of degrees."""
        known = {"replicate": "data_parallel_replicate_degree", "shard": "data_parallel_shard_degree"}
        known |= {"cp": "context_parallel_degree", "tp": "tensor_parallel_degree"}
        return {name: self.mesh.get(axis, 1) for axis, name in known.items()} | {"expert_parallel_degree": self.experts}

    def batch(self, part: int, parts: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and labels of one of so many parts of a batch."""
        whole = (ROUTED_BATCH if self.runs else BATCH, self.length)
        tokens, labels = torch.randint(0, 64, (2, *whole), generator=torch.Generator().manual_seed(0))
        return tokens.chunk(parts)[part].clone(), labels.chunk(parts)[part].clone()


def _torchtitan(name: str) -> Any:
    return importlib.import_module(f"torchtitan.{name}")


def model(training: Training, parallelism: Any = None) -> nn.Module:
    """Two layers of torchtitan's smallest model; attention is its FlexAttention with the mask of its positions."""
    family = FAMILIES[training.family]
    size = getattr(_torchtitan(f"models.{family.module}"), family.table)[family.size]
    known = {"attn_backend": "flex", "moe_comm_backend": "standard"}
    settings = size(**{name: value for name, value in known.items() if name in inspect.signature(size).parameters})
    settings.layers = settings.layers[:LAYERS]
    if parallelism is not None:
        settings.update_from_config(config=SimpleNamespace(parallelism=parallelism))
    made: nn.Module = settings.build().to(family.dtype)
    if training.runs:
        torch.manual_seed(0)
        for parameter in made.parameters():
            nn.init.normal_(parameter, std=0.1)
    return made


@dataclass(frozen=True)
class Step:
    """Forward and backward of torchtitan's trainer: loss by the tokens of all ranks, gradients, clipping.

    Positions, and the block mask that torchtitan makes of them, are there before, as they come with the data.
    """

    training: Training
    positions: torch.Tensor
    masks: Any
    dimensions: Any = None
    """torchtitan's meshes; None on one device."""

    def __call__(self, model: nn.Module, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Loss and, where the step clips, the norm of all gradients."""
        losses, utils = _torchtitan("components.loss"), _torchtitan("distributed.utils")
        valid = (labels != losses.IGNORE_INDEX).sum()
        if self.dimensions is not None and self.dimensions.dp_enabled:
            valid = utils.dist_sum_tensor(valid, self.dimensions.get_mesh("batch"))
        tokens, labels, more = self._own_part(tokens, labels)
        with mock.patch.object(_flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True):  # nothing is compiled here
            more["positions"] = self._whole(more["positions"])
            logits = model(self._whole(tokens), **more)
            loss = losses.cross_entropy_loss(logits, self._whole(labels)) / valid
        loss.backward()
        self._balance(model)
        if not self.training.clip:
            return {"loss": loss.detach()}
        norm = utils.clip_grad_norm_(list(model.parameters()), 1.0, foreach=True)
        return {"loss": loss.detach(), "norm": norm.detach()}

    def _balance(self, model: nn.Module) -> None:
        """What torchtitan does to the biases of routers before an optimizer's step: it moves them by what was counted.

        On one device nothing is added up.
        """
        hooks: list[Callable[[], None]] = []
        alone = SimpleNamespace(get_optional_mesh=lambda _: None, ep_enabled=False, tp=1)
        register = _torchtitan("components.optimizer").register_moe_load_balancing_hook
        register(SimpleNamespace(register_step_pre_hook=hooks.append), [model], self.dimensions or alone)
        for hook in hooks:
            hook()

    def _own_part(
        self, tokens: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
        """What a rank reads of a sequence: tokens, labels, and positions and masks by name."""
        more = {"positions": self.positions, "attention_masks": self.masks}
        if self.dimensions is None or not self.dimensions.cp_enabled:
            return tokens, labels, more
        part = _torchtitan("distributed.context_parallel").prepare_context_parallel_input
        mesh = self.dimensions.get_mesh("cp")
        found: tuple[torch.Tensor, torch.Tensor, dict[str, Any]] = part(
            tokens, labels, more, mesh, tokens.device, self.training.balance
        )
        return found

    def _whole(self, local: torch.Tensor) -> torch.Tensor:
        """With torchtitan's ``full_dtensor``, what a rank reads as a DTensor over all axes."""
        if self.dimensions is None or self.training.backend != "full_dtensor":
            return local
        found: torch.Tensor = _torchtitan("distributed.full_dtensor").parallelize_inputs(
            self.dimensions, local, local, {}
        )[0]
        return found


def step(training: Training, model: nn.Module, dimensions: Any = None) -> tuple[Step, tuple[Any, ...]]:
    """The step on the whole batch, or on a rank's part of it."""
    mesh = None if dimensions is None else dimensions.get_optional_mesh("batch")
    parts = 1 if dimensions is None else training.parts
    part = mesh.get_local_rank() if training.runs and mesh is not None else 0
    tokens, labels = training.batch(part, parts)
    positions = torch.arange(training.length).expand(tokens.shape)
    untyped: Any = model
    with torch.compiler.set_stance("force_eager"):
        masks = untyped.get_attention_masks(positions)
    return Step(training, positions, masks, dimensions), (model, tokens, labels)


def parallel(training: Training) -> Callable[[DeviceMesh], tuple[Step, tuple[Any, ...]]]:
    """The step of a rank."""
    config, distributed = _torchtitan("config"), _torchtitan("distributed")

    def build(mesh: DeviceMesh) -> tuple[Step, tuple[Any, ...]]:
        parallelism = config.ParallelismConfig(
            **training.sizes(), enable_sequence_parallel=training.sequence, spmd_backend=training.backend
        )
        dimensions = distributed.ParallelDims.from_config(parallelism, mesh.size())
        _torchtitan("distributed.utils").set_spmd_backend(training.backend)
        dimensions.build_mesh()
        family = FAMILIES[training.family]
        parallelize = getattr(_torchtitan(f"models.{family.module}"), family.parallelize)
        made = parallelize(
            model(training, parallelism),
            parallel_dims=dimensions,
            training=config.TrainingConfig(mixed_precision_param=str(family.dtype).removeprefix("torch.")),
            parallelism=parallelism,
            compile_config=config.CompileConfig(enable=False),
            ac_config=None,
            dump_folder="",
        )
        if getattr(
            made, "enable_weight_tying", False
        ):  # as torchtitan's ``init_states`` does it once a model is distributed
            made.tok_embeddings.weight = made.lm_head.weight
        _torchtitan("distributed.fsdp").disable_fsdp_gradient_division(made)
        return step(training, made, dimensions)

    return build


def captured(training: Training) -> tuple[Graph, RankProgram, dict[str, list[str]], dict[str, list[str]]]:
    """The step on one device and on all ranks, how these hold tokens and labels, and how the loss."""
    with mock.patch.object(_torchtitan("distributed.parallel_dims"), "device_type", "cpu"):
        program = rw.capture_ranks(
            parallel(training), dict(training.mesh), ranks="threads" if training.runs else "traced"
        )
        whole = rw.capture(*step(training, model(training)), run=training.runs)
    # Ranks along a sequence are given all of it, and torchtitan takes their parts, one after the other.
    split = ["Replicate()" if axis in ("tp", "cp") else "Shard(0)" for axis in training.mesh]
    addends = ["Replicate()" if axis == "tp" else "Partial(sum)" for axis in training.mesh]
    relations = {"tokens": split, "labels": split}
    counted = ["Partial(sum)" if axis != "tp" or training.experts > 1 else "Replicate()" for axis in training.mesh]
    relations |= {name: counted for name in whole.inputs if name.endswith("tokens_per_expert_E")}
    return whole, program, relations, {"loss": addends}


_DENSE = tuple(
    Training(family, mesh, backend, sequence, clip, balance)
    for family in DENSE
    for mesh, backend, sequence, clip, balance in (
        ({"tp": 2}, "partial_dtensor", False, False, None),
        ({"tp": 4}, "partial_dtensor", True, False, None),
        ({"shard": 2}, "partial_dtensor", True, True, None),
        ({"shard": 2, "tp": 2}, "partial_dtensor", True, False, None),
        ({"shard": 2, "tp": 4}, "partial_dtensor", True, True, None),
        ({"replicate": 2, "shard": 2, "tp": 2}, "partial_dtensor", True, True, None),
        ({"shard": 2, "tp": 2}, "full_dtensor", True, False, None),
        ({"cp": 2}, "partial_dtensor", True, False, None),
        ({"shard": 2, "cp": 2, "tp": 2}, "partial_dtensor", True, True, None),
        ({"replicate": 2, "shard": 2, "cp": 2, "tp": 2}, "partial_dtensor", True, True, None),
        ({"cp": 4}, "partial_dtensor", True, False, "headtail"),
        ({"shard": 2, "cp": 2, "tp": 2}, "partial_dtensor", True, True, "headtail"),
    )
)
_MIXTURES = tuple(
    Training(family, mesh, "partial_dtensor", sequence, clip)
    for family in ("deepseek_v3", "qwen3_moe")
    for mesh, sequence, clip in (
        ({"tp": 2}, False, False),
        ({"tp": 2}, True, False),
        ({"tp": 4}, True, True),
        ({"shard": 2}, True, False),
        ({"cp": 2}, True, False),
        ({"shard": 2, "tp": 2}, True, True),
    )
)
"""Mixtures whose experts are split over their inner features: every rank sorts the tokens that it has by expert."""
PROGRAMS = (*_DENSE, *_MIXTURES)


def row(training: Training) -> list[object]:
    """One row of the table."""
    mesh = " x ".join(f"{axis} {size}" for axis, size in training.mesh.items())
    options = ("sequence", training.sequence), ("clipped", training.clip), (training.balance, training.balance)
    said = ", ".join([training.family, *(str(name) for name, is_on in options if is_on)])
    head: list[object] = [said, training.backend, mesh]
    start = time.perf_counter()
    try:
        whole, program, relations, expect = captured(training)
        middle = time.perf_counter()
        verdict = rw.refine(whole, program, relations, expect, audit=True)
    except RewrightError as error:
        return [*head, "", "error", "", "", "", "", str(error)]
    seconds = time.perf_counter() - middle
    nodes = f"{sum(map(len, program.graphs)):,}"
    reason = "" if verdict.status == "proved" else verdict.reason
    found = [nodes, verdict.status, str(verdict.evidence), len(verdict.relation), middle - start, seconds]
    return [*head, *found, reason]


def rows(names: Sequence[str]) -> Iterator[list[object]]:
    """All rows, as they are measured."""
    for training in PROGRAMS:
        if not names or training.family in names:
            yield row(training)


COUNT, SUM = "valid = (labels", "            valid = titan("
"""How lines begin: the count of a rank's own labels, and the sum over the ranks, which a condition stands before."""
REPAIR = """        if meshes is not None:
            valid = torch.distributed._functional_collectives.all_reduce(valid, "sum", meshes.get_mesh("batch"))"""


def begun() -> Iterator[str]:
    """What becomes of the file that ``rewright init`` writes: as it is, with a bug, and with the repair of that."""
    lines = begin(Repository(Path()), "torchtitan", "").claims.splitlines()
    verdict = verdict_of(lines)
    yield f"as it is: {verdict.status}, {verdict.evidence}, {len(verdict.relation)} outputs"
    place = next(number for number, line in enumerate(lines) if line.startswith(SUM))
    del lines[place - 1 : place + 1]
    found = verdict_of(lines).findings[0]
    yield f"with labels counted on each rank: {found.message}; {found.suggestion}"
    counts = next(number for number, line in enumerate(lines) if line.strip().startswith(COUNT))
    assert found.suggestion == f"insert all_reduce over shard after claims.py:{counts + 1}", found.suggestion
    verdict = verdict_of([*lines[: counts + 1], *REPAIR.splitlines(), *lines[counts + 1 :]])
    yield f"with that line: {verdict.status}, {verdict.evidence}, {len(verdict.relation)} outputs"


def verdict_of(lines: Sequence[str]) -> Verdict:
    """The verdict on a file of claims."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "claims.py")
        file.write_text("\n".join(lines))
        scope = runpy.run_path(str(file))
        return rw.refine(*scope["programs"](), scope["RELATIONS"], scope["EXPECTED"], audit=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FAMILIES, []], default=[])
    print_table(COLUMNS, rows(parser.parse_args().names))
    print("\nthe file of rewright init")
    for line in begun():
        print(f"- {line}")
