/* One register tile, TILE, of ROWS packed rows and WIDTH vectors of column windows. */
static QUICK void TILE(const struct geon_placed_tile *tile)
{
    AFRESH;
    const int64_t depth = tile->depth, chain = tile->chain, out_step = tile->out_step;
    const TYPE *const *places = tile->places;
    const TYPE *restrict left = tile->left;
    const int64_t *offsets = tile->offsets;
    TYPE *restrict out = tile->out;
    int accumulate = tile->accumulate;
    int64_t k = 0;
    REPEAT(WIDTH, PLACED_OFFSET)
    REPEAT(ROWS, TILE_ROW, TILE_NEAR)
    do {
        const int64_t end = LEAST(k + chain, depth);
        REPEAT(ROWS, TILE_ROW, TILE_CLEAR)
        for (; k < end; ++k, left += ROWS) {
            const TYPE *place = places[k];
            REPEAT(WIDTH, PLACED_LOAD)
            REPEAT(WIDTH, TILE_HOLD)
            REPEAT(ROWS, PLACED_MULTIPLY)
            REPEAT(WIDTH, TILE_USED)
        }
        TILE_PUT
        accumulate = 1;
    } while (k < depth);
}
#undef TILE
#undef ROWS
#undef WIDTH
