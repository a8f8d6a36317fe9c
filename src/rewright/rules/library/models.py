"""The algebra of language models: look-ups, softmax, attention, normalisation, rotary positions, fused projections."""

from __future__ import annotations

from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.rules.library.arithmetic import EXTRA, MODELS
from rewright.rules.library.sums import convolution
from rewright.rules.pattern import (
    Tensor,
    apply,
    concat,
    dot,
    exp,
    floats,
    integers,
    iota,
    log,
    maximum,
    operator,
    rsqrt,
    scalar,
    select,
    sigmoid,
    size_as_number,
    sqrt,
    take,
)
from rewright.rules.rule import Rule, rule, within
from rewright.terms.parameters import natural, size

a, b, d, e, g, h, k, m, n, r, s, t, v = (
    size(name) for name in ("a", "b", "d", "e", "g", "h", "k", "m", "n", "r", "s", "t", "v")
)
c, eps, epsilon = scalar("c"), scalar("eps"), scalar("eps")
start = natural("start")
E, F = floats("E", v, d), floats("F", v, e)
ids, positions = integers("ids", s), integers("positions", k)
X, Y = floats("X", m, a), floats("Y", m, b)
f = operator("f")


def broadcast_along(x: Tensor, shape: tuple[Dim, ...], axis: int) -> Tensor:
    """A reduction over one axis, repeated along it again."""
    return x.broadcast(shape, tuple(i for i in range(len(shape)) if i != axis))


def softmax(x: Tensor, axis: int = 1) -> Tensor:
    """Softmax with the maximum subtracted."""
    grown = exp(x - broadcast_along(x.max(axis), x.shape, axis))
    return grown / broadcast_along(grown.sum(axis), x.shape, axis)


def plain_softmax(x: Tensor, axis: int = 1) -> Tensor:
    """Softmax as it is defined."""
    return exp(x) / broadcast_along(exp(x).sum(axis), x.shape, axis)


