"""Matrix products, sums and convolutions."""

from __future__ import annotations

from typing import Any

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.rules.library.arithmetic import EXTRA, MODELS, XLA
from rewright.rules.pattern import Tensor, concat, constant, dot, floats, iota, maximum, scalar, select, size_as_number
from rewright.rules.rule import Rule, rule
from rewright.terms.parameters import natural, size

a, b, d, k, m, n, p, q, r, t = (size(name) for name in ("a", "b", "d", "k", "m", "n", "p", "q", "r", "t"))
x, y, o, f = (size(name) for name in ("x", "y", "o", "f"))
s, e = natural("s"), natural("e")
c, c1 = scalar("c"), scalar("c1")
A, B = floats("A", m, k), floats("B", k, n)
C, D = floats("C", n, d), floats("D", m, k)
X, Y = floats("X", p, n), floats("Y", q, n)
S, T = floats("S", a, m), floats("T", b, m)
V3, U3 = floats("V", a, b, m), floats("U", b, m)
bm, bk = floats("P", b, m, k), floats("Q", b, k, n)


def convolution(
    image: Tensor,
    kernel: Tensor,
    stride: Dim = 1,
    low: Dim = 0,
    high: Dim = 0,
    spread: Dim = 1,
    reach: Dim = 1,
) -> Tensor:
    """A convolution with the same attributes along every spatial axis."""
    axes = image.rank - 2
    attributes: Any = ((stride,) * axes, ((low, high),) * axes, (spread,) * axes, (reach,) * axes)
    return Tensor(ops.Convolution(attributes[0], attributes[1], attributes[2], attributes[3], 1), image, kernel)


image, kernel = floats("image", n, f, x), floats("kernel", o, f, y)
lo, hi, pl, ph, pi = (natural(name) for name in ("lo", "hi", "pl", "ph", "pi"))
reach, spread = size("reach"), size("spread")
window_image, window_kernel = floats("image", n, f, x, d), floats("kernel", o, f, x, 1)

