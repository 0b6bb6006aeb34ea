/* The update of adam, written by hand for the tests of the CUDA runtime.
   Rendered from templates/cuda/kernel.cu.j2 by tests/support/handwritten/render_cuda_kernel.py. */

#define SG_BUFFERS 5
#define SG_SCALARS 10

/* Storage types, chosen at compile time: 0 float32, 1 float64, 2 bfloat16, 3 float16. */
#if !defined(SG_PARAM) || !defined(SG_GRAD)
#error "define SG_PARAM and SG_GRAD"
#endif
#if (SG_PARAM == 1) != (SG_GRAD == 1)
#error "float64 parameters need float64 gradients, and the other way round"
#endif

#define SG_FUNCTION static __device__ __forceinline__

typedef unsigned int sg_u32;
typedef unsigned long long sg_u64;
typedef long long sg_i64;

struct sg_bf16 { unsigned short bits; };
struct sg_f16 { unsigned short bits; };

#if SG_PARAM == 1
typedef double sg_real;
#else
typedef float sg_real;
#endif
typedef sg_real sg_state;

#if SG_PARAM == 2
typedef sg_bf16 sg_param;
#elif SG_PARAM == 3
typedef sg_f16 sg_param;
#else
typedef sg_real sg_param;
#endif

#if SG_GRAD == 2
typedef sg_bf16 sg_grad;
#elif SG_GRAD == 3
typedef sg_f16 sg_grad;
#else
typedef sg_real sg_grad;
#endif

/* Elements that a thread takes at once: 16 bytes of the narrowest buffer. */
#if SG_PARAM == 1
#define SG_LANES 2
#elif SG_PARAM >= 2 || SG_GRAD >= 2
#define SG_LANES 8
#else
#define SG_LANES 4
#endif

/* Correctly rounded whatever the compiler's flags. */
#if SG_PARAM == 1
SG_FUNCTION sg_real sg_sqrt(sg_real x) { return __dsqrt_rn(x); }
SG_FUNCTION sg_real sg_abs(sg_real x) { return fabs(x); }
SG_FUNCTION sg_real sg_floor(sg_real x) { return floor(x); }
#else
SG_FUNCTION sg_real sg_sqrt(sg_real x) { return __fsqrt_rn(x); }
SG_FUNCTION sg_real sg_abs(sg_real x) { return fabsf(x); }
SG_FUNCTION sg_real sg_floor(sg_real x) { return floorf(x); }
#endif
SG_FUNCTION double sg_sqrt64(double x) { return __dsqrt_rn(x); }
SG_FUNCTION double sg_abs64(double x) { return fabs(x); }
SG_FUNCTION double sg_floor64(double x) { return floor(x); }
SG_FUNCTION sg_u64 sg_bits(double x) { return (sg_u64)__double_as_longlong(x); }
SG_FUNCTION double sg_from_bits(sg_u64 bits) { return __longlong_as_double((sg_i64)bits); }

/* bfloat16 is the upper half of a float. Rounding is to nearest, ties to even; a carry out of the
   significand is the next exponent, and out of the largest finite number it is infinity. */
SG_FUNCTION float sg_widen(sg_bf16 half) { return __uint_as_float((sg_u32)half.bits << 16); }

