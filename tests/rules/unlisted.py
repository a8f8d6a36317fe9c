"""Right and wrong rules that no list had when the prover was written, in the form that users write."""

from __future__ import annotations

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.rules import (
    AtMost,
    Rule,
    Tensor,
    absolute,
    apply,
    boolean,
    clamp,
    concat,
    constant,
    dot,
    dynamic_slice,
    dynamic_update,
    exp,
    floats,
    integer,
    integers,
    iota,
    log,
    maximum,
    minimum,
    natural,
    negate,
    operator,
    rule,
    scalar,
    select,
    sigmoid,
    size,
    size_as_number,
    sqrt,
    take,
    tanh,
    within,
)

m, n, k, h, d, t, a, b, g_, r = (size(x) for x in ("m", "n", "k", "h", "d", "t", "a", "b", "g", "r"))
s, e, u, low, w = (natural(x) for x in ("s", "e", "u", "l", "w"))
z = integer("z")
A, B, S = floats("A", m, n), floats("B", m, n), floats("S", n, n)
V, U, T3 = floats("V", n), floats("U", n), floats("T3", a, b, d)
X4 = floats("X4", b, t, h, d)
C, J, ids = integers("I", n), integers("J", n), integers("ids", t)
i0, i1 = scalar("i0", DType.I64), scalar("i1", DType.I64)
c, P = scalar("c"), boolean("P", n)
f, g = operator("f"), operator("g", 2)
neg = float("-inf")


def along(x: Tensor, shape: tuple[Dim, ...], axis: int) -> Tensor:
    """A reduction over one axis, repeated along it again."""
    return x.broadcast(shape, tuple(i for i in range(len(shape)) if i != axis))


def mean(x: Tensor, axis: int) -> Tensor:
    return x.sum(axis) / size_as_number(x.shape[axis], DType.F32)


def softmax(x: Tensor, axis: int = 1) -> Tensor:
    grown = exp(x - along(x.max(axis), x.shape, axis))
    return grown / along(grown.sum(axis), x.shape, axis)


