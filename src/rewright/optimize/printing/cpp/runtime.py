"""The C++ that every generated kernel begins with: vectors, scalar functions, and products of tiles."""

HEADER = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <omp.h>

// ---- element types -------------------------------------------------------------------------------------------
typedef _Float16 half_t;
struct bfloat_t { uint16_t bits; };
static inline float value(float x) { return x; }
static inline double value(double x) { return x; }
static inline float value(half_t x) { return (float)x; }
static inline float value(bfloat_t x) { uint32_t b = (uint32_t)x.bits << 16; float f; memcpy(&f, &b, 4); return f; }
static inline long value(int64_t x) { return x; }
static inline long value(int32_t x) { return x; }
static inline long value(int16_t x) { return x; }
static inline long value(int8_t x) { return x; }
static inline long value(uint8_t x) { return x; }
static inline bool value(bool x) { return x; }
template <class T> static inline void put(T& to, double x) { to = (T)x; }
template <class T> static inline void put(T& to, float x) { to = (T)x; }
template <class T> static inline void put(T& to, long x) { to = (T)x; }
template <class T> static inline void put(T& to, bool x) { to = (T)x; }
static inline void put(bfloat_t& to, float x) {
  uint32_t b; memcpy(&b, &x, 4);
  to.bits = (b & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : (uint16_t)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
static inline void put(bfloat_t& to, double x) { put(to, (float)x); }

// ---- scalar functions: without branches, so that loops over them become vector code ---------------------------
static const float INF = std::numeric_limits<float>::infinity();
static inline float bits_to_float(int32_t b) { float f; memcpy(&f, &b, 4); return f; }
static inline int32_t float_to_bits(float f) { int32_t b; memcpy(&b, &f, 4); return b; }
// One rounding for a product and a sum where the machine has that; elsewhere the compiler rounds every operation, as
// the program does: a score is equal to the maximum of scores in every bit, in whatever kernel it is computed again.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
static inline float fused(float a, float b, float c) { return a * b + c; }
#endif
// exp by Cody-Waite reduction and the polynomial of degree 6 with the least relative error (3e-9); with one added
// last, the result is within 0.65 units in the last place. Infinities and NaN are as they should be.
static inline float exp_(float x) {
  float c = x < -104.f ? -104.f : x;
  c = c > 89.f ? 89.f : c;
  float n = __builtin_rintf(c * 1.44269504088896341f);
  float r = fused(n, -0.693145751953125f, c);
  r = fused(n, -1.42860682030941723e-6f, r);
  float p = 1.381432e-3f;
  p = fused(p, r, 8.368852e-3f); p = fused(p, r, 4.16684e-2f); p = fused(p, r, 1.666652e-1f);
  p = fused(p, r, 4.9999994e-1f); p = fused(p * r, r, r) + 1.f;
  int32_t k = (int32_t)n, half = k >> 1;  // in two steps: results below the smallest normal number keep their value
  float y = p * bits_to_float((half + 127) << 23) * bits_to_float((k - half + 127) << 23);
  y = x > 88.7228f ? INF : y;
  return x < -103.97f ? 0.f : y;
}
static inline double exp_(double x) { return std::exp(x); }
// two to the power n + r, where r is at most a half, by the polynomial of exp2f in the Cephes library; 0 and INF where
// x is out of range.
static inline float power_of_two(float x, float n, float r) {
  float p = 1.535336188319500e-4f;
  p = fused(p, r, 1.339887440266574e-3f); p = fused(p, r, 9.618437357674640e-3f);
  p = fused(p, r, 5.550332471162809e-2f); p = fused(p, r, 2.402264791363012e-1f);
  p = fused(p, r, 6.931472028550421e-1f); p = fused(p, r, 1.f);
  int32_t k = (int32_t)n, half = k >> 1;
  float y = p * bits_to_float((half + 127) << 23) * bits_to_float((k - half + 127) << 23);
  y = x >= 128.f ? INF : y;
  return x < -150.f ? 0.f : y;
}
static inline float within_exponents(float x) { x = x < -150.f ? -150.f : x; return x > 129.f ? 129.f : x; }
static inline float exp2_(float x) {
  float c = within_exponents(x), n = __builtin_rintf(c);
  return power_of_two(x, n, c - n);  // the reduction is exact
}
// two to the power x c, where c is the sum of two numbers: the product is rounded at the size of the remainder.
static inline float exp2_(float x, float high, float low) {
  float y = x * high, n = __builtin_rintf(within_exponents(y));
  return power_of_two(y, n, fused(x, low, fused(x, high, -n)));
}
static inline double exp2_(double x, double high, double low) { return std::exp2(x * high + x * low); }
static inline double exp2_(double x) { return std::exp2(x); }
static inline float log_(float x) {
  float s = x < 1.17549435e-38f ? x * 8388608.f : x;  // numbers below the smallest normal one
  int32_t b = float_to_bits(s), e = ((b - 0x3f3504f3) >> 23);
  float m = bits_to_float(b - (e << 23)) - 1.f, z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f; p = p * m + 1.1676998740e-1f; p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f; p = p * m - 1.6668057665e-1f; p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f; p = p * m + 3.3333331174e-1f;
  float k = (float)e - (x < 1.17549435e-38f ? 23.f : 0.f);
  float y = m * z * p + k * -2.12194440e-4f - 0.5f * z + m + 0.693359375f * k;
  y = x == INF ? INF : y;
  y = x == 0.f ? -INF : y;
  return x < 0.f || x != x ? std::numeric_limits<float>::quiet_NaN() : y;
}
static inline double log_(double x) { return std::log(x); }
static inline float tanh_(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float small = x + x * z * (-3.33332819422e-1f + z * (1.33314422036e-1f + z * (-5.37397155531e-2f
              + z * (2.06390887954e-2f + z * -5.70498872745e-3f))));
  float big = __builtin_copysignf(1.f - 2.f / (exp_(2.f * a) + 1.f), x);
  return a < 0.625f ? small : (x != x ? x : big);
}
static inline double tanh_(double x) { return std::tanh(x); }
template <class T> static inline T logistic_(T x) { return (T)1 / ((T)1 + exp_(-x)); }
template <class T> static inline T rsqrt_(T x) { return (T)1 / std::sqrt(x); }
template <class T> static inline T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> static inline T smaller(T a, T b) { return a < b || a != a ? a : b; }
template <class T> static inline T sign_(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : (T)0; }
template <class T> static inline T nan_or_power(T a, T b) { return std::pow(a, b); }
// Integers over integers, towards zero. Nothing is computed where a divisor is zero: such calls run the program itself.
static inline long quotient_(long a, long b) { return b == 0 ? 0 : b == -1 ? (long)(0ul - (unsigned long)a) : a / b; }
static inline long rest_(long a, long b) { return b == 0 || b == -1 ? 0 : a % b; }
static inline long floor_div(long a, long b) { long q = a / b; return q - ((a % b != 0) && ((a < 0) != (b < 0))); }
static inline long floor_mod(long a, long b) { return a - b * floor_div(a, b); }

// ---- conditions on the indices of a tile: 1 everywhere, 0 nowhere, -1 here and there -------------------------
static inline int everywhere_at_least_zero(long low, long high) { return low >= 0 ? 1 : high < 0 ? 0 : -1; }
static inline int everywhere_zero(long low,
    long high) { return low == 0 && high == 0 ? 1 : low > 0 || high < 0 ? 0 : -1; }
static inline int both(int a, int b) { return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1; }
static inline int either(int a, int b) { return a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : -1; }
static inline int neither(int a) { return a < 0 ? a : 1 - a; }

// ---- products of tiles: C (m x n) = or += A (m x k) B (k x n), rows of B and C are whole vectors -------------
// Sums over the depth are sums of short ones, which have fewer rounding errors than one long chain; what is the same
// product in two kernels is added in the same order in both.
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
#if defined(__AVX512F__)
#define LANES 16
#define BLOCK_ROWS 6
#define BLOCK_VECTORS 4
#elif defined(__AVX__)
#define LANES 8
#define BLOCK_ROWS 6
#define BLOCK_VECTORS 2
#else
#define LANES 4
#define BLOCK_ROWS 4
#define BLOCK_VECTORS 2
#endif
#define CHAIN 64
template <class T> struct Vector { typedef T type __attribute__((vector_size(LANES * 4), aligned(4))); };
template <class T, int M, int V>
static inline __attribute__((always_inline)) void block(long k, const T* a, long lda, const T* b, long ldb, T* c,
    long ldc, bool add) {
  typedef typename Vector<T>::type vec;
  constexpr int L = LANES * 4 / sizeof(T);
  long p = 0;
  do {
    const long end = p + CHAIN < k ? p + CHAIN : k;
    const bool more = add || p;
    vec s[M][V];
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < V; ++j) s[i][j] = vec{};
    for (; p < end; ++p) {
      vec row[V];
      for (int j = 0; j < V; ++j) row[j] = *(const vec*)(b + p * ldb + j * L);
      for (int i = 0; i < M; ++i) {
        T x = a[i * lda + p];
        for (int j = 0; j < V; ++j) s[i][j] += x * row[j];
      }
    }
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < V; ++j) {
        vec* to = (vec*)(c + i * ldc + j * L);
        *to = more ? *to + s[i][j] : s[i][j];
      }
  } while (p < k);
}
template <class T, int V>
static __attribute__((noinline)) void panel(long m, long k, const T* a, long lda, const T* b, long ldb, T* c,
    long ldc, bool add) {
  long i = 0;
  for (; i + BLOCK_ROWS <= m; i += BLOCK_ROWS) block<T, BLOCK_ROWS, V>(k, a + i * lda, lda, b, ldb, c + i * ldc,
      ldc, add);
  for (; i + 2 <= m; i += 2) block<T, 2, V>(k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
  for (; i < m; ++i) block<T, 1, V>(k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
}
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC pop_options
#endif
template <class T>
static inline void tile_product(long m, long n, long k, const T* a, long lda, const T* b, long ldb, T* c, long ldc,
    bool add) {
  constexpr int L = LANES * 4 / sizeof(T);
  long j = 0;
  for (; j + BLOCK_VECTORS * L <= n; j += BLOCK_VECTORS * L) panel<T, BLOCK_VECTORS>(m, k, a, lda, b + j, ldb,
      c + j, ldc, add);
  for (; j < n; j += L) panel<T, 1>(m, k, a, lda, b + j, ldb, c + j, ldc, add);
}
template <class T> static inline void add_rows(long k, long n, const T* b, T* c) {  // C (n) += the rows of B (k x n)
  for (long p = 0; p < k; ++p)
    for (long j = 0; j < n; ++j) c[j] += b[p * n + j];
}
struct Scratch {  // memory of one thread, freed at the end
  char* data; size_t used;
  explicit Scratch(size_t bytes) : data((char*)std::aligned_alloc(64, (bytes + 8191) / 4096 * 4096)), used(0) {}
  ~Scratch() { std::free(data); }
  template <class T> T* take(size_t count) { T* p = (T*)(data + used); used += (count * sizeof(T) + 63) / 64 * 64;
      return p; }
};
"""
