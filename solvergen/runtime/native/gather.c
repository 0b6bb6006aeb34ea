/* Reads the addresses of a list of gradients and checks that each is exactly what was planned.

Called with the GIL held. Python's functions come as pointers, and what is needed of its structures is
declared here, so that neither Python's headers nor symbols from the process are needed.

An array of the very type and dtype object that was planned is read where NumPy keeps it: the head of its
structure is part of NumPy's binary interface, on which every extension module that was compiled against
NumPy leans, and library.py has compared it with what Python says before `direct` is set. Anything else goes
through the buffer protocol, which costs ten times as much. */

#include "native.h"

#include <stddef.h>

typedef struct {
    void *buf;
    void *obj;
    ptrdiff_t len;
    ptrdiff_t itemsize;
    int readonly;
    int ndim;
    char *format;
    ptrdiff_t *shape;
    ptrdiff_t *strides;
    ptrdiff_t *suboffsets;
    void *internal;
} python_buffer;

#define PYBUF_FORMAT 0x0004
#define PYBUF_STRIDES 0x0018

struct sg_python {
    void *(*list_get_item)(void *list, ptrdiff_t index); /* borrowed */
    int (*get_buffer)(void *object, python_buffer *view, int flags);
    void (*release_buffer)(python_buffer *view);
    void (*clear_error)(void);
    void *(*type_of)(void *object); /* a new reference */
    void (*let_go)(void *object);
    void *array_type;  /* numpy.ndarray */
    void *mapped_type; /* numpy.memmap: other subclasses mean something else by their elements */
};

/* The head of NumPy's array, after Python's own. */
struct array_fields {
    char *data;
    int ndim;
    ptrdiff_t *shape;
    ptrdiff_t *strides;
    void *base;
    void *dtype;
    int flags;
};

#define ARRAY_C_CONTIGUOUS 0x0001
#define ARRAY_ALIGNED 0x0100
#define ARRAY_WRITEABLE 0x0400

struct sg_gather {
    int64_t n;
    const int32_t *ndim;      /* [n] */
    const int64_t *shape;     /* all shapes, one after the other */
    const int64_t *nbytes;    /* [n] */
    const uint64_t *starts;   /* [n_spans], ascending: what the optimizer owns, as in spans.py; */
    const uint64_t *ends;     /* [n_spans]: these don't overlap one another */
    int64_t n_spans;
    void **pointers;          /* where the first gradient's address goes */
    int64_t pointer_stride;   /* entries from one gradient's place to the next one's */
    int64_t itemsize;
    uint64_t alignment;
    void *dtype;              /* the planned dtype object */
    int64_t head;             /* sizeof(PyObject), or 0: don't read arrays directly */
    int64_t n_written;
    void *const *written;     /* [n_written]: the arrays that the update writes, which may be read-only by now */
    char format;              /* as in Python's struct module; 0 if there is none for the dtype */
};

/* Whether [start, end) meets one of the spans: only the last one that begins before `end` can. */
static int overlaps(const struct sg_gather *plan, uint64_t start, uint64_t end) {
    const uint64_t *base = plan->starts;
    int64_t length = plan->n_spans;
    if (length == 0)
        return 0;
    while (length > 1) {
        const int64_t half = length / 2;
        base += base[half] < end ? half : 0;
        length -= half;
    }
    return *base < end && plan->ends[base - plan->starts] > start;
}

static int same_shape(const int64_t *planned, int32_t planned_ndim, const ptrdiff_t *shape, int ndim) {
    if (ndim != planned_ndim)
        return 0;
    for (int i = 0; i < ndim; ++i)
        if (shape[i] != planned[i])
            return 0;
    return 1;
}

static int contiguous(const python_buffer *view) {
    int64_t expected = view->itemsize;
    if (view->len == 0)
        return 1;
    for (int i = view->ndim - 1; i >= 0; --i) {
        if (view->shape[i] != 1 && view->strides[i] != expected)
            return 0;
        expected *= view->shape[i];
    }
    return 1;
}

static char format_of(const python_buffer *view) {
    const char *format = view->format;
    if (format == NULL)
        return 'B';
    if (*format == '@' || *format == '=')
        ++format;
    return format[0] != 0 && format[1] == 0 ? format[0] : 0;
}

static int read_buffer(const struct sg_python *python, const struct sg_gather *plan, void *object,
                       const int64_t *shape, int32_t ndim, void **address) {
    python_buffer view;
    void *type = python->type_of(object);
    const int is_array = type == python->array_type || type == python->mapped_type;
    python->let_go(type);
    if (!is_array)
        return 0;
    if (python->get_buffer(object, &view, PYBUF_STRIDES | PYBUF_FORMAT) != 0) {
        python->clear_error();
        return 0;
    }
    const int right = plan->format != 0 && format_of(&view) == plan->format && view.itemsize == plan->itemsize &&
                      same_shape(shape, ndim, view.shape, view.ndim) && contiguous(&view);
    *address = view.buf;
    python->release_buffer(&view);
    return right;
}

static const struct array_fields *fields_of(const struct sg_gather *plan, const void *object) {
    return (const struct array_fields *)((const char *)object + plan->head);
}

