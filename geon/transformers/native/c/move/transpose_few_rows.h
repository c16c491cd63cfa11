/* to[c * rows + r] = from[r * from_step + c] for fewer rows than a register block has.

   Blocks of HIGH rows, a power of two, are transposed by perfect shuffles of vectors: rows k and
   k + HIGH / 2 are interleaved, log2(HIGH) times. Missing rows repeat the first one; their elements
   in a line are overwritten by the next line. The last block overlaps the one before, so that it
   ends with the columns. */
typedef TYPE PART(few) __attribute__((vector_size(16), aligned(BYTES), may_alias));
typedef TYPE PART(few_element) __attribute__((may_alias)); /* of floats, too */

/* Lines that the next ones overwrite are stored by vectors, of which a line is some or a part. */
#define LINE(k, high, turned)                                                                      \
    if (high < LANES)                                                                              \
        __builtin_memcpy(begin + (k) * rows,                                                       \
                         (const TYPE *)&turned[(k) * high / LANES] + (k) * high % LANES,           \
                         high * BYTES);                                                            \
    else                                                                                           \
        EACH for (int64_t j = 0; j < high / LANES; j++)                                            \
            *(PART(few) *)(begin + (k) * rows + j * LANES) = turned[(k) * high / LANES + j];

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
        for (int64_t start = 0; start < columns; start += LANES) {                                 \
            const int64_t c = start < columns - LANES ? start : columns - LANES;                   \
            PART(few_element) *begin = to + c * rows;                                              \
            PART(few) x[high], y[high];                                                            \
            EACH for (int64_t k = 0; k < high; k++)                                                \
                x[k] = *(const PART(few) *)(row[k] + c);                                           \
            shuffles(half)                                                                         \
            if (rows == high) {                                                                    \
                EACH for (int64_t k = 0; k < high; k++)                                            \
                    *(PART(few) *)(begin + k * LANES) = turned[k];                                 \
            } else if ((c + LANES - 1) * rows <= last) {                                           \
                EACH for (int64_t k = 0; k < LANES; k++) { LINE(k, high, turned) }                 \
            } else {                                                                               \
                TYPE lines[high * LANES];                                                          \
                EACH for (int64_t k = 0; k < high; k++)                                            \
                    *(PART(few) *)(lines + k * LANES) = turned[k];                                 \
                for (int64_t k = 0; k < LANES; k++)                                                \
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
    if (columns < LANES || rows < 2)
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
