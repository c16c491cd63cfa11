/* Whether an element is not FINITE: `wrong` gets how many are not, `first` the VALUE of the first.
   COUNTER, as wide as an element, counts those of 4096, so that vectors do. */
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
