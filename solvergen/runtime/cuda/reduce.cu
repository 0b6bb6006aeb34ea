/* Reduces rows of terms to one value a segment and column, in the language's order (docs/language.md): chunks of
   4,096 terms; in a chunk term i belongs to lane i % 256; a lane begins at +0.0 and takes its terms in order;
   lanes are combined by halving; the chunks' values are terms again, until one is left.

   A block takes a segment of a column, or, where all segments are short, some threads of a warp do. It needs no
   other block's results, so there is nothing to wait for. */

typedef long long sg_i64;

#define SG_THREADS 256
#define SG_CHUNK 4096

/* A column: where it stands in a row of terms and in a row of results, and whether values are combined to their
   largest instead of their sum. */
struct sg_column {
    int from;
    int to;
    int largest;
};

/* Rows of terms from begin to end, and where the values of its chunks lie in scratch. */
struct sg_segment {
    sg_i64 begin;
    sg_i64 end;
    sg_i64 scratch;
};

/* The next value `b` after `a`. Of NaNs the first stays. */
template <bool sg_largest>
static __device__ __forceinline__ double sg_combined(const double a, const double b) {
    if constexpr (sg_largest) {
        return a > b || a != a ? a : b;
    } else {
        return a + b;
    }
}

/* The value of up to 4,096 terms that lie `width` apart, to every thread of the block. Where there is no term a
   +0.0 stands in: after the +0.0 with which a lane begins, it changes neither a sum nor a largest magnitude. All
   terms of a thread are on their way before the first is needed. */
template <bool sg_largest>
static __device__ double sg_chunk_value(const double *terms, const int width, const int count, double *lanes) {
    double mine[SG_CHUNK / SG_THREADS];
#pragma unroll
    for (int j = 0; j < SG_CHUNK / SG_THREADS; ++j) {
        const int i = j * SG_THREADS + (int)threadIdx.x;
        mine[j] = i < count ? terms[(sg_i64)i * width] : 0.0;
    }
    double value = 0.0;
#pragma unroll
    for (int j = 0; j < SG_CHUNK / SG_THREADS; ++j) {
        value = sg_combined<sg_largest>(value, mine[j]);
    }
    lanes[threadIdx.x] = value;
    __syncthreads();
#pragma unroll
    for (int half = SG_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            lanes[threadIdx.x] = sg_combined<sg_largest>(lanes[threadIdx.x], lanes[threadIdx.x + half]);
        }
        __syncthreads();
    }
    const double result = lanes[0];
    __syncthreads(); /* before the next chunk's lanes overwrite it */
    return result;
}

/* The value of `count` terms that lie `width` apart. `values`, which lie `apart`, take those of chunks. */
template <bool sg_largest>
static __device__ double sg_segment_value(const double *terms, int width, sg_i64 count, double *values,
                                          const int apart, double *lanes) {
    double result = 0.0;
    while (count > 0) {
        const sg_i64 chunks = (count + SG_CHUNK - 1) / SG_CHUNK;
        for (sg_i64 c = 0; c < chunks; ++c) {
            const sg_i64 first = c * SG_CHUNK;
            const int length = count - first < SG_CHUNK ? (int)(count - first) : SG_CHUNK;
            result = sg_chunk_value<sg_largest>(terms + first * width, width, length, lanes);
            /* The c-th value's place is free: if it held a term, then one of a chunk that has been read. */
            if (threadIdx.x == 0 && chunks > 1) {
                values[c * apart] = result;
            }
        }
        if (chunks == 1) {
            break;
        }
        __syncthreads();
        terms = values;
        width = apart;
        count = chunks;
    }
    return result;
}

/* The value of one term or of none in each of `span` neighbouring threads, a power of two up to 32, to the first
   of them. Lanes beyond would be +0.0, which change nothing, so halving begins at span / 2. */
template <bool sg_largest>
static __device__ __forceinline__ double sg_short_value(const double term, const int span) {
    double value = sg_combined<sg_largest>(0.0, term);
    for (int half = span / 2; half > 0; half /= 2) {
        value = sg_combined<sg_largest>(value, __shfl_down_sync(0xffffffffu, value, half));
    }
    return value;
}

/* terms     rows of `width` numbers
   segments  [n_segments]
   places    [n_segments]: a segment's row of `out`
   columns   [n_columns]
   scratch   rows of n_columns numbers, for the values of chunks: as many for a segment as it has chunks, if several
   out       rows of `stride` numbers
   span      threads that take a segment: a power of two up to 32, and no segment is longer; or else the block
   skip      null, or a number that is not 0 if nothing is to be done */
extern "C" __global__ void __launch_bounds__(SG_THREADS, 2)
sg_reduce(const double *terms, int width, const sg_segment *segments, const int *places, sg_i64 n_segments,
          const sg_column *columns, int n_columns, double *scratch, double *out, int stride, int span,
          const int *skip) {
    __shared__ double lanes[SG_THREADS];
    if (skip && *skip) {
        return;
    }
    if (span <= 32) {
        const int lane = (int)threadIdx.x & (span - 1);
        const int jobs = SG_THREADS / span;
        /* All threads go round equally often, since warps exchange values. */
        for (sg_i64 b = (sg_i64)blockIdx.x * jobs; b < n_segments * n_columns; b += (sg_i64)gridDim.x * jobs) {
            const sg_i64 job = b + (int)threadIdx.x / span;
            const bool there = job < n_segments * n_columns;
            const sg_i64 number = there ? job / n_columns : 0;
            const sg_segment segment = segments[number];
            const sg_column column = columns[there ? (int)(job - number * n_columns) : 0];
            const int count = (int)(segment.end - segment.begin);
            const double term = lane < count ? terms[(segment.begin + lane) * width + column.from] : 0.0;
            const double added = sg_short_value<false>(term, span);
            const double largest = sg_short_value<true>(term, span);
            if (there && lane == 0) {
                out[(sg_i64)places[number] * stride + column.to] =
                    count == 1 ? term : column.largest ? largest : added;
            }
        }
        return;
    }
    for (sg_i64 job = blockIdx.x; job < n_segments * n_columns; job += gridDim.x) {
        const sg_i64 place = places[job / n_columns];
        const sg_segment segment = segments[job / n_columns];
        const int index = (int)(job % n_columns);
        const sg_column column = columns[index];
        const sg_i64 count = segment.end - segment.begin;
        double *values = scratch + segment.scratch * n_columns + index;
        const double *first = terms + segment.begin * width + column.from;
        if (count == 1) { /* of most tensors there is one chunk, whose value is the tensor's */
            if (threadIdx.x == 0) {
                out[place * stride + column.to] = *first;
            }
            continue;
        }
        const double result = column.largest
                                  ? sg_segment_value<true>(first, width, count, values, n_columns, lanes)
                                  : sg_segment_value<false>(first, width, count, values, n_columns, lanes);
        if (threadIdx.x == 0) {
            out[place * stride + column.to] = result;
        }
    }
}
