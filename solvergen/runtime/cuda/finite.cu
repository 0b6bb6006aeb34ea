/* Are all elements of the gradients finite? By their exponents, which are all ones in infinities and NaNs.

   Compiled with SG_GRAD: 0 float32, 1 float64, 2 bfloat16, 3 float16. The tables are those of an update,
   but with one buffer a tensor; `found` becomes 1 if anything isn't finite. */

typedef unsigned int sg_u32;
typedef unsigned long long sg_u64;
typedef long long sg_i64;

#if SG_GRAD == 0
typedef sg_u32 sg_word;
#define SG_EXPONENT 0x7f800000u
#elif SG_GRAD == 1
typedef sg_u64 sg_word;
#define SG_EXPONENT 0x7ff0000000000000ull
#elif SG_GRAD == 2
typedef unsigned short sg_word;
#define SG_EXPONENT 0x7f80u
#elif SG_GRAD == 3
typedef unsigned short sg_word;
#define SG_EXPONENT 0x7c00u
#else
#error "define SG_GRAD"
#endif

#define SG_LANES (16 / (int)sizeof(sg_word))

struct __align__(16) sg_chunk {
    int tensor;
    int count;
    sg_i64 start;
};

static __device__ __forceinline__ bool sg_special(sg_u64 word) { return (word & SG_EXPONENT) == SG_EXPONENT; }

/* Any of the elements in eight bytes. */
static __device__ __forceinline__ bool sg_any_special(sg_u32 low, sg_u32 high) {
#if SG_GRAD == 0
    return sg_special(low) | sg_special(high);
#elif SG_GRAD == 1
    return sg_special((sg_u64)high << 32 | low);
#else
    return sg_special(low) | sg_special(low >> 16) | sg_special(high) | sg_special(high >> 16);
#endif
}

extern "C" __global__ void __launch_bounds__(256)
sg_finite(const unsigned long long *pointers, const sg_chunk *chunks, long long n_chunks, int *found) {
    bool special = false;
    for (sg_i64 c = blockIdx.x; c < n_chunks; c += gridDim.x) {
        const sg_chunk chunk = chunks[c];
        /* As a displacement from the table, so that the compiler knows that it is global memory. */
        const sg_i64 displacement = (sg_i64)(pointers[chunk.tensor] - reinterpret_cast<sg_u64>(pointers));
        const sg_word *from =
            reinterpret_cast<const sg_word *>(reinterpret_cast<const char *>(pointers) + displacement) + chunk.start;

        const int first = (int)(-reinterpret_cast<sg_u64>(from) & 15u) / (int)sizeof(sg_word);
        const int head = first < chunk.count ? first : chunk.count;
        const int words = (chunk.count - head) / SG_LANES;
        for (int w = threadIdx.x; w < words; w += blockDim.x) {
            const uint4 word = *reinterpret_cast<const uint4 *>(from + head + w * SG_LANES);
            special |= sg_any_special(word.x, word.y) | sg_any_special(word.z, word.w);
        }
        const int singles = chunk.count - words * SG_LANES;
        for (int s = threadIdx.x; s < singles; s += blockDim.x) {
            special |= sg_special(from[s < head ? s : s + words * SG_LANES]);
        }
    }
    if (special) {
        atomicOr(found, 1);
    }
}
