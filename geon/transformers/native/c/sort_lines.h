/* The function NAME, which gives lines to tasks: PART(line) works on one. Lines of the result have
   LENGTH elements; K_DECLARED and K_GIVEN are what PART(line) takes besides, or nothing. */
struct PART(lines) {
    const TYPE *x;
    RESULT *out;
    char *scratch;
    int64_t lines, n, inner, k, each;
};

static void PART(task)(void *argument, int64_t index)
{
    struct PART(lines) *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    int64_t part = (2 * all->n * (int64_t)sizeof(WORD) + 63) / 64 * 64;
    WORD *words = (WORD *)(all->scratch + geon_seat() * part);
    for (int64_t line = start; line < end && line < all->lines; line++) {
        int64_t outer = line / all->inner, inner = line % all->inner;
        PART(line)(all->x + outer * all->n * all->inner + inner,
                   all->out + outer * all->k * all->inner + inner, all->n, all->inner, words
                   K_GIVEN);
    }
}

void NAME(int32_t threads, const TYPE *x, RESULT *out, char *scratch, int64_t outer,
          int64_t n, int64_t inner K_DECLARED)
{
    int64_t each = 1 + GRAIN / (n + 1);
    struct PART(lines) all = {x, out, scratch, outer * inner, n, inner, LENGTH, each};
    if (all.lines && n)
        geon_pool_run(PART(task), &all, (all.lines + each - 1) / each, threads);
}
#undef K_DECLARED
#undef K_GIVEN
#undef LENGTH
