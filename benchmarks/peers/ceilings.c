/* What a machine can do: fused multiply-adds per second, and bytes per second for mixes of reading
 * and writing over working sets of several sizes, on a number of threads.
 *
 *     ceilings THREADS LARGEST_BYTES
 *
 * prints lines "fma BITS FLOPS_PER_SECOND" and "bytes MIX SIZE BYTES_PER_SECOND", where SIZE is all
 * memory that is touched and the bytes are those the program reads and writes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif

typedef float floats __attribute__((vector_size(WIDTH)));
typedef double doubles __attribute__((vector_size(WIDTH)));

#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(at, value) __builtin_nontemporal_store(value, at)
#endif
#endif
#if !defined(STREAM) && defined(__GNUC__) && !defined(__clang__)
#if defined(__AVX512F__)
#define STREAM(at, value) __builtin_ia32_movntps512((float *)(at), value)
#elif defined(__AVX__)
#define STREAM(at, value) __builtin_ia32_movntps256((float *)(at), value)
#endif
#endif
#ifdef STREAM
#define STREAMS 1
#else
#define STREAMS 0
#define STREAM(at, value) (*(at) = (value))
#endif

#define MOST_THREADS 256
#define SECONDS 0.003 /* that one measurement takes at least */
#define TRIALS 10
#define APART 9 /* vectors */

typedef struct {
    const char *name;
    int arrays, moved; /* arrays that are touched; arrays read and written */
    int streams;       /* whether what is written was not read, so that caches may be bypassed */
} mix;

static const mix mixes[] = {
    {"1:0", 1, 1, 0}, {"0:1", 1, 1, 1}, {"1:1", 2, 2, 1},          {"1:1 in place", 1, 2, 0},
    {"2:1", 3, 3, 1}, {"3:1", 4, 4, 1}, {"4:3 in place", 4, 7, 0},
};
enum { MIXES = sizeof mixes / sizeof *mixes };

static pthread_barrier_t barrier;
static int threads;
static size_t largest;
static char *memory;
static volatile float sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__)
#define REGISTER "+x"
#else
#define REGISTER "+w"
#endif
#define OPAQUE(a, b, c, d, e, f)                                                                   \
    __asm__ volatile(""                                                                            \
                     : REGISTER(a), REGISTER(b), REGISTER(c), REGISTER(d), REGISTER(e), REGISTER(f))

/* Twelve sums: enough for two units with four cycles of latency, and for sixteen registers. */
#define FMA_LOOP(type, element)                                                                    \
    static double fma_##element(long steps) {                                                      \
        type x = {0}, y = {0}, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11;                   \
        for (unsigned k = 0; k < sizeof(type) / sizeof(element); k++) {                            \
            x[k] = (element)0.999;                                                                 \
            y[k] = (element)0.001;                                                                 \
        }                                                                                          \
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = a8 = a9 = a10 = a11 = x;                           \
        for (long k = 0; k < steps; k++) {                                                         \
            a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y;                    \
            a4 = a4 * x + y, a5 = a5 * x + y, a6 = a6 * x + y, a7 = a7 * x + y;                    \
            a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y, a11 = a11 * x + y;                \
            /* Each sum is its own: without this they would be found to be equal. */               \
            OPAQUE(a0, a1, a2, a3, a4, a5);                                                        \
            OPAQUE(a6, a7, a8, a9, a10, a11);                                                      \
        }                                                                                          \
        a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                              \
        sink = (float)a0[0];                                                                       \
        return 24.0 * (double)steps * (double)(sizeof(type) / sizeof(element));                    \
    }
FMA_LOOP(floats, float)
FMA_LOOP(doubles, double)

static void touch(int which, int stream, floats **arrays, size_t n) {
    floats *a = arrays[0], *b = arrays[1], *c = arrays[2], *d = arrays[3], scale = {0};
    for (unsigned k = 0; k < WIDTH / sizeof(float); k++) scale[k] = 0.5f;
    switch (which) {
    case 0: {
        floats s0 = scale, s1 = scale, s2 = scale, s3 = scale;
        for (size_t k = 0; k + 3 < n; k += 4)
            s0 += a[k], s1 += a[k + 1], s2 += a[k + 2], s3 += a[k + 3];
        s0 += s1 + s2 + s3;
        sink = s0[0];
        return;
    }
    case 1:
        if (stream)
            for (size_t k = 0; k < n; k++) STREAM(a + k, scale);
        else
            for (size_t k = 0; k < n; k++) a[k] = scale;
        return;
    case 2:
        if (stream)
            for (size_t k = 0; k < n; k++) STREAM(b + k, a[k] * scale);
        else
            for (size_t k = 0; k < n; k++) b[k] = a[k] * scale;
        return;
    case 3:
        for (size_t k = 0; k < n; k++) a[k] = a[k] * scale + scale;
        return;
    case 4:
        if (stream)
            for (size_t k = 0; k < n; k++) STREAM(c + k, a[k] * scale + b[k]);
        else
            for (size_t k = 0; k < n; k++) c[k] = a[k] * scale + b[k];
        return;
    case 5:
        if (stream)
            for (size_t k = 0; k < n; k++) STREAM(d + k, a[k] * b[k] + c[k]);
        else
            for (size_t k = 0; k < n; k++) d[k] = a[k] * b[k] + c[k];
        return;
    default:
        for (size_t k = 0; k < n; k++) {
            floats g = d[k], first = b[k] * scale + g, second = c[k] * scale + g;
            b[k] = first, c[k] = second;
            a[k] = a[k] - first * second;
        }
    }
}

