/* Scans of lines in lanes: `totals` has the running total of each column. A strip is a few vectors,
   or elements, of each row, whose totals stay in registers over all rows: loading them again would
   stall on the stores. */
#define HOLDS(k) SOME held##k = *(SOME *)(totals + AT(k));
#define READS(k) SOME value##k = READ(x + AT(k));
#define ADDS(k) SOME after##k = JOIN(held##k, value##k);
#define SHOWS(k) WRITE(out + AT(k), exclusive ? held##k : after##k);
#define MOVES(k) held##k = after##k;
#define KEEPS(k) *(SOME *)(totals + AT(k)) = held##k;
#define STRIP(name, EVERY)                                                                        \
    static void PART(name)(const TYPE *x, RESULT *out, int64_t rows, int64_t step, int64_t width, \
                           TOTAL *totals, int exclusive)                                          \
    {                                                                                             \
        (void)width;                                                                              \
        EVERY(HOLDS)                                                                              \
        for (int64_t i = 0; i < rows; i++, x += step) {                                           \
            EVERY(READS)                                                                          \
            EVERY(ADDS)                                                                           \
            if (out) {                                                                            \
                EVERY(SHOWS)                                                                      \
                out += step;                                                                      \
            }                                                                                     \
            EVERY(MOVES)                                                                          \
        }                                                                                         \
        EVERY(KEEPS)                                                                              \
    }

#define SOME PART(totals)
#define JOIN(a, b) COMBINE_LANES(a, b)
#define READ(at) PART(loaded)(at)
#define WRITE(at, shown)                                                                          \
    *(PART(results) *)(at) = __builtin_convertvector(shown, PART(results))
#define AT(k) (k) * LANES
STRIP(vector, ONE)
STRIP(vectors, EIGHT)
#undef AT
/* The second ends where the strip does, so some columns may be in both. */
#define AT(k) ((k) ? width - LANES : 0)
STRIP(pair, TWO)
#undef AT
#undef SOME
#undef JOIN
#undef READ
#undef WRITE

#define SOME TOTAL
#define JOIN(a, b) COMBINE(a, b)
#define READ(at) (TOTAL)(RESULT)*(at)
#define WRITE(at, shown) *(at) = (RESULT)(shown)
#define AT(k) (k)
STRIP(elements1, ONE)
STRIP(elements2, TWO)
STRIP(elements3, THREE)
STRIP(elements4, FOUR)
STRIP(elements5, FIVE)
STRIP(elements6, SIX)
STRIP(elements7, SEVEN)
