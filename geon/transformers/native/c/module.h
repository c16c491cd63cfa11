extern void (*geon_pool_run)(void (*task)(void *argument, int64_t index), void *argument,
                             int64_t count, int32_t threads) __attribute__((visibility("hidden")));
extern int32_t (*geon_seat)(void) __attribute__((visibility("hidden")));
/* What is more than so many bytes stays in no cache. */
extern int64_t geon_past_bytes __attribute__((visibility("hidden")));
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
