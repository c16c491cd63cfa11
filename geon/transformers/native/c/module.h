extern void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument,
                             int64_t count, int32_t threads) __attribute__((visibility("hidden")));
/* The same for what takes one thread so many nanoseconds: too few, and no worker is woken for it. */
extern void (*geon_pool_run_short)(void (*task)(void *argument, int64_t index), void *argument,
                                   int64_t count, int32_t threads, int32_t duration)
    __attribute__((visibility("hidden")));
extern int32_t (*geon_seat)(void) __attribute__((visibility("hidden")));
/* Whether the call that this thread works for is to end: loops look at it now and then. */
extern const int32_t *geon_interrupt __attribute__((visibility("hidden")));
extern int32_t (*geon_is_watched)(void) __attribute__((visibility("hidden")));
GEON_INLINE int geon_interrupted(void)
{
    return __builtin_expect(__atomic_load_n(geon_interrupt, __ATOMIC_RELAXED), 0);
}
GEON_INLINE int geon_stopped(void)
{
    return geon_interrupted() && geon_is_watched();
}
/* The bytes beyond which results are stored past the caches, and values that are read again. */
extern int64_t geon_past_bytes __attribute__((visibility("hidden")));
extern int64_t geon_reread_bytes __attribute__((visibility("hidden")));
/* A copy kept from call to call, as it was when what it is of had that version; NULL: none. The
   first of a table has the version alone. */
struct geon_kept {
    int64_t *version, seen;
    void *copy;
};
GEON_INLINE struct geon_kept *geon_kept_of(void *table, int64_t number)
{
    return table ? (struct geon_kept *)table + number : NULL;
}
GEON_INLINE void geon_wrote(void *table)
{
    if (table)
        ++*((struct geon_kept *)table)->version;
}
