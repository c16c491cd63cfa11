/* The indices of the k largest, or smallest, elements along the middle axis of (outer, n, inner). */
__attribute__((visibility("hidden"))) void NAME(
    int32_t threads, const TYPE *x, RESULT *out, char *scratch, int64_t outer, int64_t n,
    int64_t inner, int64_t k);
