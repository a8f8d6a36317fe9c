"""Small HLO modules."""

from __future__ import annotations

RATES = """HloModule rates
ENTRY main {
  x = f32[8,4] parameter(0)
  y = f32[8,4] parameter(1)
  three = f32[] constant(3)
  threes = f32[8,4] broadcast(three), dimensions={}
  third = f32[8,4] divide(x, threes)
  a = f32[8,4] exponential(third)
  b = f32[8,4] tanh(y)
  product = f32[8,4] multiply(a, b)
  five = f32[] constant(5)
  fives = f32[8,4] broadcast(five), dimensions={}
  less = f32[8,4] subtract(product, fives)
  two = f32[] constant(2)
  twos = f32[8,4] broadcast(two), dimensions={}
  square = f32[8,4] power(third, twos)
  cosine = f32[8,4] cosine(less)
  sum = f32[8,4] add(less, square)
  ROOT out = f32[8,4] add(sum, cosine)
}
"""
"""Something for algsimp that the import of a module leaves alone: a subtraction of a constant, a square as a power."""

LOOP = """HloModule loop
body {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[4] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[4] add(v, v)
  ROOT out = (s32[], f32[4]) tuple(next, w)
}
condition {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i, three), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, x)
  end = (s32[], f32[4]) while(start), condition=condition, body=body
  ROOT out = f32[4] get-tuple-element(end), index=1
}
"""
"""Doubles a vector three times."""

THREEFRY = """HloModule random_bits
ENTRY main {
  k0 = u32[2] parameter(0)
  k1 = u32[2] parameter(1)
  c0 = u32[2] parameter(2)
  c1 = u32[2] parameter(3)
  bits = (u32[2], u32[2]) custom-call(k0, k1, c0, c1), custom_call_target="cuda_threefry2x32"
  ROOT first = u32[2] get-tuple-element(bits), index=0
}
"""

DTYPES = """HloModule dtypes
ENTRY main {
  a = s32[16] parameter(0)
  b = u32[16] parameter(1)
  c = pred[16] parameter(2)
  d = f16[16] parameter(3)
  e = f64[16] parameter(4)
  zero = s32[] constant(0)
  zeros = s32[16] broadcast(zero), dimensions={}
  a0 = s32[16] add(a, zeros)
  five = u32[] constant(5)
  fives = u32[16] broadcast(five), dimensions={}
  b0 = u32[16] shift-right-logical(b, fives)
  c0 = pred[16] not(c)
  c1 = pred[16] not(c0)
  d0 = f16[16] negate(d)
  d1 = f16[16] negate(d0)
  e0 = f64[16] add(e, e)
  ROOT out = (s32[16], u32[16], pred[16], f16[16], f64[16]) tuple(a0, b0, c1, d1, e0)
}
"""
