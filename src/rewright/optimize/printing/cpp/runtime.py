"""The C++ that every generated kernel begins with: vectors, scalar functions, and products of tiles."""

from rewright.optimize.printing.cpp.exponentials import EXPONENTIALS
from rewright.optimize.printing.cpp.products import PRODUCTS
from rewright.optimize.printing.cpp.trigonometry import TRIGONOMETRY

_ELEMENTS = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <omp.h>
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

// Whatever their size is: a loop with a call that is left in it is no vector code.
#define INLINED static inline __attribute__((always_inline))

// ---- element types -------------------------------------------------------------------------------------------
typedef _Float16 half_t;
struct bfloat_t { uint16_t bits; };
struct truth_t { uint8_t byte; };  // of bool g++ makes no vectors
INLINED float value(float x) { return x; }
INLINED double value(double x) { return x; }
INLINED float value(half_t x) { return (float)x; }
INLINED float value(bfloat_t x) { uint32_t b = (uint32_t)x.bits << 16; float f; memcpy(&f, &b, 4); return f; }
INLINED long value(int64_t x) { return x; }
INLINED long value(int32_t x) { return x; }
INLINED long value(int16_t x) { return x; }
INLINED long value(int8_t x) { return x; }
INLINED long value(uint8_t x) { return x; }
INLINED bool value(truth_t x) { return x.byte != 0; }
template <class T> INLINED void put(T& to, double x) { to = (T)x; }
template <class T> INLINED void put(T& to, float x) { to = (T)x; }
template <class T> INLINED void put(T& to, long x) { to = (T)x; }
template <class T> INLINED void put(T& to, bool x) { to = (T)x; }
INLINED void put(truth_t& to, bool x) { to.byte = x; }
INLINED void put(truth_t& to, long x) { to.byte = x != 0; }
INLINED void put(truth_t& to, float x) { to.byte = x != 0; }
INLINED void put(truth_t& to, double x) { to.byte = x != 0; }
INLINED void put(bfloat_t& to, float x) {
  uint32_t b; memcpy(&b, &x, 4);
  b = x == x ? b + 0x7fff + ((b >> 16) & 1) : 0x7fc00000;
  to.bits = (uint16_t)(b >> 16);
}
INLINED void put(bfloat_t& to, double x) { put(to, (float)x); }
template <class T> INLINED T rounded_f32(T x) { return (T)(float)x; }
template <class T> INLINED T rounded_f16(T x) { return (T)(half_t)x; }
INLINED float rounded_bf16(float x) {
  uint32_t b; memcpy(&b, &x, 4);
  b = (b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000;
  float f; memcpy(&f, &b, 4);
  return x == x ? f : x;
}
INLINED double rounded_bf16(double x) { return rounded_bf16((float)x); }

"""
_SCALARS = r"""
template <class T> INLINED T logistic_(T x) {  // without infinities on the way: results below 1e-38 are kept
  T small = exp_(x < 0 ? x : -x);
  return (x < 0 ? small : (T)1) / ((T)1 + small);
}
template <class T> INLINED T rsqrt_(T x) { return (T)1 / std::sqrt(x); }
template <class T> INLINED T larger(T a, T b) { return (a > b) | (a != a) ? a : b; }
template <class T> INLINED T smaller(T a, T b) { return (a < b) | (a != a) ? a : b; }
template <class T> INLINED T sign_(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : (T)0; }
// Integers over integers, towards zero. Nothing is computed where a divisor is zero: such calls run the program itself.
INLINED long quotient_(long a, long b) { return b == 0 ? 0 : b == -1 ? (long)(0ul - (unsigned long)a) : a / b; }
INLINED long rest_(long a, long b) { return b == 0 || b == -1 ? 0 : a % b; }
INLINED long floor_div(long a, long b) { long q = a / b; return q - ((a % b != 0) && ((a < 0) != (b < 0))); }
INLINED long floor_mod(long a, long b) { return a - b * floor_div(a, b); }

// ---- conditions on the indices of a tile: 1 everywhere, 0 nowhere, -1 here and there -------------------------
INLINED int everywhere_at_least_zero(long low, long high) { return low >= 0 ? 1 : high < 0 ? 0 : -1; }
INLINED int everywhere_zero(long low,
    long high) { return low == 0 && high == 0 ? 1 : low > 0 || high < 0 ? 0 : -1; }
INLINED int both(int a, int b) { return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1; }
INLINED int either(int a, int b) { return a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : -1; }
INLINED int neither(int a) { return a < 0 ? a : 1 - a; }

"""
_MEMORY = r"""
#ifdef __SANITIZE_ADDRESS__
#include <algorithm>
#include <vector>
struct Scratch {  // each part by itself, so that it is seen where one is overrun
  std::vector<void*> parts;
  explicit Scratch(size_t) {}
  ~Scratch() { for (void* part : parts) std::free(part); }
  template <class T> T* take(size_t count) { void* part = nullptr;
      if (posix_memalign(&part, 64, std::max<size_t>(count, 1) * sizeof(T)) != 0) std::abort();
      parts.push_back(part); return (T*)part; }
};
#else
struct Scratch {  // memory of one thread, freed at the end
  char* data; size_t used;
  explicit Scratch(size_t bytes) : data((char*)std::aligned_alloc(64, (bytes + 8191) / 4096 * 4096)), used(0) {}
  ~Scratch() { std::free(data); }
  template <class T> T* take(size_t count) { T* p = (T*)(data + used); used += (count * sizeof(T) + 63) / 64 * 64;
      return p; }
};
#endif
"""
HEADER = "\n".join(part.strip() for part in (_ELEMENTS, EXPONENTIALS, TRIGONOMETRY, _SCALARS, PRODUCTS, _MEMORY)) + "\n"
