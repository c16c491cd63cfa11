/* The packed factors of the matrices x (batch, n, m), which have n columns before m rows; of eigvalsh
   the eigenvalues. */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, const TYPE *x, TYPE *out,
                                                char *scratch, int64_t batch, int64_t m, int64_t n,
                                                int64_t bytes);
