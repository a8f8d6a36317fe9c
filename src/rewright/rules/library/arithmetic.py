"""Arithmetic, order and logic, element by element."""

from __future__ import annotations

from rewright import ops
from rewright.ir.types import DType
from rewright.rules.pattern import (
    absolute,
    apply,
    boolean,
    clamp,
    constant,
    exp,
    floats,
    integers,
    iota,
    log,
    maximum,
    minimum,
    negate,
    rsqrt,
    scalar,
    select,
    sigmoid,
    sqrt,
    tanh,
)
from rewright.rules.rule import Rule, rule
from rewright.terms.parameters import size

XLA = "XLA algebraic simplifier, TensorRight "
EXTRA = "benchmark part 2, "
MODELS = "benchmark part 3, "

m, n, t = size("m"), size("n"), size("t")
A, B, C, D = (floats(name, m, n) for name in "ABCD")
c, c1, c2 = scalar("c"), scalar("c1"), scalar("c2")
row = floats("row", m)
I1, J1 = integers("I", m, n), integers("J", m, n)
x, y = scalar("x", DType.I64), scalar("y", DType.I64)
P, Q = boolean("P", m, n), boolean("Q", m, n)
yes, no = constant(True, (m, n), DType.BOOL), constant(False, (m, n), DType.BOOL)
zero, one = constant(0.0, (m, n)), constant(1.0, (m, n))
low, high = floats("low", m, n), floats("high", m, n)


