/* Return 1 if an element is not FINITE; `wrong` receives the number of such elements, `first` the
   VALUE of the first one. COUNTER is as wide as an element, so that the loop vectorises, and counts
   blocks of 4096. */
static int NAME(const TYPE *x, int64_t count, int64_t *wrong, double *first)
{
    *wrong = 0;
    for (int64_t start = 0; start < count; start += 4096) {
        int64_t end = start + 4096 < count ? start + 4096 : count;
        COUNTER here = 0;
        for (int64_t i = start; i < end; i++)
            here += FINITE(x[i]) ? 0 : 1;
        if (here && !*wrong) {
            int64_t i = start;
            while (FINITE(x[i]))
                i++;
            *first = VALUE(x[i]);
        }
        *wrong += here;
    }
    return *wrong != 0;
}
