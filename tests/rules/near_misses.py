"""Wrong rules that look right: none may be proved. Names are those of the benchmark, part 4, or say what is wrong."""

from __future__ import annotations

from rewright import ops
from rewright.ir.types import DType
from rewright.rules import (
    AtMost,
    Rule,
    Tensor,
    boolean,
    constant,
    floats,
    integer,
    integers,
    iota,
    natural,
    rule,
    scalar,
    size,
)
from rewright.rules.library.models import broadcast_along, causal, concat, rms, softmax
from rewright.rules.library.sums import convolution
from rewright.rules.pattern import (
    apply,
    clamp,
    dot,
    dynamic_slice,
    dynamic_update,
    exp,
    log,
    maximum,
    minimum,
    select,
    sigmoid,
    sqrt,
    take,
)

a, b, d, e, g, h, k, m, n, p, q, r, t, v = (
    size(x) for x in ("a", "b", "d", "e", "g", "h", "k", "m", "n", "p", "q", "r", "t", "v")
)
s, f, s2, f2, gap = (natural(x) for x in ("s", "f", "s2", "f2", "gap"))
lo, hi, lo2, hi2 = (integer(x) for x in ("lo", "hi", "lo2", "hi2"))
low, high = natural("low"), natural("high")
step, step2 = size("step"), size("step2")
A, B = floats("A", m, n), floats("B", m, n)
V, W = floats("V", n), floats("W", n)
X, Y = floats("X", p), floats("Y", q)
rows_x, rows_y = floats("X", p, n), floats("Y", q, n)
c, c2 = scalar("c"), scalar("c2")
i, j = scalar("i", DType.I64), scalar("j", DType.I64)
I64A, I64B = integers("I", m, n), integers("J", m, n)
P = boolean("P", m, n)
S, T = floats("S", m, k), floats("T", k, n)
square, square2 = floats("M", n, n), floats("N", n, n)
x, weight = floats("x", t, e), floats("weight", e)
minus_infinity = constant(float("-inf"), (m, n))
cos, sin = floats("cos", t, d), floats("sin", t, d)
pairs = floats("x", t, 2 * d)
ids = integers("ids", t)
E = floats("E", v, d)
U, half = floats("U", a), size("half")


def interior_of_slice(tensor: Tensor) -> Tensor:
    """A pad that puts elements apart in what may be empty."""
    return tensor.slice(s, f).pad(c, 0, 0, 2)


def mean(value: Tensor, count: object) -> Tensor:
    """The sum over rows divided by a count."""
    return value.sum(0) / count  # type: ignore[operator]


