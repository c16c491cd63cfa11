/* x, (outer, n, inner), with values, (outer, m, inner), put in at m positions. */
__attribute__((visibility("hidden"))) void NAME(
    int32_t threads, const TYPE *x, const INDEX *positions, const TYPE *value, TYPE *out,
    char *scratch, int64_t outer, int64_t n, int64_t inner, int64_t m);
