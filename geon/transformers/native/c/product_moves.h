/* Copies and transposes, which bring operands into packed blocks. */

/* A whole panel's width goes without a loop over columns. */
QUICK void TAG(geon_copy)(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    if (columns == PANEL) {
        for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {
            *(geon_vector *)(to + 0) = *(const geon_vector *)(from + 0);
            *(geon_vector *)(to + VECTOR) = *(const geon_vector *)(from + VECTOR);
        }
        return;
    }
    for (int64_t row = 0; row < rows; ++row, to += to_step, from += from_step) {
        int64_t column = 0;
        for (; column + VECTOR <= columns; column += VECTOR)
            *(geon_vector *)(to + column) = *(const geon_vector *)(from + column);
        for (; column < columns; ++column)
            to[column] = from[column];
    }
}

QUICK void TAG(geon_clear)(TYPE *restrict to, int64_t to_step, int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; ++row, to += to_step)
        __builtin_memset(to, 0, (size_t)columns * sizeof *to);
}

void TAG(geon_spread)(
    TYPE *restrict to, int64_t panel_step, const TYPE *restrict from, int64_t columns)
{
    for (int64_t column = 0; column < columns; column += PANEL, to += panel_step) {
        *(geon_vector *)to = *(const geon_vector *)(from + column);
        *(geon_vector *)(to + VECTOR) = *(const geon_vector *)(from + column + VECTOR);
    }
}

static QUICK void geon_transpose_end(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    for (int64_t c = 0; c < columns; ++c, to += to_step)
        for (int64_t r = 0; r < rows; ++r)
            to[r] = from[r * from_step + c];
}

/* A square block of n = 2^s rows in registers is transposed by s perfect shuffles: each interleaves
   row i with row i + n/2, the low halves into row 2i and the high halves into row 2i + 1. */
#define LOAD_ROW(i, x) x[i] = *(const geon_vector *)(source + i * from_step);
#define STORE_ROW(i, x) *(geon_vector *)(target + i * to_step) = x[i];
#define SHUFFLE_ROW(i, x, y)                                                                      \
    y[2 * i] = INTERLEAVE(x[i], x[i + VECTOR / 2], 0);                                            \
    y[2 * i + 1] = INTERLEAVE(x[i], x[i + VECTOR / 2], VECTOR / 2);
#define SHUFFLE(x, y) REPEAT(HALF_VECTOR, SHUFFLE_ROW, x, y)
QUICK void TAG(geon_transpose)(
    TYPE *restrict to, int64_t to_step, const TYPE *restrict from, int64_t from_step, int64_t rows,
    int64_t columns)
{
    for (int64_t row = 0; row < rows; row += VECTOR)
        for (int64_t column = 0; column < columns; column += VECTOR) {
            const TYPE *source = from + row * from_step + column;
            TYPE *target = to + column * to_step + row;
            if (rows - row < VECTOR || columns - column < VECTOR) {
                geon_transpose_end(target, to_step, source, from_step,
                                   rows - row < VECTOR ? rows - row : VECTOR,
                                   columns - column < VECTOR ? columns - column : VECTOR);
                continue;
            }
            geon_vector x[VECTOR], y[VECTOR];
            REPEAT(VECTOR, LOAD_ROW, x)
            SHUFFLE(x, y)
#if VECTOR == 2
            REPEAT(VECTOR, STORE_ROW, y)
#elif VECTOR == 4
            SHUFFLE(y, x)
            REPEAT(VECTOR, STORE_ROW, x)
#elif VECTOR == 8
            SHUFFLE(y, x)
            SHUFFLE(x, y)
            REPEAT(VECTOR, STORE_ROW, y)
#else
            SHUFFLE(y, x)
            SHUFFLE(x, y)
            SHUFFLE(y, x)
            REPEAT(VECTOR, STORE_ROW, x)
#endif
        }
}
