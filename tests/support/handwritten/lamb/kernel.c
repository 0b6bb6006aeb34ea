/* The update of lamb, written by hand for the tests of the native runtime. */

#include <float.h>
#include <stdint.h>

#define SG_BUFFERS 4
#define SG_SCALARS 8
#define SG_WIDE 4
#define SG_REDUCTIONS 4
#define SG_VALUES 2
#define SG_STATES 2

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
    const int32_t *positions;     /* [tensors]: the tensor's place in the optimizer */
    const double *values;         /* [positions][SG_VALUES]: what stages have computed */
    double *partials;             /* [chunks][reductions of the pass] */
};

struct sg_stage {
    const int32_t *rows;          /* [tensors]: the row of the scalar tables */
    const int32_t *positions;     /* [tensors]: the tensor's place in the optimizer */
    const double *wide;           /* [rows][SG_WIDE] */
    const double *totals;         /* [positions][SG_REDUCTIONS] */
    const double *over_all;       /* [SG_REDUCTIONS] */
    const double *sizes;          /* [positions]: numbers of elements */
    double total_size;            /* of all tensors that take part */
    double *values;               /* [positions][SG_VALUES] */
    double *states;               /* [positions][SG_STATES] */
    const double *shared;         /* as before this step */
    double *shared_new;
    int64_t leader;               /* the position whose tensor decides shared states */
};

#define SG_EXPORT __attribute__((visibility("default")))

/* Element i of a chunk belongs to lane i % SG_LANES; each lane starts at zero and takes its terms in order.
   Here lanes are numbered from the first element that begins a cache line, so that loads and stores of
   vectors don't cross lines. Halving pairs the same lanes wherever numbers begin, and both operations
   commute: the bits are those of the language's own numbers. */
#define SG_LANES 256
#define SG_LINE 64

/* a > b || a != a ? a : b, in the form that is one instruction and a choice. */
SG_INLINE double sg_largest(double a, double b) {
    const double larger = a > b ? a : b;
    return a != a ? a : larger;
}

#define SG_HALVE(lanes, operation, half)                                                                   \
    for (int sg_i = 0; sg_i < (half); ++sg_i)                                                              \
    (lanes)[sg_i] = operation((lanes)[sg_i], (lanes)[sg_i + (half)])
#define SG_SUM(a, b) ((a) + (b))
#define SG_TOTAL(name, operation)                                                                          \
    static __attribute__((noinline, unused)) double name(double *lanes) {                                  \
        SG_HALVE(lanes, operation, 128);                                                                   \
        SG_HALVE(lanes, operation, 64);                                                                    \
        SG_HALVE(lanes, operation, 32);                                                                    \
        SG_HALVE(lanes, operation, 16);                                                                    \
        SG_HALVE(lanes, operation, 8);                                                                     \
        SG_HALVE(lanes, operation, 4);                                                                     \
        SG_HALVE(lanes, operation, 2);                                                                     \
        return operation(lanes[0], lanes[1]);                                                              \
    }

SG_TOTAL(sg_total_sum, SG_SUM)
SG_TOTAL(sg_total_largest, sg_largest)

SG_INLINE void sg_clear(double *lanes, int count) {
    for (int i = 0; i < count; ++i)
        lanes[i] = 0.0;
}

/* Elements of a chunk's first row, 1 to SG_LANES: it ends where a cache line does. */
SG_INLINE int64_t sg_first_row(const void *first, int64_t itemsize) {
    const int64_t before = (int64_t)(-(uintptr_t)first % SG_LINE) / itemsize;
    return before ? before : SG_LANES;
}

SG_INLINE int64_t sg_min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- stage 1 ------------------------------------------------------------------------------------- */

#if SG_OPTION_clip
SG_EXPORT void sg_stage_1(const struct sg_stage *stage, int64_t n_tensors) {
    for (int64_t sg_i = 0; sg_i < n_tensors; ++sg_i) {
        const int64_t sg_position = stage->positions[sg_i];
        const double *sg_wide = stage->wide + (int64_t)stage->rows[sg_i] * SG_WIDE;
        double *sg_values = stage->values + sg_position * SG_VALUES;
        const double max_norm = sg_wide[1];
        const double beta2 = sg_wide[2];
        const double one_minus_beta2 = sg_wide[3];
        const double usual = stage->shared[0];

        // norm = norm2(grad, all)
        const double norm = sg_sqrt64(stage->over_all[0]);
        // scale = where(norm > max_norm, max_norm/norm, 1)
        const double scale = norm > max_norm ? max_norm / norm : 1.0;
        // usual = beta2*usual + (1 - beta2)*norm
        const double usual_new = beta2 * usual + one_minus_beta2 * norm;

        sg_values[0] = scale;
        if (sg_position == stage->leader) {
            stage->shared_new[0] = usual_new;
        }
    }
}
#endif

/* ---- stage 2 ------------------------------------------------------------------------------------- */

