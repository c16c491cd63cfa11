/* to[c * rows + r] = from[r * from_step + c] for fewer rows than a register block has.

   Blocks of HIGH rows, a power of two, are transposed by perfect shuffles of vectors: rows k and
   k + HIGH / 2 are interleaved, log2(HIGH) times. Missing rows repeat the first one; their elements
   in a line are overwritten by the next line. The last block overlaps the one before, so that it
   ends with the columns. */
typedef TYPE PART(few) __attribute__((vector_size(16), aligned(BYTES), may_alias));
typedef TYPE PART(few_element) __attribute__((may_alias)); /* of floats, too */
#define WIDE (16 / BYTES)
#if BYTES == 1
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif BYTES == 2
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif BYTES == 4
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#else
#define LOW 0, 2
#define HIGH 1, 3
#endif
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

/* Lines that the next ones overwrite are stored by vectors, of which a line is some or a part. */
#define EACH _Pragma("GCC unroll 16")
#define LINE(k, high, turned)                                                                      \
    if (high < WIDE)                                                                               \
        __builtin_memcpy(begin + (k) * rows,                                                       \
                         (const TYPE *)&turned[(k) * high / WIDE] + (k) * high % WIDE,             \
                         high * BYTES);                                                            \
    else                                                                                           \
        EACH for (int64_t j = 0; j < high / WIDE; j++)                                             \
            *(PART(few) *)(begin + (k) * rows + j * WIDE) = turned[(k) * high / WIDE + j];

/* `turned` is where the last of the shuffles has put the columns: in registers, as all loops over
   vectors are unrolled. */
#define FEW(high, half, shuffles, turned)                                                          \
    GEON_INLINE void PART(few##high)(const TYPE *from, int64_t from_step, TYPE *to, int64_t rows,  \
                                     int64_t columns)                                              \
    {                                                                                              \
        const int64_t last = columns * rows - high; /* where a line may begin */                   \
        const TYPE *row[high];                                                                     \
        EACH for (int64_t k = 0; k < high; k++)                                                    \
            row[k] = from + (k < rows ? k : 0) * from_step;                                        \
        for (int64_t start = 0; start < columns; start += WIDE) {                                  \
            const int64_t c = start < columns - WIDE ? start : columns - WIDE;                     \
            PART(few_element) *begin = to + c * rows;                                              \
            PART(few) x[high], y[high];                                                            \
            EACH for (int64_t k = 0; k < high; k++)                                                \
                x[k] = *(const PART(few) *)(row[k] + c);                                           \
            shuffles(half)                                                                         \
            if (rows == high) {                                                                    \
                EACH for (int64_t k = 0; k < high; k++)                                            \
                    *(PART(few) *)(begin + k * WIDE) = turned[k];                                  \
            } else if ((c + WIDE - 1) * rows <= last) {                                            \
                EACH for (int64_t k = 0; k < WIDE; k++) { LINE(k, high, turned) }                  \
            } else {                                                                               \
                TYPE lines[high * WIDE];                                                           \
                EACH for (int64_t k = 0; k < high; k++)                                            \
                    *(PART(few) *)(lines + k * WIDE) = turned[k];                                  \
                for (int64_t k = 0; k < WIDE; k++)                                                 \
                    for (int64_t r = 0; r < rows; r++)                                             \
                        begin[k * rows + r] = lines[k * high + r];                                 \
            }                                                                                      \
        }                                                                                          \
    }
FEW(2, 1, ONCE, y)
FEW(4, 2, TWICE, x)
#if BYTES < 8
FEW(8, 4, THRICE, y)
#endif
#if BYTES < 4
FEW(16, 8, FOUR_TIMES, x)
#endif

/* Whether these were few enough, and columns enough. */
static _Bool PART(few_rows)(const TYPE *from, int64_t from_step, TYPE *to, int64_t rows,
                            int64_t columns)
{
    if (columns < WIDE || rows < 2)
        return 0;
    if (rows == 2)
        PART(few2)(from, from_step, to, 2, columns);
    else if (rows == 3)
        PART(few4)(from, from_step, to, 3, columns);
    else if (rows == 4)
        PART(few4)(from, from_step, to, 4, columns);
#if BYTES < 8
    else if (rows < 8)
        PART(few8)(from, from_step, to, rows, columns);
    else if (rows == 8)
        PART(few8)(from, from_step, to, 8, columns);
#endif
#if BYTES < 4
    else if (rows < 16)
        PART(few16)(from, from_step, to, rows, columns);
#endif
    else
        return 0;
    return 1;
}
#undef WIDE
#undef LOW
#undef HIGH
#undef PAIRS1
#undef PAIRS2
#undef PAIRS4
#undef PAIRS8
#undef SHUFFLED
#undef ONCE
#undef TWICE
#undef THRICE
#undef FOUR_TIMES
#undef FEW
#undef EACH
#undef LINE
