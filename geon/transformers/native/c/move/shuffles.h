/* Perfect shuffles of vectors of LANES elements. ONCE(half) interleaves rows k and k + half of
   2 * half rows `x`, which gives the rows `y`; TWICE(half) interleaves these too, which gives `x`,
   and so on. Vectors of arrays stay in registers where all loops over them are unrolled (EACH). */
#if LANES == 16
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif LANES == 8
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif LANES == 4
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#else
#define LOW 0, 2
#define HIGH 1, 3
#endif
#define EACH _Pragma("GCC unroll 16")
#define PAIRS1(M, half, x, y) M(0, half, x, y)
#define PAIRS2(M, half, x, y) PAIRS1(M, half, x, y) M(1, half, x, y)
#define PAIRS4(M, half, x, y) PAIRS2(M, half, x, y) M(2, half, x, y) M(3, half, x, y)
#define PAIRS8(M, half, x, y) PAIRS4(M, half, x, y) M(4, half, x, y) M(5, half, x, y)              \
    M(6, half, x, y) M(7, half, x, y)
#define SHUFFLED(k, half, x, y)                                                                    \
    y[2 * k] = __builtin_shufflevector(x[k], x[k + half], LOW);                                    \
    y[2 * k + 1] = __builtin_shufflevector(x[k], x[k + half], HIGH);
#define ONCE(half) PAIRS##half(SHUFFLED, half, x, y)
#define TWICE(half) ONCE(half) PAIRS##half(SHUFFLED, half, y, x)
#define THRICE(half) TWICE(half) PAIRS##half(SHUFFLED, half, x, y)
#define FOUR_TIMES(half) THRICE(half) PAIRS##half(SHUFFLED, half, y, x)
