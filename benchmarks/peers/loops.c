/* The workloads of loops as one writes them in C: states in arrays that stay in the first cache,
 * loops that compilers make vectors of, derivatives written out, nothing allocated in a call.
 *
 * Compiled by the system's compiler for the machine it runs on; c_work.py calls it. */

#include <stddef.h>
#include <string.h>

enum {
    MOST = 256, /* values on a ring */
    EDGE = 2,   /* of its ends that are repeated beside it */
    BLOCK = 64, /* systems that go through all steps together */
};

/* Values on a ring -----------------------------------------------------------------------------*/

static const float RING_STEP = 0.01f;

/* Repeats the ends, so that neighbours of all values are beside them. */
static void close_ring(float *at, int count)
{
    for (int k = 1; k <= EDGE; k++) {
        at[-k] = at[count - k];
        at[count - 1 + k] = at[k - 1];
    }
}

/* E. N. Lorenz, "Predictability: a problem partly solved", 1996, by Euler's method. */
static void ring_step(const float *restrict at, float *restrict next, int count, float force)
{
    for (int k = 0; k < count; k++)
        next[k] = at[k] + RING_STEP * ((at[k + 1] - at[k - 2]) * at[k - 1] - at[k] + force);
    close_ring(next, count);
}

static float squares(const float *at, int count)
{
    float total = 0;
    for (int k = 0; k < count; k++)
        total += at[k] * at[k];
    return total;
}

/* The sum of squares after all steps; start has the values, count of them, at most MOST. */
float ring(int steps, int count, const float *force, const float *start)
{
    float first[MOST + 2 * EDGE], second[MOST + 2 * EDGE];
    float *at = first + EDGE, *next = second + EDGE;
    memcpy(at, start, sizeof(float) * (size_t)count);
    close_ring(at, count);
    for (int t = 0; t < steps; t++) {
        ring_step(at, next, count, force[t]);
        float *const old = at;
        at = next;
        next = old;
    }
    return squares(at, count);
}

/* Slopes of what a step read, from those of what it gave; the slope of its force is returned. */
static float ring_back(const float *restrict at, const float *restrict slope,
                       float *restrict before, int count)
{
    float total = 0;
    for (int k = 0; k < count; k++) {
        const float moved = slope[k + 1] * (at[k + 2] - at[k - 1])
                            + slope[k - 1] * at[k - 2] - slope[k + 2] * at[k + 1] - slope[k];
        before[k] = slope[k] + RING_STEP * moved;
        total += slope[k];
    }
    close_ring(before, count);
    return RING_STEP * total;
}

/* The slopes of that sum; states has room for (steps + 1) * (count + 4) values. */
void ring_gradient(int steps, int count, const float *force, const float *start, float *states,
                   float *force_slope, float *start_slope)
{
    const size_t width = (size_t)count + 2 * EDGE;
    float *at = states + EDGE;
    memcpy(at, start, sizeof(float) * (size_t)count);
    close_ring(at, count);
    for (int t = 0; t < steps; t++, at += width)
        ring_step(at, at + width, count, force[t]);
    float first[MOST + 2 * EDGE], second[MOST + 2 * EDGE];
    float *slope = first + EDGE, *before = second + EDGE;
    for (int k = 0; k < count; k++)
        slope[k] = 2 * at[k];
    close_ring(slope, count);
    for (int t = steps; t-- > 0;) {
        at -= width;
        force_slope[t] = ring_back(at, slope, before, count);
        float *const old = slope;
        slope = before;
        before = old;
    }
    memcpy(start_slope, slope, sizeof(float) * (size_t)count);
}

/* Systems of three values ----------------------------------------------------------------------*/

typedef struct {
    float x, y, z;
} system_t;

/* E. N. Lorenz, "Deterministic nonperiodic flow", 1963. */
static inline system_t slope_of(system_t at)
{
    return (system_t){10 * (at.y - at.x), at.x * (28 - at.z) - at.y,
                      at.x * at.y - 2.6666667f * at.z};
}

static inline system_t moved(system_t at, system_t by, float step)
{
    return (system_t){at.x + step * by.x, at.y + step * by.y, at.z + step * by.z};
}

/* A step of the classical Runge-Kutta method. */
static inline system_t stepped(system_t at)
{
    const float h = 0.01f;
    const system_t a = slope_of(at);
    const system_t b = slope_of(moved(at, a, h / 2));
    const system_t c = slope_of(moved(at, b, h / 2));
    const system_t d = slope_of(moved(at, c, h));
    const system_t mean = {a.x + 2 * b.x + 2 * c.x + d.x, a.y + 2 * b.y + 2 * c.y + d.y,
                           a.z + 2 * b.z + 2 * c.z + d.z};
    return moved(at, mean, h / 6);
}

/* Where each of count systems is after all steps: they begin where they end, in x, y and z. */
void lorenz(int steps, int count, float *x, float *y, float *z)
{
#pragma omp parallel for schedule(static)
    for (int first = 0; first < count; first += BLOCK) {
        const int some = count - first < BLOCK ? count - first : BLOCK;
        float at[3][BLOCK] = {{0}};
        memcpy(at[0], x + first, sizeof(float) * (size_t)some);
        memcpy(at[1], y + first, sizeof(float) * (size_t)some);
        memcpy(at[2], z + first, sizeof(float) * (size_t)some);
        for (int t = 0; t < steps; t++)
            for (int k = 0; k < BLOCK; k++) {
                const system_t next = stepped((system_t){at[0][k], at[1][k], at[2][k]});
                at[0][k] = next.x;
                at[1][k] = next.y;
                at[2][k] = next.z;
            }
        memcpy(x + first, at[0], sizeof(float) * (size_t)some);
        memcpy(y + first, at[1], sizeof(float) * (size_t)some);
        memcpy(z + first, at[2], sizeof(float) * (size_t)some);
    }
}

/* Products of small matrices -------------------------------------------------------------------*/

/* made = a b; a and b are n by n, either of them turned first where it says so. */
static inline void product(int n, const float *restrict a, int turn_a, const float *restrict b,
                           int turn_b, float *restrict made)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float total = 0;
            for (int k = 0; k < n; k++)
                total += a[turn_a ? k * n + i : i * n + k] * b[turn_b ? j * n + k : k * n + j];
            made[i * n + j] = total;
        }
}

static inline void chain(int n, int steps, const float *m, const float *start, float *states,
                         float *m_slope)
{
    const size_t size = (size_t)n * (size_t)n;
    memcpy(states, start, sizeof(float) * size);
    for (int t = 0; t < steps; t++)
        product(n, m + t * size, 0, states + t * size, 0, states + (t + 1) * size);
    float slope[2][64];
    for (size_t k = 0; k < size; k++)
        slope[steps & 1][k] = 2 * states[steps * size + k];
    for (int t = steps; t-- > 0;) {
        const float *const after = slope[(t + 1) & 1];
        product(n, after, 0, states + t * size, 1, m_slope + t * size);
        product(n, m + t * size, 1, after, 0, slope[t & 1]);
    }
}

/* All products of n by n matrices, one after the other, and the slopes of the last one's squares;
 * n is at most 8, states has room for steps + 1 matrices, of which the last is the result. */
void products_gradient(int steps, int n, const float *m, const float *start, float *states,
                       float *m_slope)
{
    if (n == 4) /* with loops of known length */
        chain(4, steps, m, start, states, m_slope);
    else
        chain(n, steps, m, start, states, m_slope);
}
