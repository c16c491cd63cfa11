#if BOOLEAN
#define KEYS 2
static void PART(count)(const TYPE *x, int64_t n, int64_t inner, int64_t *counts)
{
    int64_t ones = 0;
    for (int64_t start = 0; start < n; start += 128) { /* of bytes, so that sums are bytes */
        int64_t end = start + 128 < n ? start + 128 : n;
        unsigned char some = 0;
        for (int64_t i = start; inner == 1 && i < end; i++)
            some = (unsigned char)(some + x[i]);
        for (int64_t i = start; inner > 1 && i < end; i++)
            some = (unsigned char)(some + x[i * inner]);
        ones += some;
    }
    counts[0] = n - ones;
    counts[1] = ones;
}
#else
#define KEYS 256
/* How many elements of a line have each key of a byte. Four tables take turns, so that equal
   neighbours do not wait for each other. */
static void PART(count)(const TYPE *x, int64_t n, int64_t inner, int64_t *counts)
{
    uint32_t tables[4][KEYS];
    __builtin_memset(counts, 0, KEYS * sizeof *counts);
    for (int64_t start = 0; start < n; start += INT32_MAX) {
        int64_t end = n - start < INT32_MAX ? n : start + INT32_MAX, i = start;
        __builtin_memset(tables, 0, sizeof tables);
        for (; i + 4 <= end; i += 4)
            for (int turn = 0; turn < 4; turn++)
                tables[turn][KEY_OF(x[(i + turn) * inner])]++;
        for (; i < end; i++)
            tables[0][KEY_OF(x[i * inner])]++;
        for (int key = 0; key < KEYS; key++)
            counts[key] += (int64_t)tables[0][key] + tables[1][key] + tables[2][key] + tables[3][key];
    }
}
#endif
