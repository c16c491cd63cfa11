/* Fourier transforms along the middle axis of (outer, before, inner), which get (outer, after,
   inner); complex numbers are pairs of TYPE. */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, const TYPE *x, TYPE *out,
                                                int64_t outer, int64_t before, int64_t after,
                                                int64_t inner);
