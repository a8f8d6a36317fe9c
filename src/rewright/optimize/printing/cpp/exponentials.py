"""Exponentials, logarithms, powers and the error function in C++, without branches.

Polynomials have the least relative error on their interval, with coefficients rounded to the dtype one after the other
(J.-M. Muller, Elementary Functions, 3rd edition, chapters 3 and 11). ``tests/optimize/printing/test_ulps.py`` holds the
errors that are stated here, in units in the last place, against double precision and against fifty digits.
"""

EXPONENTIALS = r"""
// ---- scalar functions: without branches, so that loops over them become vector code; no || or && in a choice, which
// are branches that a compiler may keep where the arguments are such functions --------------------------------------
static const float INF = std::numeric_limits<float>::infinity();
static const float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
INLINED float bits_to_float(int32_t b) { float f; memcpy(&f, &b, 4); return f; }
INLINED int32_t float_to_bits(float f) { int32_t b; memcpy(&b, &f, 4); return b; }
INLINED double bits_to_double(int64_t b) { double f; memcpy(&f, &b, 8); return f; }
INLINED int64_t double_to_bits(double f) { int64_t b; memcpy(&b, &f, 8); return b; }
// One rounding for a product and a sum where the machine has that; elsewhere the compiler rounds every operation, as
// the program does: a score is equal to the maximum of scores in every bit, in whatever kernel it is computed again.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
INLINED float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINED double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
INLINED float fused(float a, float b, float c) { return a * b + c; }
INLINED double fused(double a, double b, double c) { return a * b + c; }
#endif
// A polynomial by Horner's rule, the coefficient of the highest power first.
template <class T> INLINED T horner(T, T c) { return c; }
template <class T, class... C> INLINED T horner(T x, T c, T next, C... rest) {
  return horner(x, fused(c, x, next), rest...);
}
// The last nine bits of n + POWERS are those of n - 1. Nothing is clamped on the way: a compiler makes more than one
// comparison of each that is made of a number before it is used.
static const float POWERS = 12582911.f;
// p 2^n for 0.7 < p < 1.42, by n + POWERS: as twice its half, or as 2^-63 times a number that is normal where n is
// small. So it is rounded once, also to infinity and to what is below the normal numbers. NaN stays.
INLINED float times_power_of_two(float p, float shifted) {
  bool small = shifted < POWERS - 64.f;
  uint32_t power = ((uint32_t)float_to_bits(shifted) << 23) + (small ? 64u << 23 : 0u);
  float y = bits_to_float((int32_t)((uint32_t)float_to_bits(p) + power)) * (small ? 0x1p-63f : 2.f);
  y = shifted < POWERS + 129.f ? y : shifted + INF;
  return shifted < POWERS - 151.f ? 0.f : y;
}
// exp by Cody-Waite reduction and the polynomial of degree 6 with the least relative error (3e-9). Within 0.9 units, or
// 1.2 where the machine has no fused product and sum. Infinities and NaN are as they should be.
INLINED float exp_(float x) {
  float shifted = fused(x, 1.44269504088896341f, POWERS), n = shifted - POWERS;
  float r = fused(n, -0.693145751953125f, x);
  r = fused(n, -1.42860682030941723e-6f, r);
  float p = horner(r, 1.38207478e-3f, 8.36867746e-3f, 4.16682661e-2f, 1.66665211e-1f, 4.9999994e-1f, 1.f, 1.f);
  return times_power_of_two(p, shifted);
}
// The whole number that is nearest to x, in the last bits of this and as a number; |x| < 2^51.
static const double SHIFT = 6755399441055744.;
INLINED double two_to_the_last_bits(double shifted, int64_t more = 1023) {
  return bits_to_double((double_to_bits(shifted) + more) << 52);
}
INLINED double reduced_by_log2(double x, double& shifted) {
  shifted = fused(x, 1.4426950408889634, SHIFT);
  double n = shifted - SHIFT, r = fused(n, -6.93147180369123816490e-01, x);
  return fused(n, -1.90821492927058770002e-10, r);
}
INLINED double exp_of_part(double r) {
  return horner(r, 2.5004924789586084e-08, 2.763049636435473e-07, 2.7557571226983787e-06, 2.4801492357490074e-05,
      0.00019841269523300278, 0.0013888888944409532, 0.008333333333486844, 0.04166666666652682, 0.16666666666666424,
      0.5000000000000011, 1., 1.);
}
// Polynomial of degree 11 (4e-18). Within 0.9 units, or 1.2.
INLINED double exp_(double x) {
  double c = x < -746. ? -746. : x, shifted;
  c = c > 710. ? 710. : c;
  double r = reduced_by_log2(c, shifted), half = fused(shifted - SHIFT, 0.5, SHIFT);
  double y = exp_of_part(r) * two_to_the_last_bits(half) * two_to_the_last_bits(shifted - (half - SHIFT));
  y = x > 709.782712893384 ? (double)INF : y;
  return x < -745.1332191019412 ? 0. : y;
}
// exp where the result is a normal number: -87 <= x <= 88.
INLINED float exp_of_moderate(float x) {
  float n = __builtin_rintf(x * 1.44269504088896341f);
  float r = fused(n, -0.693145751953125f, x);
  r = fused(n, -1.42860682030941723e-6f, r);
  float p = horner(r, 1.38207478e-3f, 8.36867746e-3f, 4.16682661e-2f, 1.66665211e-1f, 4.9999994e-1f, 1.f, 1.f);
  return p * bits_to_float(((int32_t)n + 127) << 23);
}
INLINED double exp_of_moderate(double x) {
  double shifted, r = reduced_by_log2(x, shifted);
  return exp_of_part(r) * two_to_the_last_bits(shifted);
}
// Two to what is left of a number, at most a half, by the polynomial of degree 6 with the least relative error (3e-9).
// Within 0.9 units, or 1.2.
INLINED float exp2_of_part(float r) {
  return horner(r, 1.53289249e-4f, 1.33909716e-3f, 9.61850025e-3f, 5.55035956e-2f, 2.40226477e-1f, 6.93147182e-1f, 1.f);
}
INLINED float exp2_(float x) {
  float shifted = x + POWERS;
  return times_power_of_two(exp2_of_part(x - (shifted - POWERS)), shifted);  // the reduction is exact
}
// two to the power x c, where c is the sum of two numbers: the product is rounded at the size of the remainder.
INLINED float exp2_(float x, float high, float low) {
  float shifted = fused(x, high, POWERS), n = shifted - POWERS;
  return times_power_of_two(exp2_of_part(fused(x, low, fused(x, high, -n))), shifted);
}
INLINED double exp2_(double x, double high, double low) { return std::exp2(x * high + x * low); }
INLINED double exp2_(double x) { return std::exp2(x); }
// exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), in which the last difference is exact or rounds as the result does; n is
// less by one in the powers, so that the largest results do not overflow on the way. Within 1.4 units, or 2
// in double precision.
INLINED float expm1_(float x) {
  float c = x < -18.f ? -18.f : x;
  c = c > 89.f ? 89.f : c;
  float n = __builtin_rintf(c * 1.44269504088896341f);
  float r = fused(n, -0.693145751953125f, c);
  r = fused(n, -1.42860682030941723e-6f, r);
  float p = horner(r, 1.97633461e-4f, 1.39323308e-3f, 8.33354425e-3f, 4.16664928e-2f, 1.66666657e-1f, 0.5f);
  p = fused(p * r, r, r);
  float half = bits_to_float(((int32_t)n + 126) << 23);
  float y = 2.f * fused(half, p, half - 0.5f);
  y = x > 88.7228394f ? INF : y;
  return x == 0.f ? x : y;
}
INLINED double expm1_(double x) {
  double c = x < -40. ? -40. : x, shifted;
  c = c > 710. ? 710. : c;
  double r = reduced_by_log2(c, shifted);
  double p = horner(r, 2.089359515924227e-09, 2.510914253741902e-08, 2.7557339283589224e-07, 2.755724388119773e-06,
      2.4801587253714944e-05, 0.00019841269886490317, 0.001388888888891575, 0.008333333333321463, 0.04166666666666662,
      0.16666666666666677, 0.5);
  p = fused(p * r, r, r);
  double half = two_to_the_last_bits(shifted, 1022), y = 2. * fused(half, p, half - 0.5);
  y = x > 709.782712893384 ? (double)INF : y;
  return x == 0. ? x : y;
}
// log(2^k (1 + m)) for sqrt(1/2) - 1 <= m <= sqrt(2) - 1, by m - m^2 / 2 + m^3 q(m); the high part of log 2 times k is
// exact.
INLINED float log_of_parts(float k, float m) {
  float z = m * m;
  float q = horner(m, 6.7325063e-2f, -1.16609275e-1f, 1.18865497e-1f, -1.24081753e-1f, 1.422019e-1f, -1.66678548e-1f,
      2.00020745e-1f, -2.50000119e-1f, 3.33333135e-1f);
  float y = fused(m * z, q, k * 1.42860682030941723e-6f);
  return fused(k, 0.693145751953125f, fused(z, -0.5f, y) + m);
}
// Within 0.9 units.
INLINED float log_(float x) {
  float s = x < 1.17549435e-38f ? x * 8388608.f : x;  // numbers below the smallest normal one
  int32_t b = float_to_bits(s), e = (b - 0x3f3504f3) >> 23;
  float y = log_of_parts((float)e - (x < 1.17549435e-38f ? 23.f : 0.f), bits_to_float(b - (e << 23)) - 1.f);
  y = x == INF ? INF : y;
  y = x == 0.f ? -INF : y;
  return x >= 0.f ? y : NOT_A_NUMBER;
}
// The same in double precision, by the series in m / (2 + m) of FreeBSD's e_log.c. Within 1.0 units.
INLINED double log_of_parts(double k, double m) {
  double s = m / (2. + m), z = s * s, h = 0.5 * m * m;
  double R = z * horner(z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
      2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01);
  double y = fused(s, h + R, k * 1.90821492927058770002e-10);
  return fused(k, 6.93147180369123816490e-01, m - (h - y));
}
INLINED double parted(double x, double& k) {  // the exponent k, and x / 2^k
  int64_t b = double_to_bits(x), e = (b - 0x3fe6a09e667f3bcdL) >> 52;
  k = bits_to_double(e + double_to_bits(SHIFT)) - SHIFT;
  return bits_to_double(b - (int64_t)((uint64_t)e << 52));
}
INLINED double log_(double x) {
  bool is_small = x < 2.2250738585072014e-308;
  double k, m = parted(is_small ? x * 4503599627370496. : x, k) - 1.;
  double y = log_of_parts(k - (is_small ? 52. : 0.), m);
  y = x == (double)INF ? (double)INF : y;
  y = x == 0. ? -(double)INF : y;
  return x >= 0. ? y : (double)NOT_A_NUMBER;
}
// log(1 + x) with k from the exponent of the rounded 1 + x, and m = 2^-k x + (2^-k - 1), where nothing cancels that was
// rounded. Within 1.4 units.
INLINED float log1p_(float x) {
  float s = x > 1.2676506e30f ? x * 5.4210109e-20f : x;  // by 2^-64, so that the inverse of its power is normal
  int32_t e = (float_to_bits(1.f + s) - 0x3f3504f3) >> 23;
  float scale = bits_to_float((127 - e) << 23);
  float y = log_of_parts((float)e + (x > 1.2676506e30f ? 64.f : 0.f), fused(s, scale, scale - 1.f));
  y = x == INF ? INF : y;
  y = x == -1.f ? -INF : y;
  y = x == 0.f ? x : y;
  return x >= -1.f ? y : NOT_A_NUMBER;
}
INLINED double log1p_(double x) {
  bool is_large = x > 0x1p600;
  double k, s = is_large ? x * 0x1p-512 : x;
  parted(1. + s, k);
  double scale = two_to_the_last_bits(SHIFT - k);
  double y = log_of_parts(k + (is_large ? 512. : 0.), fused(s, scale, scale - 1.));
  y = x == (double)INF ? (double)INF : y;
  y = x == -1. ? -(double)INF : y;
  y = x == 0. ? x : y;
  return x >= -1. ? y : (double)NOT_A_NUMBER;
}
// x + x^3 p(x^2) near zero, else 1 - 2 / (exp(2 x) + 1) (Cephes). Within 1.3 units.
INLINED float tanh_(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float small = fused(a * z, horner(z, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
      -3.33332819422e-1f), a);
  float big = 1.f - 2.f / (exp_of_moderate(2.f * (a > 10.f ? 10.f : a)) + 1.f);
  return __builtin_copysignf(a < 0.625f ? small : big, x);
}
// With t = exp(-2 |x|) - 1: -t / (t + 2), or 1 - 2 (t + 1) / (t + 2). Within 2.6 units.
INLINED double tanh_(double x) {
  double a = __builtin_fabs(x), t = expm1_(-2. * a);
  double q = (a < 0.55 ? -t : 2. * (t + 1.)) / (t + 2.);
  return __builtin_copysign(a < 0.55 ? q : 1. - q, x);
}
// 1 - exp(-t - t q(t)), which is one from 4 on (the form of Cody, 1969), as 1 - 2^n - 2^n (exp(r) - 1), in which small
// results keep their digits. Within 1.8 units.
INLINED float erf_(float x) {
  float a = __builtin_fabsf(x), t = a > 4.f ? 4.f : a;
  float q = horner(t, -9.3990202e-6f, 1.18952434e-4f, -6.37656543e-4f, 1.67614361e-3f, -1.69888939e-4f,
      -1.91476699e-2f, 1.02776282e-1f, 6.36619568e-1f, 1.28379166e-1f);
  float u = -fused(t, q, t), n = __builtin_rintf(u * 1.44269504088896341f);
  float r = fused(n, -0.693147182f, u);  // what is left out is n times 2e-9, in a result of 2^n
  float p = horner(r, 1.38672697e-3f, 8.36640131e-3f, 4.16674726e-2f, 1.6666545e-1f, 4.9999997e-1f);
  float power = bits_to_float(((int32_t)n + 127) << 23);
  return __builtin_copysignf(fused(-power, fused(p * r, r, r), 1.f - power), x);
}
// x + x p(x^2) near zero, else the same. Within 1.1 units, or 1.3.
INLINED double erf_(double x) {
  double a = __builtin_fabs(x), z = x * x, t = a > 6. ? 6. : a;
  double small = fused(a, horner(z, 1.3365873325170433e-10, -1.5855376841246754e-09, 1.584739979017826e-08,
      -1.6531263055359808e-07, 1.6478506739583039e-06, -1.4926715669004702e-05, 0.0001205537903833472,
      -0.0008548328333750175, 0.005223977649110006, -0.026866170647662786, 0.11283791670969215, -0.37612638903184065,
      0.1283791670955126), a);
  double q = horner(t, -1.0297556848377516e-14, 6.691433343470838e-13, -1.9889608916136506e-11, 3.6306264349722617e-10,
      -4.591550064010155e-09, 4.290938771130947e-08, -3.077849811405161e-07, 1.7317357554395824e-06,
      -7.706775168645429e-06, 2.690977535167766e-05, -7.086049053635152e-05, 0.00012231917696692697,
      -3.9766477727349384e-05, -0.0005302264455584542, 0.0016528437422401127, -0.00018484753892302066,
      -0.019138669039828183, 0.10277562221490251, 0.636619213260371, 0.12837921591871423);
  double big = 1. - exp_of_moderate(-fused(t, q, t));
  return __builtin_copysign(a < 1. ? small : big, x);
}
// 2^(y log2 |x|) in double precision, whose rounding to float32 gives overflow and results below the smallest normal
// number; the special cases are those of C99 (F.9.4.4). Within 0.51 units.
INLINED float power_(float x, float y) {
  float a = __builtin_fabsf(x), s = a < 1.17549435e-38f ? a * 8388608.f : a;
  int32_t b = float_to_bits(s), e = (b - 0x3f3504f3) >> 23;
  double t = (double)(bits_to_float(b - (e << 23)) - 1.f);
  double p = horner(t, -0.06971613263417328, 0.1324939391005047, -0.13463211321100568, 0.13028038661163505,
      -0.1424988282974423, 0.16021618712000196, -0.18043670809518575, 0.20610714589789872, -0.24044643571058588,
      0.288538795220953, -0.3606737930995239, 0.4808983488071372, -0.7213475203277248, 1.4426950408865684);
  double log2 = fused(p, t, (double)((float)e - (a < 1.17549435e-38f ? 23.f : 0.f)));
  log2 = a == 0.f ? -(double)INF : a == INF ? (double)INF : log2;
  double z = (double)y * log2;
  z = a == 1.f ? 0. : z;
  double c = z > 200. ? 200. : z;
  c = c < -200. ? -200. : c;
  double shifted = c + 6755399441055744., r = c - (shifted - 6755399441055744.);  // the last bits are the whole number
  double w = horner(r, 1.520181971759744e-05, 0.00015469316657051779, 0.0013333923208897435, 0.009618027175205298,
      0.05550410352395748, 0.24022651198731762, 0.6931471807288501, 0.9999999999616246);
  float found = (float)(w * bits_to_double((double_to_bits(shifted) + 1023) << 52));
  float half = 0.5f * y, none = a == 0.f ? found : NOT_A_NUMBER;
  none = a == INF ? found : none;
  float negative = __builtin_truncf(half) != half ? -found : found;  // of a base below zero, where y is whole
  negative = __builtin_truncf(y) != y ? none : negative;
  found = float_to_bits(x) < 0 ? negative : found;
  found = x != x ? x : found;
  found = y != y ? y : found;
  found = y == 0.f ? 1.f : found;
  return x == 1.f ? 1.f : found;
}
INLINED double power_(double x, double y) { return std::pow(x, y); }
"""
