/* Some rows of a tensor, and an array that has these rows alone.

   Compiled with SG_WORK: 0 takes rows out of the tensor, 1 puts them back, 2 adds up what a gradient says of each
   row. Elements are moved as words of SG_SIZE bytes (2, 4, 8); the gradient's are of the type SG_ROWS (0 float32,
   1 float64, 2 bfloat16, 3 float16). Each element of the result has one thread, so there is one order. */

typedef unsigned int sg_u32;
typedef unsigned long long sg_u64;
typedef long long sg_i64;

#if SG_SIZE == 8
typedef sg_u64 sg_word;
#elif SG_SIZE == 4
typedef sg_u32 sg_word;
#elif SG_SIZE == 2
typedef unsigned short sg_word;
#else
#error "define SG_SIZE"
#endif

#if SG_WORK == 2
#if SG_ROWS == 1
typedef double sg_real;
static __device__ __forceinline__ double sg_value(sg_word word) { return __longlong_as_double((sg_i64)word); }
#else
typedef float sg_real;
static __device__ __forceinline__ float sg_value(sg_word word) {
#if SG_ROWS == 0
    return __uint_as_float(word);
#elif SG_ROWS == 2
    return __uint_as_float((sg_u32)word << 16);
#else
    /* A subnormal half becomes the significand of a float one place up, less what that place adds: exact. */
    const sg_u32 sign = (sg_u32)(word & 0x8000u) << 16;
    const sg_u32 magnitude = word & 0x7fffu;
    const sg_u32 moved = magnitude << 13;
    const sg_u32 tiny = __float_as_uint(__uint_as_float(moved + (113u << 23)) - 0x1p-14f);
    const sg_u32 finite = magnitude < 0x400u ? tiny : moved + (112u << 23);
    return __uint_as_float(sign | (magnitude >= 0x7c00u ? moved + (224u << 23) : finite));
#endif
}
#endif
#else
typedef sg_word sg_real;
#endif

/* from      rows of `length` elements
   to        the same
   places    0, 1: of the n-th row of the array its row of the tensor; 2: rows of the gradient, in the order in which
             they are added
   starts    2: of the n-th row of the result the first of its entries in `places`; one more for their end
   n_rows    of the array */
extern "C" __global__ void __launch_bounds__(256)
sg_rows(const sg_word *from, sg_real *to, const sg_i64 *places, const sg_i64 *starts, sg_i64 n_rows, sg_i64 length) {
    for (sg_i64 i = (sg_i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows * length;
         i += (sg_i64)gridDim.x * blockDim.x) {
        const sg_i64 row = i / length;
        const sg_i64 column = i - row * length;
#if SG_WORK == 0
        to[i] = from[places[row] * length + column];
#elif SG_WORK == 1
        to[places[row] * length + column] = from[i];
#elif SG_WORK == 2
        sg_real sum = 0;
        for (sg_i64 k = starts[row]; k < starts[row + 1]; ++k) {
            sum += sg_value(from[places[k] * length + column]);
        }
        to[i] = sum;
#else
#error "define SG_WORK"
#endif
    }
}