RULES: tuple[Rule, ...] = (
    rule(
        "split-contraction",
        "dot(cat(X, Y), cat(C, D)) = dot(X, C) + dot(Y, D)",
        dot(concat(1, floats("X", m, p), floats("Y", m, q)), concat(0, floats("C", p, n), floats("D", q, n))),
        concat(
            0,
            dot(floats("X", m, p), floats("C", p, n)).reshape(1, m, n),
            dot(floats("Y", m, q), floats("D", q, n)).reshape(1, m, n),
        ).sum(0),
        provenance=XLA + "dot/01",
    ),
    rule(
        "dot-swapped",
        "dot(A, B) = transpose(dot(B, A))",
        dot(A, B),
        dot(B, A, ((0,), (1,))).transpose(),
        provenance=XLA + "dot/02",
    ),
    rule("dot-associates", "A (B C) = (A B) C", dot(A, dot(B, C)), dot(dot(A, B), C), provenance=XLA + "dot/03"),
    rule(
        "dot-without-contraction",
        "dot without contracted axes = product of broadcasts",
        dot(floats("A", b, m), floats("B", b, n), ((), ()), ((0,), (0,))),
        floats("A", b, m).broadcast((b, m, n), (0, 1)) * floats("B", b, n).broadcast((b, m, n), (0, 2)),
        provenance=XLA + "dot/04",
    ),
    rule(
        "dot-of-nothing",
        "dot over an empty axis = 0",
        dot(floats("A", m, 0), floats("B", 0, n)),
        constant(0.0, (m, n)),
        provenance=XLA + "dot/05",
    ),
    rule(
        "dot-is-sum",
        "dot with a vector = sum of a product",
        dot(bm, floats("B", b, k), ((2,), (1,)), ((0,), (0,))),
        (bm * floats("B", b, k).broadcast((b, m, k), (0, 2))).sum(2),
        provenance=XLA + "dot/06",
    ),
    rule(
        "product-of-sums",
        "sum(S) sum(T) = sum(bc(S) bc(T))",
        S.sum(0) * T.sum(0),
        (S.broadcast((a, b, m), (0, 2)) * T.broadcast((a, b, m), (1, 2))).sum(0, 1),
        provenance=XLA + "reduce/01",
    ),
    rule(
        "sum-of-partial-sums",
        "sum(cat(sum X, sum Y)) = sum(cat(X, Y))",
        concat(0, X.sum(0).reshape(1, n), Y.sum(0).reshape(1, n)).sum(0),
        concat(0, X, Y).sum(0),
        provenance=XLA + "reduce/02",
    ),
    rule("scale-sum", "c sum(X) = sum(c X)", X.sum(0) * c, (X * c).sum(0), provenance=XLA + "reduce/03"),
    rule(
        "sum-of-transpose",
        "sum of a transpose = sum",
        V3.transpose(2, 0, 1).sum(1),
        V3.sum(0).transpose(),
        provenance=XLA + "reduce/04",
    ),
    rule(
        "sum-of-sum", "sum(sum(V)) = sum over both axes", V3.sum(0).sum(0), V3.sum(0, 1), provenance=XLA + "reduce/05"
    ),
    rule(
        "sum-of-batch",
        "sum over the batch of a dot = dot that contracts it too",
        dot(bm, bk, ((2,), (1,)), ((0,), (0,))).sum(0),
        dot(bm, bk, ((0, 2), (0, 1))),
        provenance=XLA + "reduce/06",
    ),
    rule(
        "sum-of-one",
        "sum over an axis of size 1 = reshape",
        floats("X", 1, n).sum(0),
        floats("X", 1, n).reshape(n),
        provenance=XLA + "reduce/07",
    ),
    rule(
        "sum-of-one-transposed",
        "sum over an axis of size 1, after a transpose",
        floats("X", 1, m, n).transpose(2, 0, 1).sum(1),
        floats("X", 1, m, n).reshape(m, n).transpose(),
        provenance=XLA + "reduce/08",
    ),
    rule(
        "convolution-of-padded",
        "conv(pad(x)) = conv with the padding added",
        convolution(image.pad(0.0, (0, 0, pl), (0, 0, ph), (0, 0, pi)), kernel, 1, lo, hi, 1, reach),
        convolution(image, kernel, 1, lo + pl, hi + ph, pi + 1, reach),
        provenance=XLA + "conv/00",
    ),
    rule(
        "convolution-of-padded-kernel",
        "conv with interior padding of the kernel = conv with a dilated kernel",
        convolution(image, kernel.pad(0.0, 0, 0, (0, 0, pi)), 1, lo, hi),
        convolution(image, kernel, 1, lo, hi, 1, pi + 1),
        provenance=XLA + "conv/01",
    ),
    rule(
        "convolution-is-dot",
        "conv with a window over all of one axis and one of the other = dot",
        convolution(window_image, window_kernel).reshape(n, o, d),
        dot(window_image, window_kernel.reshape(o, f, x), ((1, 2), (1, 2))).transpose(0, 2, 1),
        provenance=XLA + "conv/03",
    ),
    rule(
        "sum-keeps-split-axis",
        "reshape(sum(X)) = sum(reshape(X))",
        floats("X", a * b, n).sum(1).reshape(a, b),
        floats("X", a * b, n).reshape(a, b, n).sum(2),
        provenance=EXTRA + "E09",
    ),
    rule(
        "dot-merged-batch",
        "dot of merged batch axes = merged dot",
        dot(
            floats("X", a, b, m, k).reshape(a * b, m, k),
            floats("Y", a, b, k, n).reshape(a * b, k, n),
            ((2,), (1,)),
            ((0,), (0,)),
        ),
        dot(floats("X", a, b, m, k), floats("Y", a, b, k, n), ((3,), (2,)), ((0, 1), (0, 1))).reshape(a * b, m, n),
        provenance=EXTRA + "E11",
    ),
    rule(
        "sum-of-padded",
        "sum(pad(A, z)) = sum(A) + count z",
        floats("A", m, n).pad(c, (s, 0), (e, 0)).sum(0),
        floats("A", m, n).sum(0) + c * size_as_number(s + e, DType.F32),
        provenance=EXTRA + "E51",
    ),
    rule(
        "max-of-broadcast",
        "max over a broadcast axis = the operand",
        floats("p", n).broadcast((m, n), (1,)).max(0),
        floats("p", n),
        provenance=EXTRA + "E53",
    ),
    rule(
        "sum-of-relu",
        "sum(max(A, 0)) = sum(select(A >= 0, A, 0))",
        maximum(floats("A", m, n), 0.0).sum(0),
        select(floats("A", m, n) >= 0.0, floats("A", m, n), 0.0).sum(0),
        provenance=EXTRA + "E55",
    ),
    rule(
        "sum-of-transposed-reshape",
        "sum over split axes, after a transpose",
        floats("Q", a * b, d).reshape(a, b, d).transpose(2, 0, 1).sum(1, 2),
        floats("Q", a * b, d).sum(0),
        provenance=EXTRA + "E57",
    ),
    rule(
        "dot-with-reversal",
        "dot with the reversal matrix = reverse",
        dot(floats("A", m, n), iota((n, n), 0).equals((n - 1) - iota((n, n), 1)).convert(DType.F32)),
        floats("A", m, n).reverse(1),
        provenance=EXTRA + "E67",
    ),
    rule(
        "last-cumulative-sum",
        "the last row of a triangular product = sum",
        dot((iota((m, m), 0) >= iota((m, m), 1)).convert(DType.F32), floats("A", m, n)).slice((m - 1, 0), (m, n)),
        floats("A", m, n).sum(0).reshape(1, n),
        provenance=EXTRA + "E69",
    ),
    rule(
        "average-pool",
        "average pooling with window = stride is a mean of a reshape",
        convolution(floats("image", 1, 1, k * n), constant(1.0, (1, 1, k)), k).reshape(1, 1, n) / k,
        (floats("image", 1, 1, k * n).reshape(n, k).sum(1) / k).reshape(1, 1, n),
        provenance=EXTRA + "E71",
    ),
    rule(
        "transpose-of-dot",
        "transpose(A B) = transpose(B) transpose(A)",
        dot(A, B).transpose(),
        dot(B.transpose(), A.transpose()),
        provenance=MODELS + "matmul 1",
    ),
    rule(
        "dot-associates-left", "(A B) C = A (B C)", dot(dot(A, B), C), dot(A, dot(B, C)), provenance=MODELS + "matmul 2"
    ),
    rule(
        "column-parallel",
        "A cat(B, B') = cat(A B, A B')",
        dot(A, concat(1, floats("B", k, p), floats("C", k, q))),
        concat(1, dot(A, floats("B", k, p)), dot(A, floats("C", k, q))),
        provenance=MODELS + "matmul 3",
    ),
    rule(
        "row-parallel",
        "cat(A, A') cat(B, B') = A B + A' B'",
        dot(concat(1, floats("A", m, p), floats("B", m, q)), concat(0, floats("C", p, n), floats("D", q, n))),
        dot(floats("A", m, p), floats("C", p, n)) + dot(floats("B", m, q), floats("D", q, n)),
        provenance=MODELS + "matmul 4",
    ),
    rule(
        "split-k",
        "A B = the sum of products over the parts of a reshaped contraction",
        dot(floats("A", m, r * k), floats("B", r * k, n)),
        dot(
            floats("A", m, r * k).reshape(m, r, k), floats("B", r * k, n).reshape(r, k, n), ((2,), (1,)), ((1,), (0,))
        ).sum(0),
        provenance=MODELS + "matmul 5",
    ),
    rule(
        "batched-dot-is-reshaped",
        "a product with one matrix for all batches = one product of merged rows",
        dot(bm, B),
        dot(bm.reshape(b * m, k), B).reshape(b, m, n),
        provenance=MODELS + "matmul 6",
    ),
    rule(
        "row-scale",
        "scaling rows before or after a product",
        dot(A * floats("w", m).broadcast((m, k), (0,)), B),
        dot(A, B) * floats("w", m).broadcast((m, n), (0,)),
        provenance=MODELS + "matmul 7",
    ),
    rule(
        "dequantise-channels",
        "scaling the columns of a matrix before or after a product",
        dot(A, B * floats("w", n).broadcast((k, n), (1,))),
        dot(A, B) * floats("w", n).broadcast((m, n), (1,)),
        provenance=MODELS + "matmul 8",
    ),
    rule(
        "merge-low-rank",
        "A W + c (A U) V = A (W + c U V)",
        dot(A, B) + dot(dot(A, floats("U", k, r)), floats("V", r, n)) * c,
        dot(A, B + dot(floats("U", k, r), floats("V", r, n)) * c),
        provenance=MODELS + "matmul 9",
    ),
    rule(
        "bias-by-augmentation",
        "A B + bias = cat(A, 1) cat(B, bias)",
        dot(A, B) + floats("w", n).broadcast((m, n), (1,)),
        dot(concat(1, A, constant(1.0, (m, 1))), concat(0, B, floats("w", n).reshape(1, n))),
        provenance=MODELS + "matmul 10",
    ),
    rule(
        "output-projection-by-heads",
        "merging heads and projecting = the sum of projections of heads",
        dot(floats("H", m, a, d).reshape(m, a * d), floats("W", a * d, n)),
        dot(floats("H", m, a, d), floats("W", a * d, n).reshape(a, d, n), ((2,), (1,)), ((1,), (0,))).sum(0),
        provenance=MODELS + "matmul 11",
    ),
    rule(
        "sum-of-concat",
        "sum(cat(X, Y)) = sum(X) + sum(Y)",
        concat(0, X, Y).sum(0),
        X.sum(0) + Y.sum(0),
        provenance=MODELS + "reduce 1",
    ),
    rule(
        "max-of-concat",
        "max(cat(X, Y)) = max(max(X), max(Y))",
        concat(0, X, Y).max(0),
        maximum(X.max(0), Y.max(0)),
        provenance=MODELS + "reduce 2",
    ),
    rule("sum-of-scaled", "sum(c X) = c sum(X)", (X * c).sum(0), X.sum(0) * c, provenance=MODELS + "reduce 3"),
    rule(
        "sum-order",
        "sums over two axes in any order",
        V3.sum(0).sum(1),
        V3.sum(2).sum(0),
        provenance=MODELS + "reduce 4",
    ),
    rule(
        "max-of-reshape",
        "max over split axes = max",
        floats("X", a * b, n).reshape(a, b, n).max(0, 1),
        floats("X", a * b, n).max(0),
        provenance=MODELS + "reduce 5",
    ),
    rule("sum-of-reverse", "sum(rev(X)) = sum(X)", X.reverse(0).sum(0), X.sum(0), provenance=MODELS + "reduce 6"),
    rule(
        "sum-of-zero-padded",
        "sum(pad(X, 0)) = sum(X)",
        X.pad(0.0, (s, 0), (e, 0)).sum(0),
        X.sum(0),
        provenance=MODELS + "reduce 7",
    ),
    rule(
        "sum-of-broadcast",
        "sum over a broadcast axis = size times the operand",
        floats("p", n).broadcast((m, n), (1,)).sum(0),
        floats("p", n) * m,
        provenance=MODELS + "reduce 8",
    ),
    rule(
        "reduce-scatter",
        "a slice of a sum = the sum of slices",
        (floats("X", a * b, n) + floats("Y", a * b, n)).slice((s * b, 0), (s * b + b, n)),
        floats("X", a * b, n).slice((s * b, 0), (s * b + b, n))
        + floats("Y", a * b, n).slice((s * b, 0), (s * b + b, n)),
        provenance=MODELS + "reduce 9",
    ),
    rule("max-order", "maxima over two axes in any order", V3.max(0).max(1), V3.max(2).max(0)),
    rule("max-of-max", "max(max(V)) = max over both axes", V3.max(0).max(0), V3.max(0, 1)),
    rule(
        "sum-adds", "sum(X + Y) = sum(X) + sum(Y)", (X + floats("W", p, n)).sum(0), X.sum(0) + floats("W", p, n).sum(0)
    ),
    rule(
        "sum-of-slices",
        "sum over a slice and over the rest = sum",
        X.slice((0, 0), (s, n)).sum(0) + X.slice((s, 0), (p, n)).sum(0),
        X.sum(0),
    ),
    rule("min-is-max-of-negative", "min(X) = -max(-X)", X.reduce("minimum", 0), -((-X).max(0))),
    rule(
        "dot-of-transposed",
        "dot contracting the first axis = dot of the transpose",
        dot(floats("A", k, m), B, ((0,), (0,))),
        dot(floats("A", k, m).transpose(), B),
    ),
    rule("dot-adds", "A (B + B') = A B + A B'", dot(A, B + floats("C", k, n)), dot(A, B) + dot(A, floats("C", k, n))),
)
"""Rules about sums."""

DILATION = rule(
    "convolution-of-padded-dilated",
    "conv(pad(x)) = conv with the padding added, for any dilation",
    convolution(image.pad(0.0, (0, 0, pl), (0, 0, ph), (0, 0, pi)), kernel, 1, lo, hi, spread, reach),
    convolution(image, kernel, 1, lo + spread * pl, hi + spread * ph, spread * (pi + 1), reach),
    provenance=XLA + "generalize/01",
)
