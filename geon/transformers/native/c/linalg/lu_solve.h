/* Solve a x = b, or with `transposed` aᵀ x = b, for the packed factors of matrices a
   (batch, n + 1, n), and right-hand sides b (batch, n, m). */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, const TYPE *f, const TYPE *b,
                                                TYPE *out, int64_t batch, int64_t n, int64_t m,
                                                int transposed);