SG_EXPORT void sg_stage_2(const struct sg_stage *stage, int64_t n_tensors) {
    for (int64_t sg_i = 0; sg_i < n_tensors; ++sg_i) {
        const int64_t sg_position = stage->positions[sg_i];
        const double *sg_wide = stage->wide + (int64_t)stage->rows[sg_i] * SG_WIDE;
        const double *sg_totals = stage->totals + sg_position * SG_REDUCTIONS;
        double *sg_values = stage->values + sg_position * SG_VALUES;
        double *sg_states = stage->states + sg_position * SG_STATES;
        const double lr = sg_wide[0];
        const double highest = sg_states[1];

        const double param_norm = sg_sqrt64(sg_totals[1]);
        const double update_norm = sg_sqrt64(sg_totals[2]);
        const double largest = sg_totals[3];
        // trust = where((param_norm > 0) and (update_norm > 0), param_norm/update_norm, 1)
        const double trust_new = param_norm > 0.0 && update_norm > 0.0 ? param_norm / update_norm : 1.0;
        // highest = max(highest, max_abs(update))
        const double highest_new = sg_largest(highest, largest);
        // lr*trust
        const double step = lr * trust_new;

        sg_values[1] = step;
        sg_states[0] = trust_new;
        sg_states[1] = highest_new;
    }
}

/* ---- pass 0 -------------------------------------------------------------------------------------- */

#if SG_OPTION_clip
/* One row: at most SG_LANES elements. A function of its own, because compilers trust `restrict` on
   parameters only. */
static __attribute__((noinline)) void sg_run_0(
    sg_grad const *restrict sg_grad_at,
    double *restrict sg_lanes_0,
    int64_t sg_count) {
    for (int64_t sg_i = 0; sg_i < sg_count; ++sg_i) {
        const sg_real grad = sg_grad_load(sg_grad_at, sg_i);

        // norm2(grad, all)
        const double sg_term_0 = (double)grad * (double)grad;

        sg_lanes_0[sg_i] = sg_lanes_0[sg_i] + sg_term_0;
    }
}

SG_EXPORT void sg_pass_0(const struct sg_job *job, int64_t first_chunk, int64_t last_chunk) {
    _Alignas(SG_LINE) double sg_lanes[1][SG_LANES];
    for (int64_t sg_c = first_chunk; sg_c < last_chunk; ++sg_c) {
        const struct sg_chunk *chunk = &job->chunks[sg_c];
        void *const *buffers = job->pointers + (int64_t)chunk->tensor * SG_BUFFERS;
        sg_clear(sg_lanes[0], 1 * SG_LANES);
        int64_t sg_end = sg_first_row((sg_grad *)buffers[1] + chunk->start, sizeof(sg_grad));
        int64_t sg_lane = SG_LANES - sg_end;
        for (int64_t sg_begin = 0; sg_begin < chunk->count; sg_begin = sg_end, sg_end += SG_LANES, sg_lane = 0) {
            const int64_t sg_at = chunk->start + sg_begin;
            sg_run_0(
                (sg_grad *)buffers[1] + sg_at,
                sg_lanes[0] + sg_lane,
                sg_min64(sg_end, chunk->count) - sg_begin);
        }
        double *sg_partials = job->partials + sg_c * 1;
        sg_partials[0] = sg_total_sum(sg_lanes[0]);
    }
}
#endif

/* ---- pass 1 -------------------------------------------------------------------------------------- */

/* One row: at most SG_LANES elements. A function of its own, because compilers trust `restrict` on
   parameters only. */
static __attribute__((noinline)) void sg_run_1(
    sg_param const *restrict sg_param_at,
    sg_grad const *restrict sg_grad_at,
    sg_state *restrict sg_m_at,
    sg_state *restrict sg_v_at,
    double *restrict sg_lanes_0,
    double *restrict sg_lanes_1,
    double *restrict sg_lanes_2,
    const sg_real *restrict sg_row, const double *restrict sg_values, int64_t sg_count) {
    const sg_real beta1 = sg_row[0];
    const sg_real one_minus_beta1 = sg_row[1];
    const sg_real beta2 = sg_row[2];
    const sg_real one_minus_beta2 = sg_row[3];
    const sg_real correction1 = sg_row[4];
    const sg_real correction2 = sg_row[5];
    const sg_real eps = sg_row[6];
    const sg_real weight_decay = sg_row[7];
#if SG_OPTION_clip
    const sg_real scale = (sg_real)sg_values[0];
#endif
    (void)sg_row;
    (void)sg_values;
    for (int64_t sg_i = 0; sg_i < sg_count; ++sg_i) {
        const sg_real param = sg_param_load(sg_param_at, sg_i);
        const sg_real grad = sg_grad_load(sg_grad_at, sg_i);
        const sg_real m = sg_state_load(sg_m_at, sg_i);
        const sg_real v = sg_state_load(sg_v_at, sg_i);

        // g = scale*grad
#if SG_OPTION_clip
        const sg_real g = scale * grad;
#else
        const sg_real g = grad;
#endif
        // m = beta1*m + (1 - beta1)*g
        const sg_real m_new = beta1 * m + one_minus_beta1 * g;
        // v = beta2*v + (1 - beta2)*g**2
        const sg_real v_new = beta2 * v + one_minus_beta2 * (g * g);
        // update = (m/(1 - beta1**t))/(sqrt(v/(1 - beta2**t)) + eps) + weight_decay*param
        const sg_real update =
            m_new / correction1 / (sg_sqrt(v_new / correction2) + eps) + weight_decay * param;
        // norm2(param)
        const double sg_term_0 = (double)param * (double)param;
        // norm2(update)
        const double sg_term_1 = (double)update * (double)update;
        // max_abs(update)
        const double sg_term_2 = sg_abs64((double)update);

        sg_lanes_0[sg_i] = sg_lanes_0[sg_i] + sg_term_0;
        sg_lanes_1[sg_i] = sg_lanes_1[sg_i] + sg_term_1;
        sg_lanes_2[sg_i] = sg_largest(sg_lanes_2[sg_i], sg_term_2);
        sg_state_store(sg_m_at, sg_i, m_new);
        sg_state_store(sg_v_at, sg_i, v_new);
    }
}

