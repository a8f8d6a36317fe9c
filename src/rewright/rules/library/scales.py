"""Scales: where a factor goes through sums, choices, maxima and products, and exponentials in other bases.

These are the laws by which kernels are made cheaper (``rewright.optimize``): a division of every element becomes one of
every row, a logarithm per row takes the place of a quotient per element, and exponentials become powers of two.
"""

from __future__ import annotations

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.rules.pattern import Tensor, boolean, constant, dot, exp, floats, log, scalar, select
from rewright.rules.rule import Rule, rule
from rewright.terms.parameters import size

m, n, k = size("m"), size("n"), size("k")
A, B, C = (floats(name, m, n) for name in "ABC")
X, Y = floats("X", m, k), floats("Y", k, n)
P = boolean("P", m, n)
c, d = scalar("c"), scalar("d")
two = constant(2.0, (m, n))
narrow = Tensor(ops.Input("H", TensorType((m, n), DType.F16)))
narrow_scale = Tensor(ops.Input("h", TensorType((), DType.F16)))

RULES: tuple[Rule, ...] = (
    rule("exp-over", "exp(A) / B = exp(A - log(B)) where B > 0", exp(A) / B, exp(A - log(B)), where=[B > 0.0]),
    rule(
        "exp-difference-over",
        "exp(A - B) / C = exp(A - (B + log(C))) where C > 0",
        exp(A - B) / C,
        exp(A - (B + log(C))),
        where=[C > 0.0],
    ),
    rule("exp-in-base-two", "exp(A) = exp((A / log 2) log 2) = 2^(A / log 2)", exp(A), exp((A / log(two)) * log(two))),
    rule("over-and-back", "(A / c) c = A", (A / c) * c, A, where=[c.differs(0.0)]),
    rule("product-over", "(A d) / c = A (d / c)", (A * d) / c, A * (d / c), where=[c.differs(0.0)]),
    rule("factor-over", "(A B) / c = (A / c) B", (A * B) / c, (A / c) * B, where=[c.differs(0.0)]),
    rule(
        "quotient-over",
        "(A / d) / c = A (1 / (d c))",
        (A / d) / c,
        A * (1.0 / (d * c)),
        where=[c.differs(0.0), d.differs(0.0)],
    ),
    rule(
        "dividend-over",
        "(A / B) / c = (A / c) / B",
        (A / B) / c,
        (A / c) / B,
        where=[c.differs(0.0), B.differs(0.0)],
    ),
    rule("sum-over", "(A + B) / c = A / c + B / c", (A + B) / c, A / c + B / c, where=[c.differs(0.0)]),
    rule("difference-over", "(A - B) / c = A / c - B / c", (A - B) / c, A / c - B / c, where=[c.differs(0.0)]),
    rule("negation-over", "(-A) / c = -(A / c)", (-A) / c, -(A / c), where=[c.differs(0.0)]),
    rule(
        "select-over",
        "select(P, A, B) / c = select(P, A / c, B / c)",
        select(P, A, B) / c,
        select(P, A / c, B / c),
        where=[c.differs(0.0)],
    ),
    rule("max-over", "max(A) / c = max(A / c) where c > 0", A.max(1) / c, (A / c).max(1), where=[c > 0.0]),
    rule(
        "min-over",
        "min(A) / c = min(A / c) where c > 0",
        A.reduce("minimum", 1) / c,
        (A / c).reduce("minimum", 1),
        where=[c > 0.0],
    ),
    rule("dot-over", "dot(X, Y) / c = dot(X / c, Y)", dot(X, Y) / c, dot(X / c, Y), where=[c.differs(0.0)]),
    rule("dot-times", "dot(X, Y) c = dot(X c, Y)", dot(X, Y) * c, dot(X * c, Y)),
    rule(
        "conversion-over",
        "f32(H) / f32(h) = f32(H / h)",
        narrow.convert(DType.F32) / narrow_scale.convert(DType.F32),
        (narrow / narrow_scale).convert(DType.F32),
        where=[narrow_scale.differs(0.0)],
    ),
    rule(
        "minus-infinity-over",
        "-inf / c = -inf where c > 0",
        constant(float("-inf"), (m, n)) / c,
        constant(float("-inf"), (m, n)),
        where=[c > 0.0],
    ),
)
