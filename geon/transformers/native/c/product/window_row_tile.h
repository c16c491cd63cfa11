/* One register tile, SHOWN, of ROWS rows and WIDTH vectors, whose rows are windows: the summed
   indices of a row are runs of `run` elements at the offsets `runs` from the row's start. The first
   `skipped` elements of the first run are left out. Each summed index prefetches `next_step` bytes. */
static QUICK void SHOWN(const struct geon_shown_tile *tile)
{
    AFRESH;
    const TYPE *const *rows = tile->left.rows;
    const int64_t *runs = tile->left.runs;
    const int64_t run = tile->left.run, step = tile->right.step, out_step = tile->out_step;
    const int64_t next_step = tile->next_step;
    const TYPE *restrict right = tile->right.at;
    const char *next = tile->next;
    TYPE *restrict out = tile->out;
    const int accumulate = tile->accumulate;
    int64_t depth = tile->depth, skipped = tile->left.skipped;
    REPEAT(ROWS, TILE_ROW, TILE_NEAR)
    REPEAT(ROWS, TILE_ROW, TILE_CLEAR)
    for (; depth > 0; ++runs, skipped = 0) {
        const int64_t end = LEAST(run, skipped + depth);
        REPEAT(ROWS, SHOWN_POINT)
        depth -= end - skipped;
        for (int64_t k = skipped; k < end; ++k, right += step, next += next_step) {
            __builtin_prefetch(next, 0, 2);
            REPEAT(WIDTH, TILE_LOAD, 0)
            REPEAT(WIDTH, TILE_HOLD)
            REPEAT(ROWS, SHOWN_MULTIPLY)
        }
    }
    TILE_PUT
}
#undef SHOWN
#undef ROWS
#undef WIDTH
