"""Sines and cosines in C++, in float32, without branches."""

TRIGONOMETRY = r"""
// What is left of x less q / 4 of a turn, and q modulo four. The turns of x are x 2 / pi, where the bits of 2 / pi that
// make multiples of four are left out, as in the reduction of Payne and Hanek (1983): for numbers of 25 binary orders
// of magnitude there are three parts of the rest, the first two of 29 bits, so that their products are exact in double
// precision. Right for all floats; infinities give NaN.
INLINED float quarter_turns(float x, int32_t& q) {
  const double X = x, a = __builtin_fabs(X);
  const bool far1 = a >= 0x1p28, far2 = a >= 0x1p53, far3 = a >= 0x1p78, far4 = a >= 0x1p103;
  double high = far1 ? 0x1.7cc1b7p-7 : 0x1.45f306dp-1, middle = far1 ? 0x1.391054ap-34 : 0x1.9391054p-30;
  double low = far1 ? 0x1.fc2757d1f534cp-64 : 0x1.4fe13abe8fa9ap-59;
  high = far2 ? 0x1.c9c882ap-29 : high, middle = far2 ? 0x1.4fe13aap-59 : middle;
  low = far2 ? 0x1.e8fa9a6ee06dbp-87 : low;
  high = far3 ? 0x1.4a7f09dp-54 : high, middle = far3 ? 0x1.7d1f534p-84 : middle;
  low = far3 ? 0x1.bb81b6c52b326p-113 : low;
  high = far4 ? 0x1.abe8fa9p-79 : high, middle = far4 ? 0x1.4ddc0dbp-108 : middle;
  low = far4 ? 0x1.8a5664f10e41p-138 : low;
  const double fours = 0x1.8p54, ones = 0x1.8p52;  // numbers added to these are rounded to multiples of 4 and 1
  double p = X * high, m = X * middle;
  p -= (p + fours) - fours;
  double shifted = p + m + ones;
  q = (int32_t)double_to_bits(shifted);
  double rest = p - (shifted - ones) + m + X * low;
  return (float)(rest * 1.5707963267948966);
}
INLINED float sine_of_part(float r, float z) {
  return fused(r * z, horner(z, -1.95099143e-4f, 8.3321156e-3f, -1.66666538e-1f), r);
}
INLINED float cosine_of_part(float z) {
  return fused(z * z, horner(z, 2.44321091e-5f, -1.38873083e-3f, 4.16666456e-2f), fused(z, -0.5f, 1.f));
}
// Within 0.9 units.
INLINED float sin_(float x) {
  int32_t q;
  float r = quarter_turns(x, q), z = r * r;
  float y = q & 1 ? cosine_of_part(z) : sine_of_part(r, z);
  return x == 0.f ? x : bits_to_float(float_to_bits(y) ^ ((q & 2) << 30));
}
INLINED double sin_(double x) { return std::sin(x); }
INLINED float cos_(float x) {
  int32_t q;
  float r = quarter_turns(x, q), z = r * r;
  float y = q & 1 ? sine_of_part(r, z) : cosine_of_part(z);
  return bits_to_float(float_to_bits(y) ^ (((q + 1) & 2) << 30));
}
INLINED double cos_(double x) { return std::cos(x); }
"""
