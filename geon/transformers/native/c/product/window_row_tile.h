/* One register tile, SHOWN, of ROWS rows and WIDTH vectors, whose rows are windows: the summed
   indices of a row are runs of `run` elements at the offsets `runs` from the row's start. The first
   `skipped` elements of the first run are left out. */
static QUICK void SHOWN(
    int64_t depth, const TYPE *const *rows, const int64_t *runs, int64_t run, int64_t skipped,
    const TYPE *restrict right, int64_t step, TYPE *restrict out, int64_t out_step, int accumulate)
{
    REPEAT(ROWS, TILE_ROW, TILE_NEAR)
    REPEAT(ROWS, TILE_ROW, TILE_CLEAR)
    for (; depth > 0; ++runs, skipped = 0) {
        const int64_t end = LEAST(run, skipped + depth);
        REPEAT(ROWS, SHOWN_POINT)
        depth -= end - skipped;
        for (int64_t k = skipped; k < end; ++k, right += step) {
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
