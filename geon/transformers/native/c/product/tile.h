/* Register tiles, TILE, of ROWS rows, ALONG lines or BESIDE each other, and WIDTH vectors:
   out[row][column] (+)= sum over k of left[row][k] * right[k][column]. One call computes a row of
   tiles, since a tile of few summed indices takes no longer than a call. Registers accumulate at
   most `chain` terms, which are then added to `out`. Steps are unrolled, and each prefetches a line
   of `next`. */
#if ROWS > 6
#define THIRD 4
#elif ROWS > 3
#define THIRD 2
#else
#define THIRD 1
#endif
static QUICK void TILE(const struct geon_tile_row *tiles)
{
    for (int64_t tile = 0; tile < tiles->count; ++tile) {
        AFRESH;
        const int64_t depth = tiles->depth, chain = tiles->chain;
        const int64_t line = tiles->line, step = tiles->step, out_step = tiles->out_step;
        const int64_t next_step = tiles->next_step;
        (void)line, (void)next_step;
        const TYPE *restrict left = tiles->left + tile * tiles->left_by;
        const TYPE *restrict right = tiles->right + tile * tiles->right_by;
        const TYPE *next = tiles->next + tile * tiles->next_by;
        TYPE *restrict out = tiles->out + tile * tiles->out_by;
        /* Three rows to a pointer: its own place, one line on and two, which add for free. */
        const TYPE *at[THIRD];
        REPEAT(THIRD, TILE_POINT)
        int accumulate = tiles->accumulate;
        int64_t k = 0;
        if (depth >= 32) {
            REPEAT(ROWS, TILE_ROW, TILE_NEAR)
        }
        do {
            const int64_t end = k + chain < depth ? k + chain : depth;
            REPEAT(ROWS, TILE_ROW, TILE_CLEAR)
            for (; k + 4 <= end; k += 4, right += 4 * step) {
                TILE_STEP(0)
                TILE_STEP(1)
                TILE_STEP(2)
                TILE_STEP(3)
                REPEAT(THIRD, TILE_ADVANCE, 4)
                next += 4 * LEFT(64 / TYPE_BYTES, next_step);
            }
            for (; k < end; ++k, right += step) {
                TILE_STEP(0)
                REPEAT(THIRD, TILE_ADVANCE, 1)
                next += LEFT(64 / TYPE_BYTES, next_step);
            }
            TILE_PUT
            accumulate = 1;
        } while (k < depth);
    }
}
#undef TILE
#undef LEFT
#undef ROWS
#undef THIRD
#undef WIDTH
