/* Copy `size` bytes: large ones on all threads, and with non-temporal stores beyond the caches'
   size. */
__attribute__((visibility("hidden"))) void NAME(int32_t threads, void *out, const void *x,
                                                int64_t size);
