/* The pool that kernels call, for a program on several threads: that of the file of threads. */
void geon_threads_pool_run(void (*task)(void *argument, int64_t index), void *argument,
                           int64_t count, int32_t threads);
void geon_threads_pool_run_short(void (*task)(void *argument, int64_t index), void *argument,
                                 int64_t count, int32_t threads, int32_t duration);
int32_t geon_threads_seat(void);
int32_t geon_threads_is_watched(void);
extern int32_t geon_threads_interrupt;

void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads) = geon_threads_pool_run;
void (*geon_pool_run_short)(void (*task)(void *argument, int64_t index), void *argument,
                            int64_t count, int32_t threads, int32_t duration) =
    geon_threads_pool_run_short;
int32_t (*geon_seat)(void) = geon_threads_seat;
const int32_t *geon_interrupt = &geon_threads_interrupt;
int32_t (*geon_is_watched)(void) = geon_threads_is_watched;
