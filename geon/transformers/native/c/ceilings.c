/* Peak rates of this machine: fused multiply-adds per second, and bytes per second for several
 * mixes of reading and writing, on threads of the pool.
 *
 * A run has as many tasks as threads. Each task iterates over its own part of memory repeatedly, so
 * that the part stays in the cache of one core. A run is slow if one thread took two tasks or if
 * another program used a core, so the fastest of several runs counts.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "move/streaming_store.h"

#define WIDTH PAST_WIDTH
#define SUMS 12      /* independent chains: two units times the five or so turns that one takes */
#define TURNS 20000  /* multiply-adds of each chain in one task */
#define LEAST_RUNS 1
#define PASSED 33554432 /* bytes that one run goes over at least: a hundred microseconds or more */
#define APART 320    /* bytes between two arrays, so that they do not meet in one set of a cache */

typedef float floats __attribute__((vector_size(WIDTH), aligned(WIDTH), may_alias));
typedef double doubles __attribute__((vector_size(WIDTH), aligned(WIDTH), may_alias));
typedef void pool_run(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads);

/* Keeps a vector in a register, where the compiler cannot know what is in it. */
#if defined(__x86_64__)
#define KEEP(vector) __asm__ volatile("" : "+x"(vector))
#elif defined(__aarch64__)
#define KEEP(vector) __asm__ volatile("" : "+w"(vector))
#else
#define KEEP(vector) __asm__ volatile("" : "+m"(vector))
#endif

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Arithmetic ----------------------------------------------------------------------------------- */

#define MULTIPLY_ADDS(name, vector)                                       \
    static void name(void *argument, int64_t index)                       \
    {                                                                     \
        vector sums[SUMS], factor, term;                                  \
        (void)argument;                                                   \
        for (size_t k = 0; k < sizeof factor / sizeof factor[0]; k++) {   \
            factor[k] = 0.75f;                                            \
            term[k] = 0.25f + (float)index;                               \
        }                                                                 \
        KEEP(factor);                                                     \
        KEEP(term);                                                       \
        for (int k = 0; k < SUMS; k++) {                                  \
            sums[k] = term;                                               \
            KEEP(sums[k]);                                                \
        }                                                                 \
        for (int turn = 0; turn < TURNS; turn++)                          \
            for (int k = 0; k < SUMS; k++)                                \
                sums[k] = sums[k] * factor + term; /* fused: see flags */ \
        for (int k = 0; k < SUMS; k++)                                    \
            KEEP(sums[k]);                                                \
    }
MULTIPLY_ADDS(float_task, floats)
MULTIPLY_ADDS(double_task, doubles)

