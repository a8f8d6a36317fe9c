"""Every causal family of Transformers that ships with a tensor-parallel plan: ``python -m bench.families``.

A tiny model of each, forward and backward on two ranks, is captured with Transformers' own plan, compared with the
model on one device, and the proof audited. Configurations are the defaults but for sizes, which do not fit
all families. ``python -m bench.families NAME ..`` takes some only. Experts are computed densely, every one on every
token; ``--experts grouped`` keeps Transformers' products over groups of sorted rows, and ``batched`` takes its
products per chosen expert. ``--plan all_reduce`` or ``all_to_all`` puts whole experts on ranks besides, by the
families' ``ep_plan``. Each family runs in a process of its own.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bench.tables import print_table

SIZES: dict[str, object] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "sliding_window": 8,
    "attention_dropout": 0.0,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "shared_intermediate_size": 32,
    "n_shared_experts": 1,
    "num_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "num_dense_layers": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "query_pre_attn_scalar": 16,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 128,
    "num_kv_shared_layers": 0,
}
"""Values for those fields that a configuration has; latent attention has as many key heads as heads."""
COLUMNS = ("family", "status", "evidence", "outputs", "nodes", "capture", "prove and audit", "why")
SECONDS = 240


@dataclass(frozen=True)
class Way:
    """How the experts of a family are computed, and how the family is split."""

    experts: str
    plan: str

    @property
    def options(self) -> tuple[str, ...]:
        """As options of this command."""
        return "--experts", self.experts, "--plan", self.plan


def families(plan: str) -> list[str]:
    """The causal families with a plan, by the names of their configurations."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    field = "base_model_tp_plan" if plan == "tensor" else "base_model_ep_plan"
    return [n for n in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if getattr(CONFIG_MAPPING[n], field, None)]


def configuration(name: str, experts: str, attention: str) -> Any:
    """A small configuration of a family."""
    from transformers import CONFIG_MAPPING

    from zoo.transformers_models import choose_dense_experts

    kind = CONFIG_MAPPING[name]
    fields = {*getattr(kind, "__dataclass_fields__", {}), *inspect.signature(kind.__init__).parameters}
    fields |= set(getattr(kind, "attribute_map", {}))
    values = {key: value for key, value in SIZES.items() if key in fields}
    if "kv_lora_rank" in fields:
        values["num_key_value_heads"] = values["num_attention_heads"]
    found: Any = kind(**values)
    found._attn_implementation = attention
    found.tie_word_embeddings = False
    if getattr(found, "layer_types", None):
        found.layer_types = found.layer_types[:2]
    if experts == "dense":
        choose_dense_experts(found)
    elif experts == "batched":
        found._experts_implementation = "batched_mm"
    return found


def row(name: str, way: Way) -> list[object]:
    """One row of the table."""
    try:
        return attempt(name, way, "sdpa")
    except ValueError as error:
        if "scaled_dot_product_attention" not in str(error):
            raise
        return attempt(name, way, "eager")


def captured(name: str, way: Way, attention: str) -> tuple[Any, Any]:
    """The model on one device and on two ranks, forward and backward."""
    import torch
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from rewright.frontends.torch.capture import capture
    from rewright.frontends.torch.ranks import capture_ranks
    from zoo.transformers_models import quiet
    from zoo.transformers_plan import apply_transformers_plan

    kind: Any = getattr(transformers, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[name])
    with torch.device("meta"):
        tokens = torch.zeros(2, 16, dtype=torch.long)
    inputs = {"input_ids": tokens, "labels": torch.zeros_like(tokens), "use_cache": False}

    def model() -> Any:
        with quiet(), torch.device("meta"):
            return kind(configuration(name, way.experts, attention)).train()

    experts = None if way.plan == "tensor" else way.plan

    def build(mesh: Any) -> Any:
        with quiet():
            return apply_transformers_plan(name, model(), mesh, experts), (), inputs

    return capture(model(), (), inputs, backward=True), capture_ranks(build, {"tp": 2}, backward=True)


def attempt(name: str, way: Way, attention: str) -> list[object]:
    """One row, with one implementation of attention."""
    from rewright.refine import refine

    start = time.perf_counter()
    sequential, distributed = captured(name, way, attention)
    middle = time.perf_counter()
    verdict = refine(sequential, distributed, audit=True)
    why = "" if verdict.status == "proved" else verdict.reason
    numbers = len(verdict.relation), len(sequential), middle - start, time.perf_counter() - middle
    return [name, verdict.status, str(verdict.evidence), *numbers, why]


def in_own_process(name: str, way: Way) -> list[object]:
    """The row of a family; what it ends with where it cannot be built, captured or compared."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.families", "--one", name, *way.options]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [name, "no answer", "", "", "", "", "", f"{SECONDS} s are over"]
    lines = run.stdout.splitlines()
    return json.loads(lines[-1]) if run.returncode == 0 and lines else [name, "failed", *[""] * 5, run.stderr[-200:]]


def one(name: str, way: Way) -> list[object]:
    """The row of a family, or why there is none in one line."""
    from rewright.ir.errors import RewrightError

    warnings.filterwarnings("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        return row(name, way)
    except RewrightError as error:
        return [name, "not captured", *[""] * 5, str(error)]
    except Exception as error:  # anything may go wrong in a model with sizes that it was not made for
        return [name, "not built", *[""] * 5, f"{type(error).__name__}: {error}".splitlines()[0][:160]]


def rows(names: Sequence[str], way: Way, jobs: int) -> Iterator[list[object]]:
    """All rows, in order."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda name: in_own_process(name, way), names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="families; all of them by default")
    parser.add_argument("--experts", choices=("dense", "grouped", "batched"), default="dense")
    parser.add_argument("--plan", choices=("tensor", "all_reduce", "all_to_all"), default="tensor")
    parser.add_argument("--jobs", type=int, default=2, help="how many families at once")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = Way(options.experts, options.plan)
    if options.one:
        print(json.dumps(one(options.one, chosen)))
    else:
        print_table(COLUMNS, rows(options.names or families(options.plan), chosen, options.jobs))
