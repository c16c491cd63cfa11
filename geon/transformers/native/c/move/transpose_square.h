/* Transpose a square of WIDE rows of 64 bytes in registers by perfect shuffles: rows k and
   k + WIDE / 2 are interleaved, log2(WIDE) times. */
typedef TYPE PART(wide) __attribute__((vector_size(64), aligned(BYTES), may_alias));
#if BYTES == 4
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVERY(M, x, y) M(0, x, y) M(1, x, y) M(2, x, y) M(3, x, y) M(4, x, y) M(5, x, y)           \
    M(6, x, y) M(7, x, y)
#else
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define EVERY(M, x, y) M(0, x, y) M(1, x, y) M(2, x, y) M(3, x, y)
#endif
GEON_INLINE void PART(square64)(const TYPE *from, int64_t from_step, TYPE *to, int64_t to_step)
{
    PART(wide) x[WIDE], y[WIDE];
#define TAKEN(k, x, y)                                                                             \
    x[k] = *(const PART(wide) *)(from + (k) * from_step);                                          \
    x[k + WIDE / 2] = *(const PART(wide) *)(from + (k + WIDE / 2) * from_step);
#define SHUFFLED(k, x, y)                                                                          \
    y[2 * k] = __builtin_shufflevector(x[k], x[k + WIDE / 2], LOW);                                \
    y[2 * k + 1] = __builtin_shufflevector(x[k], x[k + WIDE / 2], HIGH);
#define PUT(k, x, y)                                                                               \
    *(PART(wide) *)(to + (k) * to_step) = x[k];                                                    \
    *(PART(wide) *)(to + (k + WIDE / 2) * to_step) = x[k + WIDE / 2];
    EVERY(TAKEN, x, y)
    EVERY(SHUFFLED, x, y)
    EVERY(SHUFFLED, y, x)
    EVERY(SHUFFLED, x, y)
#if BYTES == 4
    EVERY(SHUFFLED, y, x)
    EVERY(PUT, x, y)
#else
    EVERY(PUT, y, x)
#endif
}
#undef TAKEN
#undef SHUFFLED
#undef PUT
#undef LOW
#undef HIGH
#undef EVERY
