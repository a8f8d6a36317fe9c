"""The texts that are written: one for each kind of repository, with ``$names`` for what was found in it."""

from __future__ import annotations

TORCH = '''\
"""$about

    $command

Sizes and dtypes of inputs count, values do not. Lines that end in "check" are guesses.
"""

import torch
$imports
MESH = $mesh


def batch():
    return (
$inputs
    )


def sequential():
    return $model, batch()


def parallel(mesh):
$parallel
    return sharded, batch()
'''

TRANSFORMERS = '''\
"""$about

    $command

Weights are drawn and not read: only the configuration counts. Lines that end in "check" are guesses.
"""

import os
from contextlib import ExitStack
from unittest import mock

import torch
import torch.distributed as dist
$imports
from transformers.distributed.configuration_utils import DistributedConfig

MESH = {"tp": 2}
CONFIG = $config


def batch():
    return {"input_ids": torch.zeros(1, 8, dtype=torch.long), "use_cache": False}


def sequential():
    return $model.eval(), batch()


def parallel(mesh):
    with launched(mesh):
        model = $model.eval()
        config, _, meshes = model.prepare_distribute_model(DistributedConfig(tp_size=mesh.size()))
        return model.maybe_distribute_model(model, config, meshes), batch()


def launched(mesh):
    """What Transformers asks a launcher for, and a CPU as the accelerator."""
    variables = {"RANK": str(dist.get_rank()), "WORLD_SIZE": str(mesh.size()), "LOCAL_RANK": "0"}
    stack = ExitStack()
    stack.enter_context(mock.patch.dict(os.environ, variables))
    stack.enter_context(mock.patch("torch._C._get_accelerator", lambda *_: torch.device("cpu")))
    return stack
'''

JAX = '''\
"""$about

    $command

Arguments are shapes: nothing needs memory. Lines that end in "check" are guesses.
"""

import jax
from jax.sharding import NamedSharding, PartitionSpec as P
$imports
MESH = $mesh


def array(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


ARGUMENTS = (
$inputs
)
SPECS = (
$specs
)


def sequential():
    return $function, ARGUMENTS


def parallel(mesh):
    def spread(argument, spec):
        return jax.tree.map(lambda _: NamedSharding(mesh, spec), argument)

    return jax.jit($function, in_shardings=tuple(map(spread, ARGUMENTS, SPECS))), ARGUMENTS
'''

MEGATRON = '''\
"""$about

Megatron asks for GPUs and keeps its groups in globals: both are had here on a CPU, without a launcher.
Lines that end in "check" are guesses.
"""

import importlib
import logging
import warnings

import torch
import rewright as rw
from rewright.frontends.torch.without_cuda import without_cuda

MESH = {"tp": 2}


def config(degree):
    from megatron.core.transformer.transformer_config import TransformerConfig

    return TransformerConfig(  # check: the fields of your own configuration; no fusions
        num_layers=2,
        hidden_size=16,
        num_attention_heads=4,
        ffn_hidden_size=32,
        tensor_model_parallel_size=degree,
        use_cpu_initialization=True,
        hidden_dropout=0.1,
        attention_dropout=0.1,
        bias_dropout_fusion=False,
        bias_activation_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
    )


def model(degree):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec

    made = GPTModel(  # check: the model that your training makes
        config=config(degree),
        transformer_layer_spec=get_gpt_layer_local_spec(),
        vocab_size=32,
        max_sequence_length=16,
    )
    from megatron.core.distributed import DistributedDataParallelConfig

    vars(made)["ddp_config"] = DistributedDataParallelConfig()  # as wrapping in its DistributedDataParallel sets it
    return made


def step(model, tokens, positions, mask, labels):
    finalizing = importlib.import_module("megatron.core.distributed.finalize_model_grads")
    loss = model(tokens, positions, mask, labels=labels).mean()
    loss.backward()
    finalizing._allreduce_non_tensor_model_parallel_grads([model], model.config)
    return {"loss": loss}


def rank(mesh):
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    parallel_state.destroy_model_parallel()
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=mesh.size())
    model_parallel_cuda_manual_seed(1234, force_reset_rng=True)  # check: your seed
    tokens = torch.zeros(2, 8, dtype=torch.long)
    mask = torch.ones(8, 8, dtype=torch.bool).triu(1)[None, None]  # true where a query must not look
    return step, (model(mesh.size()), tokens, tokens.clone(), mask, tokens.clone())


def programs():
    """The model on one rank, and on those of the mesh."""
    with without_cuda(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from megatron.core import jit, parallel_state

        jit.disable_jit_fuser()
        logging.getLogger("megatron.core.tensor_parallel.random").disabled = True  # of one generator for all
        try:
            return rw.capture_ranks(rank, mesh={"tp": 1}).graphs[0], rw.capture_ranks(rank, mesh=MESH)
        finally:
            parallel_state.destroy_model_parallel()
'''

