"""Modules by name: a folder of dumps, and JAX functions of common models that are lowered on the fly.

``folder:PATH`` is every HLO text, HloModuleProto and StableHLO file below a folder; ``jax`` is every function of
:data:`FUNCTIONS`, ``jax:NAME`` one of them. Modules that differ in names alone are one module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rewright.env.module import HloModule
from rewright.env.repairs import runnable
from rewright.env.session import Session
from rewright.ir.errors import RewrightError

_SUFFIXES = (".txt", ".hlo", ".pb", ".mlir", ".stablehlo")
FOLDER, JAX = "folder:", "jax"
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Entry:
    """A module of a data set."""

    title: str
    module: HloModule


def dataset(session: Session, name: str, most: int = 0) -> list[Entry]:
    """The modules of a data set, each once, with at most ``most`` instructions where that is not 0.

    Raises RewrightError for a name that stands for none, and XlaError for a file that holds no module.
    """
    found: dict[str, Entry] = {}
    for title, make in _sources(session, name):
        module = make()
        if not most or module.instruction_count <= most:
            found.setdefault(session.fingerprint(module), Entry(title, module))
    return list(found.values())


def is_dataset(name: str) -> bool:
    """Whether a text is the name of a data set and no path."""
    return name.startswith((FOLDER, JAX + ":")) or name == JAX


def _sources(session: Session, name: str) -> Iterator[tuple[str, Callable[[], HloModule]]]:
    if name.startswith(FOLDER):
        folder = Path(name.removeprefix(FOLDER))
        paths = sorted(p for p in folder.rglob("*") if p.suffix in _SUFFIXES) if folder.is_dir() else []
        if not paths:
            raise RewrightError(f"{folder} holds no HLO text, proto or StableHLO; name a folder with dumps")
        for path in paths:
            yield str(path.relative_to(folder)), lambda p=path: runnable(session, session.load(p))
        return
    wanted = list(FUNCTIONS) if name == JAX else [name.removeprefix(JAX + ":")]
    for title in wanted:
        if title not in FUNCTIONS:
            raise RewrightError(f"there is no data set {name!r:.60}; jax: goes with {', '.join(FUNCTIONS)}")
        function, shapes = FUNCTIONS[title]
        yield f"{JAX}:{title}", lambda f=function, s=shapes: lowered(session, f, s)


def lowered(session: Session, function: Callable[..., Any], shapes: Shapes) -> HloModule:
    """The module of a JAX function of float32 arrays."""
    jax: Any = import_module("jax")
    numpy: Any = import_module("jax.numpy")
    return session.from_function(function, [jax.ShapeDtypeStruct(shape, numpy.float32) for shape in shapes])


# --- functions of common models; jax.numpy and jax.nn are looked up when they are traced


def _np() -> Any:
    return import_module("jax.numpy")


def _nn() -> Any:
    return import_module("jax.nn")


def mlp(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    """Two layers."""
    return _nn().gelu(x @ w + b) @ v + c


def mlp_step(x: Any, y: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    """One step of gradient descent on the squared error of two layers."""
    grad: Any = import_module("jax").grad

    def error(*weights: Any) -> Any:
        return _np().mean((mlp(x, *weights) - y) ** 2)

    slopes = grad(error, argnums=(0, 1, 2, 3))(w, b, v, c)
    return tuple(p - 0.01 * g for p, g in zip((w, b, v, c), slopes, strict=True))


def attention(q: Any, k: Any, v: Any) -> Any:
    """Scaled dot-product attention of (batch, length, heads, size) arrays with a causal mask."""
    scores = _np().einsum("blhd,bmhd->bhlm", q, k) / q.shape[-1] ** 0.5
    seen = _np().tril(_np().ones(scores.shape[-2:], bool))
    return _np().einsum("bhlm,bmhd->blhd", _nn().softmax(_np().where(seen, scores, -1e30)), v)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    """Layer normalisation of the last axis."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / _np().sqrt(variance + 1e-5) * scale + shift


