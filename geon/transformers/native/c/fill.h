/* Copies bytes to another place, many by all threads, and past the caches what they do not hold. */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, void *out, const void *x,
                                                int64_t size);
