/* Attention by tensor cores: a warp has 16 rows, and holds its part of them in registers. */

template <int STEPS, int HIGH, int WIDTH>
GEON_INLINE void geon_hold_lines(uint32_t (&held)[STEPS][4], const uint16_t (&tile)[HIGH][WIDTH],
                                 int line)
{
#pragma unroll
    for (int k = 0; k < STEPS; k++)
        geon_hold_left<false>(held[k], tile, line, 16 * k);
}

/* Weights, as they were found, are where those of an operand must be. */
template <class KIND, int STEPS>
GEON_INLINE void geon_hold_weights(uint32_t (&held)[STEPS][4], const float (&sums)[2][4 * STEPS])
{
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
#pragma unroll
        for (int at = 0; at < 4; at++) {
            const int column = 4 * k + at / 2 * 2;
            held[k][at] = KIND::pack(sums[at % 2][column], sums[at % 2][column + 1]);
        }
    }
}

/* Held rows times a tile, added to sums. */
template <class KIND, bool TURNED, int STEPS, int WIDE, int HIGH, int WIDTH>
GEON_INLINE void geon_multiply_held(const uint32_t (&left)[STEPS][4],
                                    const uint16_t (&tile)[HIGH][WIDTH], float (&sums)[2][WIDE])
{
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
#pragma unroll
        for (int j = 0; j < WIDE; j += 4) {
            uint32_t right[4];
            geon_hold_right<TURNED>(right, tile, 4 * j, 16 * k);
            KIND::multiply(sums[0][j], sums[0][j + 1], sums[1][j], sums[1][j + 1], left[k], right);
            KIND::multiply(sums[0][j + 2], sums[0][j + 3], sums[1][j + 2], sums[1][j + 3], left[k],
                           right + 2);
        }
    }
}