def rms_norm(x: Any, scale: Any) -> Any:
    """Root-mean-square normalisation."""
    return x / _np().sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def block(x: Any, n: Any, qkv: Any, o: Any, m: Any, up: Any, gate: Any, down: Any) -> Any:
    """A transformer block with RMSNorm and SwiGLU."""
    length, size = x.shape[1], x.shape[2]
    q, k, v = (part.reshape(x.shape[0], length, 4, size // 4) for part in _np().split(rms_norm(x, n) @ qkv, 3, -1))
    x = x + attention(q, k, v).reshape(x.shape) @ o
    y = rms_norm(x, m)
    return x + (_nn().silu(y @ gate) * (y @ up)) @ down


def stack(x: Any, *weights: Any) -> Any:
    """Transformer blocks one after the other, seven weights each."""
    for first in range(0, len(weights), 7):
        x = block(x, *weights[first : first + 7])
    return x


def cross_entropy(x: Any, w: Any, y: Any) -> Any:
    """The gradient of the cross-entropy of a linear classifier."""
    grad: Any = import_module("jax").grad

    def loss(w: Any) -> Any:
        return -(y * _nn().log_softmax(x @ w)).sum(-1).mean()

    return grad(loss)(w)


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    """One update of Adam."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / 0.1) / (_np().sqrt(v / 0.001) + 1e-8), m, v


def convolutions(x: Any, w: Any, v: Any) -> Any:
    """Two convolutions with pooling between them."""
    lax: Any = import_module("jax.lax")
    form = ("NHWC", "HWIO", "NHWC")
    x = _nn().relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=form))
    x = lax.reduce_window(x, -_np().inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return lax.conv_general_dilated(x, v, (1, 1), "SAME", dimension_numbers=form).mean((1, 2))


def recurrent(x: Any, h: Any, w: Any, u: Any) -> Any:
    """A gated recurrent unit over time, as a loop."""
    lax: Any = import_module("jax.lax")

    def step(h: Any, x: Any) -> Any:
        z, r, n = _np().split(x @ w + h @ u, 3, -1)
        h = (1 - _nn().sigmoid(z)) * h + _nn().sigmoid(z) * _np().tanh(n * _nn().sigmoid(r))
        return h, h

    return lax.scan(step, h, x)


def rotary(x: Any, angles: Any) -> Any:
    """Rotary positions on halves."""
    left, right = _np().split(x, 2, -1)
    cos, sin = _np().cos(angles), _np().sin(angles)
    return _np().concatenate([left * cos - right * sin, right * cos + left * sin], -1)


_BLOCK = ((2, 16, 32), (32,), (32, 96), (32, 32), (32,), (32, 64), (32, 64), (64, 32))
_LAYERS = 12
FUNCTIONS: Mapping[str, tuple[Callable[..., Any], Shapes]] = {
    "mlp": (mlp, ((8, 16), (16, 32), (32,), (32, 4), (4,))),
    "mlp-step": (mlp_step, ((8, 16), (8, 4), (16, 32), (32,), (32, 4), (4,))),
    "attention": (attention, ((2, 16, 4, 8),) * 3),
    "layer-norm": (layer_norm, ((8, 32), (32,), (32,))),
    "rms-norm": (rms_norm, ((8, 32), (32,))),
    "block": (block, _BLOCK),
    "stack": (stack, (_BLOCK[0], *_BLOCK[1:] * _LAYERS)),
    "cross-entropy": (cross_entropy, ((16, 32), (32, 10), (16, 10))),
    "adam": (adam, ((64, 32),) * 4),
    "convolutions": (convolutions, ((2, 12, 12, 3), (3, 3, 3, 8), (3, 3, 8, 8))),
    "recurrent": (recurrent, ((6, 4, 8), (4, 16), (8, 48), (16, 48))),
    "rotary": (rotary, ((4, 16, 8), (16, 4))),
}
"""Functions by name, with the shapes that they are lowered for."""
