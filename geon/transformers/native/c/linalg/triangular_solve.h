/* Solve a x = b for triangular matrices a (batch, n, n) and right-hand sides b (batch, n, m). The
   matrices have their columns before their rows if `exchanged`. */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, const TYPE *a, const TYPE *b,
                                                TYPE *out, int64_t batch, int64_t n, int64_t m,
                                                int exchanged, int lower, int unit);
