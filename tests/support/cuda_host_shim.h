/* Enough of CUDA to run a kernel without barriers on the host: blocks one after another, and in each
   block thread after thread. Included before the kernel's text, which is compiled as C++ as it stands.

   SG_ENTRY is the kernel to run. */

#include <cmath>
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct sg_host_index {
    unsigned x;
};
static thread_local sg_host_index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
/* Kernels make a vector for each 128-bit store, so that the words which a launch stored can be counted. */
static thread_local unsigned long long sg_host_words;
static inline float4 make_float4(float x, float y, float z, float w) { return ++sg_host_words, float4{x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return ++sg_host_words, uint4{x, y, z, w};
}
static inline double2 make_double2(double x, double y) { return ++sg_host_words, double2{x, y}; }

template <class To, class From>
static inline To sg_host_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __uint_as_float(unsigned bits) { return sg_host_bits<float>(bits); }
static inline unsigned __float_as_uint(float x) { return sg_host_bits<unsigned>(x); }
static inline double __longlong_as_double(long long bits) { return sg_host_bits<double>(bits); }
static inline long long __double_as_longlong(double x) { return sg_host_bits<long long>(x); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
template <class T>
static inline void __stwb(T *to, T value) {
    *to = value;
}
static inline int atomicOr(int *at, int value) { return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST); }

/* The kernel's parameters from 64-bit words that hold them. */
template <class T>
static inline T sg_host_argument(unsigned long long word) {
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<T>(word);
    } else {
        return static_cast<T>(word);
    }
}

template <class... Ts, std::size_t... I>
static inline void sg_host_call(void (*kernel)(Ts...), const unsigned long long *words, std::index_sequence<I...>) {
    kernel(sg_host_argument<Ts>(words[I])...);
}

template <class... Ts>
static inline unsigned long long sg_host_grid(void (*kernel)(Ts...), unsigned blocks, unsigned threads,
                                              const unsigned long long *words) {
    sg_host_words = 0;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (unsigned block = 0; block < blocks; ++block) {
        for (unsigned thread = 0; thread < threads; ++thread) {
            blockIdx.x = block;
            threadIdx.x = thread;
            sg_host_call(kernel, words, std::index_sequence_for<Ts...>{});
        }
    }
    return sg_host_words;
}
