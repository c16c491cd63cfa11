/* DOTS: dot products of ROWS rows and ACROSS columns over all summed indices. */
GEON_INLINE QUICK_INSIDE void DOTS(
    int64_t depth, const TYPE *a, int64_t line, const TYPE *b, int64_t step, TYPE *out,
    int64_t out_step, int accumulate)
{
    REPEAT(ROWS, DOTS_ROW)
    REPEAT(ACROSS, DOTS_SIDE)
    REPEAT(ROWS, DOTS_EACH, DOTS_CLEAR)
    int64_t k = 0;
    for (; k + VECTOR <= depth; k += VECTOR) {
        REPEAT(ROWS, DOTS_LOAD)
        REPEAT(ROWS, DOTS_HOLD)
        REPEAT(ACROSS, DOTS_MULTIPLY)
    }
    const geon_vector parts[] = {REPEAT(ROWS, DOTS_EACH, DOTS_PART)};
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < ACROSS; ++c)
            geon_dot_end(parts + r * ACROSS + c, depth - k, a + r * line + k, b + c * step + k,
                         out + r * out_step + c, accumulate);
}
#undef DOTS
#undef ROWS
#undef ACROSS