RIGHT: tuple[Rule, ...] = (
    rule(
        "opaque g through concat",
        "opaque g through concat",
        apply(g, concat(0, V, U), concat(0, U, V)),
        concat(0, apply(g, V, U), apply(g, U, V)),
    ),
    rule(
        "opaque f through gather",
        "opaque f through gather",
        apply(f, take(floats("E", a, d), ids)),
        take(apply(f, floats("E", a, d)), ids),
        where=[*within(ids, 0, a)],
    ),
    rule(
        "opaque f through dynamic slice",
        "opaque f through dynamic slice",
        apply(f, dynamic_slice(V, [i0], [k])),
        dynamic_slice(apply(f, V), [i0], [k]),
    ),
    rule(
        "dynamic update overwritten",
        "dynamic update overwritten",
        dynamic_update(dynamic_update(V, floats("Y1", k), [i0]), floats("Y2", k), [i0]),
        dynamic_update(V, floats("Y2", k), [i0]),
    ),
    rule(
        "slice of dynamic-update whole",
        "slice of dynamic-update whole",
        dynamic_slice(dynamic_update(V, floats("Y1", k), [i0]), [i0], [k]),
        floats("Y1", k),
    ),
    rule(
        "negative pad is slice",
        "negative pad is slice",
        V.pad(c, (-s,), (0,)),
        V.slice((s,), (n,)),
        where=[AtMost(s, n)],
    ),
    rule("slice interior", "slice interior", V.pad(c, (0,), (0,), (1,)).slice((0,), (2 * n - 1,), 2), V),
    rule("permute three times", "permute three times", T3.transpose(1, 2, 0).transpose(1, 2, 0).transpose(1, 2, 0), T3),
    rule(
        "heads split merge",
        "heads split merge",
        X4.transpose(0, 2, 1, 3).transpose(0, 2, 1, 3).reshape(b * t, h * d),
        X4.reshape(b * t, h * d),
    ),
    rule(
        "norm scaling positive", "norm scaling positive", sqrt((V * 2.0 * (V * 2.0)).sum(0)), 2.0 * sqrt((V * V).sum(0))
    ),
    rule(
        "max of concat shards via pairwise",
        "max of concat shards via pairwise",
        concat(0, V, U).max(0),
        maximum(V.max(0), U.max(0)),
    ),
    rule(
        "cumsum shift",
        "cumsum shift",
        dot((iota((n, n), 0) >= iota((n, n), 1)).convert(DType.F32), V.reshape(n, 1)) - V.reshape(n, 1),
        dot((iota((n, n), 0) > iota((n, n), 1)).convert(DType.F32), V.reshape(n, 1)),
    ),
    rule("int: C - C%J multiple", "int: C - C%J multiple", (C - C % J) % J, C * 0, where=[J > 0]),
    rule("int: floor identity", "int: floor identity", (C / J) * J + C % J, C, where=[J > 0]),
    rule(
        "sum of min and max sums",
        "sum of min and max sums",
        minimum(V, U).sum(0) + maximum(V, U).sum(0),
        V.sum(0) + U.sum(0),
    ),
    rule(
        "gqa",
        "gqa",
        floats("K", g_, d).broadcast((g_, r, d), (0, 2)).reshape(g_ * r, d).reshape(g_, r, d).sum(1),
        floats("K", g_, d) * size_as_number(r, DType.F32),
    ),
    rule("clamp inner", "clamp inner", clamp(0.0, clamp(1.0, V, 2.0), 3.0), clamp(1.0, V, 2.0)),
    rule("relu by where", "relu by where", select(V > 0.0, V, 0.0), maximum(V, 0.0)),
    rule("leaky relu", "leaky relu", maximum(V, 0.5 * V), select(V > 0.0, V, 0.5 * V)),
    rule("gelu-like: x sig", "gelu-like: x sig", V * sigmoid(V), V / (1.0 + exp(-V))),
    rule("softplus diff", "softplus diff", log(1.0 + exp(V)) - log(1.0 + exp(-V)), V),
    rule("log sigmoid", "log sigmoid", log(sigmoid(V)), -log(1.0 + exp(-V))),
    rule(
        "reduce scatter",
        "reduce scatter",
        (floats("Y1", 2 * k) + floats("Y2", 2 * k)).slice((k,), (2 * k,)),
        floats("Y1", 2 * k).slice((k,), (2 * k,)) + floats("Y2", 2 * k).slice((k,), (2 * k,)),
    ),
    rule(
        "diag both sides",
        "diag both sides",
        dot(S * V.broadcast((n, n), (1,)), S),
        dot(S, S * V.broadcast((n, n), (0,))),
    ),
    rule(
        "iota sum", "iota sum", iota((n,)).sum(0) * 2, size_as_number(n, DType.I64) * (size_as_number(n, DType.I64) - 1)
    ),
    rule(
        "dot padded zeros",
        "dot padded zeros",
        dot(A.pad(0.0, (0, 0), (0, w)), floats("K1", n, h).pad(c, (0, 0), (w, 0))),
        dot(A, floats("K1", n, h)),
    ),
    rule(
        "layernorm shift",
        "layernorm shift",
        (A + c) - along(mean(A + c, 1), (m, n), 1),
        A - along(mean(A, 1), (m, n), 1),
    ),
    rule(
        "softmax rows of concat", "softmax rows of concat", softmax(concat(0, A, B)), concat(0, softmax(A), softmax(B))
    ),
    rule(
        "cross entropy",
        "cross entropy",
        -(V * log(softmax(V.reshape(1, n)).reshape(n))).sum(0),
        V.sum(0) * log(exp(V - V.max(0)).sum(0)) + V.sum(0) * V.max(0) - (V * V).sum(0),
    ),
    rule(
        "rope rotate twice by 90",
        "rope rotate twice by 90",
        concat(0, -concat(0, -U, V).slice((n,), (2 * n,)), concat(0, -U, V).slice((0,), (n,))),
        -concat(0, V, U),
    ),
    rule("expert mask sum", "expert mask sum", select(P, V, 0.0).sum(0) + select(~P, V, 0.0).sum(0), V.sum(0)),
    rule(
        "attention scale folded",
        "attention scale folded",
        dot(A * c, floats("K1", n, h)),
        dot(A, floats("K1", n, h) * c),
    ),
    rule("xor involution", "xor involution", (P ^ boolean("P2", n)) ^ boolean("P2", n), P),
    rule("abs by max", "abs by max", absolute(V), maximum(V, -V)),
    rule("sign times abs", "sign times abs", apply(ops.Sign(), V) * absolute(V), V),
    rule(
        "product of scaled transpose",
        "product of scaled transpose",
        A.transpose().reduce("product", 0),
        A.reduce("product", 1),
    ),
    rule(
        "take of reverse",
        "take of reverse",
        take(V.reverse(0), integers("jj", t)),
        take(V, size_as_number(n, DType.I64) - integers("jj", t) - 1),
        where=[*within(integers("jj", t), 0, n)],
    ),
    rule(
        "mean of mean equal parts",
        "mean of mean equal parts",
        mean(mean(floats("M", a, b), 1), 0),
        mean(floats("M", a, b).reshape(a * b), 0),
    ),
    rule("max of negation", "max of negation", negate(V).max(0), negate(V.reduce("minimum", 0))),
    rule(
        "mask and complement are all",
        "mask and complement are all",
        P.convert(DType.I64).sum(0) + (~P).convert(DType.I64).sum(0),
        size_as_number(n, DType.I64),
    ),
    rule("no one is everyone not", "no one is everyone not", ~P.reduce("or", 0), (~P).reduce("and", 0)),
    rule("max with padding", "max with padding", V.pad(c, (low + 1,), (w,)).max(0), maximum(V.max(0), c)),
    rule("reverse of pad", "reverse of pad", V.pad(c, (low,), (w,)).reverse(), V.reverse().pad(c, (w,), (low,))),
    rule(
        "median of three",
        "median of three",
        maximum(minimum(V, U), minimum(maximum(V, U), c.broadcast((n,)))),
        V + U + c - maximum(maximum(V, U), c) - minimum(minimum(V, U), c),
    ),
    rule("multiple leaves nothing", "multiple leaves nothing", (C * J) % J, C * 0, where=[J.differs(0)]),
    rule("remainder is below", "remainder is below", (C % J) / J, C * 0, where=[J > 0]),
    rule(
        "rows and columns of a number",
        "rows and columns of a number",
        iota((m * n,)).reshape(m, n),
        iota((m, n), 0) * size_as_number(n, DType.I64) + iota((m, n), 1),
    ),
    rule("both operands reversed", "both operands reversed", dot(A.reverse(1), S.reverse(0)), dot(A, S)),
    rule(
        "sum and difference are the larger",
        "sum and difference are the larger",
        (V + U + absolute(V - U)) * 0.5,
        maximum(V, U),
    ),
    rule(
        "softmax of a shifted row",
        "softmax of a shifted row",
        softmax(A + along(floats("W", m), (m, n), 1)),
        softmax(A),
    ),
)

