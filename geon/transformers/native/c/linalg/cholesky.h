/* The lower Cholesky factors of the matrices x (batch, n, n); NaN for one without. */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, const TYPE *x, TYPE *out,
                                                int64_t batch, int64_t n);