static void pin(long thread) {
#ifdef __linux__
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && thread-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
#else
    (void)thread;
#endif
}

/* All threads do `work` at the same time, often enough; the best rate of several trials. */
#define BEST_RATE(thread, best, work)                                                              \
    do {                                                                                           \
        static long repeats;                                                                       \
        static int enough;                                                                         \
        pthread_barrier_wait(&barrier); /* nobody reads the last ones any more */                  \
        if (!(thread)) repeats = 1, enough = 0;                                                    \
        pthread_barrier_wait(&barrier);                                                            \
        for (int trial = 0; trial < TRIALS;) {                                                     \
            pthread_barrier_wait(&barrier);                                                        \
            double start = now(), total = 0;                                                       \
            for (long k = 0; k < repeats; k++) total += (work);                                    \
            pthread_barrier_wait(&barrier);                                                        \
            double taken = now() - start;                                                          \
            pthread_barrier_wait(&barrier);                                                        \
            if (!(thread)) {                                                                       \
                enough = taken >= SECONDS;                                                         \
                if (!enough) repeats = repeats * 2;                                                \
                else if (total * (double)threads / taken > (best))                                 \
                    (best) = total * (double)threads / taken;                                      \
            }                                                                                      \
            pthread_barrier_wait(&barrier);                                                        \
            trial += enough;                                                                       \
        }                                                                                          \
    } while (0)

static double touched(int which, int stream, floats **arrays, size_t n) {
    touch(which, stream, arrays, n);
    __asm__ volatile("" ::: "memory");
    return (double)mixes[which].moved * (double)n * WIDTH;
}

static void *run(void *argument) {
    long thread = (long)(intptr_t)argument;
    size_t share = largest / (size_t)threads / 4096 * 4096;
    char *mine = memory + (size_t)thread * share;
    pin(thread);
    memset(mine, 0, share);
    double best = 0;
    BEST_RATE(thread, best, fma_float(4096));
    if (!thread) printf("fma 32 %.6g\n", best);
    best = 0;
    BEST_RATE(thread, best, fma_double(4096));
    if (!thread) printf("fma 64 %.6g\n", best);
    for (size_t size = 1 << 16; size <= largest; size *= 4)
        for (int which = 0; which < MIXES; which++) {
            size_t room = size / (size_t)threads / (size_t)mixes[which].arrays / WIDTH;
            /* Arrays a multiple of a page apart would hinder each other. */
            size_t n = (room - APART * 3) / 4 * 4;
            floats *arrays[4];
            for (size_t k = 0; k < 4; k++)
                arrays[k] = (floats *)mine + (k < (size_t)mixes[which].arrays ? k * (n + APART) : 0);
            best = 0;
            for (int stream = 0; stream <= (mixes[which].streams && STREAMS); stream++)
                BEST_RATE(thread, best, touched(which, stream, arrays, n));
            if (!thread) printf("bytes %s|%zu %.6g\n", mixes[which].name, size, best);
        }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t started[MOST_THREADS];
    if (count != 3) return 2;
    threads = atoi(arguments[1]);
    largest = (size_t)atoll(arguments[2]);
    if (threads < 1 || threads > MOST_THREADS || largest < 1 << 16) return 2;
    memory = aligned_alloc(4096, largest);
    if (!memory || pthread_barrier_init(&barrier, NULL, (unsigned)threads)) return 1;
    for (long k = 1; k < threads; k++)
        if (pthread_create(&started[k], NULL, run, (void *)(intptr_t)k)) return 1;
    run((void *)(intptr_t)0);
    for (long k = 1; k < threads; k++) pthread_join(started[k], NULL);
    return 0;
}
