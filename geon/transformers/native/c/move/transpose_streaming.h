/* Transpose a matrix into its destination: to[c * to_step + r] = from[r * from_step + c].

   Cache lines are written as a whole, by one or two register blocks: otherwise they would be
   evicted half written. The blocks of a square of TURNED rows are consecutive, so that its lines
   stay in the L1 and L2 caches. NAME transposes a matrix smaller than a block; BLOCK and
   PART(block) are those of NAME. */
#define LINE (64 / BYTES)
#define SQUARE PART(square64)
#include "move/has_shuffle.h"
#if !HAS_PICK
#undef BLOCK
#elif defined(__AVX512F__)
#define LANES LINE
#include "move/shuffles.h"
#include "move/transpose_square.h"
#endif

static __attribute__((unused)) void PART(turned)(
    const void *source, int64_t from_step, void *target, int64_t to_step, int64_t rows,
    int64_t columns)
{
    typedef TYPE element __attribute__((may_alias));
    const element *from = source;
    element *to = target;
#ifdef LANES
    const int64_t line = LINE, high = LINE;
#elif defined(BLOCK)
    const int64_t line = LINE, high = BLOCK;
#else
    const int64_t line = rows + 1, high = 1;
#endif
    if (rows < line || columns < high) {
        NAME(source, from_step, target, to_step, rows, columns);
        return;
    }
    for (int64_t top = 0; top < columns; top += TURNED)
        for (int64_t left = 0; left < rows; left += TURNED)
            for (int64_t r = left; r < rows && r < left + TURNED; r += line)
                for (int64_t c = top; c < columns && c < top + TURNED; c += high) {
                    const int64_t row = r < rows - line ? r : rows - line;
                    const int64_t column = c < columns - high ? c : columns - high;
                    const element *a = from + row * from_step + column;
                    element *b = to + column * to_step + row;
#ifdef LANES
                    PART(square64)(a, from_step, b, to_step);
#elif defined(BLOCK)
                    PART(block)(a, from_step, b, to_step);
                    PART(block)(a + BLOCK * from_step, from_step, b + BLOCK, to_step);
#endif
                }
}