WRONG: tuple[Rule, ...] = (
    rule("opaque f of sum", "opaque f of sum", apply(f, A).sum(0), apply(f, A.sum(0))),
    rule("opaque g commutes", "opaque g commutes", apply(g, A, B), apply(g, B, A)),
    rule(
        "opaque g of pad",
        "opaque g of pad",
        apply(g, V.pad(c, (low,), (w,)), U.pad(c, (low,), (w,))),
        apply(g, V, U).pad(c, (low,), (w,)),
    ),
    rule(
        "dynamic slice of slice forgets start",
        "dynamic slice of slice forgets start",
        dynamic_slice(V.slice((s,), (n,)), [i0], [k]),
        dynamic_slice(V, [i0], [k]),
    ),
    rule(
        "dynamic update order",
        "dynamic update order",
        dynamic_update(dynamic_update(V, floats("Y1", k), [i0]), floats("Y2", k), [i1]),
        dynamic_update(dynamic_update(V, floats("Y2", k), [i1]), floats("Y1", k), [i0]),
    ),
    rule(
        "negative pad is slice wrong",
        "negative pad is slice wrong",
        V.pad(c, (z,), (0,)),
        V.slice((0,), (n + z,)),
        where=[AtMost(z, 0)],
    ),
    rule(
        "interior pad folds",
        "interior pad folds",
        V.pad(c, (0,), (0,), (s,)).pad(c, (0,), (0,), (u,)),
        V.pad(c, (0,), (0,), (s + u,)),
    ),
    rule(
        "interior pad reverse",
        "interior pad reverse",
        V.pad(c, (low,), (0,), (s,)).reverse(0),
        V.reverse(0).pad(c, (low,), (0,), (s,)),
    ),
    rule(
        "slice stride of concat",
        "slice stride of concat",
        concat(0, V, U).slice((0,), (2 * n,), 2),
        concat(0, V.slice((0,), (n,), 2), U.slice((0,), (n,), 2)),
    ),
    rule("transposes (3 axes) inverse", "transposes (3 axes) inverse", T3.transpose(1, 2, 0).transpose(1, 2, 0), T3),
    rule(
        "reshape vs transpose",
        "reshape vs transpose",
        floats("Q", a * b).reshape(a, b).transpose(),
        floats("Q", a * b).reshape(b, a),
    ),
    rule(
        "reverse all vs one",
        "reverse all vs one",
        T3.reverse(0, 1).reshape(a * b, d),
        T3.reshape(a * b, d).reverse(0, 1),
    ),
    rule("sum of squares", "sum of squares", (V * V).sum(0), V.sum(0) * V.sum(0)),
    rule("norm scaling sign", "norm scaling sign", sqrt((V * c * V * c).sum(0)), c * sqrt((V * V).sum(0))),
    rule("max minus max", "max minus max", (V - U).max(0), V.max(0) - U.max(0)),
    rule(
        "cumulative strict",
        "cumulative strict",
        dot((iota((n, n), 0) >= iota((n, n), 1)).convert(DType.F32), V.reshape(n, 1)),
        dot((iota((n, n), 0) > iota((n, n), 1)).convert(DType.F32), V.reshape(n, 1)),
    ),
    rule("int mod negative floor", "int mod negative floor", (C + J) % J, C % J, where=[J > 0]),
    rule("int halves", "int halves", (C / 2) * 2 + 0, C - C % 2 + (C % 2)),
    rule("int division distributes", "int division distributes", (C + J) / 2, C / 2 + J / 2),
    rule("int division of negative", "int division of negative", negate(C) / 2, C / 2),
    rule(
        "take twice swapped",
        "take twice swapped",
        take(take(floats("E", a, d), integers("j1", a)), integers("j2", a)),
        take(floats("E", a, d), take(integers("j2", a), integers("j1", a))),
        where=[*within(integers("j1", a), 0, a), *within(integers("j2", a), 0, a)],
    ),
    rule(
        "convert float to int adds",
        "convert float to int adds",
        (V + U).convert(DType.I64),
        V.convert(DType.I64) + U.convert(DType.I64),
    ),
    rule("bool convert of float", "bool convert of float", V.convert(DType.BOOL).convert(DType.F32), V),
    rule(
        "max with nan-like -inf arithmetic",
        "max with nan-like -inf arithmetic",
        exp(V.broadcast((n,), (0,)) + neg),
        V * 0.0 + 1.0,
    ),
    rule(
        "softmax all masked",
        "softmax all masked",
        exp(select(P, V, neg)) / exp(select(P, V, neg)).sum(0),
        exp(V) / exp(V).sum(0),
    ),
    rule("min of sums", "min of sums", minimum(V, U).sum(0), minimum(V.sum(0), U.sum(0))),
    rule("sigmoid of neg", "sigmoid of neg", sigmoid(-V), -sigmoid(V)),
    rule("tanh double", "tanh double", tanh(V + V), tanh(V) * 2.0),
    rule("log of exp sum", "log of exp sum", log(exp(V).sum(0)), V.sum(0)),
    rule("sqrt sum", "sqrt sum", sqrt(V + U), sqrt(V) + sqrt(U), where=[V >= 0.0, U >= 0.0]),
    rule("1/x monotone max", "1/x monotone max", (1.0 / V).max(0), 1.0 / (V.max(0)), where=[V > 0.0]),
    rule(
        "gqa groups of heads order",
        "gqa groups of heads order",
        floats("K", g_, d)
        .broadcast((g_, r, d), (0, 2))
        .reshape(g_ * r, d)
        .reshape(r, g_, d)
        .transpose(1, 0, 2)
        .reshape(g_ * r, d),
        floats("K", g_, d).broadcast((g_, r, d), (0, 2)).reshape(g_ * r, d),
    ),
    rule("clamp compose", "clamp compose", clamp(0.0, clamp(1.0, V, 2.0), 3.0), clamp(0.0, V, 3.0)),
    rule("select const pred", "select const pred", select(V > 0.0, V, 0.0), absolute(V)),
    rule("relu grad at zero", "relu grad at zero", (V > 0.0).convert(DType.F32), (V >= 0.0).convert(DType.F32)),
    rule(
        "dot zero dims",
        "dot zero dims",
        dot(A, floats("K1", n, h)).sum(0),
        dot(A.sum(0).reshape(1, n), floats("K1", n, h)).reshape(h) * size_as_number(m, DType.F32),
    ),
    rule(
        "reduce-scatter wrong chunk",
        "reduce-scatter wrong chunk",
        (floats("Y1", 2 * k) + floats("Y2", 2 * k)).slice((0,), (k,)),
        floats("Y1", 2 * k).slice((0,), (k,)) + floats("Y2", 2 * k).slice((k,), (2 * k,)),
    ),
    rule(
        "diag scaled left = right",
        "diag scaled left = right",
        dot(S * V.broadcast((n, n), (0,)), S),
        dot(S * V.broadcast((n, n), (1,)), S),
    ),
    rule("trace cyc wrong", "trace cyc wrong", dot(dot(S, floats("R", n, n)), S), dot(dot(S, S), floats("R", n, n))),
    rule("product zero", "product zero", V.reduce("product", 0) * U.reduce("product", 0), (V + U).reduce("product", 0)),
    rule("or-reduce by sum eq 1", "or-reduce by sum eq 1", P.reduce("or", 0), P.convert(DType.I64).sum(0).equals(1)),
    rule(
        "iota start at one",
        "iota start at one",
        iota((n,)).sum(0) * 2,
        size_as_number(n, DType.I64) * (size_as_number(n, DType.I64) + 1),
    ),
    rule("empty max", "empty max", V.slice((s,), (n,)).max(0), maximum(V.max(0), V.max(0)), where=[AtMost(s, n)]),
    rule(
        "sum empty slice as element",
        "sum empty slice as element",
        V.slice((s,), (e,)).sum(0),
        V.sum(0),
        where=[AtMost(s, e), AtMost(e, n)],
    ),
    rule(
        "pad then dot keeps",
        "pad then dot keeps",
        dot(A.pad(1.0, (0, 0), (0, w)), floats("K1", n, h).pad(1.0, (0, 0), (w, 0))),
        dot(A, floats("K1", n, h)),
    ),
    rule(
        "max with padding that may be none",
        "max with padding that may be none",
        V.pad(c, (low,), (w,)).max(0),
        maximum(V.max(0), c),
    ),
    rule(
        "one stretch too few",
        "one stretch too few",
        V.pad(c, (0,), (0,), (1,)).pad(c, (0,), (0,), (w,)),
        V.pad(c, (0,), (0,), (w + 1,)),
    ),
    rule(
        "reverse of pad unswapped",
        "reverse of pad unswapped",
        V.pad(c, (low,), (w,)).reverse(),
        V.reverse().pad(c, (low,), (w,)),
    ),
    rule("quotient below zero", "quotient below zero", (C - J) / J, C / J - 1, where=[J > 0]),
    rule("rounded up by too much", "rounded up by too much", (C + J) / J, C / J + C % J, where=[J > 0, C >= 0]),
    rule("epsilon after the root", "epsilon after the root", V / sqrt(U + 1e-5), V / (sqrt(U) + 1e-5), where=[U > 0.0]),
    rule("another epsilon", "another epsilon", V / sqrt(U + 1e-5), V / sqrt(U + 1e-6), where=[U > 0.0]),
    rule(
        "max of nothing is no zero",
        "max of nothing is no zero",
        V.slice((s,), (s,)).max(0),
        constant(0.0, ()),
        where=[AtMost(s, n)],
    ),
    rule(
        "bounds the wrong way round",
        "bounds the wrong way round",
        clamp(c, V, scalar("c2")),
        maximum(minimum(V, scalar("c2")), c),
    ),
    rule(
        "all below is not all at most",
        "all below is not all at most",
        (floats("U1", n) < c).reduce("and", 0),
        floats("U1", n).max(0) <= c,
    ),
    rule("largest of a sum of two", "largest of a sum of two", maximum(V, U + c), maximum(V, U) + maximum(V, c)),
    rule(
        "numbers from the end", "numbers from the end", iota((n,)).reverse(), size_as_number(n, DType.I64) - iota((n,))
    ),
)
