/* The pool that kernels call, for a program on one thread: tasks run one after another. */
static void geon_serial_run_short(void (*task)(void *argument, int64_t index), void *argument,
                                  int64_t count, int32_t threads, int32_t duration)
{
    (void)threads, (void)duration;
    for (int64_t index = 0; index < count; index++)
        task(argument, index);
}
static void geon_serial_run(void (*task)(void *argument, int64_t index), void *argument,
                            int64_t count, int32_t threads)
{
    geon_serial_run_short(task, argument, count, threads, 0);
}
static int32_t geon_serial_seat(void)
{
    return 0;
}
static int32_t geon_serial_is_watched(void)
{
    return 0;
}
static const int32_t geon_serial_interrupt = 0;

void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument, int64_t count,
                      int32_t threads) = geon_serial_run;
void (*geon_pool_run_short)(void (*task)(void *argument, int64_t index), void *argument,
                            int64_t count, int32_t threads, int32_t duration) =
    geon_serial_run_short;
int32_t (*geon_seat)(void) = geon_serial_seat;
const int32_t *geon_interrupt = &geon_serial_interrupt;
int32_t (*geon_is_watched)(void) = geon_serial_is_watched;
