/* STREAM: the products of ROWS rows with DEEP summed indices, over all columns. */
static QUICK void STREAM(
    int64_t width, const TYPE *restrict a, int64_t line, const TYPE *restrict b, int64_t step,
    int64_t part, TYPE *restrict c, int64_t out_step)
{
    (void)line, (void)step, (void)part, (void)out_step;
    REPEAT(ROWS, STREAM_LEFT)
    REPEAT(DEEP, STREAM_POINT)
    int64_t column = 0;
    for (; column + VECTOR <= width; column += VECTOR) {
        REPEAT(DEEP, STREAM_LOAD)
        /* Added to the result as one: half the roundings of a sum over many summed indices. */
        AGAIN(ROWS, STREAM_FIRST)
        REPEAT(DEEP, STREAM_MULTIPLY)
        REPEAT(ROWS, STREAM_ADD)
    }
    if (column < width)
        geon_stream_end(ROWS, DEEP, width - column, a, line, b + column, step, part, c + column,
                        out_step);
}
#undef STREAM
#undef ROWS
#undef DEEP