/* Floating-point operations a second, two for each multiply-add, of elements of so many bytes. */
double geon_ceiling_flops(void *pool, int32_t threads, int32_t element, double limit);
double geon_ceiling_flops(void *pool, int32_t threads, int32_t element, double limit)
{
    pool_run *run;
    __builtin_memcpy(&run, &pool, sizeof run);
    double best = 1e30, begin = seconds();
    for (int trial = 0; trial < LEAST_RUNS || seconds() - begin < limit; trial++) {
        double start = seconds();
        run(element == 4 ? float_task : double_task, NULL, threads, threads);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    return 2.0 * WIDTH / element * SUMS * TURNS * threads / best;
}

/* Memory --------------------------------------------------------------------------------------- */

struct walk {
    char *memory;
    int64_t passes, part; /* vectors of each array that one task goes over */
    int64_t apart;        /* bytes from one array to the next */
};

#define ARRAY(number) ((floats *)(w->memory + (number) * w->apart) + index * w->part)
#define WALK(name, arrays, statement, end)                          \
    static void name(void *argument, int64_t index)                 \
    {                                                               \
        const struct walk *w = argument;                            \
        floats *restrict x0 = ARRAY(0), *restrict x1 = ARRAY(1);    \
        floats *restrict x2 = ARRAY(2), *restrict x3 = ARRAY(3);    \
        floats sums[4] = {{0}};                                     \
        (void)x1, (void)x2, (void)x3, (void)sums;                   \
        for (int64_t pass = 0; pass < w->passes; pass++) {          \
            for (int64_t k = 0; k + 4 <= w->part; k += 4)           \
                for (int64_t j = 0; j < 4; j++) {                   \
                    int64_t i = k + j;                              \
                    statement;                                      \
                }                                                   \
            for (int j = 0; j < 4; j++)                             \
                KEEP(sums[j]);                                      \
            __asm__ volatile("" : : "r"(x0) : "memory"); /* done */ \
        }                                                           \
        end;                                                        \
    }
WALK(read_task, 1, sums[j] += x0[i], (void)0)
WALK(write_task, 1, x0[i] = sums[j], (void)0)
WALK(copy_task, 2, x0[i] = x1[i], (void)0)
WALK(add_task, 3, x0[i] = x1[i] + x2[i], (void)0)
WALK(add_three_task, 4, x0[i] = x1[i] + x2[i] + x3[i], (void)0)
WALK(stream_write_task, 1, PAST_STORE(x0 + i, sums[j]), PAST_DONE())
WALK(stream_copy_task, 2, PAST_STORE(x0 + i, x1[i]), PAST_DONE())
WALK(stream_add_task, 3, PAST_STORE(x0 + i, x1[i] + x2[i]), PAST_DONE())
WALK(stream_add_three_task, 4, PAST_STORE(x0 + i, x1[i] + x2[i] + x3[i]), PAST_DONE())

/* By reads for each write, or 1:0, in the order of MIXES in ceilings.py; then bypassing caches. */
static void (*const tasks[2][5])(void *argument, int64_t index) = {
    {read_task, write_task, copy_task, add_task, add_three_task},
    {NULL, stream_write_task, stream_copy_task, stream_add_task, stream_add_three_task},
};
static const int arrays_of[5] = {1, 1, 2, 3, 4};

/* Bytes a second, read and written together, over `bytes` of memory; 0 for a walk there is not.
 * `memory` must hold that and 2 KiB more, and begin where a vector may. */
double geon_ceiling_bandwidth(void *pool, int32_t threads, char *memory, int64_t bytes,
                              int32_t mix, int32_t streams, double limit);
double geon_ceiling_bandwidth(void *pool, int32_t threads, char *memory, int64_t bytes,
                              int32_t mix, int32_t streams, double limit)
{
    pool_run *run;
    __builtin_memcpy(&run, &pool, sizeof run);
    if (!tasks[streams][mix])
        return 0;
    int64_t arrays = arrays_of[mix], part = bytes / arrays / threads / WIDTH / 4 * 4;
    if (part == 0)
        return 0;
    struct walk w = {memory, 1, part, part * threads * WIDTH + APART};
    int64_t passed = part * threads * WIDTH * arrays;
    w.passes = passed < PASSED ? PASSED / passed : 1;
    double best = 1e30, begin = seconds();
    for (int trial = 0; trial < LEAST_RUNS || seconds() - begin < limit; trial++) {
        double start = seconds();
        run(tasks[streams][mix], &w, threads, threads);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    return (double)passed * (double)w.passes / best;
}

/* Gives memory its pages, each by a task of its own. */
static void touch_task(void *argument, int64_t index)
{
    const struct walk *w = argument;
    __builtin_memset(w->memory + index * w->part, 0, (size_t)w->part);
}

void geon_ceiling_touch(void *pool, int32_t threads, char *memory, int64_t bytes);
void geon_ceiling_touch(void *pool, int32_t threads, char *memory, int64_t bytes)
{
    pool_run *run;
    __builtin_memcpy(&run, &pool, sizeof run);
    struct walk w = {memory, 1, bytes / threads, 0};
    run(touch_task, &w, threads, threads);
}
