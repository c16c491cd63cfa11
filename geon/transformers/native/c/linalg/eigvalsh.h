/* The eigenvalues of the symmetric matrices x (batch, n, n). */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, const TYPE *x, TYPE *out,
                                                char *scratch, int64_t batch, int64_t m, int64_t n,
                                                int64_t bytes);