TORCHTITAN = '''\
"""$about

What runs on a rank is torchtitan's own function; its smallest model has the same code as its largest.
Lines that end in "check" are guesses.
"""

import importlib
from unittest import mock

import torch
import rewright as rw

FAMILY = "$family"  # check: the model
MESH = $mesh  # check: shard and replicate are data parallelism, tp is tensor parallelism
flex = importlib.import_module("torch.nn.attention.flex_attention")


def titan(name):
    return importlib.import_module(f"torchtitan.{name}")


def model(parallelism=None):
    from types import SimpleNamespace

    settings = getattr(titan(f"models.{FAMILY}"), f"{FAMILY}_configs")["debugmodel"](attn_backend="flex")
    settings.layers = settings.layers[:2]
    if parallelism is not None:
        settings.update_from_config(config=SimpleNamespace(parallelism=parallelism))
    return settings.build()


def step(made, parts, meshes=None):
    tokens = torch.zeros(8 // parts, 16, dtype=torch.int64)
    positions = torch.arange(16).expand(tokens.shape)
    with torch.compiler.set_stance("force_eager"):
        masks = made.get_attention_masks(positions)

    def run(model, tokens, labels):
        losses = titan("components.loss")
        valid = (labels != losses.IGNORE_INDEX).sum()
        if meshes is not None and meshes.dp_enabled:
            valid = titan("distributed.utils").dist_sum_tensor(valid, meshes.get_mesh("batch"))
        with mock.patch.object(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True):  # nothing is compiled here
            logits = model(tokens, positions=positions, attention_masks=masks)
            loss = losses.cross_entropy_loss(logits, labels) / valid
        loss.backward()
        return {"loss": loss.detach()}

    return run, (made, tokens, torch.zeros_like(tokens))


def rank(mesh):
    config, distributed = titan("config"), titan("distributed")
    degrees = {"replicate": "data_parallel_replicate_degree", "shard": "data_parallel_shard_degree"}
    degrees["tp"] = "tensor_parallel_degree"
    parallelism = config.ParallelismConfig(
        **{name: MESH.get(axis, 1) for axis, name in degrees.items()}, spmd_backend="partial_dtensor"
    )
    meshes = distributed.ParallelDims.from_config(parallelism, mesh.size())
    titan("distributed.utils").set_spmd_backend("partial_dtensor")
    meshes.build_mesh()
    family = vars(titan(f"models.{FAMILY}"))
    parallelize = next(value for name, value in family.items() if name.startswith("parallelize_"))
    made = parallelize(
        model(parallelism),
        parallel_dims=meshes,
        training=config.TrainingConfig(mixed_precision_param="float32"),
        parallelism=parallelism,
        compile_config=config.CompileConfig(enable=False),
        ac_config=None,
        dump_folder="",
    )
    titan("distributed.fsdp").disable_fsdp_gradient_division(made)
    return step(made, MESH.get("replicate", 1) * MESH.get("shard", 1), meshes)


def programs():
    """The model on one device, and on the ranks of the mesh."""
    with mock.patch.object(titan("distributed.parallel_dims"), "device_type", "cpu"):
        return rw.capture(*step(model(), 1)), rw.capture_ranks(rank, mesh=MESH)


SPLIT = ["Replicate()" if axis == "tp" else "Shard(0)" for axis in MESH]
RELATIONS = {"tokens": SPLIT, "labels": SPLIT}
EXPECTED = {"loss": ["Replicate()" if axis == "tp" else "Partial(sum)" for axis in MESH]}
'''

TEST = '''\
"""$about"""

from rewright.pytest_plugin import assert_refines
from $claims import MESH, parallel, sequential


def test_the_ranks_compute_the_model():
    assert_refines(sequential(), parallel, mesh=MESH)
'''

TEST_OF_PROGRAMS = '''\
"""$about"""

from rewright.pytest_plugin import assert_refines
from $claims import programs


def test_the_ranks_compute_the_model():
    assert_refines(*programs())
'''

TEST_WITH_RELATIONS = '''\
"""$about"""

from rewright.pytest_plugin import assert_refines
from $claims import EXPECTED, RELATIONS, programs


def test_the_ranks_compute_the_model():
    assert_refines(*programs(), relations=RELATIONS, expect=EXPECTED)
'''
