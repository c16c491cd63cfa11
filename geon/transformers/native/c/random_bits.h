/* Elements of random bits, a counter for each four words of 32 bits. */
__attribute__((visibility("hidden"))) void NAME(
    int32_t threads, TYPE *out, int64_t count, uint64_t seed, uint64_t draw,
    const uint64_t *calls);