SG_FUNCTION void sg_narrow(float x, sg_bf16 &half) {
    const sg_u32 bits = __float_as_uint(x);
    const sg_u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const sg_u32 quiet = (bits >> 16) | 0x40u;
    half.bits = (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/* float16: 1 + 5 + 10 bits, exponent bias 15 (float: 127, so 112 apart). A subnormal half becomes the
   significand of a float one place up, less what that place adds: exact. */
SG_FUNCTION float sg_widen(sg_f16 half) {
    const sg_u32 sign = (sg_u32)(half.bits & 0x8000u) << 16;
    const sg_u32 magnitude = half.bits & 0x7fffu;
    const sg_u32 moved = magnitude << 13;
    const sg_u32 tiny = __float_as_uint(__uint_as_float(moved + (113u << 23)) - 0x1p-14f);
    const sg_u32 finite = magnitude < 0x400u ? tiny : moved + (112u << 23);
    return __uint_as_float(sign | (magnitude >= 0x7c00u ? moved + (224u << 23) : finite));
}

/* Below 2**-14 a half is a whole number of 2**-24, so the significand is shifted to that place; a shift by 25
   leaves nothing. */
SG_FUNCTION void sg_narrow(float x, sg_f16 &half) {
    const sg_u32 bits = __float_as_uint(x);
    const sg_u32 sign = (bits >> 16) & 0x8000u;
    const sg_u32 magnitude = bits & 0x7fffffffu;
    const sg_u32 normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const sg_u32 exponent = magnitude >> 23;
    const sg_u32 shift = exponent > 112u ? 14u : exponent < 101u ? 25u : 126u - exponent;
    const sg_u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
    const sg_u32 tiny = (significand + (1u << (shift - 1u)) - 1u + ((significand >> shift) & 1u)) >> shift;
    const sg_u32 finite = magnitude < 0x38800000u ? tiny : normal;
    const sg_u32 bounded = magnitude >= 0x47800000u ? 0x7c00u : finite;
    half.bits = (unsigned short)(sign | (magnitude > 0x7f800000u ? 0x7e00u : bounded));
}

/* To the parameter's storage type and back. */
SG_FUNCTION sg_real sg_round_param(sg_real x) {
#if SG_PARAM >= 2
    sg_param half;
    sg_narrow(x, half);
    return sg_widen(half);
#else
    return x;
#endif
}

/* One element, or a whole number of aligned 128-bit words. __stwb is a store with the default cache policy; a
   plain one would do, but up to compute capability 9.0 the compiler sometimes takes it apart into four. */
template <int sg_n>
SG_FUNCTION void sg_load(const float *from, sg_real (&lanes)[sg_n]) {
    if constexpr (sg_n == 1) {
        lanes[0] = *from;
    } else {
#pragma unroll
        for (int k = 0; k < sg_n; k += 4) {
            const float4 word = *reinterpret_cast<const float4 *>(from + k);
            lanes[k] = word.x;
            lanes[k + 1] = word.y;
            lanes[k + 2] = word.z;
            lanes[k + 3] = word.w;
        }
    }
}

template <int sg_n>
SG_FUNCTION void sg_store(float *to, const sg_real (&lanes)[sg_n]) {
    if constexpr (sg_n == 1) {
        *to = lanes[0];
    } else {
#pragma unroll
        for (int k = 0; k < sg_n; k += 4) {
            const float4 word = make_float4(lanes[k], lanes[k + 1], lanes[k + 2], lanes[k + 3]);
            __stwb(reinterpret_cast<float4 *>(to + k), word);
        }
    }
}

#if SG_PARAM == 1
template <int sg_n>
SG_FUNCTION void sg_load(const double *from, sg_real (&lanes)[sg_n]) {
    if constexpr (sg_n == 1) {
        lanes[0] = *from;
    } else {
        const double2 word = *reinterpret_cast<const double2 *>(from);
        lanes[0] = word.x;
        lanes[1] = word.y;
    }
}

template <int sg_n>
SG_FUNCTION void sg_store(double *to, const sg_real (&lanes)[sg_n]) {
    if constexpr (sg_n == 1) {
        *to = lanes[0];
    } else {
        __stwb(reinterpret_cast<double2 *>(to), make_double2(lanes[0], lanes[1]));
    }
}
#endif

#if SG_PARAM >= 2 || SG_GRAD >= 2
template <int sg_n, class sg_half>
SG_FUNCTION void sg_load(const sg_half *from, sg_real (&lanes)[sg_n]) {
    if constexpr (sg_n == 1) {
        lanes[0] = sg_widen(*from);
    } else {
        const uint4 words = *reinterpret_cast<const uint4 *>(from);
        const sg_u32 pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            lanes[k] = sg_widen(sg_half{(unsigned short)(pairs[k / 2] >> 16 * (k % 2))});
        }
    }
}

template <int sg_n, class sg_half>
SG_FUNCTION void sg_store(sg_half *to, const sg_real (&lanes)[sg_n]) {
    if constexpr (sg_n == 1) {
        sg_narrow(lanes[0], *to);
    } else {
        sg_u32 pairs[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            sg_half low, high;
            sg_narrow(lanes[2 * k], low);
            sg_narrow(lanes[2 * k + 1], high);
            pairs[k] = (sg_u32)low.bits | (sg_u32)high.bits << 16;
        }
        __stwb(reinterpret_cast<uint4 *>(to), make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
    }
}
#endif

/* One contiguous run of elements of one tensor. The same in every kernel: the runtime builds the tables. */
struct __align__(16) sg_chunk {
    int tensor;
    int count;
    sg_i64 start;
};

/* An entry of the pointer table, as a displacement from the table itself: so the compiler knows that it
   points to global memory, as the table does, and emits ld.global and st.global. */
template <class sg_type>
SG_FUNCTION sg_type *sg_global(const sg_u64 *table, int index) {
    const sg_i64 displacement = (sg_i64)(table[index] - reinterpret_cast<sg_u64>(table));
    return reinterpret_cast<sg_type *>(reinterpret_cast<char *>(const_cast<sg_u64 *>(table)) + displacement);
}

/* Where the buffers of a chunk begin. */
struct sg_chunk_buffers {
    sg_param *sg_param_at;
    sg_grad *sg_grad_at;
    sg_state *sg_m_at;
    sg_state *sg_v_at;
#if SG_OPTION_amsgrad
    sg_state *sg_v_max_at;
#endif
};

/* The tensor's row of the scalar table. */
struct sg_scalars {
    sg_real decays;
    sg_real weight_decay;
    sg_real beta1;
    sg_real one_minus_beta1;
    sg_real beta2;
    sg_real one_minus_beta2;
    sg_real correction2;
    sg_real eps;
    sg_real lr;
    sg_real correction1;
};

/* Updates sg_n elements of a chunk, from the sg_first-th on. */
template <int sg_n>
SG_FUNCTION void sg_update(const sg_chunk_buffers &sg_at, const sg_scalars &sg_row, const int sg_first) {
    const sg_real decays = sg_row.decays;
    const sg_real weight_decay = sg_row.weight_decay;
    const sg_real beta1 = sg_row.beta1;
    const sg_real one_minus_beta1 = sg_row.one_minus_beta1;
    const sg_real beta2 = sg_row.beta2;
    const sg_real one_minus_beta2 = sg_row.one_minus_beta2;
    const sg_real correction2 = sg_row.correction2;
    const sg_real eps = sg_row.eps;
    const sg_real lr = sg_row.lr;
    const sg_real correction1 = sg_row.correction1;
    sg_real sg_lanes_param[sg_n];
    sg_real sg_lanes_grad[sg_n];
    sg_real sg_lanes_m[sg_n];
    sg_real sg_lanes_v[sg_n];
#if SG_OPTION_amsgrad
    sg_real sg_lanes_v_max[sg_n];
#endif
    sg_load(sg_at.sg_param_at + sg_first, sg_lanes_param);
    sg_load(sg_at.sg_grad_at + sg_first, sg_lanes_grad);
    sg_load(sg_at.sg_m_at + sg_first, sg_lanes_m);
    sg_load(sg_at.sg_v_at + sg_first, sg_lanes_v);
#if SG_OPTION_amsgrad
    sg_load(sg_at.sg_v_max_at + sg_first, sg_lanes_v_max);
#endif
#pragma unroll
    for (int sg_k = 0; sg_k < sg_n; ++sg_k) {
        const sg_real param = sg_lanes_param[sg_k];
        const sg_real grad = sg_lanes_grad[sg_k];
        const sg_real m = sg_lanes_m[sg_k];
        const sg_real v = sg_lanes_v[sg_k];
#if SG_OPTION_amsgrad
        const sg_real v_max = sg_lanes_v_max[sg_k];
#endif

        // g = where(maximize, -grad, grad)
#if SG_OPTION_maximize
        const sg_real ascent = -grad;
#else
        const sg_real ascent = grad;
#endif
        // g = where(weight_decay != 0, g + weight_decay*param, g)
        const sg_real g = decays != 0 ? ascent + weight_decay * param : ascent;
        // m = beta1*m + (1 - beta1)*g
        const sg_real m_new = beta1 * m + one_minus_beta1 * g;
        // v = beta2*v + (1 - beta2)*g**2
        const sg_real v_new = beta2 * v + one_minus_beta2 * (g * g);
#if SG_OPTION_amsgrad
        // v_max = max(v_max, v)
        const sg_real v_max_new = v_max > v_new || v_max != v_max ? v_max : v_new;
        const sg_real second = v_max_new;
#else
        const sg_real second = v_new;
#endif
        // denom = sqrt(where(amsgrad, v_max, v)/(1 - beta2**t)) + eps
        const sg_real denom = sg_sqrt(second / correction2) + eps;
        // param = param - lr*(m/(1 - beta1**t))/denom
        const sg_real param_new = sg_round_param(param - lr * (m_new / correction1) / denom);

        sg_lanes_param[sg_k] = param_new;
        sg_lanes_m[sg_k] = m_new;
        sg_lanes_v[sg_k] = v_new;
#if SG_OPTION_amsgrad
        sg_lanes_v_max[sg_k] = v_max_new;
#endif
    }
    sg_store(sg_at.sg_param_at + sg_first, sg_lanes_param);
    sg_store(sg_at.sg_m_at + sg_first, sg_lanes_m);
    sg_store(sg_at.sg_v_at + sg_first, sg_lanes_v);
#if SG_OPTION_amsgrad
    sg_store(sg_at.sg_v_max_at + sg_first, sg_lanes_v_max);
#endif
}

/* Elements of a chunk before the first that begins a 128-bit word in every buffer; sg_count if there is none,
   because the buffers are misaligned by different numbers of elements. */
SG_FUNCTION int sg_head(const sg_chunk_buffers &sg_at, const int sg_count) {
    const auto *sg_narrowest =
#if SG_PARAM < 2 && SG_GRAD >= 2
        sg_at.sg_grad_at;
#else
        sg_at.sg_param_at;
#endif
    const int sg_head = (int)(-reinterpret_cast<sg_u64>(sg_narrowest) & 15u) / (int)sizeof *sg_narrowest;
    sg_u64 sg_address = 0;
    sg_address |= reinterpret_cast<sg_u64>(sg_at.sg_param_at + sg_head);
    sg_address |= reinterpret_cast<sg_u64>(sg_at.sg_grad_at + sg_head);
    sg_address |= reinterpret_cast<sg_u64>(sg_at.sg_m_at + sg_head);
    sg_address |= reinterpret_cast<sg_u64>(sg_at.sg_v_at + sg_head);
#if SG_OPTION_amsgrad
    sg_address |= reinterpret_cast<sg_u64>(sg_at.sg_v_max_at + sg_head);
#endif
    return (sg_address & 15u) == 0 && sg_head < sg_count ? sg_head : sg_count;
}

/* The compiler weighs registers against the number of threads that fit. Where that would make it spill, the
   runtime compiles with SG_MIN_BLOCKS, which lets it take what it needs. */
#ifdef SG_MIN_BLOCKS
#define SG_LAUNCH_BOUNDS __launch_bounds__(256, SG_MIN_BLOCKS)
#else
#define SG_LAUNCH_BOUNDS __launch_bounds__(256)
#endif

/* Each chunk is taken by one block: whole words first, then the elements before and after them one by one. */
extern "C" __global__ void SG_LAUNCH_BOUNDS
sg_kernel(const unsigned long long *pointers, const int *rows, const sg_real *table, const sg_chunk *chunks,
          long long n_chunks) {
    for (sg_i64 sg_c = blockIdx.x; sg_c < n_chunks; sg_c += gridDim.x) {
        const sg_chunk sg_this = chunks[sg_c];
        const sg_u64 *sg_buffers = pointers + (sg_i64)sg_this.tensor * SG_BUFFERS;
        const sg_real *sg_values = table + (sg_i64)rows[sg_this.tensor] * SG_SCALARS;

        sg_chunk_buffers sg_at;
        sg_at.sg_param_at =
            sg_global<sg_param>(sg_buffers, 0) + sg_this.start;
        sg_at.sg_grad_at =
            sg_global<sg_grad>(sg_buffers, 1) + sg_this.start;
        sg_at.sg_m_at =
            sg_global<sg_state>(sg_buffers, 2) + sg_this.start;
        sg_at.sg_v_at =
            sg_global<sg_state>(sg_buffers, 3) + sg_this.start;
#if SG_OPTION_amsgrad
        sg_at.sg_v_max_at =
            sg_global<sg_state>(sg_buffers, 4) + sg_this.start;
#endif

        sg_scalars sg_row;
        sg_row.decays = sg_values[0];
        sg_row.weight_decay = sg_values[1];
        sg_row.beta1 = sg_values[2];
        sg_row.one_minus_beta1 = sg_values[3];
        sg_row.beta2 = sg_values[4];
        sg_row.one_minus_beta2 = sg_values[5];
        sg_row.correction2 = sg_values[6];
        sg_row.eps = sg_values[7];
        sg_row.lr = sg_values[8];
        sg_row.correction1 = sg_values[9];

        const int sg_head_count = sg_head(sg_at, sg_this.count);
        const int sg_words = (sg_this.count - sg_head_count) / SG_LANES;
        for (int sg_w = threadIdx.x; sg_w < sg_words; sg_w += blockDim.x) {
            sg_update<SG_LANES>(sg_at, sg_row, sg_head_count + sg_w * SG_LANES);
        }
        const int sg_singles = sg_this.count - sg_words * SG_LANES;
        for (int sg_s = threadIdx.x; sg_s < sg_singles; sg_s += blockDim.x) {
            sg_update<1>(sg_at, sg_row, sg_s < sg_head_count ? sg_s : sg_s + sg_words * SG_LANES);
        }
    }
}
