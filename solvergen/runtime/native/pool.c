/* A pool of threads for kernels.

The caller works too, and every unit of work is claimed when somebody is free to do it. So a worker that
the operating system has put aside costs nothing unless it holds a unit, and the caller waits for claimed
units only, never for a thread to arrive.

A job lies in one of a fixed number of slots that are never freed. Its word `claim` holds the slot's epoch
and the next unit; a unit is claimed by compare-and-swap on that word. A late worker may read the fields of a
slot while a new job is written into it, but then its compare-and-swap fails, because the epoch has moved on.
All accesses are sequentially consistent: they are few, a handful for each unit. */

#include "native.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define SLOTS 32
#define MAX_WORKERS 1023
#define CLOSED UINT32_MAX          /* the next unit of a slot that has no job */
#define STACK_SIZE ((size_t)1 << 20)
#define WORKER_SPINS 2000
#define CALLER_SPINS 2000

struct slot {
    _Alignas(128) _Atomic uint64_t claim; /* epoch in the upper half, next unit in the lower */
    _Atomic uint32_t n_units;
    _Atomic int32_t helpers; /* workers with smaller numbers may take part */
    _Atomic(sg_function) function;
    _Atomic(const void *) job;
    _Atomic(const int64_t *) units;
    _Alignas(128) _Atomic uint32_t done;
    _Atomic int waiting; /* the caller sleeps on `finished` */
    _Atomic int taken;
    pthread_mutex_t lock;
    pthread_cond_t finished;
};

static struct slot slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static _Atomic uint32_t posted;     /* counts the jobs that were posted */
static _Atomic int sleepers;        /* workers asleep on `wake` */
static _Atomic int workers;         /* running, of this generation */
static _Atomic uint32_t generation; /* moves when workers are retired */
static _Atomic int refused;         /* the system refused a thread: so many jobs until it is asked again */
static _Atomic int used;            /* slots beyond this one have never had a job */

/* ---- floating-point control ---------------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__SSE2__)
typedef unsigned int fp_state;
static fp_state fp_strict(void) {
    const fp_state old = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80u); /* to nearest, no flush to zero, denormals are numbers, no traps */
    return old;
}
static void fp_restore(fp_state old) { __builtin_ia32_ldmxcsr(old); }
#elif defined(__aarch64__)
typedef uint64_t fp_state;
static fp_state fp_strict(void) {
    fp_state old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"((fp_state)0));
    return old;
}
static void fp_restore(fp_state old) { __asm__ volatile("msr fpcr, %0" : : "r"(old)); }
#else
#include <fenv.h>
typedef fenv_t fp_state;
static fp_state fp_strict(void) {
    fp_state old;
    fegetenv(&old);
    fesetenv(FE_DFL_ENV);
    return old;
}
static void fp_restore(fp_state old) { fesetenv(&old); }
#endif

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* ---- claiming ------------------------------------------------------------------------------------ */

static void wake_sleepers(int count) {
    if (atomic_load(&sleepers) == 0)
        return;
    /* Whoever has counted itself asleep and not seen the new job holds the lock until it really waits. */
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    if (count > 2) {
        pthread_cond_broadcast(&wake);
        return;
    }
    for (int i = 0; i < count; ++i)
        pthread_cond_signal(&wake);
}

/* Do units of one slot until none is left. `number` is the worker's, or -1 for the caller. */
static void work(struct slot *slot, int32_t number) {
    int first = 1;
    for (;;) {
        const uint64_t claim = atomic_load(&slot->claim);
        const uint32_t unit = (uint32_t)claim;
        const uint32_t n_units = atomic_load(&slot->n_units);
        if (unit == CLOSED || unit >= n_units || number >= atomic_load(&slot->helpers))
            return;
        const sg_function function = atomic_load(&slot->function);
        const void *job = atomic_load(&slot->job);
        const int64_t *units = atomic_load(&slot->units);
        uint64_t expected = claim;
        if (!atomic_compare_exchange_strong(&slot->claim, &expected, claim + 1))
            continue;
        if (first && number >= 0 && unit + 1 < n_units)
            wake_sleepers(2); /* each that comes calls two more, so that many wake soon */
        first = 0;
        function(job, units[unit], units[unit + 1]);
        if (atomic_fetch_add(&slot->done, 1) + 1 == n_units && atomic_load(&slot->waiting)) {
            pthread_mutex_lock(&slot->lock);
            pthread_cond_signal(&slot->finished);
            pthread_mutex_unlock(&slot->lock);
        }
    }
}

static void *worker(void *argument) {
    const uintptr_t packed = (uintptr_t)argument;
    const int32_t number = (int32_t)(packed & 0x3ff);
    const uint32_t mine = (uint32_t)(packed >> 10);
    fp_strict();
    for (;;) {
        const uint32_t seen = atomic_load(&posted);
        const int n = atomic_load(&used);
        for (int i = 0; i < n; ++i)
            work(&slots[i], number);
        if ((atomic_load(&generation) & 0xfffff) != mine)
            return NULL;
        for (int spin = 0; spin < WORKER_SPINS && atomic_load(&posted) == seen; ++spin)
            relax();
        if (atomic_load(&posted) != seen)
            continue;
        pthread_mutex_lock(&lock);
        atomic_fetch_add(&sleepers, 1);
        while (atomic_load(&posted) == seen && (atomic_load(&generation) & 0xfffff) == mine)
            pthread_cond_wait(&wake, &lock);
        atomic_fetch_sub(&sleepers, 1);
        pthread_mutex_unlock(&lock);
    }
}

