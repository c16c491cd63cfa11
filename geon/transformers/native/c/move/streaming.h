#include "move/streaming_store.h"
/* Bytes that are written one after another past the caches, in whole lines. What does not fill one
   is held until more comes that adjoins it, or until the end. */
struct geon_past {
    char line[64] __attribute__((aligned(64)));
    char *next;   /* where the bytes that adjoin begin */
    int64_t held; /* bytes of `line` that are to lie before them */
};
/* Whether a kernel that stores and touches so many bytes stores them past the caches: it touches
   more than `limit` bytes, and stores a good part of them. */
GEON_INLINE _Bool geon_is_past(int64_t stored, int64_t touched, int64_t limit)
{
    return stored >= limit / 4 && touched > limit;
}

#define GEON_LINES __attribute__((aligned(64)))
typedef float geon_past_vector __attribute__((vector_size(PAST_WIDTH), aligned(PAST_WIDTH),
                                              may_alias));
typedef float geon_past_source __attribute__((vector_size(PAST_WIDTH), aligned(1), may_alias));

GEON_INLINE void geon_past_line(char *to, const char *from)
{
    for (int k = 0; k < 64; k += PAST_WIDTH)
        PAST_STORE((geon_past_vector *)(to + k), *(const geon_past_source *)(from + k));
}

/* Lets all that was written past the caches, if it was, be seen by other threads. */
GEON_INLINE void geon_past_done(_Bool past)
{
    if (past)
        PAST_DONE();
}

/* Lets what is held be in memory, and all that was written be seen by other threads. */
static __attribute__((noinline, unused)) void geon_past_end(struct geon_past *past)
{
    if (!past->next)
        return;
    if (past->held > 0)
        memcpy(past->next - past->held, past->line, (size_t)past->held);
    past->held = 0;
    PAST_DONE();
}

static __attribute__((noinline, unused)) void geon_past_put(struct geon_past *past, void *place,
                                                            const void *values, int64_t bytes)
{
    char *to = place;
    const char *from = values, *const end = from + bytes;
    if (past->held > 0 && to != past->next) {
        memcpy(past->next - past->held, past->line, (size_t)past->held);
        past->held = 0;
    }
    past->next = to + bytes;
    const int64_t room = past->held > 0 ? 64 - past->held : (int64_t)(-(uintptr_t)to & 63);
    const int64_t first = room < bytes ? room : bytes;
    if (past->held > 0) {
        memcpy(past->line + past->held, from, (size_t)first);
        past->held += first;
        if (past->held == 64) {
            geon_past_line(to + first - 64, past->line);
            past->held = 0;
        }
    } else if (first > 0) {
        memcpy(to, from, (size_t)first);
    }
    for (from += first, to += first; end - from >= 64; from += 64, to += 64)
        geon_past_line(to, from);
    if (from < end) {
        past->held = end - from;
        memcpy(past->line, from, (size_t)past->held);
    }
}
