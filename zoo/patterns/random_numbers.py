"""Bugs of random numbers: ranks that draw the same where they must differ, or differ where they must agree."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.distributed.device_mesh import DeviceMesh
from torch.utils.data import DataLoader, TensorDataset

from zoo.patterns.pattern import (
    Pattern,
    Program,
    dist,
    enter,
    exchange,
    gathered,
    leave,
    reduced,
    scattered,
    sum_gradients,
    weight,
    world,
)

ROWS, WIDTH, INNER, CLASSES = 8, 4, 6, 4
SEED, RATE = 1234, 0.25

random: Any = torch.random  # not annotated
checkpointing: Any = torch.utils.checkpoint


class Stream:
    """A state of the generator of one's own, for what ranks hold parts of."""

    def __init__(self, seed: int) -> None:
        self.state = torch.Generator().manual_seed(seed).get_state()

    @contextmanager
    def fork(self) -> Generator[None]:
        """Numbers that are drawn in here are of this state; the common one stays as it is."""
        with random.fork_rng(devices=()):
            torch.set_rng_state(self.state)
            yield
            self.state = torch.get_rng_state()


def replica_dropout() -> Pattern:
    """Every replica sets the same seed, so that all drop the same places of other samples."""

    def train(x: torch.Tensor, w: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        parts, rank = world()
        random.manual_seed(SEED if wrong else SEED + rank)
        loss: Any = (F.dropout(x, RATE) @ w).tanh().square().sum() / ROWS
        loss.backward()
        if parts > 1:
            sum_gradients(w)
        return {"loss": reduced(loss.detach())}

    return Pattern(
        ("transformers #31412", "accelerate #114"),
        lambda: (train, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))),
        lambda _, wrong: (train, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, INNER), wrong)),
        {"x": "Shard(0)", "w": "Replicate()"},
        "SEED if wrong else SEED + rank",
        mesh={"dp": 2},
    )


