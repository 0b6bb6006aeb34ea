/* The update of adam, written by hand for the tests of the native runtime.
   Rendered from templates/cpu/kernel.c.j2 by tests/support/handwritten/render_kernel.py. */

#include <float.h>
#include <stdint.h>

#define SG_BUFFERS 5
#define SG_SCALARS 10

/* Storage types, chosen at compile time: 0 float32, 1 float64, 2 bfloat16, 3 float16. */
#if !defined(SG_PARAM) || !defined(SG_GRAD)
#error "define SG_PARAM and SG_GRAD"
#endif
#if (SG_PARAM == 1) != (SG_GRAD == 1)
#error "float64 parameters need float64 gradients, and the other way round"
#endif
/* Products and sums kept in a wider type (x87) would give other bits than the language defines. */
#if FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "this target does not compute float in float"
#endif

#if SG_PARAM == 1
typedef double sg_real;
#define sg_sqrt __builtin_sqrt
#define sg_abs __builtin_fabs
#define sg_floor __builtin_floor
#else
typedef float sg_real;
#define sg_sqrt __builtin_sqrtf
#define sg_abs __builtin_fabsf
#define sg_floor __builtin_floorf
#endif

typedef uint32_t sg_u32;
typedef uint64_t sg_u64;
typedef int64_t sg_i64;
typedef sg_real sg_state;
#define sg_sqrt64 __builtin_sqrt
#define sg_abs64 __builtin_fabs
#define sg_floor64 __builtin_floor
#define SG_INLINE static inline __attribute__((always_inline, unused))
#define SG_FUNCTION SG_INLINE

