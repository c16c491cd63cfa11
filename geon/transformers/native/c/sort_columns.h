/* Sort bools of strided lines by counting the true ones. */
GEON_INLINE void PART(counted)(const struct PART(some) *all, int64_t width)
{
    int64_t n = all->n, inner = all->inner;
    const TYPE *x = all->x + all->from[0];
    RESULT *out = all->out + all->to[0];
    int64_t first[TOGETHER]; /* place of what is true */
    for (int64_t lane = 0; lane < width; lane++)
        first[lane] = n;
    for (int64_t start = 0; start < n; start += 255) {
        int64_t end = start + 255 < n ? start + 255 : n;
        unsigned char few[TOGETHER] = {0};
        for (int64_t i = start; i < end; i++)
            for (int64_t lane = 0; lane < width; lane++)
                few[lane] = (unsigned char)(few[lane] + x[i * inner + lane]);
        for (int64_t lane = 0; lane < width; lane++)
            first[lane] -= few[lane];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t lane = 0; lane < width; lane++)
            out[i * inner + lane] = i >= first[lane];
}

static void PART(columns)(const struct PART(some) *all)
{
    if (all->some == TOGETHER)
        PART(counted)(all, TOGETHER);
    else
        PART(counted)(all, all->some);
}
