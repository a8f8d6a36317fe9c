"""Small repositories as people have them, by name: their files."""

from __future__ import annotations

from collections.abc import Mapping

GPT = """
import torch
from dataclasses import dataclass
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (a.view(b, t, self.n_head, -1).transpose(1, 2) for a in self.c_attn(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config.n_embd, 4 * config.n_embd
        self.c_fc, self.c_proj = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(config.n_embd), Attention(config)
        self.ln_2, self.mlp = nn.LayerNorm(config.n_embd), MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.1
    bias: bool = True


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        return self.lm_head(x)
"""
PLAN = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def apply_tp(model, tp_mesh):
    for block in model.h:
        parallelize_module(block.mlp, tp_mesh, {"c_fc": ColwiseParallel(), "c_proj": RowwiseParallel()})


def main():
    mesh = init_device_mesh("cuda", (4, 2), mesh_dim_names=("dp", "tp"))
"""
BY_HAND = """
import torch
import torch.distributed as dist
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, group=None):
        super().__init__()
        inner //= group.size() if group else 1
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.group = group

    def forward(self, x):
        y = self.down(torch.relu(self.up(x)))
        if self.group:
            dist.all_reduce(y, group=self.group)
        return y
"""
TRAINER = """
from transformers import LlamaForCausalLM, Trainer, TrainingArguments


def main(path):
    model = LlamaForCausalLM.from_pretrained(path)
    Trainer(model=model, args=TrainingArguments("out")).train()
"""
JAX = """
import jax
import jax.numpy as jnp


@jax.jit
def predict(w, x):
    return jnp.tanh(x @ w)


mesh = jax.make_mesh((1,), ("data",))
"""
REPOSITORIES: Mapping[str, Mapping[str, str]] = {
    "own": {"src/small/gpt.py": GPT, "tests/test_gpt.py": "from torch import nn\nclass Fake(nn.Module): pass\n"},
    "plan": {"model.py": GPT, "parallel.py": PLAN},
    "by hand": {"layer.py": BY_HAND},
    "trainer": {"train.py": TRAINER},
    "jax": {"train.py": JAX},
    "megatron": {"pretrain.py": "from megatron.core.models.gpt import GPTModel\n"},
    "torchtitan": {"run.py": "import torchtitan\n"},
}
