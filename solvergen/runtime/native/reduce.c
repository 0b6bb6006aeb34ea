/* Reduces terms to totals, in the one order that all backends have (runtime/reductions.py), and runs stages.

A pass leaves a row of totals for each chunk of a tensor; here they are terms. Terms of many tensors are reduced
by one call. All of this works on as many float64 as there are chunks of 4,096 elements, so it costs little beside
the passes; what is vectorised is so for the sake of small tensors. */

#include "native.h"

#define LANES 256
#define CHUNK_TERMS 4096

struct sg_reduction {
    const double *terms;     /* [terms][stride] */
    int64_t stride;
    const int64_t *offsets;  /* [segments + 1]: where each segment's terms begin */
    const int32_t *places;   /* [segments]: the row of `out` that takes its totals */
    const int32_t *from;     /* [columns]: columns of `terms`, */
    const int32_t *to;       /* [columns]: those of `out` */
    const uint8_t *largest;  /* [columns]: whether the larger of two is taken, not their sum */
    int64_t columns;
    double *out;
    int64_t out_stride;
};

static inline double sum(double a, double b) { return a + b; }

static inline double larger(double a, double b) {
    const double m = a > b ? a : b;
    return a != a ? a : m;
}

/* Functions of their own, because compilers trust `restrict` on parameters only. */
#define REDUCING(NAME, OPERATION)                                                                          \
    static __attribute__((noinline)) void NAME##_row(double *restrict lanes, const double *restrict terms, \
                                                     int64_t stride, int64_t count) {                      \
        if (stride == 1)                                                                                   \
            for (int64_t i = 0; i < count; ++i)                                                            \
                lanes[i] = OPERATION(lanes[i], terms[i]);                                                  \
        else                                                                                               \
            for (int64_t i = 0; i < count; ++i)                                                            \
                lanes[i] = OPERATION(lanes[i], terms[i * stride]);                                         \
    }                                                                                                      \
                                                                                                           \
    static __attribute__((noinline)) void NAME##_half(double *restrict lanes, const double *restrict upper,\
                                                      int64_t half) {                                      \
        for (int64_t i = 0; i < half; ++i)                                                                 \
            lanes[i] = OPERATION(lanes[i], upper[i]);                                                      \
    }                                                                                                      \
                                                                                                           \
    static double NAME##_lanes(double *lanes) {                                                            \
        for (int64_t half = LANES / 2; half > 0; half /= 2)                                                \
            NAME##_half(lanes, lanes + half, half);                                                        \
        return lanes[0];                                                                                   \
    }                                                                                                      \
                                                                                                           \
    /* The total of up to `span` terms as one chunk: of the terms, or of the totals of chunks. */          \
    static double NAME##_chunk(const double *terms, int64_t stride, int64_t count, int64_t span) {         \
        double lanes[LANES] = {0.0};                                                                       \
        if (span == CHUNK_TERMS) {                                                                         \
            for (int64_t i = 0; i < count; i += LANES)                                                     \
                NAME##_row(lanes, terms + i * stride, stride, count - i < LANES ? count - i : LANES);      \
        } else {                                                                                           \
            const int64_t below = span / CHUNK_TERMS;                                                      \
            for (int64_t i = 0, lane = 0; i < count; i += below, lane = (lane + 1) % LANES)                \
                lanes[lane] = OPERATION(                                                                   \
                    lanes[lane],                                                                           \
                    NAME##_chunk(terms + i * stride, stride, count - i < below ? count - i : below, below)); \
        }                                                                                                  \
        return NAME##_lanes(lanes);                                                                        \
    }                                                                                                      \
                                                                                                           \
    static double NAME(const double *terms, int64_t stride, int64_t count) {                               \
        int64_t span = CHUNK_TERMS;                                                                        \
        if (count < 2)                                                                                     \
            return count == 0 ? 0.0 : terms[0]; /* one total is not reduced again */                       \
        while (span < count)                                                                               \
            span *= CHUNK_TERMS;                                                                           \
        return NAME##_chunk(terms, stride, count, span);                                                   \
    }

REDUCING(total_sum, sum)
REDUCING(total_largest, larger)

/* The segments [first, last): a job for the pool. */
SG_EXPORT void sg_reduce(const void *argument, int64_t first, int64_t last) {
    const struct sg_reduction *job = argument;
    for (int64_t s = first; s < last; ++s) {
        const double *terms = job->terms + job->offsets[s] * job->stride;
        const int64_t count = job->offsets[s + 1] - job->offsets[s];
        double *out = job->out + (int64_t)job->places[s] * job->out_stride;
        for (int64_t c = 0; c < job->columns; ++c) {
            const double *column = terms + job->from[c];
            out[job->to[c]] = job->largest[c] ? total_largest(column, job->stride, count)
                                              : total_sum(column, job->stride, count);
        }
    }
}

/* ---- stages -------------------------------------------------------------------------------------- */

struct sg_stage_job {
    void (*stage)(const void *argument, int64_t n_tensors); /* of a kernel */
    const void *argument;
};

/* A stage as a job for the pool, which sees to floating-point control. It is done as a whole. */
SG_EXPORT void sg_run_stage(const void *argument, int64_t first, int64_t last) {
    const struct sg_stage_job *job = argument;
    (void)first;
    job->stage(job->argument, last);
}
