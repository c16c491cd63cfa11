/* Microbenchmarks of one thread, for costs that are not in the roofline: latency of additions,
 * divisions, scalar statements, calls of the C library, strided elements, and the register tiles of
 * products. Each function returns the seconds of one operation; the fastest of several runs counts.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__AVX512F__)
#define WIDTH 64
#define HEIGHT 12
#elif defined(__AVX__)
#define WIDTH 32
#define HEIGHT 6
#else
#define WIDTH 16
#define HEIGHT 6
#endif
#define TURNS 4000
#define RUNS 40
#define DEPTH 256 /* summed indices of a tile: both panels stay in the nearest cache */

typedef float floats __attribute__((vector_size(WIDTH), aligned(WIDTH), may_alias));
typedef double doubles __attribute__((vector_size(WIDTH), aligned(WIDTH), may_alias));
typedef void pool_run(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads);

/* Keeps a value where the compiler cannot know what it is. */
#if defined(__x86_64__)
#define KEEP(value) __asm__ volatile("" : "+x"(value))
#elif defined(__aarch64__)
#define KEEP(value) __asm__ volatile("" : "+w"(value))
#else
#define KEEP(value) __asm__ volatile("" : "+m"(value))
#endif
#define KEEP_WHOLE(value) __asm__ volatile("" : "+r"(value))

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The seconds of one statement of a body that has so many. */
#define FASTEST(count, body)                                \
    double best = 1e30;                                     \
    for (int run = 0; run < RUNS; run++) {                  \
        double start = seconds();                           \
        body double took = seconds() - start;               \
        best = took < best ? took : best;                   \
    }                                                       \
    return best / (count)

/* Some twenty microseconds of additions that wait for each other. */
static void waiting(void *argument, int64_t index)
{
    double sum = (double)index;
    for (int64_t k = 0; k < *(const int64_t *)argument; k++) {
        sum += 1;
        KEEP(sum);
    }
}

/* So many tasks on so many threads of a pool, each of `turns` additions. */
double geon_speed_tasks(void *pool, int32_t tasks, int64_t turns);
double geon_speed_tasks(void *pool, int32_t tasks, int64_t turns)
{
    pool_run *run_pool;
    __builtin_memcpy(&run_pool, &pool, sizeof run_pool);
    FASTEST(20, for (int k = 0; k < 20; k++) run_pool(waiting, &turns, tasks, tasks););
}

double geon_speed_chain(void);
double geon_speed_chain(void)
{
    floats sum = {0}, term = {1};
    KEEP(term);
    FASTEST(TURNS, for (int k = 0; k < TURNS; k++) {
        sum += term;
        KEEP(sum);
    });
}

/* A statement of straight-line code on vectors: multiply-adds, sums and bits, as in
 * elementary functions, of eight vectors side by side. */
double geon_speed_statement(void);
double geon_speed_statement(void)
{
    typedef int32_t words __attribute__((vector_size(WIDTH), aligned(WIDTH), may_alias));
    enum { SIDE_BY_SIDE = 8 };
    floats x[SIDE_BY_SIDE], factor = {0}, term = {0};
    KEEP(factor);
    KEEP(term);
    for (int j = 0; j < SIDE_BY_SIDE; j++) {
        x[j] = term;
        KEEP(x[j]);
    }
    FASTEST(8.0 * SIDE_BY_SIDE * TURNS, for (int k = 0; k < TURNS; k++) {
        _Pragma("GCC unroll 8") for (int j = 0; j < SIDE_BY_SIDE; j++) {
            floats y = x[j] * factor + term;
            y = y * factor + term;
            y = y * factor + term;
            y = y - term;
            const words bits = ((words)y + (words)term) >> 3;
            x[j] = (floats)((bits & (words)factor) ^ (words)term);
        }
        for (int j = 0; j < SIDE_BY_SIDE; j++) KEEP(x[j]);
    });
}

/* A vector of quotients of elements of so many bytes. */
double geon_speed_division(int32_t element);
double geon_speed_division(int32_t element)
{
    floats x = {0}, y = x + 3;
    doubles a = {0}, b = a + 3;
    KEEP(y);
    KEEP(b);
    if (element == 4) {
        FASTEST(TURNS, for (int k = 0; k < TURNS; k++) {
            KEEP(y);
            x = 7 / y;
            KEEP(x);
        });
    }
    FASTEST(TURNS, for (int k = 0; k < TURNS; k++) {
        KEEP(b);
        a = 7 / b;
        KEEP(a);
    });
}

/* A step of scalar code: four chains, as the elements of a loop that no vectors are made of. */
double geon_speed_serial(void);
double geon_speed_serial(void)
{
    double s[4] = {1, 2, 3, 4}, factor = 0.5, term = 0.25;
    KEEP(factor);
    KEEP(term);
    FASTEST(8.0 * TURNS, for (int k = 0; k < TURNS; k++) for (int j = 0; j < 4; j++) {
        s[j] = s[j] * factor + term;
        KEEP(s[j]);
    });
}

