/* What the parts of the native runtime and the kernels share. `runtime/native/library.py` mirrors it. */

#ifndef SG_NATIVE_H
#define SG_NATIVE_H

#include <stdint.h>

#define SG_EXPORT __attribute__((visibility("default")))

/* A run of elements of one tensor; as in the kernels. */
struct sg_chunk {
    int32_t tensor;
    int32_t count;
    int64_t start;
};

/* Works on the chunks [first, last) of a job. Kernels are such functions, the job is theirs to read. */
typedef void (*sg_function)(const void *job, int64_t first_chunk, int64_t last_chunk);

/* Runs `function` over all chunks. Unit u is the chunks [units[u], units[u + 1]); `units` has n_units + 1
   entries. At most `helpers` threads besides the caller take part. Floating-point control is strict on
   all of them, and as before on return. */
SG_EXPORT void sg_pool_run(sg_function function, const void *job, const int64_t *units, int64_t n_units,
                           int32_t helpers);

/* Lets all workers go; the next job hires new ones, which inherit its caller's CPU affinity. */
SG_EXPORT void sg_pool_retire(void);

/* How many workers there are. */
SG_EXPORT int32_t sg_pool_workers(void);

#endif
