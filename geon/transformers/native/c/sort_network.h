/* Short lines side by side, sorted by a network that depends on places alone, so that all lanes do
   the same: sixteen rows at a time in registers, then Batcher's bitonic merges in few passes. */
#define FEWEST_LANES (TOGETHER / 4)

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
#undef IN_REGISTERS
#undef LOADED_ROW
#undef STORED_ROW
#undef EXCHANGED

/* Merges neighbouring blocks of p rows that are sorted; behind n rows there are none. First each
   row meets that as far from the other end, and both what is half a block from them. */
static void PART(merge)(PART(row) *rows, int64_t n, int64_t p)
{
    for (int64_t base = 0; base + p < n; base += 2 * p)
        for (int64_t i = base; i < base + p / 2; i++) {
            int64_t third = 2 * base + 3 * p / 2 - 1 - i, fourth = third + p / 2;
            PART(row) a = rows[i], b = rows[i + p / 2];
            if (fourth < n) {
                PART(row) d = rows[fourth];
                PART(exchange)(&a, &d);
                PART(row) c = rows[third];
                PART(exchange)(&b, &c);
                PART(exchange)(&c, &d);
                rows[third] = c, rows[fourth] = d;
            } else if (third < n) {
                PART(exchange)(&b, &rows[third]);
            }
            PART(exchange)(&a, &b);
            rows[i] = a, rows[i + p / 2] = b;
        }
    int64_t far = p / 4; /* the distance of rows that meet next */
    int steps = __builtin_ctzll((uint64_t)p) - 1;
    int64_t last = steps % 2 ? 8 : 16;
    for (; far >= last; far /= 4)
        for (int64_t base = 0; base < n; base += 2 * far)
            for (int64_t i = base; i < base + far / 2 && i < n; i++) {
                int64_t half = far / 2;
                PART(row) a = rows[i];
                if (i + half >= n)
                    continue;
                PART(row) b = rows[i + half];
                if (i + far + half < n) {
                    PART(row) c = rows[i + far], d = rows[i + far + half];
                    PART(exchange)(&a, &c);
                    PART(exchange)(&b, &d);
                    PART(exchange)(&c, &d);
                    rows[i + far] = c, rows[i + far + half] = d;
                } else if (i + far < n) {
                    PART(exchange)(&a, &rows[i + far]);
                }
                PART(exchange)(&a, &b);
                rows[i] = a, rows[i + half] = b;
            }
    for (int64_t i = 0; i < n; i += last)
        if (last == 16 && i + 16 <= n)
            PART(clean_sixteen)(rows + i);
        else
            PART(clean_eight)(rows + i);
}

/* Each lane of n rows ascending; n is 2, 4 or a multiple of 8. */
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
    for (int64_t i = 0; i < n; i += 16)
        if (i + 16 <= n)
            PART(sort_sixteen)(rows + i);
        else
            PART(sort_eight)(rows + i);
    for (int64_t p = 16; p < n; p += p)
        PART(merge)(rows, n, p);
}
