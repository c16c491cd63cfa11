/* Scans of contiguous lines of a few elements. Each total is in a register and lines are
   independent, so that the processor overlaps several lines. */
#define TAKES(k)                                                                                  \
    TOTAL after##k = COMBINE(held, (TOTAL)(RESULT)x[(k) * step]);                                 \
    out[(k) * step] = exclusive ? ((k) ? (RESULT)held : IDENTITY) : (RESULT)after##k;             \
    held = after##k;
#define LINES(name, n, EVERY)                                                                     \
    GEON_INLINE void PART(each##name)(const TYPE *x, RESULT *out, int64_t lines, int exclusive,   \
                                      int64_t step)                                               \
    {                                                                                             \
        for (int64_t line = 0; line < lines; line++, x += n, out += n) {                          \
            TOTAL held = START;                                                                   \
            EVERY(TAKES)                                                                          \
        }                                                                                         \
    }                                                                                             \
    static void PART(name)(const TYPE *x, RESULT *out, int64_t lines, int exclusive, int reverse) \
    {                                                                                             \
        const int64_t first = reverse ? n - 1 : 0;                                                \
        if (exclusive)                                                                            \
            PART(each##name)(x + first, out + first, lines, 1, reverse ? -1 : 1);                 \
        else                                                                                      \
            PART(each##name)(x + first, out + first, lines, 0, reverse ? -1 : 1);                 \
    }
LINES(lines2, 2, TWO)
LINES(lines3, 3, THREE)
LINES(lines4, 4, FOUR)
LINES(lines5, 5, FIVE)
LINES(lines6, 6, SIX)
LINES(lines7, 7, SEVEN)