RULES: tuple[Rule, ...] = (
    rule("add-constants", "(A + c1) + c2 = A + (c1 + c2)", (A + c1) + c2, A + (c1 + c2), provenance=XLA + "add/01"),
    rule("add-zero", "A + 0 = A", A + zero, A, provenance=XLA + "add/02"),
    rule("zero-add", "0 + A = A", zero + A, A, provenance=XLA + "add/03"),
    rule("add-constant-right", "c + A = A + c", c + A, A + c, provenance=XLA + "add/04"),
    rule("subtract-zero", "A - 0 = A", A - zero, A, provenance=XLA + "sub/00"),
    rule("subtract-constant", "A - c = A + (-c)", A - c, A + -c, provenance=XLA + "sub/01"),
    rule("subtract-self", "A - A = 0", A - A, zero, provenance=XLA + "sub/02"),
    rule("multiply-one", "A * 1 = A", A * one, A, provenance=XLA + "mul/01"),
    rule("one-multiply", "1 * A = A", one * A, A, provenance=XLA + "mul/02"),
    rule("multiply-zero", "A * 0 = 0", A * zero, zero, provenance=XLA + "mul/03"),
    rule("zero-multiply", "0 * A = 0", zero * A, zero, provenance=XLA + "mul/04"),
    rule(
        "multiply-scaled",
        "(A c1)(B c2) = (A B)(c1 c2)",
        (A * c1) * (B * c2),
        (A * B) * (c1 * c2),
        provenance=XLA + "mul/05",
    ),
    rule("multiply-constants", "(A c1) c2 = A (c1 c2)", (A * c1) * c2, A * (c1 * c2), provenance=XLA + "mul/06"),
    rule(
        "scale-smaller-operand",
        "(A c) broadcast(b) = broadcast(b c) A",
        (A * c) * row.broadcast((m, n), (0,)),
        (row * c).broadcast((m, n), (0,)) * A,
        provenance=XLA + "mul/07",
    ),
    rule("factor-out", "A C + B C = (A + B) C", A * C + B * C, (A + B) * C, provenance=XLA + "mul/08"),
    rule("abs-squared", "|A| |A| = A A", absolute(A) * absolute(A), A * A, provenance=XLA + "mul/09"),
    rule("exp-product", "exp(A) exp(B) = exp(A + B)", exp(A) * exp(B), exp(A + B), provenance=XLA + "mul/10"),
    rule("divide-one", "A / 1 = A", A / one, A, provenance=XLA + "div/01"),
    rule(
        "divide-constant", "A / c = A (1 / c)", A / c, A * (1.0 / c), where=[c.differs(0.0)], provenance=XLA + "div/02"
    ),
    rule(
        "divide-quotients",
        "(A / B) / (C / D) = (A D) / (B C)",
        (A / B) / (C / D),
        (A * D) / (B * C),
        where=[B.differs(0.0), C.differs(0.0), D.differs(0.0)],
        provenance=XLA + "div/03",
    ),
    rule(
        "divide-by-quotient",
        "A / (B / C) = (A C) / B",
        A / (B / C),
        (A * C) / B,
        where=[B.differs(0.0), C.differs(0.0)],
        provenance=XLA + "div/04",
    ),
    rule("remainder-twice", "rem(rem(I, J), J) = rem(I, J)", I1 % J1 % J1, I1 % J1, provenance=XLA + "rem/05"),
    rule(
        "remainder-of-small-iota",
        "rem(iota, c) = iota for sizes up to c",
        iota((m, n)) % x,
        iota((m, n)),
        where=[x >= m],
        provenance=XLA + "rem/06",
    ),
    rule(
        "remainder-of-shifted-iota",
        "rem(iota + c, c) = rem(iota, c) for c > 0",
        (iota((m, n)) + x) % x,
        iota((m, n)) % x,
        where=[x > 0],
        provenance=XLA + "rem/07",
    ),
    rule(
        "remainder-shifted",
        "rem(x + n, n) = rem(x, n) where x and x + n have one sign",
        (x + y) % y,
        x % y,
        where=[((x >= 0) & (x + y >= 0)) | ((x < 0) & (x + y < 0)), y.differs(0)],
        provenance=XLA + "rem/08",
    ),
    rule(
        "max-minus-infinity",
        "max(A, -inf) = A",
        maximum(A, constant(float("-inf"), (m, n))),
        A,
        provenance=XLA + "max/01",
    ),
    rule("min-infinity", "min(A, inf) = A", minimum(A, constant(float("inf"), (m, n))), A, provenance=XLA + "max/02"),
    rule("not-not", "not(not(P)) = P", ~~P, P, provenance=XLA + "not/01"),
    rule("negate-negate", "-(-A) = A", negate(negate(A)), A, provenance=XLA + "not/02"),
    rule("greater-self", "(A > A) = false", A > A, no, provenance=XLA + "compare/01"),
    rule("less-self", "(A < A) = false", A < A, no, provenance=XLA + "compare/02"),
    rule("differs-self", "(A != A) = false", A.differs(A), no, provenance=XLA + "compare/03"),
    rule("at-least-self", "(A >= A) = true", A >= A, yes, provenance=XLA + "compare/04"),
    rule("at-most-self", "(A <= A) = true", A <= A, yes, provenance=XLA + "compare/05"),
    rule("equals-self", "(A == A) = true", A.equals(A), yes, provenance=XLA + "compare/06"),
    rule("or-true", "P or true = true", P | yes, yes, provenance=XLA + "logical/01"),
    rule("true-or", "true or P = true", yes | P, yes, provenance=XLA + "logical/02"),
    rule("or-false", "P or false = P", P | no, P, provenance=XLA + "logical/03"),
    rule("false-or", "false or P = P", no | P, P, provenance=XLA + "logical/04"),
    rule("and-true", "P and true = P", P & yes, P, provenance=XLA + "logical/05"),
    rule("true-and", "true and P = P", yes & P, P, provenance=XLA + "logical/06"),
    rule("and-false", "P and false = false", P & no, no, provenance=XLA + "logical/07"),
    rule("false-and", "false and P = false", no & P, no, provenance=XLA + "logical/08"),
    rule(
        "less-than-both",
        "(A < c1) and (c2 > A) = A < min(c1, c2)",
        (c1 > A) & (c2.broadcast((m, n)) > A),
        minimum(c1, c2) > A,
        provenance=XLA + "logical/09",
    ),
    rule("max-greater-right", "(max(A, B) > B) = (A > B)", maximum(A, B) > B, A > B, provenance=XLA + "logical/10"),
    rule("max-greater-left", "(max(A, B) > A) = (B > A)", maximum(A, B) > A, B > A, provenance=XLA + "logical/11"),
    rule("select-same", "select(P, A, A) = A", select(P, A, A), A, provenance=XLA + "select/01"),
    rule("select-true", "select(true, A, B) = A", select(yes, A, B), A, provenance=XLA + "select/02"),
    rule("select-false", "select(false, A, B) = B", select(no, A, B), B, provenance=XLA + "select/03"),
    rule(
        "select-not",
        "select(not P, A, B) = select(P, B, A)",
        select(~P, A, B),
        select(P, B, A),
        provenance=XLA + "select/04",
    ),
    rule(
        "clamp-twice",
        "clamp(l, clamp(l, A, h), h) = clamp(l, A, h)",
        clamp(low, clamp(low, A, high), high),
        clamp(low, A, high),
        provenance=XLA + "clamp/01",
    ),
    rule(
        "max-min-is-clamp",
        "max(l, min(A, h)) = clamp(l, A, h) where l <= h",
        maximum(low, minimum(A, high)),
        clamp(low, A, high),
        where=[low <= high],
        provenance=XLA + "clamp/02",
    ),
    rule(
        "min-max-is-clamp",
        "min(h, max(A, l)) = clamp(l, A, h)",
        minimum(high, maximum(A, low)),
        clamp(low, A, high),
        provenance=XLA + "clamp/03",
    ),
    rule("abs-abs", "||A|| = |A|", absolute(absolute(A)), absolute(A), provenance=EXTRA + "E17"),
    rule("abs-square", "|A A| = A A", absolute(A * A), A * A, provenance=EXTRA + "E19"),
    rule(
        "rsqrt-squared",
        "rsqrt(A) rsqrt(A) = 1 / A",
        rsqrt(A) * rsqrt(A),
        1.0 / A,
        where=[A > 0.0],
        provenance=EXTRA + "E21",
    ),
    rule(
        "divide-by-rsqrt",
        "A / rsqrt(B) = A sqrt(B)",
        A / rsqrt(B),
        A * sqrt(B),
        where=[B > 0.0],
        provenance=EXTRA + "E23",
    ),
    rule("exp-quotient", "exp(A) / exp(B) = exp(A - B)", exp(A) / exp(B), exp(A - B), provenance=EXTRA + "E25"),
    rule("sqrt-exp", "sqrt(exp(A)) = exp(A / 2)", sqrt(exp(A)), exp(A * 0.5), provenance=EXTRA + "E27"),
    rule("exp-log", "exp(log(A)) = A", exp(log(A)), A, where=[A > 0.0], provenance=EXTRA + "E29"),
    rule("log-exp", "log(exp(A)) = A", log(exp(A)), A),
    rule(
        "quotient-times-inverse",
        "(A / B) (B / A) = 1",
        (A / B) * (B / A),
        one,
        where=[A.differs(0.0), B.differs(0.0)],
        provenance=EXTRA + "E31",
    ),
    rule("inverse-inverse", "1 / (1 / A) = A", 1.0 / (1.0 / A), A, where=[A.differs(0.0)], provenance=EXTRA + "E33"),
    rule("times-minus-one", "A (-1) = -A", A * -1.0, -A, provenance=EXTRA + "E35"),
    rule("distribute", "A B + A C = A (B + C)", A * B + A * C, A * (B + C), provenance=EXTRA + "E37"),
    rule("divide-twice", "(A / c1) / c2 = A / (c1 c2)", (A / c1) / c2, A / (c1 * c2), provenance=EXTRA + "E39"),
    rule("max-commutes", "max(A, B) = max(B, A)", maximum(A, B), maximum(B, A), provenance=EXTRA + "E41"),
    rule("min-of-max", "min(max(A, B), A) = A", minimum(maximum(A, B), A), A, provenance=EXTRA + "E43"),
    rule(
        "max-plus-min", "max(A, B) + min(A, B) = A + B", maximum(A, B) + minimum(A, B), A + B, provenance=EXTRA + "E45"
    ),
    rule(
        "select-nested",
        "select(P, select(P, A, B), B) = select(P, A, B)",
        select(P, select(P, A, B), B),
        select(P, A, B),
        provenance=EXTRA + "E47",
    ),
    rule(
        "select-larger", "select(A > B, A, B) = max(A, B)", select(A > B, A, B), maximum(A, B), provenance=EXTRA + "E49"
    ),
    rule("add-commutes", "A + B = B + A", A + B, B + A),
    rule("add-associates", "(A + B) + C = A + (B + C)", (A + B) + C, A + (B + C)),
    rule("multiply-commutes", "A B = B A", A * B, B * A),
    rule("multiply-associates", "(A B) C = A (B C)", (A * B) * C, A * (B * C)),
    rule("subtract-is-add", "A - B = A + (-B)", A - B, A + -B),
    rule(
        "max-associates", "max(max(A, B), C) = max(A, max(B, C))", maximum(maximum(A, B), C), maximum(A, maximum(B, C))
    ),
    rule(
        "exp-difference", "exp(A - B) = exp(A) / exp(B)", exp(A - B), exp(A) / exp(B), provenance=MODELS + "algebra 1"
    ),
    rule(
        "quotient-of-quotients",
        "(A / B) / (C / D) = (A / C) (D / B)",
        (A / B) / (C / D),
        (A / C) * (D / B),
        where=[D.differs(0.0)],
        provenance=MODELS + "algebra 2",
    ),
    rule(
        "silu", "A sigmoid(A) = A / (1 + exp(-A))", A * sigmoid(A), A / (1.0 + exp(-A)), provenance=MODELS + "algebra 3"
    ),
    rule(
        "tanh-by-sigmoid",
        "tanh(A) = 2 sigmoid(2 A) - 1",
        tanh(A),
        2.0 * sigmoid(A * 2.0) - 1.0,
        provenance=MODELS + "algebra 4",
    ),
    rule("times-rsqrt", "A rsqrt(B) = A / sqrt(B)", A * rsqrt(B), A / sqrt(B), provenance=MODELS + "algebra 5"),
    rule(
        "relu-difference",
        "max(A, 0) - max(-A, 0) = A",
        maximum(A, 0.0) - maximum(-A, 0.0),
        A,
        provenance=MODELS + "algebra 6",
    ),
    rule(
        "square-of-sum",
        "(A + B)^2 = A^2 + 2 A B + B^2",
        (A + B) * (A + B),
        A * A + 2.0 * (A * B) + B * B,
        provenance=MODELS + "algebra 7",
    ),
    rule("logistic", "sigmoid(A) = 1 / (1 + exp(-A))", sigmoid(A), 1.0 / (1.0 + exp(-A))),
    rule("sigmoid-of-negative", "sigmoid(-A) = 1 - sigmoid(A)", sigmoid(-A), 1.0 - sigmoid(A)),
    rule("expm1", "expm1(A) = exp(A) - 1", apply(ops.ExponentialMinusOne(), A), exp(A) - 1.0),
)