def hybrid_noise() -> Pattern:
    """Seeds differ along one axis of a mesh whose axes both split the samples: noise is the same along the other."""
    shards = 2

    def train(x: torch.Tensor, w: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        parts, rank = world()
        random.manual_seed(SEED + (rank % shards if wrong else rank))
        noise, time = torch.randn_like(x), torch.rand(len(x), 1)
        loss: Any = (((1 - time) * x + time * noise) @ w - (noise - x)).square().sum() / ROWS
        loss.backward()
        if parts > 1:
            sum_gradients(w)
        return {"loss": reduced(loss.detach())}

    return Pattern(
        ("torchtitan #1946", "MLCommons training #844"),
        lambda: (train, (torch.zeros(ROWS, WIDTH), weight(WIDTH, WIDTH))),
        lambda _, wrong: (train, (torch.zeros(ROWS // 4, WIDTH), weight(WIDTH, WIDTH), wrong)),
        {"x": ["Shard(0)", "Shard(0)"], "w": ["Replicate()", "Replicate()"]},
        "rank % shards if wrong",
        mesh={"dp_replicate": 2, "dp_shard": shards},
    )


def sequence_dropout() -> Pattern:
    """Two contexts are joined by ``and``, so that parts of a sequence are dropped outside of their own stream."""

    def block(x: torch.Tensor, up: torch.Tensor, stream: Stream | None, wrong: bool) -> Any:
        own, precision = stream.fork() if stream else nullcontext(), nullcontext()
        with (own and precision) if wrong else own:
            hidden: Any = F.dropout(x, RATE)
        return (exchange(hidden, gathered, scattered) if stream else hidden) @ up

    def step(x: torch.Tensor, up: Any, stream: Stream | None = None, wrong: bool = False) -> dict[str, torch.Tensor]:
        loss: Any = block(x, up, stream, wrong).tanh().square().sum()
        loss.backward()
        return {"loss": reduced(loss.detach())}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        random.manual_seed(SEED)
        stream = Stream(SEED + 1 + mesh.get_local_rank())

        def own(x: torch.Tensor, up: torch.Tensor) -> dict[str, torch.Tensor]:
            return step(x, up, stream, wrong)

        return own, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, INNER // 2))

    return Pattern(
        ("Megatron-LM #1256", "TransformerEngine #1272", "PaddleFleetX #1005"),
        lambda: (step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))),
        parallel,
        {"x": "Shard(0)", "up": "Shard(1)"},
        "own and precision",
        mesh={"tp": 2},
    )


def loader_seed() -> Pattern:
    """Only the first rank has a loader, which draws a seed for its workers from the generator of the dropout."""

    def step(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = F.dropout(leave((enter(x) @ up).relu() @ down), RATE).square().sum()
        loss.backward()
        return {"loss": loss.detach()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        random.manual_seed(SEED)
        rows = TensorDataset(torch.zeros(ROWS, WIDTH))
        if mesh.get_local_rank() == 0:
            iter(DataLoader(rows, ROWS, generator=None if wrong else torch.Generator().manual_seed(SEED)))
        return step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER // 2), weight(INNER // 2, WIDTH))

    return Pattern(
        ("bigscience Megatron-DeepSpeed #276", "Megatron-LM #206"),
        lambda: (step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER, WIDTH))),
        parallel,
        {"x": "Replicate()", "up": "Shard(1)", "down": "Shard(0)"},
        "generator=None if wrong",
        mesh={"tp": 2},
    )


def forgetful() -> Pattern:
    """What is computed a second time in the backward pass drops other places than in the forward pass."""

    def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.dropout((x @ w).relu(), RATE)

    def step(x: torch.Tensor, w: torch.Tensor, head: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        hidden = checkpointing.checkpoint(layer, x, w, use_reentrant=False, preserve_rng_state=not wrong)
        loss = (hidden @ head).square().sum()
        loss.backward()
        if world()[0] > 1:
            sum_gradients(w, head)
        return {"loss": reduced(loss.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, INNER), weight(INNER, CLASSES)

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        random.manual_seed(SEED + mesh.get_local_rank())
        return step, (*arguments(2), wrong)

    return Pattern(
        ("OLMo-core #828", "PIDM #66"),
        lambda: (step, arguments(1)),
        parallel,
        {"x": "Shard(0)", "w": "Replicate()", "head": "Replicate()"},
        "preserve_rng_state",
        gradient=True,
        mesh={"dp": 2},
    )


def own_tokens() -> Pattern:
    """Every rank samples the next token for itself, and sums addends of different tokens."""

    def step(
        x: torch.Tensor, head: torch.Tensor, table: Any, down: Any, wrong: bool = False
    ) -> dict[str, torch.Tensor]:
        parts, rank = world()
        token = torch.empty(ROWS, 1, dtype=torch.long)
        if wrong or rank == 0:
            token = torch.multinomial(torch.softmax(x @ head, -1), 1)
        if parts > 1 and not wrong:
            dist.broadcast(token, 0)
        return {"hidden": reduced(table[token] @ down)}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        split = (torch.zeros(CLASSES, INNER // parts), torch.zeros(INNER // parts, WIDTH))
        return torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, CLASSES), *split

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        random.manual_seed(SEED + mesh.get_local_rank())
        return step, (*arguments(2), wrong)

    return Pattern(
        ("gpt-oss #270", "FasterTransformer #390", "transformers #36634"),
        lambda: (step, arguments(1)),
        parallel,
        {"x": "Replicate()", "head": "Replicate()", "table": "Shard(1)", "down": "Shard(0)"},
        "torch.multinomial",
        mesh={"tp": 2},
    )


def replica_weights() -> Pattern:
    """Weights are drawn from a seed of every rank, so that replicas of a shard do not begin with the same one."""

    def initial(rows: int, shard: int, wrong: bool) -> torch.Tensor:
        generator = torch.Generator().manual_seed(SEED + (world()[1] if wrong else shard))
        return torch.randn(rows, INNER, generator=generator) * 0.02

    def whole(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (x @ initial(WIDTH, 0, False)).tanh().square().sum()}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        shards, shard = mesh["dp_shard"].get_group(), mesh.get_local_rank("dp_shard")

        def step(x: torch.Tensor) -> dict[str, torch.Tensor]:
            w = x.new_empty(WIDTH, INNER)
            dist.all_gather_into_tensor(w, initial(WIDTH // 2, shard, wrong), group=shards)
            return {"loss": reduced((x @ w).tanh().square().sum())}

        return step, (torch.zeros(ROWS // 4, WIDTH),)

    return Pattern(
        ("OLMo-core #319", "llm-foundry #830"),
        lambda: (whole, (torch.zeros(ROWS, WIDTH),)),
        parallel,
        {"x": ["Shard(0)", "Shard(0)"]},
        "world()[1] if wrong",
        mesh={"dp_replicate": 2, "dp_shard": 2},
    )


def stage_weights() -> Pattern:
    """Every stage of a pipeline draws its weights from the same seed, so that stages begin with the same ones."""

    def run(tokens: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        stages, stage = world()
        hidden, scores = torch.empty(ROWS, WIDTH), torch.zeros(ROWS, CLASSES)
        random.manual_seed(SEED if wrong else SEED + stage)
        if stage == 0:
            hidden = torch.randn(CLASSES, WIDTH)[tokens].tanh()
            if stages > 1:
                dist.send(hidden, 1)
        if stage == stages - 1:
            if stages > 1:
                dist.recv(hidden, 0)
            scores = hidden @ (torch.randn(CLASSES, WIDTH) * 0.02).T
        return {"scores": reduced(scores)}

    tokens = torch.zeros(ROWS, dtype=torch.long)
    return Pattern(
        ("pytorch #139304", "torchtitan #514", "Modalities #426"),
        lambda: (run, (tokens,)),
        lambda _, wrong: (run, (tokens, wrong)),
        {"tokens": "Replicate()"},
        "SEED if wrong else SEED + stage",
        mesh={"pp": 2},
    )


def resumed() -> Pattern:
    """A checkpoint has the state of the first rank's generator only, and every rank goes on from it."""
    saved = [torch.Generator().manual_seed(SEED + rank).get_state() for rank in range(2)]

    def resume(x: torch.Tensor, w: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        parts, rank = world()
        torch.set_rng_state(saved[0 if wrong else rank])
        loss: Any = (F.dropout(x, RATE) @ w).tanh().square().sum()
        loss.backward()
        if parts > 1:
            sum_gradients(w)
        return {"loss": reduced(loss.detach())}

    return Pattern(
        ("Megatron-LM #6858", "miles #3187", "NeMo Automodel #3437"),
        lambda: (resume, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))),
        lambda _, wrong: (resume, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, INNER), wrong)),
        {"x": "Shard(0)", "w": "Replicate()"},
        "saved[0 if wrong",
        mesh={"dp": 2},
    )


def sequence_noise() -> Pattern:
    """Ranks that denoise parts of one video begin with noise of their own, and each goes on with its own video."""

    def denoise(w: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        parts, rank = world()
        random.manual_seed(SEED + rank if wrong else SEED)
        video = torch.randn(ROWS, WIDTH)
        for _ in range(2):
            speed = video.chunk(parts)[rank] @ w
            video = video - 0.5 * (gathered(speed) if parts > 1 else speed).tanh()
        return {"video": video}

    return Pattern(
        ("HunyuanVideo-I2V #35", "SkyReels-V2 #24", "sglang #20118"),
        lambda: (denoise, (torch.zeros(WIDTH, WIDTH),)),
        lambda _, wrong: (denoise, (torch.zeros(WIDTH, WIDTH), wrong)),
        {"w": "Replicate()"},
        "SEED + rank if wrong",
        mesh={"sp": 2},
    )


RANDOM_NUMBERS = {
    "dropout of all replicas from one seed": replica_dropout(),
    "noise the same along one axis of a mesh": hybrid_noise(),
    "dropout of a split sequence outside its stream": sequence_dropout(),
    "seed of a loader drawn on one rank": loader_seed(),
    "dropout drawn again for the backward pass": forgetful(),
    "tokens sampled by every rank for itself": own_tokens(),
    "replicas of a shard from different seeds": replica_weights(),
    "stages of a pipeline from one seed": stage_weights(),
    "generators of all ranks restored from the first one's": resumed(),
    "noise of one video from a seed of every rank": sequence_noise(),
}
"""Patterns by name."""
