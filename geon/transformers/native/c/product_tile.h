/* One register tile, TILE, of ROWS rows, ALONG lines or BESIDE each other, and WIDTH vectors:
   out[row][column] (+)= sum over k of left[row][k] * right[k][column].
   Registers hold the sum of `chain` terms at most, and are then added to `out`. Steps are unrolled,
   and each fetches a line of what is `next`: who shares the core's front end takes half of it. */
#if ROWS > 6
#define THIRD 4
#elif ROWS > 3
#define THIRD 2
#else
#define THIRD 1
#endif
static QUICK void TILE(
    int64_t depth, const TYPE *restrict left, int64_t line, const TYPE *restrict right,
    int64_t step, TYPE *restrict out, int64_t out_step, int accumulate, int64_t chain,
    const TYPE *next, int64_t next_step)
{
    (void)line, (void)next_step;
    /* Three rows to a pointer: its own place, one line on and two, which add for free. */
    const TYPE *at[THIRD];
    REPEAT(THIRD, TILE_POINT)
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
        if (accumulate) {
            REPEAT(ROWS, TILE_ROW, TILE_ADD)
        } else {
            REPEAT(ROWS, TILE_ROW, TILE_STORE)
        }
        accumulate = 1;
    } while (k < depth);
}
#undef TILE
#undef LEFT
#undef ROWS
#undef THIRD
#undef WIDTH