def sharded_softmax(parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Softmax of a row in two shards, which exchange their maxima and sums."""
    top = maximum(parts[0].max(1), parts[1].max(1))
    grown = [exp(x - broadcast_along(top, x.shape, 1)) for x in parts]
    total = grown[0].sum(1) + grown[1].sum(1)
    return grown[0] / broadcast_along(total, parts[0].shape, 1), grown[1] / broadcast_along(total, parts[1].shape, 1)


def attention(scores: Tensor, values: Tensor) -> Tensor:
    """Softmax over the keys, applied to the values."""
    return dot(softmax(scores), values)


def online_attention(scores: tuple[Tensor, Tensor], values: tuple[Tensor, Tensor]) -> Tensor:
    """Attention over two blocks of keys, with the running maximum rescaled."""
    first = scores[0].max(1)
    top = maximum(first, scores[1].max(1))
    left = exp(scores[0] - broadcast_along(first, scores[0].shape, 1))
    right = exp(scores[1] - broadcast_along(top, scores[1].shape, 1))
    scale = exp(first - top)
    total = left.sum(1) * scale + right.sum(1)
    out = dot(left, values[0])
    out = out * broadcast_along(scale, out.shape, 1) + dot(right, values[1])
    return out / broadcast_along(total, out.shape, 1)


def causal(scores: Tensor, offset: Dim = 0) -> Tensor:
    """Scores with minus infinity where the key comes after the query."""
    rows, columns = iota(scores.shape, 0), iota(scores.shape, 1)
    return select(columns <= rows + offset, scores, float("-inf"))


def rotated(x: Tensor, cosines: Tensor, sines: Tensor, half: Dim) -> Tensor:
    """Rotary positions: ``x cos + rotate_half(x) sin``."""
    rows = x.shape[0]
    left, right = x.slice((0, 0), (rows, half)), x.slice((0, half), (rows, 2 * half))
    return x * cosines + concat(1, -right, left) * sines


def rms(x: Tensor, axis: int = 1) -> Tensor:
    """``1 / sqrt(mean(x^2) + eps)`` for each row."""
    return rsqrt((x * x).sum(axis) / x.shape[axis] + eps)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm over the last of two axes."""
    return x * broadcast_along(rms(x), x.shape, 1) * weight.broadcast(x.shape, (1,))


score = floats("score", m, n)
blocks = floats("S1", m, a), floats("S2", m, b)
value_blocks = floats("V1", a, d), floats("V2", b, d)
q, key = floats("q", s, d), floats("key", t, d)
cos, sin = floats("cos", s, d), floats("sin", s, d)
rope = floats("x", s, 2 * d)
both_cos, both_sin = concat(1, cos, cos), concat(1, sin, sin)
x = floats("x", s, e)
weight = floats("weight", e)
gate, up = floats("gate", e, h), floats("up", e, h)
wq, wk, wv = floats("wq", e, a), floats("wk", e, b), floats("wv", e, b)
fused = dot(x, concat(1, wq, wk, wv))
both = dot(x, concat(1, gate, up))
pairs = floats("x", s, d, 2)
even, odd = pairs.slice((0, 0, 0), (s, d, 1)).reshape(s, d), pairs.slice((0, 0, 1), (s, d, 2)).reshape(s, d)
interleaved = concat(2, (even * cos - odd * sin).reshape(s, d, 1), (odd * cos + even * sin).reshape(s, d, 1)).reshape(
    s, 2 * d
)
halves = rotated(pairs.transpose(0, 2, 1).reshape(s, 2 * d), both_cos, both_sin, d)
mean = x.sum(1) / e
centred = x - broadcast_along(mean, (s, e), 1)
square_mean = (x * x).sum(1) / e
mask = floats("mask", s)
experts = floats("W1", e, h), floats("W2", e, h)

RULES: tuple[Rule, ...] = (
    rule(
        "take-twice",
        "take(take(E, i), j) = take(E, take(i, j))",
        take(take(E, ids), positions),
        take(E, take(ids, positions)),
        where=[*within(ids, 0, v), *within(positions, 0, s)],
        provenance=EXTRA + "E59",
    ),
    rule(
        "take-of-wider-rows",
        "take(cat_1(E, F), i) = cat_1(take(E, i), take(F, i))",
        take(concat(1, E, F), ids),
        concat(1, take(E, ids), take(F, ids)),
        provenance=EXTRA + "E61",
    ),
    rule(
        "one-hot-is-take",
        "one_hot(i) E = take(E, i) for i in range",
        dot(ids.broadcast((s, v), (0,)).equals(iota((s, v), 1)).convert(DType.F32), E),
        take(E, ids),
        where=within(ids, 0, v),
        provenance=MODELS + "gather 1",
    ),
    rule(
        "function-of-take",
        "f(take(E, i)) = take(f(E), i)",
        apply(f, take(E, ids)),
        take(apply(f, E), ids),
        provenance=MODELS + "gather 2",
    ),
    rule(
        "vocabulary-parallel",
        "take of a table = the sum of masked takes of its parts",
        dot(
            ids.broadcast((s, v + n), (0,)).equals(iota((s, v + n), 1)).convert(DType.F32),
            concat(0, E, floats("G", n, d)),
        ),
        dot(ids.broadcast((s, v), (0,)).equals(iota((s, v), 1)).convert(DType.F32), E)
        + dot((ids.broadcast((s, n), (0,)) - v).equals(iota((s, n), 1)).convert(DType.F32), floats("G", n, d)),
    ),
    rule(
        "safe-softmax",
        "softmax with the maximum subtracted = softmax",
        softmax(score),
        plain_softmax(score),
        provenance=MODELS + "softmax 1",
    ),
    rule(
        "sharded-softmax",
        "softmax of two shards with a common maximum and sum = softmax of the row",
        softmax(concat(1, X, Y)),
        concat(1, *sharded_softmax((X, Y))),
        provenance=MODELS + "softmax 2",
    ),
    rule(
        "softmax-of-transpose",
        "softmax along the other axis of the transpose",
        softmax(score.transpose(), 0),
        softmax(score).transpose(),
        provenance=MODELS + "softmax 3",
    ),
    rule(
        "online-softmax",
        "attention block by block = attention over all keys",
        attention(concat(1, *blocks), concat(0, *value_blocks)),
        online_attention(blocks, value_blocks),
        provenance=MODELS + "softmax 4",
    ),
    rule(
        "causal-prefix",
        "a query chunk needs the keys up to its end only",
        softmax(causal(floats("score", m, start + m + t), start)).slice((0, 0), (m, start + m)),
        softmax(causal(floats("score", m, start + m + t).slice((0, 0), (m, start + m)), start)),
        provenance=MODELS + "softmax 5",
    ),
    rule(
        "causal-chunk",
        "keys after a query chunk add nothing",
        attention(causal(floats("score", m, start + m + t), start), floats("V", start + m + t, d)),
        attention(
            causal(floats("score", m, start + m + t).slice((0, 0), (m, start + m)), start),
            floats("V", start + m + t, d).slice((0, 0), (start + m, d)),
        ),
        provenance=MODELS + "softmax 6",
    ),
    rule(
        "attention-scale",
        "(c q) k = c (q k)",
        dot(q * c, key, ((1,), (1,))),
        dot(q, key, ((1,), (1,))) * c,
        provenance=MODELS + "softmax 7",
    ),
    rule("softmax-shift", "softmax(x + c) = softmax(x)", softmax(score + c), softmax(score)),
    rule(
        "fused-projections",
        "slices of a fused projection = the projections",
        [
            fused.slice((0, 0), (s, a)),
            fused.slice((0, a), (s, a + b)),
            fused.slice((0, a + b), (s, a + 2 * b)),
        ],
        [dot(x, wq), dot(x, wk), dot(x, wv)],
        provenance=MODELS + "block 1",
    ),
    rule(
        "fused-gate-up",
        "SwiGLU with one product for gate and up = with two",
        both.slice((0, 0), (s, h)) * sigmoid(both.slice((0, 0), (s, h))) * both.slice((0, h), (s, 2 * h)),
        dot(x, gate) * sigmoid(dot(x, gate)) * dot(x, up),
        provenance=MODELS + "block 2",
    ),
    rule(
        "rotary-halves",
        "x cos + rotate_half(x) sin = two halves rotated on their own",
        rotated(rope, both_cos, both_sin, d),
        concat(
            1,
            rope.slice((0, 0), (s, d)) * cos - rope.slice((0, d), (s, 2 * d)) * sin,
            rope.slice((0, d), (s, 2 * d)) * cos + rope.slice((0, 0), (s, d)) * sin,
        ),
        provenance=MODELS + "block 3",
    ),
    rule(
        "rotary-interleaved",
        "interleaved rotary positions = halves, permuted before and after",
        interleaved,
        halves.reshape(s, 2, d).transpose(0, 2, 1).reshape(s, 2 * d),
        provenance=MODELS + "block 4",
    ),
    rule(
        "norm-weight-folds",
        "the weight of a norm folds into the next projection",
        dot(rms_norm(x, weight), gate),
        dot(x * broadcast_along(rms(x), (s, e), 1), gate * weight.broadcast((e, h), (0,))),
        provenance=MODELS + "block 5",
    ),
    rule(
        "norm-of-rows",
        "RMSNorm of stacked rows = stacked RMSNorms",
        rms_norm(concat(0, floats("x", s, e), floats("y", t, e)), weight),
        concat(0, rms_norm(floats("x", s, e), weight), rms_norm(floats("y", t, e), weight)),
        provenance=MODELS + "block 6",
    ),
    rule(
        "variance-in-one-pass",
        "LayerNorm with mean(x^2) - mean(x)^2 = with mean((x - mean)^2)",
        centred * broadcast_along(rsqrt((centred * centred).sum(1) / e + eps), (s, e), 1),
        centred * broadcast_along(rsqrt(square_mean - mean * mean + eps), (s, e), 1),
        provenance=MODELS + "block 7",
    ),
    rule(
        "batch-norm-folds",
        "BatchNorm after a projection folds into it",
        (dot(x, gate) - floats("mu", h).broadcast((s, h), (1,)))
        * (floats("gamma", h) * rsqrt(floats("var", h) + eps)).broadcast((s, h), (1,)),
        dot(x, gate * (floats("gamma", h) * rsqrt(floats("var", h) + eps)).broadcast((e, h), (1,)))
        - (floats("mu", h) * floats("gamma", h) * rsqrt(floats("var", h) + eps)).broadcast((s, h), (1,)),
        provenance=MODELS + "block 8",
    ),
    rule(
        "logsumexp-shift",
        "log(sum(exp(x - c))) + c = log(sum(exp(x)))",
        log(exp(score - c).sum(1)) + c,
        log(exp(score).sum(1)),
        provenance=MODELS + "block 9",
    ),
    rule(
        "logsumexp-of-max",
        "max + log(sum(exp(x - max))) = log(sum(exp(x)))",
        score.max(1) + log(exp(score - broadcast_along(score.max(1), (m, n), 1)).sum(1)),
        log(exp(score).sum(1)),
    ),
    rule(
        "experts-by-mask",
        "a sum over experts weighted by masks = each expert on its own tokens",
        dot(x, experts[0]) * mask.broadcast((s, h), (0,)) + dot(x, experts[1]) * (1.0 - mask).broadcast((s, h), (0,)),
        dot(x * mask.broadcast((s, e), (0,)), experts[0]) + dot(x * (1.0 - mask).broadcast((s, e), (0,)), experts[1]),
        provenance=MODELS + "block 10",
    ),
    rule(
        "patches",
        "a convolution with stride = window is a reshape and a product",
        convolution(floats("image", b, c_in := size("channels"), n * k), floats("kernel", h, c_in, k), k),
        dot(
            floats("image", b, c_in, n * k).reshape(b, c_in, n, k).transpose(0, 2, 1, 3).reshape(b, n, c_in * k),
            floats("kernel", h, c_in, k).reshape(h, c_in * k),
            ((2,), (1,)),
        ).transpose(0, 2, 1),
        provenance=MODELS + "block 11",
    ),
    rule(
        "rms-by-root",
        "x rsqrt(mean(x^2) + eps) = x / sqrt(sum(x^2) / n + eps)",
        x * broadcast_along(rms(x), (s, e), 1),
        x / broadcast_along(sqrt((x * x).sum(1) * (1.0 / size_as_number(e, DType.F32)) + eps), (s, e), 1),
    ),
    rule(
        "grouped-keys",
        "scores with repeated keys = scores by groups",
        dot(
            floats("q", g * h, s, d),
            floats("key", g, t, d).broadcast((g, h, t, d), (0, 2, 3)).reshape(g * h, t, d),
            ((2,), (2,)),
            ((0,), (0,)),
        ),
        dot(floats("q", g * h, s, d).reshape(g, h, s, d), floats("key", g, t, d), ((3,), (2,)), ((0,), (0,))).reshape(
            g * h, s, t
        ),
    ),
)
