#include "move/copy.h"
#include "move/streaming_store.h"
#define LINE 64

struct PART(work) {
    char *out;
    const char *x;
    int64_t size;
    int is_past;
};

typedef float PART(vector) __attribute__((vector_size(PAST_WIDTH), aligned(PAST_WIDTH),
                                          may_alias));
typedef float PART(source) __attribute__((vector_size(PAST_WIDTH), aligned(1), may_alias));

/* Whole lines are written past the caches, what lies before and behind them is not. */
static void PART(past)(char *out, const char *x, int64_t size)
{
    int64_t i = (int64_t)(-(uintptr_t)out & (LINE - 1));
    i = i < size ? i : size;
    memcpy(out, x, (size_t)i);
    for (; size - i >= LINE; i += LINE)
        for (int64_t k = i; k < i + LINE; k += PAST_WIDTH)
            PAST_STORE((PART(vector) *)(out + k), *(const PART(source) *)(x + k));
    memcpy(out + i, x + i, (size_t)(size - i));
    PAST_DONE();
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t start = index * GRAIN, left = all->size - start, size = left < GRAIN ? left : GRAIN;
    if (all->is_past)
        PART(past)(all->out + start, all->x + start, size);
    else
        memcpy(all->out + start, all->x + start, (size_t)size);
}

void NAME(int32_t threads, void *out, const void *x, int64_t size)
{
    struct PART(work) all = {out, x, size, 2 * size > geon_past_bytes};
    geon_pool_run(PART(task), &all, (size + GRAIN - 1) / GRAIN, threads);
}
