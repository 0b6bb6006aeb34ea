/* Reduces terms to totals, in the one order that all backends have (runtime/reductions.py), and runs stages.

A pass leaves a row of totals for each chunk of a tensor, or for each row and column of a tile of a matrix
(runtime/line_reductions.py); here they are terms. Terms of many tensors are reduced by one call. All of this works
on as many float64 as there are chunks of 4,096 elements, so it costs little beside the passes; what is vectorised is
so for the sake of small tensors. */

#include "native.h"

#define LANES 256
#define CHUNK_TERMS 4096

struct sg_reduction {
    const double *terms;
    int64_t stride;          /* from one row of `terms` to the next */
    int64_t apart;           /* and from one column to the next */
    const int64_t *starts;   /* [segments]: where each segment's terms begin */
    const int64_t *ends;     /* [segments] */
    const int32_t *places;   /* [segments]: the row of `out` that takes its totals */
    const int32_t *from;     /* [columns]: columns of `terms`, */
    const int32_t *to;       /* [columns]: those of `out` */
    const uint8_t *largest;  /* [columns]: whether the larger of two is taken, not their sum */
    int64_t columns;
    double *out;
    int64_t out_stride;
    int64_t out_apart;
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
    static void NAME##_lanes(double *lanes, int64_t width) {                                               \
        for (int64_t half = width / 2; half > 0; half /= 2)                                                \
            NAME##_half(lanes, lanes + half, half);                                                        \
    }                                                                                                      \
                                                                                                           \
    /* The total of up to `span` terms as one chunk: of the terms, or of the totals of chunks. Lanes that   \
       no term belongs to are +0.0: one of them stands for all. */                                         \
    static double NAME##_chunk(const double *terms, int64_t stride, int64_t count, int64_t span) {         \
        double lanes[LANES];                                                                               \
        int64_t width = span == CHUNK_TERMS ? 1 : LANES;                                                   \
        while (width < count && width < LANES)                                                             \
            width *= 2;                                                                                    \
        for (int64_t i = 0; i < width; ++i)                                                                \
            lanes[i] = 0.0;                                                                                \
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
        NAME##_lanes(lanes, width);                                                                        \
        return width < LANES ? OPERATION(lanes[0], 0.0) : lanes[0];                                        \
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
        const double *terms = job->terms + job->starts[s] * job->stride;
        const int64_t count = job->ends[s] - job->starts[s];
        double *out = job->out + (int64_t)job->places[s] * job->out_stride;
        for (int64_t c = 0; c < job->columns; ++c) {
            const double *column = terms + job->from[c] * job->apart;
            out[job->to[c] * job->out_apart] = job->largest[c] ? total_largest(column, job->stride, count)
                                              : total_sum(column, job->stride, count);
        }
    }
}

/* ---- columns of matrices ----------------------------------------------------------------------- */

#define SIDE_BY_SIDE 32 /* columns whose lanes are combined at a time */

/* Some columns of a matrix, whose terms lie in rows of them: one for each tile, from above. */
struct sg_columns {
    int64_t start; /* of the first column's first term */
    int64_t tiles;
    int64_t width; /* terms from one tile to the next */
    int64_t place; /* the row of `out` for the first column */
    int64_t count;
};

struct sg_column_reduction {
    const double *terms; /* [terms][columns] */
    const struct sg_columns *pieces;
    const uint8_t *largest; /* [columns] */
    int64_t columns;        /* reductions of each column of the matrix */
    double *out;
    int64_t out_stride;
    int64_t out_apart;
    int64_t out_first;
};

/* Columns side by side as one chunk each, with a lane for each tile above 256, as NAME_chunk has it. */
#define SIDE_BY_SIDE_REDUCING(NAME, OPERATION)                                                             \
    static __attribute__((noinline)) void NAME##_abreast(double *restrict lanes, const double *restrict terms, \
                                                         int64_t count) {                                  \
        for (int64_t i = 0; i < count; ++i)                                                                \
            lanes[i] = OPERATION(lanes[i], terms[i]);                                                      \
    }                                                                                                      \
                                                                                                           \
    static __attribute__((noinline)) void NAME##_strided(double *restrict lanes, const double *restrict terms, \
                                                         int64_t stride, int64_t count) {                  \
        for (int64_t i = 0; i < count; ++i)                                                                \
            lanes[i] = OPERATION(lanes[i], terms[i * stride]);                                             \
    }                                                                                                      \
                                                                                                           \
    static void NAME##_columns(double *lanes, const double *terms, int64_t columns, int64_t stride,        \
                               int64_t tiles, int64_t count) {                                             \
        int64_t width = 1;                                                                                 \
        while (width < tiles && width < LANES)                                                             \
            width *= 2;                                                                                    \
        for (int64_t i = 0; i < width * SIDE_BY_SIDE; ++i)                                                 \
            lanes[i] = 0.0;                                                                                \
        for (int64_t t = 0; t < tiles; ++t) {                                                              \
            double *lane = lanes + t % LANES * SIDE_BY_SIDE;                                               \
            if (columns == 1)                                                                              \
                NAME##_abreast(lane, terms + t * stride, count);                                           \
            else                                                                                           \
                NAME##_strided(lane, terms + t * stride, columns, count);                                  \
        }                                                                                                  \
        for (int64_t half = width / 2; half > 0; half /= 2)                                                \
            NAME##_abreast(lanes, lanes + half * SIDE_BY_SIDE, half * SIDE_BY_SIDE);                       \
        if (width < LANES)                                                                                 \
            for (int64_t i = 0; i < SIDE_BY_SIDE; ++i)                                                     \
                lanes[i] = OPERATION(lanes[i], 0.0);                                                       \
    }

SIDE_BY_SIDE_REDUCING(total_sum, sum)
SIDE_BY_SIDE_REDUCING(total_largest, larger)

/* The pieces [first, last): a job for the pool. */
SG_EXPORT void sg_reduce_columns(const void *argument, int64_t first, int64_t last) {
    const struct sg_column_reduction *job = argument;
    double lanes[LANES * SIDE_BY_SIDE];
    for (int64_t p = first; p < last; ++p) {
        const struct sg_columns *piece = &job->pieces[p];
        const int64_t stride = piece->width * job->columns;
        for (int64_t c = 0; c < job->columns; ++c) {
            double *out = job->out + piece->place * job->out_stride + (job->out_first + c) * job->out_apart;
            const double *terms = job->terms + piece->start * job->columns + c;
            if (piece->tiles == 1) {
                for (int64_t i = 0; i < piece->count; ++i)
                    out[i * job->out_stride] = terms[i * job->columns];
                continue;
            }
            for (int64_t i = 0; i < piece->count; i += SIDE_BY_SIDE) {
                const int64_t many = piece->count - i < SIDE_BY_SIDE ? piece->count - i : SIDE_BY_SIDE;
                const double *from = terms + i * job->columns;
                if (piece->tiles > CHUNK_TERMS || many < SIDE_BY_SIDE / 8) {
                    for (int64_t j = 0; j < many; ++j) {
                        const double *column = from + j * job->columns;
                        out[(i + j) * job->out_stride] = job->largest[c]
                                                             ? total_largest(column, stride, piece->tiles)
                                                             : total_sum(column, stride, piece->tiles);
                    }
                    continue;
                }
                if (job->largest[c])
                    total_largest_columns(lanes, from, job->columns, stride, piece->tiles, many);
                else
                    total_sum_columns(lanes, from, job->columns, stride, piece->tiles, many);
                for (int64_t j = 0; j < many; ++j)
                    out[(i + j) * job->out_stride] = lanes[j];
            }
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