/* ---- life of the pool ---------------------------------------------------------------------------- */

static void reset(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    atomic_store(&sleepers, 0);
    atomic_store(&workers, 0);
    atomic_store(&refused, 0);
    for (int i = 0; i < SLOTS; ++i) {
        pthread_mutex_init(&slots[i].lock, NULL);
        pthread_cond_init(&slots[i].finished, NULL);
        atomic_store(&slots[i].claim, (uint64_t)CLOSED);
        atomic_store(&slots[i].waiting, 0);
        atomic_store(&slots[i].taken, 0);
    }
}

/* A child has none of its parent's threads: it begins with an empty pool, and so needs no worker's locks. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork_parent(void) { pthread_mutex_unlock(&lock); }

static void initialise(void) {
    reset();
    pthread_atfork(before_fork, after_fork_parent, reset);
}

static void hire(int32_t wanted) {
    if (wanted > MAX_WORKERS)
        wanted = MAX_WORKERS;
    pthread_mutex_lock(&lock);
    pthread_attr_t attributes;
    if (atomic_load(&workers) < wanted && pthread_attr_init(&attributes) == 0) {
        /* Signals are for the program's own threads. */
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_SIZE);
        while (atomic_load(&workers) < wanted) {
            const uintptr_t packed = (uintptr_t)atomic_load(&workers) |
                                     (uintptr_t)(atomic_load(&generation) & 0xfffff) << 10;
            pthread_t thread;
            if (pthread_create(&thread, &attributes, worker, (void *)packed) != 0) {
                atomic_store(&refused, 1000);
                break;
            }
            atomic_fetch_add(&workers, 1);
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attributes);
    }
    pthread_mutex_unlock(&lock);
}

SG_EXPORT void sg_pool_retire(void) {
    pthread_once(&once, initialise);
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&generation, 1);
    atomic_store(&workers, 0);
    atomic_store(&refused, 0);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
}

SG_EXPORT int32_t sg_pool_workers(void) { return atomic_load(&workers); }

/* ---- running a job ------------------------------------------------------------------------------- */

static struct slot *take_slot(void) {
    for (int i = 0; i < SLOTS; ++i) {
        int free = 0;
        if (atomic_load(&slots[i].taken) || !atomic_compare_exchange_strong(&slots[i].taken, &free, 1))
            continue;
        int known = atomic_load(&used);
        while (known <= i && !atomic_compare_exchange_weak(&used, &known, i + 1))
            ;
        return &slots[i];
    }
    return NULL;
}

static void run_together(struct slot *slot, sg_function function, const void *job, const int64_t *units,
                         uint32_t n_units, int32_t helpers) {
    /* Close the slot under a new epoch before its fields change, open it under the next one after. */
    const uint64_t epoch = (atomic_load(&slot->claim) >> 32) + 1;
    atomic_store(&slot->claim, epoch << 32 | CLOSED);
    atomic_store(&slot->function, function);
    atomic_store(&slot->job, job);
    atomic_store(&slot->units, units);
    atomic_store(&slot->n_units, n_units);
    atomic_store(&slot->helpers, helpers);
    atomic_store(&slot->done, 0);
    atomic_store(&slot->waiting, 0);
    atomic_store(&slot->claim, (epoch + 1) << 32);

    atomic_fetch_add(&posted, 1);
    const int some = helpers < atomic_load(&workers); /* not every worker may help: call all */
    wake_sleepers(some ? 3 : helpers < 2 ? helpers : 2);
    work(slot, -1);

    for (int spin = 0; spin < CALLER_SPINS && atomic_load(&slot->done) != n_units; ++spin)
        relax();
    if (atomic_load(&slot->done) != n_units) {
        pthread_mutex_lock(&slot->lock);
        atomic_store(&slot->waiting, 1);
        while (atomic_load(&slot->done) != n_units)
            pthread_cond_wait(&slot->finished, &slot->lock);
        pthread_mutex_unlock(&slot->lock);
    }
}

SG_EXPORT void sg_pool_run(sg_function function, const void *job, const int64_t *units, int64_t n_units,
                           int32_t helpers) {
    if (n_units <= 0)
        return;
    const fp_state old = fp_strict();
    struct slot *slot = NULL;
    if (helpers > 0 && n_units > 1 && n_units < (int64_t)CLOSED) {
        pthread_once(&once, initialise);
        if (atomic_load(&workers) < helpers && atomic_fetch_sub(&refused, 1) <= 0)
            hire(helpers);
        if (atomic_load(&workers) > 0)
            slot = take_slot();
    }
    if (slot) {
        run_together(slot, function, job, units, (uint32_t)n_units, helpers);
        atomic_store(&slot->taken, 0);
    } else {
        function(job, units[0], units[n_units]);
    }
    fp_restore(old);
}
