"""A decoder block, a small language model and a training step in jax.numpy, and how to spread them over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

Params = dict[str, Any]
WIDTH, HIDDEN, VOCABULARY = 16, 24, 16
SHAPES = {
    "norm1": (WIDTH,), "norm2": (WIDTH,), "wq": (WIDTH, WIDTH), "wk": (WIDTH, WIDTH), "wv": (WIDTH, WIDTH),
    "wo": (WIDTH, WIDTH), "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH),
}  # fmt: skip
COLUMNS, ROWS = ("wq", "wk", "wv", "gate", "up"), ("wo", "down")


def array(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


PARAMS: Params = {name: array(*shape) for name, shape in SHAPES.items()}
X = array(4, 6, WIDTH)
TOKENS = array(4, 6, dtype="int32")


def rms_norm(x: Any, weight: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def rotary(length: int, width: int) -> tuple[Any, Any]:
    frequency = 1.0 / (10000.0 ** (jnp.arange(0, width, 2) / width))
    angles = jnp.outer(jnp.arange(length), frequency)
    return jnp.cos(angles)[None, :, None, :], jnp.sin(angles)[None, :, None, :]


def rotate(x: Any, cosine: Any, sine: Any) -> Any:
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def attention(params: Params, x: Any, heads: int) -> Any:
    batch, length, _ = x.shape
    width = params["wq"].shape[1] // heads
    q, k, v = ((x @ params[name]).reshape(batch, length, heads, width) for name in ("wq", "wk", "wv"))
    tables = rotary(length, width)
    scores = jnp.einsum("bqhw,bkhw->bhqk", rotate(q, *tables), rotate(k, *tables)) / jnp.sqrt(width)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhw->bqhw", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(batch, length, heads * width) @ params["wo"]


def mlp(params: Params, x: Any) -> Any:
    return (jax.nn.silu(x @ params["gate"]) * (x @ params["up"])) @ params["down"]


def block(params: Params, x: Any) -> Any:
    x = x + attention(params, rms_norm(x, params["norm1"]), 4)
    return x + mlp(params, rms_norm(x, params["norm2"]))


def loss(params: Params, x: Any, y: Any) -> Any:
    return jnp.mean((block(params, x) - y) ** 2)


def trained(function: Callable[..., Any]) -> Callable[..., Any]:
    """One step of gradient descent on a loss."""

    def step(params: Params, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(function)(params, x, y)
        return {"loss": value, "params": jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)}

    return step


step = trained(loss)


def language_loss(params: Params, tokens: Any, labels: Any) -> Any:
    """Embedding, block, and cross entropy by the log-probability of each label."""
    logits = block(params, params["embedding"][tokens]) @ params["head"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), labels[..., None], axis=-1)
    return -jnp.mean(chosen)


language_step = trained(language_loss)
LANGUAGE: Params = {"embedding": array(VOCABULARY, WIDTH), "head": array(WIDTH, VOCABULARY), **PARAMS}


def specs(columns: Any, rows: Any, others: Any = None) -> Params:
    """For every weight the spec of Megatron's layout over the given axes."""
    found: Params = dict.fromkeys(SHAPES, P(others))
    return found | dict.fromkeys(COLUMNS, P(rows, columns)) | dict.fromkeys(ROWS, P(columns, rows))


def placed(mesh: Any, tree: Any) -> Any:
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), tree, is_leaf=lambda leaf: isinstance(leaf, P))


def sharded_step(weights: Params, data: Any, function: Callable[..., Any] = step, args: Any = None) -> Any:
    """A build function: the step under ``jit``, weights and data sharded by specs."""

    def build(mesh: Any) -> Any:
        inputs = placed(mesh, (weights, data, data))
        outputs = placed(mesh, {"loss": P(), "params": weights})
        return jax.jit(function, in_shardings=inputs, out_shardings=outputs), args or (PARAMS, X, X)

    return build


def megatron_block(params: Params, x: Any, heads: int, axis: str = "tp") -> Any:
    """The block on a part of the heads and of the hidden units."""
    x = x + lax.psum(attention(params, rms_norm(x, params["norm1"]), heads), axis)
    return x + lax.psum(mlp(params, rms_norm(x, params["norm2"])), axis)


def sequence_parallel_block(params: Params, x: Any, heads: int) -> Any:
    """The same where ranks hold parts of the sequence between the products."""
    whole = lax.all_gather(rms_norm(x, params["norm1"]), "tp", axis=1, tiled=True)
    x = x + lax.psum_scatter(attention(params, whole, heads), "tp", scatter_dimension=1, tiled=True)
    whole = lax.all_gather(rms_norm(x, params["norm2"]), "tp", axis=1, tiled=True)
    return x + lax.psum_scatter(mlp(params, whole), "tp", scatter_dimension=1, tiled=True)