double geon_speed_call(void);
double geon_speed_call(void)
{
    double x = 0.7, y = 0;
    FASTEST(TURNS, for (int k = 0; k < TURNS; k++) {
        KEEP(x);
        y = pow(x, 1.3);
        KEEP(y);
    });
}

/* Elements many lines apart, over `bytes` of memory: 65, or 3 where that is little. */
double geon_speed_far(const char *memory, int64_t bytes);
double geon_speed_far(const char *memory, int64_t bytes)
{
    const int64_t step = (bytes < 65536 ? 3 : 65) * 64, columns = bytes / step;
    const int64_t count = columns * 64;
    FASTEST((double)count, float sums[4] = {0}; for (int64_t j = 0; j < 64; j++) {
        const float *at = (const float *)(memory + j * 64);
        for (int64_t k = 0; k + 4 <= columns; k += 4)
            for (int64_t i = 0; i < 4; i++)
                sums[i] += at[(k + i) * (step / 4)];
    } for (int i = 0; i < 4; i++) KEEP(sums[i]););
}

/* An element whose place is known when the one before was read; lines in an order that no walk
 * has. `bytes` is a power of two. */
double geon_speed_latency(const char *memory, int64_t bytes);
double geon_speed_latency(const char *memory, int64_t bytes)
{
    const int64_t lines = bytes / 64, count = lines < 4096 ? lines : 4096;
    int64_t line = 0;
    FASTEST((double)count, for (int64_t k = 0; k < count; k++) {
        const int64_t held = *(const int64_t *)(memory + line * 64); /* 0 */
        line = (line * 1103515245 + 12345 + held) & (lines - 1);
    } KEEP_WHOLE(line););
}

/* Operations a second of few rows of a product: four summed indices at a time are added to the
 * result. */
#define STREAM(name, vector, type)                                                          \
    static double name(void)                                                                \
    {                                                                                       \
        enum { ROWS = 4, COLUMNS = 8, TIMES = 32 };                                         \
        static vector right[TIMES * 4 * COLUMNS], out[ROWS * COLUMNS];                      \
        static type left[TIMES * 4 * ROWS];                                                 \
        double best = 1e30;                                                                 \
        for (int run = 0; run < RUNS; run++) {                                              \
            double start = seconds();                                                       \
            for (int turn = 0; turn < TIMES; turn++) {                                      \
                const type *a = left + turn * 4 * ROWS;                                     \
                const vector *b = right + turn * 4 * COLUMNS;                               \
                KEEP_WHOLE(a);                                                              \
                for (int k = 0; k < COLUMNS; k++)                                           \
                    _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++)                  \
                        out[r * COLUMNS + k] += a[r * 4] * b[k] + a[r * 4 + 1] * b[8 + k]   \
                            + a[r * 4 + 2] * b[16 + k] + a[r * 4 + 3] * b[24 + k];          \
            }                                                                               \
            double took = seconds() - start;                                                \
            best = took < best ? took : best;                                               \
            __asm__ volatile("" : : "r"(out) : "memory");                                   \
        }                                                                                   \
        return 2.0 * TIMES * 4 * ROWS * COLUMNS * (WIDTH / (double)sizeof(type)) / best;    \
    }
STREAM(float_stream, floats, float)
STREAM(double_stream, doubles, double)

double geon_speed_stream(int32_t element);
double geon_speed_stream(int32_t element)
{
    return element == 4 ? float_stream() : double_stream();
}

/* Operations a second of a register tile over packed panels. */
#define TILE(name, vector, type)                                                        \
    static double name(void)                                                            \
    {                                                                                   \
        static type left[DEPTH * HEIGHT] __attribute__((aligned(64)));                  \
        static vector right[DEPTH * 2];                                                 \
        double best = 1e30;                                                             \
        for (int run = 0; run < RUNS; run++) {                                          \
            vector sums[HEIGHT][2] = {{{0}}};                                           \
            const type *x = left;                                                       \
            const vector *y = right;                                                    \
            double start = seconds();                                                   \
            for (int turn = 0; turn < 16; turn++) {                                     \
                KEEP_WHOLE(x);                                                          \
                KEEP_WHOLE(y);                                                          \
                for (int k = 0; k < DEPTH; k++)                                         \
                    _Pragma("GCC unroll 12") for (int j = 0; j < HEIGHT; j++) {         \
                        sums[j][0] += x[k * HEIGHT + j] * y[2 * k];                     \
                        sums[j][1] += x[k * HEIGHT + j] * y[2 * k + 1];                 \
                    }                                                                   \
            }                                                                           \
            double took = seconds() - start;                                            \
            best = took < best ? took : best;                                           \
            for (int j = 0; j < HEIGHT; j++) {                                          \
                KEEP(sums[j][0]);                                                       \
                KEEP(sums[j][1]);                                                       \
            }                                                                           \
        }                                                                               \
        return 2.0 * 16 * DEPTH * HEIGHT * 2 * (WIDTH / (double)sizeof(type)) / best;   \
    }
TILE(float_tile, floats, float)
TILE(double_tile, doubles, double)

double geon_speed_tile(int32_t element);
double geon_speed_tile(int32_t element)
{
    return element == 4 ? float_tile() : double_tile();
}
