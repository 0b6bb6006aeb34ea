/* Several threads run jobs of random sizes at once, and every unit must be done exactly once. With an
   argument, forks all the while; children run jobs of their own. */

#include "native.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
    int *hits;
};

static int rounds = 2000;

static void count(const void *argument, int64_t first, int64_t last) {
    const struct job *job = argument;
    for (int64_t i = first; i < last; ++i) {
        for (volatile int k = 0; k < 400; ++k)
            ;
        if (i % 37 == 5)
            usleep(20);
        job->hits[i]++;
    }
}

static void *drive(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (int round = 0; round < rounds; ++round) {
        const int n = 1 + rand_r(&seed) % 40;
        int *hits = calloc((size_t)n, sizeof *hits);
        int64_t *units = malloc(((size_t)n + 1) * sizeof *units);
        for (int i = 0; i <= n; ++i)
            units[i] = i;
        const struct job job = {hits};
        sg_pool_run(count, &job, units, n, rand_r(&seed) % 4);
        for (int i = 0; i < n; ++i) {
            if (hits[i] != 1) {
                printf("unit %d was done %d times\n", i, hits[i]);
                abort();
            }
        }
        /* A late worker that still read these would trip over them. */
        memset(hits, 0xff, (size_t)n * sizeof *hits);
        memset(units, 0xff, ((size_t)n + 1) * sizeof *units);
        free(hits);
        free(units);
        if (rand_r(&seed) % 500 == 0)
            sg_pool_retire();
    }
    return NULL;
}

int main(int count_of_arguments, char **arguments) {
    (void)arguments;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; ++i)
        pthread_create(&threads[i], NULL, drive, (void *)(i + 1));
    if (count_of_arguments > 1) {
        for (int i = 0; i < 50; ++i) {
            int status = 0;
            const pid_t child = fork();
            if (child == 0) {
                rounds = 20;
                drive((void *)99);
                _exit(0);
            }
            waitpid(child, &status, 0);
            if (status != 0) {
                printf("a child ended with %d\n", status);
                abort();
            }
        }
    }
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    puts("ok");
    return 0;
}
