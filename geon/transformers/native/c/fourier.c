/* Each task transforms a block of lines by an inner loop of a NumPy ufunc, LOOP with DATA; ODD and
   ODD_DATA are for an odd number of real numbers. An element has READ or WRITTEN numbers of TYPE. */
typedef void (*PART(loop))(char **arguments, const intptr_t *sizes, const intptr_t *steps,
                           void *data);

struct PART(work) {
    const TYPE *x;
    TYPE *out;
    PART(loop) loop;
    void *data;
    int64_t lines, blocks, before, after;
    /* Distances of groups of lines, of lines and of elements, in elements. */
    int64_t group_read, group_written, line_read, line_written, step;
};

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t group = index / all->blocks, line = index % all->blocks * LINES;
    int64_t left = all->lines - line;
    TYPE one = 1;
    const TYPE *x = all->x + READ * (group * all->group_read + line * all->line_read);
    TYPE *out = all->out + WRITTEN * (group * all->group_written + line * all->line_written);
    char *arguments[] = {(char *)(uintptr_t)x, (char *)&one, (char *)out};
    const intptr_t size = sizeof(TYPE), read = READ * size, written = WRITTEN * size;
    const intptr_t sizes[] = {left < LINES ? left : LINES, all->before, all->after};
    const intptr_t steps[] = {all->line_read * read, 0, all->line_written * written,
                              all->step * read, all->step * written};
    all->loop(arguments, sizes, steps, all->data);
}

void NAME(int32_t threads, const TYPE *x, TYPE *out, int64_t outer, int64_t before, int64_t after,
          int64_t inner)
{
    if (outer == 0 || inner == 0 || after == 0)
        return;
    if (before == 0) {
        __builtin_memset(out, 0, sizeof(TYPE) * WRITTEN * outer * after * inner);
        return;
    }
    const int odd = REAL % 2;
    struct PART(work) all = {x, out, (PART(loop))(odd ? ODD : LOOP),
                             (void *)(odd ? ODD_DATA : DATA), 0, 0, before, after,
                             before * inner, after * inner, 1, 1, inner};
    int64_t groups = outer;
    all.lines = inner;
    if (inner == 1) { /* the lines are contiguous, and all are one group */
        groups = 1;
        all.lines = outer;
        all.line_read = before;
        all.line_written = after;
    }
    all.blocks = (all.lines + LINES - 1) / LINES;
    geon_pool_run(PART(task), &all, groups * all.blocks, threads);
}