SG_EXPORT void sg_pass_1(const struct sg_job *job, int64_t first_chunk, int64_t last_chunk) {
    _Alignas(SG_LINE) double sg_lanes[3][SG_LANES];
    for (int64_t sg_c = first_chunk; sg_c < last_chunk; ++sg_c) {
        const struct sg_chunk *chunk = &job->chunks[sg_c];
        void *const *buffers = job->pointers + (int64_t)chunk->tensor * SG_BUFFERS;
        sg_clear(sg_lanes[0], 3 * SG_LANES);
        int64_t sg_end = sg_first_row((sg_param *)buffers[0] + chunk->start, sizeof(sg_param));
        int64_t sg_lane = SG_LANES - sg_end;
        for (int64_t sg_begin = 0; sg_begin < chunk->count; sg_begin = sg_end, sg_end += SG_LANES, sg_lane = 0) {
            const int64_t sg_at = chunk->start + sg_begin;
            sg_run_1(
                (sg_param *)buffers[0] + sg_at,
                (sg_grad *)buffers[1] + sg_at,
                (sg_state *)buffers[2] + sg_at,
                (sg_state *)buffers[3] + sg_at,
                sg_lanes[0] + sg_lane,
                sg_lanes[1] + sg_lane,
                sg_lanes[2] + sg_lane,
                (const sg_real *)job->table + (int64_t)job->rows[chunk->tensor] * SG_SCALARS,
                job->values + (int64_t)job->positions[chunk->tensor] * SG_VALUES,
                sg_min64(sg_end, chunk->count) - sg_begin);
        }
        double *sg_partials = job->partials + sg_c * 3;
        sg_partials[0] = sg_total_sum(sg_lanes[0]);
        sg_partials[1] = sg_total_sum(sg_lanes[1]);
        sg_partials[2] = sg_total_largest(sg_lanes[2]);
    }
}

/* ---- pass 2 -------------------------------------------------------------------------------------- */

/* One run of elements. A function of its own, because compilers trust `restrict` on parameters only. */
static __attribute__((noinline)) void sg_run_2(
    sg_param *restrict sg_param_at,
    sg_state const *restrict sg_m_at,
    sg_state const *restrict sg_v_at,
    const sg_real *restrict sg_row, const double *restrict sg_values, int64_t sg_count) {
    const sg_real correction1 = sg_row[4];
    const sg_real correction2 = sg_row[5];
    const sg_real eps = sg_row[6];
    const sg_real weight_decay = sg_row[7];
    const sg_real step = (sg_real)sg_values[1];
    (void)sg_row;
    (void)sg_values;
    for (int64_t sg_i = 0; sg_i < sg_count; ++sg_i) {
        const sg_real param = sg_param_load(sg_param_at, sg_i);
        const sg_real m = sg_state_load(sg_m_at, sg_i);
        const sg_real v = sg_state_load(sg_v_at, sg_i);

        // update = (m/(1 - beta1**t))/(sqrt(v/(1 - beta2**t)) + eps) + weight_decay*param
        const sg_real update = m / correction1 / (sg_sqrt(v / correction2) + eps) + weight_decay * param;
        // param = param - lr*trust*update
        const sg_real param_new = sg_round_param(param - step * update);

        sg_param_store(sg_param_at, sg_i, param_new);
    }
}

SG_EXPORT void sg_pass_2(const struct sg_job *job, int64_t first_chunk, int64_t last_chunk) {
    for (int64_t sg_c = first_chunk; sg_c < last_chunk; ++sg_c) {
        const struct sg_chunk *chunk = &job->chunks[sg_c];
        void *const *buffers = job->pointers + (int64_t)chunk->tensor * SG_BUFFERS;
        sg_run_2(
            (sg_param *)buffers[0] + chunk->start,
            (sg_state *)buffers[2] + chunk->start,
            (sg_state *)buffers[3] + chunk->start,
            (const sg_real *)job->table + (int64_t)job->rows[chunk->tensor] * SG_SCALARS,
            job->values + (int64_t)job->positions[chunk->tensor] * SG_VALUES, chunk->count);
    }
}