WRONG: tuple[Rule, ...] = (
    rule(
        "N01",
        "slice(slice) strides forgotten",
        V.slice(s, s + step * k, step).slice(s2, f2, step2),
        V.slice(s + s2, s + s2 + step * (f2 - s2), step2),
    ),
    rule(
        "N03",
        "slice(concat) in A when end <= |A|+|B|",
        concat(0, X, Y).slice(s, f),
        X.slice(s, f),
        where=[AtMost(f, p + q)],
    ),
    rule(
        "N05",
        "slice(pad) = slice off by one",
        V.pad(c, low, high).slice(s, f),
        V.slice(s - low - 1, f - low - 1),
        where=[AtMost(low + 1, s), AtMost(f, n + low)],
    ),
    rule(
        "N07",
        "slice inside padding: end <= low + 1",
        V.pad(c, low, high).slice(s, f),
        c.broadcast((f - s,)),
        where=[AtMost(f, low + 1)],
    ),
    rule("N09", "padTwice without an inner low of at least 0", V.pad(c, lo, 0).pad(c, lo2, 0), V.pad(c, lo + lo2, 0)),
    rule(
        "N11",
        "padding of one element drops low too",
        floats("A", 1).pad(c, lo, hi, low),
        floats("A", 1).pad(c, 0, lo + hi),
    ),
    rule(
        "N13",
        "concat of slices with a gap",
        concat(0, V.slice(s, f), V.slice(s2, f2)),
        V.slice(s, s + f - s + f2 - s2),
        where=[AtMost(f, s2)],
    ),
    rule(
        "N15",
        "permutations composed in the wrong order",
        floats("T", a, b, d).transpose(1, 2, 0).transpose(1, 0, 2),
        floats("T", a, b, d).transpose(0, 2, 1),
    ),
    rule("N17", "reshape = transpose", A.reshape(n, m), A.transpose()),
    rule("N19", "reverse(concat) without swapping", concat(0, X, Y).reverse(), concat(0, X.reverse(), Y.reverse())),
    rule(
        "N21",
        "slice(reverse) with a slice that may be empty",
        V.reverse().slice(s, f),
        V.slice(n - s - (f - s - 1) - 1, n - s + 1).reverse(),
    ),
    rule(
        "N23",
        "nested update with the inner start only",
        dynamic_update(V, dynamic_update(dynamic_slice(V, [i], (a,)), floats("U", b), [j]), [i]),
        dynamic_update(V, floats("U", b), [j]),
    ),
    rule(
        "N25",
        "dynamic slices compose without the inner start",
        dynamic_slice(dynamic_slice(V, [i], (a,)), [j], (b,)),
        dynamic_slice(V, [j], (b,)),
    ),
    rule("N27", "rem(iota, c) = iota for sizes up to c + 1", iota((m, n)) % i, iota((m, n)), where=[i >= m - 1, i > 0]),
    rule(
        "N29",
        "max(l, min(A, h)) = clamp without l <= h",
        maximum(minimum(A, c2), c),
        clamp(c.broadcast((m, n)), A, c2.broadcast((m, n))),
    ),
    rule("N31", "(max(A, B) >= B) = (A >= B)", maximum(A, B) >= B, A >= B),
    rule("N33", "select(not P, A, B) = select(P, A, B)", select(~P, A, B), select(P, A, B)),
    rule("N35", "exp(A) exp(B) = exp(A B)", exp(A) * exp(B), exp(A * B)),
    rule("N37", "relu(A + B) = relu(A) + relu(B)", maximum(A + B, 0.0), maximum(A, 0.0) + maximum(B, 0.0)),
    rule("N39", "exp(sum) = sum(exp)", exp(A.sum(0)), exp(A).sum(0)),
    rule("N41", "sum(X) = X[0]", rows_x.sum(0), rows_x.slice((0, 0), (1, n)).reshape(n)),
    rule("N43", "c + sum(X) = sum(c + X)", rows_x.sum(0) + c, (rows_x + c).sum(0)),
    rule("N45", "sum of a broadcast forgets the size", V.broadcast((m, n), (1,)).sum(0), V),
    rule(
        "N47",
        "mean of a concat = mean of means",
        mean(concat(0, rows_x, rows_y), p + q),
        (mean(rows_x, p) + mean(rows_y, q)) / 2.0,
    ),
    rule("N49", "matrix products commute", dot(square, square2), dot(square2, square)),
    rule(
        "N51",
        "row parallel with shards swapped",
        dot(concat(1, floats("X", m, p), floats("Y", m, p)), concat(0, floats("C", p, n), floats("D", p, n))),
        dot(floats("X", m, p), floats("D", p, n)) + dot(floats("Y", m, p), floats("C", p, n)),
    ),
    rule(
        "N53",
        "row scale on the contraction side",
        dot(floats("M", n, n) / V.broadcast((n, n), (1,)), square2),
        dot(floats("M", n, n), square2) / V.broadcast((n, n), (0,)),
    ),
    rule(
        "N55",
        "an activation before the all-reduce",
        maximum(
            dot(concat(1, floats("X", m, p), floats("Y", m, q)), concat(0, floats("C", p, n), floats("D", q, n))), 0.0
        ),
        maximum(dot(floats("X", m, p), floats("C", p, n)), 0.0)
        + maximum(dot(floats("Y", m, q), floats("D", q, n)), 0.0),
    ),
    rule(
        "N57",
        "sharded softmax with local maxima",
        softmax(concat(1, floats("X", m, a), floats("Y", m, b))),
        concat(1, softmax(floats("X", m, a)), softmax(floats("Y", m, b))),
    ),
    rule("N59", "softmax along the wrong axis", softmax(square, 1), softmax(square, 0)),
    rule(
        "N61",
        "causal mask off by one",
        softmax(causal(floats("s", n, n + 1), 1)),
        softmax(causal(floats("s", n, n + 1), 0)),
    ),
    rule(
        "N63",
        "heads tiled instead of repeated",
        floats("K", g, t, d).broadcast((g, h, t, d), (0, 2, 3)).reshape(g * h, t, d),
        floats("K", g, t, d).broadcast((h, g, t, d), (1, 2, 3)).reshape(g * h, t, d),
    ),
    rule(
        "N65",
        "one-hot with the table transposed",
        dot(ids.broadcast((t, v), (0,)).equals(iota((t, v), 1)).convert(DType.F32), floats("E", v, v)),
        dot(ids.broadcast((t, v), (0,)).equals(iota((t, v), 1)).convert(DType.F32), floats("E", v, v).transpose()),
    ),
    rule(
        "N67",
        "interleaved rotary = halves without the permutation",
        concat(
            2,
            (floats("x", t, d, 2).slice((0, 0, 0), (t, d, 1)).reshape(t, d) * cos).reshape(t, d, 1),
            (floats("x", t, d, 2).slice((0, 0, 1), (t, d, 2)).reshape(t, d) * cos).reshape(t, d, 1),
        ).reshape(t, 2 * d),
        floats("x", t, d, 2).reshape(t, 2 * d) * concat(1, cos, cos),
    ),
    rule(
        "N69",
        "fused QKV with key and value swapped",
        dot(x, concat(1, floats("wq", e, a), floats("wk", e, b), floats("wv", e, b))).slice((0, a), (t, a + b)),
        dot(x, floats("wv", e, b)),
    ),
    rule(
        "N71",
        "RMSNorm with the sum instead of the mean",
        x * broadcast_along(rms(x), (t, e), 1),
        x / broadcast_along(sqrt((x * x).sum(1) + scalar("eps")), (t, e), 1),
    ),
    rule(
        "N73",
        "weight w instead of 1 + w",
        x * (weight + 1.0).broadcast((t, e), (1,)),
        x * weight.broadcast((t, e), (1,)),
    ),
    rule("N75", "variance divided by n - 1", (x * x).sum(1) / e, (x * x).sum(1) / (e - 1), where=[AtMost(2, e)]),
    rule(
        "N77",
        "logsumexp without adding the maximum back",
        log(exp(A - broadcast_along(A.max(1), (m, n), 1)).sum(1)),
        log(exp(A).sum(1)),
    ),
    rule(
        "N79",
        "patches flattened in the other order",
        convolution(floats("image", b, g, n * k), floats("kernel", h, g, k), k),
        dot(
            floats("image", b, g, n * k).reshape(b, g, n, k).transpose(0, 2, 3, 1).reshape(b, n, g * k),
            floats("kernel", h, g, k).reshape(h, g * k),
            ((2,), (1,)),
        ).transpose(0, 2, 1),
    ),
    # --- what the prototype accepted
    rule("infinity-cancels", "(A - inf) + inf = A", (A + minus_infinity) - minus_infinity, A),
    rule(
        "masked-row-is-uniform",
        "a fully masked softmax row is uniform",
        softmax(minus_infinity),
        constant(1.0, (m, n)) / n,
    ),
    rule("integer-self-quotient", "I / I = 1", I64A / I64A, constant(1, (m, n), DType.I64)),
    rule("float-self-quotient", "A / A = 1", A / A, constant(1.0, (m, n))),
    rule("convert-there-and-back", "float(int(A)) = A", A.convert(DType.I64).convert(DType.F32), A),
    rule(
        "look-up-of-a-shorter-table",
        "take(E, i) = take(E[:a], i)",
        take(E, ids),
        take(E.slice((0, 0), (a, d)), ids),
        where=[ids >= 0, ids < v, AtMost(a, v)],
    ),
    rule("look-up-beyond", "take(E, i) = take(cat(E, F), i)", take(concat(0, E, floats("F", a, d)), ids), take(E, ids)),
    rule(
        "pad-of-nothing",
        "elements put apart in what may be empty",
        V.slice(s, f).pad(c, 0, 0, 2).sum(0),
        V.slice(s, f).sum(0) + c * 2.0 * (f - s - 1),
    ),
    rule(
        "update-rule-at-two-axes",
        "the over-general update rule at two axes",
        dynamic_update(floats("X", n, n).slice((0, 0), (half, half)), constant(0.0, (half - 1, half - 1)), [1, 1]),
        dynamic_update(
            floats("X", n, n).slice((0, 0), (2 * half - 1, 2 * half - 1), 2),
            constant(0.0, (half - 1, half - 1)),
            [1, 1],
        ),
        where=[AtMost(2, half), AtMost(2 * half - 1, n)],
    ),
    rule(
        "max-of-nothing",
        "the maximum of what may be empty is an element",
        floats("X", n).slice(s, f).max(0) * 0.0,
        constant(0.0),
    ),
    # --- other near misses
    rule("subtract-commutes", "A - B = B - A", A - B, B - A),
    rule("divide-commutes", "A / B = B / A", A / B, B / A),
    rule("sqrt-of-square", "sqrt(A A) = A", sqrt(A * A), A),
    rule("log-of-product", "log(A B) = log(A) + log(B)", log(A * B), log(A) + log(B)),
    rule("square-of-sqrt", "sqrt(A) sqrt(A) = A", sqrt(A) * sqrt(A), A),
    rule("quotient-cancels", "(A B) / B = A", (A * B) / B, A),
    rule("max-of-product", "max(c A) = c max(A)", (A * c).max(1), A.max(1) * c),
    rule("sum-of-product", "sum(A B) = sum(A) sum(B)", (A * B).sum(1), A.sum(1) * B.sum(1)),
    rule("sum-of-maximum", "sum(max(A, B)) = max(sum(A), sum(B))", maximum(A, B).sum(1), maximum(A.sum(1), B.sum(1))),
    rule("sigmoid-odd", "sigmoid(-A) = -sigmoid(A)", sigmoid(-A), -sigmoid(A)),
    rule("integer-distribution", "(I + J) / K = I / K + J / K", (I64A + I64B) / i, I64A / i + I64B / i, where=[i > 0]),
    rule("integer-times-quotient", "(I / J) J = I", (I64A / I64B) * I64B, I64A, where=[I64B.differs(0)]),
    rule("remainder-of-negative", "rem(-I, c) = rem(I, c)", -I64A % i, I64A % i, where=[i > 0]),
    rule("remainder-shifted-anywhere", "rem(x + n, n) = rem(x, n)", (i + j) % j, i % j, where=[j.differs(0)]),
    rule(
        "scalar-slice-size",
        "a strided slice of a scalar is one shorter",
        c.broadcast((n,)).slice(s, f, step),
        c.broadcast((f - s,)),
    ),
    rule("pad-value", "pads with two values are one", V.pad(c, low, 0).pad(c2, low, 0), V.pad(c, low + low, 0)),
    rule("zero-times-infinity", "0 (-inf) = 0", minus_infinity * 0.0 + A, A),
    rule("boolean-and-or", "(P and Q) or P = Q", (P & boolean("Q", m, n)) | P, boolean("Q", m, n)),
    rule(
        "sum-of-one-more",
        "sum over a slice that lacks the last row",
        rows_x.sum(0),
        rows_x.slice((0, 0), (p - 1, n)).sum(0),
    ),
    rule(
        "dot-keeps-one-more",
        "dot that lacks the last column",
        dot(S, T),
        dot(S.slice((0, 0), (m, k - 1)), T.slice((0, 0), (k - 1, n))),
    ),
    rule(
        "reshape-order",
        "merging axes in the other order",
        floats("T", a, b).transpose().reshape(a * b),
        floats("T", a, b).reshape(a * b),
    ),
    rule("attention-scale-twice", "c q c k = c q k", dot(S * c, T * c), dot(S, T) * c),
    rule("softmax-scale", "softmax(c x) = softmax(x)", softmax(A * c), softmax(A)),
    rule(
        "epsilon-inside",
        "eps outside of the root",
        x / broadcast_along(sqrt((x * x).sum(1) / e + 1e-6), (t, e), 1),
        x / broadcast_along(sqrt((x * x).sum(1) / e) + 1e-6, (t, e), 1),
    ),
    rule(
        "other-epsilon",
        "eps 1e-5 for 1e-6",
        x / broadcast_along(sqrt((x * x).sum(1) / e + 1e-6), (t, e), 1),
        x / broadcast_along(sqrt((x * x).sum(1) / e + 1e-5), (t, e), 1),
    ),
    rule(
        "clamped-start",
        "a dynamic slice is not moved",
        dynamic_slice(V, [i], (a,)),
        V.slice(s, s + a),
        where=[i.equals(s), AtMost(s + a, n + 1)],
    ),
    rule(
        "window-off",
        "convolution without the last padding",
        convolution(floats("image", n, a, p), floats("kernel", b, a, q), 1, low + 1, high),
        convolution(floats("image", n, a, p), floats("kernel", b, a, q), 1, low, high + 1),
    ),
    rule("repeat-reduce", "max of a sum = sum of maxima", A.sum(0).max(0), A.max(1).sum(0)),
    rule("not-finite", "rounding is nothing", apply(ops.Floor(), A), A),
    rule("reverse-one-axis", "reverse along one axis = along both", A.reverse(0), A.reverse(0, 1)),
    rule(
        "two-pass-without-square",
        "variance = mean(x^2) - mean(x)",
        (x * x).sum(1) / e - x.sum(1) / e,
        (x * x).sum(1) / e - (x.sum(1) / e) * (x.sum(1) / e),
    ),
)