def softmax_attention(q: Any, k: Any, v: Any) -> Any:
    weights = jnp.exp(jnp.einsum("bqhd,bkhd->bqhk", q, k) / jnp.sqrt(q.shape[-1]))
    return jnp.einsum("bqhk,bkhd->bqhd", weights, v) / weights.sum(-1)[..., None]


QKV = (array(2, 8, 4, 4),) * 3


def ring(mesh: Any) -> Any:
    """Attention over a ring: keys and values move on from rank to rank."""
    size = mesh.shape["cp"]
    turn = [(rank, (rank + 1) % size) for rank in range(size)]

    def local(q: Any, k: Any, v: Any) -> Any:
        def body(_: Any, state: Any) -> Any:
            total, norm, k, v = state
            weights = jnp.exp(jnp.einsum("bqhd,bkhd->bqhk", q, k) / jnp.sqrt(q.shape[-1]))
            total, norm = total + jnp.einsum("bqhk,bkhd->bqhd", weights, v), norm + weights.sum(-1)
            return total, norm, lax.ppermute(k, "cp", turn), lax.ppermute(v, "cp", turn)

        start = lax.pcast((jnp.zeros(q.shape), jnp.zeros(q.shape[:3])), "cp", to="varying")
        total, norm, *_ = lax.fori_loop(0, size, body, (*start, k, v))
        return total / norm[..., None]

    spec = P(None, "cp")
    return jax.shard_map(local, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec), QKV


def ulysses(mesh: Any) -> Any:
    """Attention with all-to-all: from parts of the sequence to parts of the heads, and back."""

    def swap(x: Any, split: int, join: int) -> Any:
        return lax.all_to_all(x, "cp", split, join, tiled=True)

    def local(q: Any, k: Any, v: Any) -> Any:
        return swap(softmax_attention(*(swap(x, 2, 1) for x in (q, k, v))), 1, 2)

    spec = P(None, "cp")
    return jax.shard_map(local, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec), QKV


def two_blocks(layers: list[Params], x: Any) -> Any:
    return block(layers[1], block(layers[0], x))


def megatron_blocks(mesh: Any) -> Any:
    """Two blocks, each on a part of the heads and of the hidden units."""

    def local(layers: list[Params], x: Any) -> Any:
        for params in layers:
            x = megatron_block(params, x, 4 // mesh.shape["tp"])
        return x

    spec = [specs("tp", None)] * 2
    return jax.shard_map(local, mesh=mesh, in_specs=(spec, P()), out_specs=P()), ([PARAMS, PARAMS], X)


def routed(params: Params, x: Any) -> tuple[Any, Any]:
    """The best expert of every token as a row with a one, and its weight."""
    likely = jax.nn.softmax(x @ params["gate"], axis=-1)
    chosen = jax.nn.one_hot(jnp.argmax(likely, -1), params["gate"].shape[1])
    return chosen, (likely * chosen).sum(-1)


def experts(params: Params, rows: Any) -> Any:
    """Every expert on its rows, (experts, tokens, width)."""
    return jnp.einsum("eth,ehd->etd", jnp.tanh(jnp.einsum("etd,edh->eth", rows, params["up"])), params["down"])


def mixture(params: Params, x: Any) -> Any:
    """A mixture of experts of which every token goes to one."""
    chosen, weight = routed(params, x)
    results = experts(params, jnp.einsum("te,td->etd", chosen, x))
    return jnp.einsum("te,etd->td", chosen, results) * weight[:, None]


def mixture_args(count: int) -> tuple[Params, Any]:
    return {"gate": array(4, count), "up": array(count, 4, 6), "down": array(count, 6, 4)}, array(12, 4)


def parallel_mixture(count: int, *, back: bool = True) -> Callable[[Any], Any]:
    """Rows travel to the ranks of their experts by all-to-all, and back."""

    def build(mesh: Any) -> Any:
        def local(params: Params, x: Any) -> Any:
            chosen, weight = routed(params, x)
            rows = lax.all_to_all(jnp.einsum("te,td->etd", chosen, x), "ep", 0, 1, tiled=True)
            results = lax.all_to_all(experts(params, rows), "ep", 1, 0, tiled=True)
            results = results if back else results[::-1]
            return jnp.einsum("te,etd->td", chosen, results) * weight[:, None]

        spec = {"gate": P(), "up": P("ep"), "down": P("ep")}
        mapped = jax.shard_map(local, mesh=mesh, in_specs=(spec, P("ep")), out_specs=P("ep"))
        return mapped, mixture_args(count)

    return build