SG_INLINE sg_u64 sg_bits(double x) {
    sg_u64 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

SG_INLINE double sg_from_bits(sg_u64 bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

SG_INLINE uint32_t sg_bits32(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

SG_INLINE float sg_from_bits32(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* bfloat16 is the upper half of a float. Rounding is to nearest, ties to even; a carry out of the
   significand is the next exponent, and out of the largest finite number it is infinity. */
SG_INLINE float sg_from_bf16(uint16_t half) { return sg_from_bits32((uint32_t)half << 16); }

SG_INLINE uint16_t sg_to_bf16(float x) {
    const uint32_t bits = sg_bits32(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/* float16: 1 + 5 + 10 bits, exponent bias 15 (float: 127, so 112 apart). Subnormal halves are whole
   multiples of 2**-24 and normal floats. All cases are computed and one is selected, so that loops
   vectorise. */
SG_INLINE float sg_from_f16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    const uint32_t moved = magnitude << 13;
    const uint32_t normal = moved + (112u << 23);
    const uint32_t special = moved + (224u << 23);
    const uint32_t tiny = sg_bits32((float)(int32_t)magnitude * 0x1p-24f);
    const uint32_t finite = magnitude < 0x400u ? tiny : normal;
    return sg_from_bits32(sign | (magnitude >= 0x7c00u ? special : finite));
}

SG_INLINE uint16_t sg_to_f16(float x) {
    const uint32_t bits = sg_bits32(x);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    /* The last place of 0.5f is 2**-24, that of a subnormal half, so the sum is rounded where a half is. */
    const uint32_t tiny = sg_bits32(sg_from_bits32(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
    const uint32_t bounded = magnitude >= 0x47800000u ? 0x7c00u : finite;
    return (uint16_t)(sign | (magnitude > 0x7f800000u ? 0x7e00u : bounded));
}

#if SG_PARAM == 2
typedef uint16_t sg_param;
#define sg_param_load(pointer, i) sg_from_bf16((pointer)[i])
#define sg_param_store(pointer, i, x) ((pointer)[i] = sg_to_bf16(x))
#define sg_round_param(x) sg_from_bf16(sg_to_bf16(x))
#elif SG_PARAM == 3
typedef uint16_t sg_param;
#define sg_param_load(pointer, i) sg_from_f16((pointer)[i])
#define sg_param_store(pointer, i, x) ((pointer)[i] = sg_to_f16(x))
#define sg_round_param(x) sg_from_f16(sg_to_f16(x))
#else
typedef sg_real sg_param;
#define sg_param_load(pointer, i) ((pointer)[i])
#define sg_param_store(pointer, i, x) ((pointer)[i] = (x))
#define sg_round_param(x) (x)
#endif

#if SG_GRAD == 2
typedef uint16_t sg_grad;
#define sg_grad_load(pointer, i) sg_from_bf16((pointer)[i])
#elif SG_GRAD == 3
typedef uint16_t sg_grad;
#define sg_grad_load(pointer, i) sg_from_f16((pointer)[i])
#else
typedef sg_real sg_grad;
#define sg_grad_load(pointer, i) ((pointer)[i])
#endif

#define sg_state_load(pointer, i) ((pointer)[i])
#define sg_state_store(pointer, i, x) ((pointer)[i] = (x))

/* The same in every kernel: the runtime builds these tables. */
struct sg_chunk {
    int32_t tensor;
    int32_t count;
    int64_t start;
};

struct sg_job {
    void *const *pointers;        /* [tensors][SG_BUFFERS] */
    const int32_t *rows;          /* [tensors]: the row of the scalar table */
    const void *table;            /* sg_real [rows][SG_SCALARS] */
    const struct sg_chunk *chunks;
};

/* One run of elements. A function of its own, because compilers trust `restrict` on parameters only. */
static __attribute__((noinline)) void sg_run(
    sg_param *restrict sg_param_at,
    sg_grad const *restrict sg_grad_at,
    sg_state *restrict sg_m_at,
    sg_state *restrict sg_v_at,
#if SG_OPTION_amsgrad
    sg_state *restrict sg_v_max_at,
#endif
    const sg_real *restrict sg_row, int64_t sg_count) {
    const sg_real decays = sg_row[0];
    const sg_real weight_decay = sg_row[1];
    const sg_real beta1 = sg_row[2];
    const sg_real one_minus_beta1 = sg_row[3];
    const sg_real beta2 = sg_row[4];
    const sg_real one_minus_beta2 = sg_row[5];
    const sg_real correction2 = sg_row[6];
    const sg_real eps = sg_row[7];
    const sg_real lr = sg_row[8];
    const sg_real correction1 = sg_row[9];
    (void)sg_row;
    for (int64_t sg_i = 0; sg_i < sg_count; ++sg_i) {
        const sg_real param = sg_param_load(sg_param_at, sg_i);
        const sg_real grad = sg_grad_load(sg_grad_at, sg_i);
        const sg_real m = sg_state_load(sg_m_at, sg_i);
        const sg_real v = sg_state_load(sg_v_at, sg_i);
#if SG_OPTION_amsgrad
        const sg_real v_max = sg_state_load(sg_v_max_at, sg_i);
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

        sg_param_store(sg_param_at, sg_i, param_new);
        sg_state_store(sg_m_at, sg_i, m_new);
        sg_state_store(sg_v_at, sg_i, v_new);
#if SG_OPTION_amsgrad
        sg_state_store(sg_v_max_at, sg_i, v_max_new);
#endif
    }
}

__attribute__((visibility("default"))) void sg_kernel(const struct sg_job *job, int64_t first_chunk,
                                                      int64_t last_chunk) {
    for (int64_t sg_c = first_chunk; sg_c < last_chunk; ++sg_c) {
        const struct sg_chunk *chunk = &job->chunks[sg_c];
        void *const *buffers = job->pointers + (int64_t)chunk->tensor * SG_BUFFERS;
        sg_run(
            (sg_param *)buffers[0] + chunk->start,
            (sg_grad *)buffers[1] + chunk->start,
            (sg_state *)buffers[2] + chunk->start,
            (sg_state *)buffers[3] + chunk->start,
#if SG_OPTION_amsgrad
            (sg_state *)buffers[4] + chunk->start,
#endif
            (const sg_real *)job->table + (int64_t)job->rows[chunk->tensor] * SG_SCALARS, chunk->count);
    }
}
