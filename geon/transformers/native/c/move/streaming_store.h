/* Stores that pass by the caches: a line that is written as a whole need not be read first. They are
   as wide as vectors of generated text are. */
#if defined(__AVX512F__)
#define PAST_WIDTH 64
#elif defined(__AVX2__)
#define PAST_WIDTH 32
#else
#define PAST_WIDTH 16
#endif
#if defined(__SANITIZE_ADDRESS__) /* which does not look at such stores */
#define PAST_STORE(place, value) (*(place) = (value))
#define PAST_DONE() (void)0
#elif defined(__clang__)
#define PAST_STORE(place, value) __builtin_nontemporal_store(value, place)
#define PAST_DONE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#elif defined(__AVX512F__)
#define PAST_STORE(place, value) __builtin_ia32_movntps512((float *)(place), value)
#define PAST_DONE() __builtin_ia32_sfence()
#elif defined(__AVX2__)
#define PAST_STORE(place, value) __builtin_ia32_movntps256((float *)(place), value)
#define PAST_DONE() __builtin_ia32_sfence()
#elif defined(__SSE__)
#define PAST_STORE(place, value) __builtin_ia32_movntps((float *)(place), value)
#define PAST_DONE() __builtin_ia32_sfence()
#else
#define PAST_STORE(place, value) (*(place) = (value))
#define PAST_DONE() (void)0
#endif
