/* Adam's memory traffic and next to no arithmetic: reads param, m, v and the gradient, writes param, m and v.
   The same interface as a kernel, so that the same pool runs it over the same chunks. */

#include <stdint.h>

struct sg_chunk {
    int32_t tensor;
    int32_t count;
    int64_t start;
};

struct sg_job {
    void *const *pointers;
    const int32_t *rows;
    const void *table;
    const struct sg_chunk *chunks;
};

static __attribute__((noinline)) void run(float *restrict param, const float *restrict grad, float *restrict m,
                                          float *restrict v, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const float g = grad[i];
        param[i] += g;
        m[i] += g;
        v[i] += g;
    }
}

__attribute__((visibility("default"))) void sg_kernel(const struct sg_job *job, int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
        const struct sg_chunk chunk = job->chunks[c];
        void *const *buffers = job->pointers + (int64_t)chunk.tensor * 5; /* as adam: param grad m v v_max */
        run((float *)buffers[0] + chunk.start, (const float *)buffers[1] + chunk.start,
            (float *)buffers[2] + chunk.start, (float *)buffers[3] + chunk.start, chunk.count);
    }
}
