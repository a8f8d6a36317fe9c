"""Products of tiles in C++, and how their operands are turned."""

PRODUCTS = r"""
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
template <class T, class S> INLINED T converted(S x) {  // integers not by way of 64 bits, which is slow
  if constexpr (std::is_integral_v<S>) return (T)x;
  else return (T)value(x);
}
template <class S, int L> struct Some { typedef S type __attribute__((vector_size(L * sizeof(S)))); };
template <class T, class S> INLINED typename Vector<T>::type vector_of(const S* from) {
  typedef typename Vector<T>::type vec;
  if constexpr (std::is_same_v<T, S>) return *(const vec*)from;
  constexpr int L = sizeof(vec) / sizeof(T);
  if constexpr (std::is_integral_v<S> && sizeof(S) == 1) {  // twice as wide in each step, else a compiler goes singly
    typename Some<S, L>::type read;
    memcpy(&read, from, sizeof(read));
    const auto wide = __builtin_convertvector(read, typename Some<int16_t, L>::type);
    return __builtin_convertvector(__builtin_convertvector(wide, typename Some<int32_t, L>::type), vec);
  }
  T row[L];
  for (int j = 0; j < L; ++j) row[j] = converted<T>(from[j]);
  vec found;
  memcpy(&found, row, sizeof(vec));
  return found;
}
template <class T, int M, int V, class S>
INLINED void block(long k, const T* a, long lda, const S* b, long ldb, T* c,
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
      for (int j = 0; j < V; ++j) row[j] = vector_of<T>(b + p * ldb + j * L);
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
template <class T, int V, class S>
static __attribute__((noinline)) void panel(long m, long k, const T* a, long lda, const S* b, long ldb, T* c,
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
template <class T, class S>
INLINED void tile_product(long m, long n, long k, const T* a, long lda, const S* b, long ldb, T* c, long ldc,
    bool add) {
  constexpr int L = LANES * 4 / sizeof(T);
  long j = 0;
  for (; j + BLOCK_VECTORS * L <= n; j += BLOCK_VECTORS * L) panel<T, BLOCK_VECTORS>(m, k, a, lda, b + j, ldb,
      c + j, ldc, add);
  for (; j < n; j += L) panel<T, 1>(m, k, a, lda, b + j, ldb, c + j, ldc, add);
}
// The same of A and B rounded to bfloat16: two of the depth at once, where the machine has that. Numbers below the
// smallest normal one are zero then, and everything rounds to nearest whatever the mode of the thread is.
#if defined(__AVX512BF16__)
template <int M, int V>
INLINED void block_of_pairs(long pairs, const uint32_t* a, const __m512i* b, float* c, long ldc, bool add) {
  __m512 s[M][V];
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < V; ++j) s[i][j] = _mm512_setzero_ps();
  for (long p = 0; p < pairs; ++p)
    for (int i = 0; i < M; ++i) {
      const __m512i x = _mm512_set1_epi32((int)a[i * (CHAIN / 2) + p]);
      for (int j = 0; j < V; ++j) s[i][j] = _mm512_dpbf16_ps(s[i][j], (__m512bh)x, (__m512bh)b[p * V + j]);
    }
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < V; ++j) {
      float* to = c + i * ldc + j * 16;
      _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), s[i][j]) : s[i][j]);
    }
}
INLINED __m512 first_of(const float* from, long count) {  // of sixteen; the rest are zero
  return _mm512_maskz_loadu_ps(count >= 16 ? 0xffff : count <= 0 ? 0 : (1u << count) - 1, from);
}
template <int M, int V>
INLINED void rows_of_pairs(long depth, const float* a, long lda, const __m512i* b, float* c, long ldc, bool add) {
  alignas(64) uint32_t left[M * (CHAIN / 2)];
  for (int i = 0; i < M; ++i)
    for (long d = 0; d < depth; d += 32) {
      const float* from = a + i * lda + d;
      const auto both = _mm512_cvtne2ps_pbh(first_of(from + 16, depth - d - 16), first_of(from, depth - d));
      memcpy(left + i * (CHAIN / 2) + d / 2, &both, 64);
    }
  block_of_pairs<M, V>((depth + 1) / 2, left, b, c, ldc, add);
}
template <int V>
static __attribute__((noinline)) void panel_of_pairs(long m, long depth, const float* a, long lda, const float* b,
    long ldb, float* c, long ldc, bool add) {
  alignas(64) __m512i right[CHAIN / 2 * V];
  alignas(64) int16_t order[32];  // an element of one row, and the one below it
  for (int i = 0; i < 32; ++i) order[i] = i / 2 + i % 2 * 16;
  const __m512i pairs = _mm512_load_si512(order);
  for (long p = 0; p < depth; p += 2)
    for (int j = 0; j < V; ++j) {
      const float* row = b + p * ldb + j * 16;
      const __m512 next = p + 1 < depth ? _mm512_loadu_ps(row + ldb) : _mm512_setzero_ps();
      right[p / 2 * V + j] = _mm512_permutexvar_epi16(pairs, (__m512i)_mm512_cvtne2ps_pbh(next, _mm512_loadu_ps(row)));
    }
  long i = 0;
  for (; i + 6 <= m; i += 6) rows_of_pairs<6, V>(depth, a + i * lda, lda, right, c + i * ldc, ldc, add);
  for (; i < m; ++i) rows_of_pairs<1, V>(depth, a + i * lda, lda, right, c + i * ldc, ldc, add);
}
static inline void tile_product_of_bfloats(long m, long n, long k, const float* a, long lda, const float* b, long ldb,
    float* c, long ldc, bool add) {
  for (long p = 0; p < k || p == 0; p += CHAIN) {
    const long depth = k - p < CHAIN ? k - p : CHAIN;
    long j = 0;
    for (; j + 64 <= n; j += 64) panel_of_pairs<4>(m, depth, a + p, lda, b + p * ldb + j, ldb, c + j, ldc, add || p);
    for (; j < n; j += 16) panel_of_pairs<1>(m, depth, a + p, lda, b + p * ldb + j, ldb, c + j, ldc, add || p);
  }
}
#else
INLINED void tile_product_of_bfloats(long m, long n, long k, const float* a, long lda, const float* b, long ldb,
    float* c, long ldc, bool add) {
  tile_product<float>(m, n, k, a, lda, b, ldb, c, ldc, add);
}
#endif
template <class T> INLINED void add_rows(long k, long n, const T* b, T* c) {  // C (n) += the rows of B (k x n)
  for (long p = 0; p < k; ++p)
    for (long j = 0; j < n; ++j) c[j] += b[p * n + j];
}
// ---- rows of a tensor as columns of a tile: blocks of whole vectors are turned in registers, by exchanges of halves,
// quarters, and so on (the recursive scheme of Eklundh, 1972) ------------------------------------------------------
template <int S, class V, size_t... I>
INLINED void exchange(V& a, V& b, std::index_sequence<I...>) {
  constexpr int L = sizeof...(I);
  V low = __builtin_shufflevector(a, b, (int)(I & S ? L + I - S : I)...);
  V high = __builtin_shufflevector(a, b, (int)(I & S ? L + I : I + S)...);
  a = low, b = high;
}
template <int S, int L, class V> INLINED void turn_block(V (&rows)[L]) {
  for (int i = 0; i < L; ++i)
    if (!(i & S)) exchange<S>(rows[i], rows[i + S], std::make_index_sequence<L>{});
  if constexpr (S > 1) turn_block<S / 2, L, V>(rows);
}
template <class T, class S>
static __attribute__((noinline)) void turn_rows(long count, long depth, const S* __restrict from, long stride,
    T* __restrict to, long width) {
  typedef typename Vector<T>::type vec;
  constexpr int L = LANES * 4 / sizeof(T);
  long c = 0;
  for (; c + L <= count; c += L) {
    long d = 0;
    for (; d + L <= depth; d += L) {
      vec rows[L];
      for (int i = 0; i < L; ++i) rows[i] = vector_of<T>(from + (c + i) * stride + d);
      turn_block<L / 2, L, vec>(rows);
      for (int i = 0; i < L; ++i) *(vec*)(to + (d + i) * width + c) = rows[i];
    }
    for (; d < depth; ++d)
      for (int i = 0; i < L; ++i) to[d * width + c + i] = (T)value(from[(c + i) * stride + d]);
  }
  for (; c < count; ++c)
    for (long d = 0; d < depth; ++d) to[d * width + c] = (T)value(from[c * stride + d]);
}
// ---- products whose right operand is read as it lies: C (m x n) = A (m x k) times n rows of k elements --------
// For few rows, which do not repay a copy of it. Sixteen sums at a time, each in the places of a vector, which are
// added by exchanges of halves: in one order, whichever of the sixteen a sum is.
template <int S, int L, class V> INLINED V sums_of_places(V (&rows)[L]) {
  for (int i = 0; i < S; ++i) {
    exchange<S>(rows[i], rows[i + S], std::make_index_sequence<L>{});
    rows[i] += rows[i + S];
  }
  if constexpr (S > 1) return sums_of_places<S / 2, L, V>(rows);
  return rows[0];
}
template <class T, class S> INLINED typename Vector<T>::type some_of(const S* from, long count) {
  constexpr long L = LANES * 4 / sizeof(T);
  if (count >= L) return vector_of<T>(from);
  T row[L] = {};
  for (long j = 0; j < count; ++j) row[j] = converted<T>(from[j]);
  typename Vector<T>::type found;
  memcpy(&found, row, sizeof(found));
  return found;
}
template <bool NARROW, int M, class T, class S>
INLINED void rows_by_rows(long n, long k, const T* a, long lda, const S* b, long ldb, T* c, long ldc) {
  typedef typename Vector<T>::type vec;
  constexpr int L = LANES * 4 / sizeof(T), Q = L / M;
  for (long j = 0; j < n; j += Q) {
    const long last = n - 1 - j;  // rows beyond it are read as this one, and not written
    const S* from[Q];
    for (int q = 0; q < Q; ++q) from[q] = b + (j + (q < last ? q : last)) * ldb;
    vec s[L] = {};
#if defined(__AVX512BF16__)
    if constexpr (NARROW && std::is_same_v<S, bfloat_t>) {
      for (long p = 0; p < k; p += 32) {
        const uint32_t mask = k - p >= 32 ? 0xffffffffu : (1u << (k - p)) - 1;
        __m512bh x[M];
        for (int i = 0; i < M; ++i) x[i] = _mm512_cvtne2ps_pbh(first_of(a + i * lda + p + 16, k - p - 16),
            first_of(a + i * lda + p, k - p));
        for (int q = 0; q < Q; ++q) {
          const __m512bh row = (__m512bh)_mm512_maskz_loadu_epi16(mask, from[q] + p);
          for (int i = 0; i < M; ++i) s[i * Q + q] = (vec)_mm512_dpbf16_ps((__m512)s[i * Q + q], x[i], row);
        }
      }
    } else
#endif
    for (long p = 0; p < k; p += L) {
      vec x[M];
      for (int i = 0; i < M; ++i) x[i] = some_of<T>(a + i * lda + p, k - p);
      for (int q = 0; q < Q; ++q) {
        const vec row = some_of<T>(from[q] + p, k - p);
        for (int i = 0; i < M; ++i) s[i * Q + q] += x[i] * row;
      }
    }
    const vec found = sums_of_places<L / 2, L, vec>(s);
    for (int i = 0; i < M; ++i)
      for (int q = 0; q < Q && q <= last; ++q) c[i * ldc + j + q] = found[i * Q + q];
  }
}
template <bool NARROW, class T, class S>
static __attribute__((noinline)) void product_of_rows(long m, long n, long k, const T* a, long lda, const S* b,
    long ldb, T* c, long ldc) {
  long i = 0;
  for (; i + 4 <= m; i += 4) rows_by_rows<NARROW, 4>(n, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
  for (; i + 2 <= m; i += 2) rows_by_rows<NARROW, 2>(n, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
  for (; i < m; ++i) rows_by_rows<NARROW, 1>(n, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc);
}
"""