static int read_directly(const struct sg_gather *plan, const void *object, const int64_t *shape, int32_t ndim,
                         void **address) {
    const struct array_fields *array = fields_of(plan, object);
    const int wanted = ARRAY_C_CONTIGUOUS | ARRAY_ALIGNED;
    *address = array->data;
    return (array->flags & wanted) == wanted && same_shape(shape, ndim, array->shape, array->ndim);
}

static int direct(const struct sg_python *python, const struct sg_gather *plan, const void *object) {
    return plan->head != 0 &&
           *(void *const *)((const char *)object + plan->head - sizeof(void *)) == python->array_type;
}

/* Where there is no head to look into, whoever calls has looked. */
static int may_be_written(const struct sg_gather *plan) {
    if (plan->head == 0)
        return 1;
    int flags = ARRAY_WRITEABLE;
    for (int64_t i = 0; i < plan->n_written; ++i) {
        if (i + 16 < plan->n_written) /* nothing else touches these objects in a step */
            __builtin_prefetch(&fields_of(plan, plan->written[i + 16])->flags);
        flags &= fields_of(plan, plan->written[i])->flags;
    }
    return flags & ARRAY_WRITEABLE;
}

/* Gradients are new objects in each step and so are in no cache: ask for those further on in the list. An
   object's shape lies elsewhere, and its address in the object. */
static void look_ahead(const struct sg_python *python, const struct sg_gather *plan, void *gradients,
                       int64_t i) {
    if (i + 16 < plan->n)
        __builtin_prefetch((const char *)python->list_get_item(gradients, (ptrdiff_t)i + 16) + plan->head);
    if (i + 8 < plan->n) {
        const char *object = python->list_get_item(gradients, (ptrdiff_t)i + 8);
        if (direct(python, plan, object))
            __builtin_prefetch(fields_of(plan, object)->shape);
    }
}

/* Returns -1, with all addresses in place; -2 if something that the update writes may not be written any more; or
   the first gradient that is not as planned. `gradients` is a list of plan->n objects. */
SG_EXPORT int64_t sg_gather(const struct sg_python *python, const struct sg_gather *plan, void *gradients) {
    const int64_t *shape = plan->shape;
    void **place = plan->pointers;
    if (!may_be_written(plan))
        return -2;
    for (int64_t i = 0; i < plan->n; ++i) {
        void *object = python->list_get_item(gradients, (ptrdiff_t)i);
        const int32_t ndim = plan->ndim[i];
        void *address;
        int right;
        if (object == NULL) {
            python->clear_error();
            return i;
        }
        look_ahead(python, plan, gradients, i);
        if (direct(python, plan, object) &&
            fields_of(plan, object)->dtype == plan->dtype)
            right = read_directly(plan, object, shape, ndim, &address);
        else
            right = read_buffer(python, plan, object, shape, ndim, &address);
        if (!right)
            return i;
        const uint64_t start = (uint64_t)(uintptr_t)address;
        const uint64_t nbytes = (uint64_t)plan->nbytes[i];
        if (nbytes != 0 && (start % plan->alignment != 0 || overlaps(plan, start, start + nbytes)))
            return i;
        *place = address;
        place += plan->pointer_stride;
        shape += ndim;
    }
    return -1;
}

/* ---- are all gradients finite? ------------------------------------------------------------------- */

struct sg_finite_job {
    void *const *pointers; /* as in a kernel's job; the gradient is the second buffer of each tensor */
    const struct sg_chunk *chunks;
    int64_t n_buffers;
    int32_t *found; /* set to 1 where something is not finite */
};

/* Infinities and NaNs are what has all bits of the exponent set. The loop has no exit, so that it is
   vectorised; `found` is looked at once a chunk. */
#define FINITE(NAME, TYPE, EXPONENT)                                                                       \
    SG_EXPORT void NAME(const void *argument, int64_t first_chunk, int64_t last_chunk) {                   \
        const struct sg_finite_job *job = argument;                                                        \
        for (int64_t c = first_chunk; c < last_chunk; ++c) {                                               \
            const struct sg_chunk chunk = job->chunks[c];                                                  \
            if (__atomic_load_n(job->found, __ATOMIC_RELAXED))                                             \
                return;                                                                                    \
            const TYPE *gradient =                                                                         \
                (const TYPE *)job->pointers[(int64_t)chunk.tensor * job->n_buffers + 1] + chunk.start;     \
            TYPE bad = 0;                                                                                  \
            for (int32_t i = 0; i < chunk.count; ++i)                                                      \
                bad |= (TYPE)((gradient[i] & (TYPE)EXPONENT) == (TYPE)EXPONENT);                           \
            if (bad)                                                                                       \
                __atomic_store_n(job->found, 1, __ATOMIC_RELAXED);                                         \
        }                                                                                                  \
    }

FINITE(sg_finite_float32, uint32_t, 0x7f800000u)
FINITE(sg_finite_float64, uint64_t, 0x7ff0000000000000u)
FINITE(sg_finite_bfloat16, uint16_t, 0x7f80u)
FINITE(sg_finite_float16, uint16_t, 0x7c00u)
