"""Plans for ``parallelize_module``: which module of which family is split how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from rewright.ir.errors import CaptureError
from zoo import styles

Plan = dict[str, ParallelStyle]
DECODERS = ("llama", "qwen2", "qwen3", "gemma2", "phi3", "mixtral")


@dataclass(frozen=True)
class Options:
    """Which variant of a plan: activations split along the sequence between blocks, loss over a split vocabulary."""

    sequence: bool = False
    loss: bool = False


def apply_plan(family: str, model: nn.Module, mesh: DeviceMesh, options: Options) -> None:
    """Parallelise a module of the family in place; raises CaptureError for a variant that the family has no plan for.

    ``parallelize_module`` gives every module its own parameters; weights that were tied are tied again.
    """
    ties = tied_names(model)
    plan = _plan(family, model, options)
    parallelize_module(model, mesh, plan)
    if family == "gpt2":
        for block in model.get_submodule("transformer.h").children():
            attention: Any = block.get_submodule("attn")
            attention.split_size //= mesh.size()
    for name, first in ties.items():
        _tie(model, name, first)


def tied_names(model: nn.Module) -> dict[str, str]:
    """Second name to first name of every parameter that a module has under two names."""
    seen: dict[int, str] = {}
    found: dict[str, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = seen.setdefault(id(parameter), name)
        if first != name:
            found[name] = first
    return found


def _tie(model: nn.Module, *names: str) -> None:
    """Give the names one parameter again: the sharded one where only one of them was sharded."""
    values = [model.get_parameter(name) for name in names]
    shared = next((value for value in values if isinstance(value, DTensor)), values[0])
    for name in names:
        path, _, last = name.rpartition(".")
        model.get_submodule(path).register_parameter(last, shared)


def _plan(name: str, model: nn.Module, options: Options) -> Plan:
    if name in DECODERS:
        return _decoder(name, model, options)
    if options.sequence:
        raise CaptureError(f"the zoo has no sequence-parallel plan for {name}; use one of {', '.join(DECODERS)}")
    if options.loss and name != "gpt2":
        raise CaptureError(f"the zoo has no loss-parallel plan for {name}; use one of {', '.join(DECODERS)}")
    return {"gpt2": _gpt2, "bert": _bert, "vit": _vit}[name](model, options)


def _head(options: Options) -> ColwiseParallel:
    given = Shard(1) if options.sequence else Replicate()
    if options.loss:
        return ColwiseParallel(input_layouts=given, output_layouts=Shard(-1), use_local_output=False)
    return ColwiseParallel(input_layouts=given, output_layouts=Replicate())


def _decoder(name: str, model: nn.Module, options: Options) -> Plan:
    plan: Plan = {"model.embed_tokens": RowwiseParallel(input_layouts=Replicate()), "lm_head": _head(options)}
    count = len(list(model.get_submodule("model.layers").children()))
    for position in range(count):
        layer = {**_attention(name, options), **_feed_forward(name, options)}
        if options.sequence:
            layer |= _sequence_norms(model.get_submodule(f"model.layers.{position}"))
        plan |= {f"model.layers.{position}.{path}": style for path, style in layer.items()}
    if options.sequence:
        plan["model.layers.0"] = PrepareModuleInput(
            input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=True
        )
        plan["model.norm"] = SequenceParallel(use_local_output=True)
    return plan


def _attention(name: str, options: Options) -> Plan:
    leaving = Shard(1) if options.sequence else Replicate()
    plan: Plan = {}
    if options.sequence:
        plan["self_attn"] = PrepareModuleInput(
            input_kwarg_layouts={"hidden_states": Shard(1)},
            desired_input_kwarg_layouts={"hidden_states": Replicate()},
        )
    if name == "phi3":  # query, key and value are fused unevenly: compute the projection in parts and gather it
        plan["self_attn.qkv_proj"] = ColwiseParallel(output_layouts=Replicate())
        plan["self_attn.o_proj"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=leaving)
        return plan
    plan |= {f"self_attn.{part}_proj": ColwiseParallel() for part in "qkv"}
    plan["self_attn.o_proj"] = RowwiseParallel(output_layouts=leaving)
    if name == "qwen3":  # the norms run on split heads, so their gradients are sums over the ranks
        plan |= {f"self_attn.{part}_norm": SequenceParallel(sequence_dim=2, use_local_output=True) for part in "qk"}
    return plan


def _feed_forward(name: str, options: Options) -> Plan:
    leaving = Shard(1) if options.sequence else Replicate()
    plan: Plan = {}
    if options.sequence and name == "mixtral":
        plan["mlp"] = PrepareModuleInputOutput(
            input_layouts=(Shard(1),),
            desired_input_layouts=(Replicate(),),
            use_local_input=True,
            output_layouts=(Replicate(),),
            desired_output_layouts=(Shard(1),),
            use_local_output=True,
        )
    elif options.sequence:
        plan["mlp"] = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    if name == "mixtral":
        plan["mlp.experts"] = styles.experts()
    elif name == "phi3":
        plan["mlp.gate_up_proj"] = ColwiseParallel(output_layouts=Replicate())
        plan["mlp.down_proj"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=leaving)
    else:
        plan |= {f"mlp.{part}_proj": ColwiseParallel() for part in ("gate", "up")}
        plan["mlp.down_proj"] = RowwiseParallel(output_layouts=leaving)
    return plan


def _sequence_norms(layer: nn.Module) -> Plan:
    return {
        path: SequenceParallel(use_local_output=True)
        for path, _ in layer.named_children()
        if path.endswith("layernorm")
    }


def _gpt2(model: nn.Module, options: Options) -> Plan:
    plan: Plan = {"transformer.wte": RowwiseParallel(input_layouts=Replicate()), "lm_head": _head(options)}
    for position, _ in enumerate(model.get_submodule("transformer.h").children()):
        prefix = f"transformer.h.{position}"
        plan[f"{prefix}.attn.c_attn"] = styles.Conv1DColumn(fused=3)
        plan[f"{prefix}.mlp.c_fc"] = styles.Conv1DColumn()
        plan |= {f"{prefix}.{part}.c_proj": styles.Conv1DRow() for part in ("attn", "mlp")}
    return plan


def _bert(model: nn.Module, options: Options) -> Plan:
    plan: Plan = {
        "bert.embeddings.word_embeddings": RowwiseParallel(input_layouts=Replicate()),
        "cls.predictions.decoder": ColwiseParallel(output_layouts=Replicate()),
    }
    for position, _ in enumerate(model.get_submodule("bert.encoder.layer").children()):
        prefix = f"bert.encoder.layer.{position}"
        plan |= {f"{prefix}.attention.self.{part}": ColwiseParallel() for part in ("query", "key", "value")}
        plan |= {f"{prefix}.{part}.dense": RowwiseParallel() for part in ("attention.output", "output")}
        plan[f"{prefix}.intermediate.dense"] = ColwiseParallel()
    return plan


def _vit(model: nn.Module, options: Options) -> Plan:
    plan: Plan = {}
    paths = [name.removesuffix(".weight") for name, _ in model.named_parameters() if name.endswith(".weight")]
    for path in paths:
        if path.endswith((".q_proj", ".k_proj", ".v_proj", ".fc1")):
            plan[path] = ColwiseParallel()
        elif path.endswith((".o_proj", ".fc2")):
            plan[path] = RowwiseParallel()
    return plan
