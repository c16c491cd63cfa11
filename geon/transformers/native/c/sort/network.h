/* Sort short lines in lanes by a network, whose compare-exchanges do not depend on the data:
   sixteen rows at a time in registers, then Batcher's bitonic merges in few passes. */
#define FEWEST_LANES (TOGETHER / 4)
#define NEAR_ROWS (8192 / VECTOR_BYTES) /* half of what the first cache holds, or fewer */

#define LOADED_ROW(k) PART(row) r##k = rows[k];
#define STORED_ROW(k) rows[k] = r##k;
#define EXCHANGED(i, j) PART(exchange)(&r##i, &r##j);
#define IN_REGISTERS(name, count, pairs)                                                          \
    static void PART(name)(PART(row) *rows)                                                       \
    {                                                                                             \
        ROWS_##count(LOADED_ROW) pairs(EXCHANGED) ROWS_##count(STORED_ROW)                        \
    }
IN_REGISTERS(sort_four, 4, SORT_4)
IN_REGISTERS(sort_eight, 8, SORT_8)
IN_REGISTERS(sort_sixteen, 16, SORT_16)
IN_REGISTERS(clean_eight, 8, CLEAN_8)
IN_REGISTERS(clean_sixteen, 16, CLEAN_16)

/* Two steps: the first two meet two others, then those of each pair each other. */
GEON_INLINE void PART(two_steps)(PART(row) *first, PART(row) *second, PART(row) *of_first,
                                 PART(row) *of_second, int is_mirrored)
{
    PART(row) a = *first, b = *second, c = *of_first, d = *of_second;
    PART(exchange)(&a, &c);
    PART(exchange)(&b, &d);
    PART(exchange)(&a, &b);
    if (is_mirrored)
        PART(exchange)(&d, &c);
    else
        PART(exchange)(&c, &d);
    *first = a, *second = b, *of_first = c, *of_second = d;
}

/* Sorts each p of n rows, which rise and then fall, or fall and then rise; p is a power of two and
   at least 8. Two steps are one pass, down to what registers hold. */
static void PART(clean)(PART(row) *rows, int64_t n, int64_t p)
{
    const int64_t last = __builtin_ctzll((uint64_t)p) % 2 ? 8 : 16;
    for (int64_t far = p / 2; far >= last; far /= 4)
        for (int64_t base = 0, half = far / 2; base + half < n; base += 2 * far) {
            PART(row) *a = rows + base, *b = a + half, *c = a + far, *d = c + half;
            int64_t count = n - base, i = 0;
            for (; i < half && i + far + half < count; i++)
                PART(two_steps)(a + i, b + i, c + i, d + i, 0);
            for (; i < half && i + half < count; i++) {
                if (i + far < count)
                    PART(exchange)(a + i, c + i);
                PART(exchange)(a + i, b + i);
            }
        }
    for (int64_t i = 0; i < n; i += last)
        if (last == 16 && i + 16 <= n)
            PART(clean_sixteen)(rows + i);
        else
            PART(clean_eight)(rows + i);
}

/* Merges p rows that are sorted with those behind them, up to n. First each row meets that as far
   from the other end, and both what is half of p from them: quarters are left, of which those of
   many rows are sorted one after another, so that they stay in the first cache. */
static void PART(merge)(PART(row) *rows, int64_t n, int64_t p)
{
    PART(row) *a = rows, *b = a + p / 2, *c = rows + 3 * p / 2 - 1, *d = c + p / 2;
    int64_t i = 0;
    for (; i < p / 2 && 2 * p - 1 - i >= n; i++) {
        if (3 * p / 2 - 1 - i < n)
            PART(exchange)(b + i, c - i);
        PART(exchange)(a + i, b + i);
    }
    for (; i < p / 2; i++)
        PART(two_steps)(a + i, b + i, d - i, c - i, 1);
    int64_t each = p <= NEAR_ROWS ? n : p / 2;
    for (int64_t i = 0; i < n; i += each)
        PART(clean)(rows + i, each < n - i ? each : n - i, p / 2);
}

/* Each lane of n rows ascending; n is 2, 4 or a multiple of 8. What was sorted last is merged as
   soon as there is as much before it. */
static void PART(network)(PART(row) *rows, int64_t n)
{
    if (n == 2) {
        PART(exchange)(rows, rows + 1);
        return;
    }
    if (n == 4) {
        PART(sort_four)(rows);
        return;
    }
    for (int64_t start = 0, end; start < n; start = end) {
        end = start + 16 < n ? start + 16 : n;
        if (end - start == 16)
            PART(sort_sixteen)(rows + start);
        else
            PART(sort_eight)(rows + start);
        for (int64_t p = 16; p < end && (end % (2 * p) == 0 || end == n); p += p) {
            int64_t base = (end - 1) / (2 * p) * (2 * p);
            if (base + p < end)
                PART(merge)(rows + base, end - base, p);
        }
    }
}
