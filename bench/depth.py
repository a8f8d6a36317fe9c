"""Two implementations at full size, on meta tensors; ``make bench-depth`` prints the table.

Llama 3.1 at 8B as Transformers and as litgpt or vLLM write it, with llama3 rotary scaling: weights have shapes and no
values, and are matched by their names. Each row is captured and proved anew. Both programs, the weights of the one made
of those of the other, also run on random numbers at sizes that were shrunk (the numeric twin), which is no part of the
proof.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

import rewright as rw
from bench.pairs.families import SETTINGS
from bench.pairs.reference import Logits
from bench.tables import print_table
from rewright.equiv.engine import equiv
from rewright.equiv.inputs.guessing import guess_definitions
from rewright.equiv.inputs.weights import read_map, rename_output
from rewright.equiv.preparing import prepare_pair
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.refine.relations.known import input_relations
from rewright.refine.twin.twin import Twin, make_twin
from zoo.families import LLAMA_SCALING
from zoo.transformers_models import quiet, transformers_module

COLUMNS = ["peer", "layers", "tokens", "parameters", "nodes", "capture s", "prove s", "status", "evidence", "lemmas"]
COLUMNS += ["twin s", "twin agrees"]
_SIZES = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
}


class Tabled(nn.Module):
    """A model of litgpt that computes its rotary tables where they are used."""

    def __init__(self, gpt: nn.Module) -> None:
        super().__init__()
        self.gpt = gpt

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        gpt: Any = self.gpt
        before = gpt.cos, gpt.sin
        gpt.cos, gpt.sin = gpt.rope_cache()
        try:
            return gpt(input_ids)
        finally:
            gpt.cos, gpt.sin = before


def of_litgpt(configuration: Any) -> nn.Module:
    """The model of litgpt on the meta device."""
    import litgpt

    with torch.device("meta"):
        return Tabled(
            litgpt.GPT(litgpt.Config.from_name("Llama-3.1-8B", n_layer=configuration.num_hidden_layers)).eval()
        )


def of_vllm(configuration: Any) -> nn.Module:
    """The model of vLLM on the meta device."""
    os.environ.update(SETTINGS)
    return importlib.import_module("bench.pairs.vllm").hollow(configuration)


PEERS: dict[str, Callable[[Any], nn.Module]] = {"litgpt": of_litgpt, "vllm": of_vllm}


def modules(layers: int, peer: str) -> tuple[nn.Module, nn.Module, dict[str, torch.Tensor]]:
    """Both models on the meta device, and the buffers that the first one would have computed."""
    transformers = transformers_module()
    with quiet():
        configuration = transformers.LlamaConfig(num_hidden_layers=layers, rope_parameters=LLAMA_SCALING, **_SIZES)
        configuration._attn_implementation = "eager"
        configuration.architectures = ["LlamaForCausalLM"]
        with torch.device("meta"):
            left = Logits(transformers.LlamaForCausalLM(configuration).eval())
        right = PEERS[peer](configuration)
    rotary = next(m for m in left.modules() if type(m).__name__ == "LlamaRotaryEmbedding")
    made = type(rotary)(configuration)
    name = next(name for name, m in left.named_modules() if m is rotary)
    return left, right, {f"{name}.{key}": value for key, value in made.named_buffers()}


def twin_of(left: Graph, right: Graph, values: dict[str, Any]) -> Twin:
    """Both programs, with the weight map in front of them, at sizes that can be executed."""
    program = RankProgram((right,), Mesh.of({"rank": 1}), {}, {})
    arrays = {name: value.numpy() for name, value in values.items()}
    weights = guess_definitions(
        read_map(None, left, rename_output(left, program)), left, rename_output(left, program), (arrays, {})
    )
    ready = prepare_pair(left, program, weights, (arrays, {}))
    known = input_relations(ready.left, ready.right, None)
    made = make_twin(ready.left, replace(ready.right, inputs={**known.inferred.first, **known.placements}))
    assert isinstance(made, Twin), made
    return made


def rows(peer: str, depths: Sequence[int], tokens: int) -> Iterator[list[object]]:
    """One row for each depth."""
    for layers in depths:
        left, right, buffers = modules(layers, peer)
        parameters = sum(p.numel() for p in left.parameters())
        start = time.perf_counter()
        example = (torch.zeros(1, tokens, dtype=torch.long),)
        graphs = rw.capture(left, example), rw.capture(right, example)
        captured = time.perf_counter()
        verdict = equiv(*graphs, (buffers, {}))
        proved = time.perf_counter()
        result = twin_of(*graphs, buffers).compare(trials=2)
        ran = time.perf_counter()
        nodes = "/".join(str(len(graph.nodes)) for graph in graphs)
        sizes = [peer, layers, tokens, f"{parameters / 1e9:.1f}B", nodes, captured - start, proved - captured]
        yield [*sizes, verdict.status, str(verdict.evidence), len(verdict.lemmas), ran - proved, result.agrees]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", type=int, default=[4, 32])
    parser.add_argument("--peer", choices=PEERS, default="litgpt")
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    print_table(COLUMNS, rows(options.peer, options.layers, options.tokens))
