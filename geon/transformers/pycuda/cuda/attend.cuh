/* Attention by tensor cores: a warp has 16 rows, whose queries and weights it holds in registers; keys
   and values come to shared memory some steps ahead, brought by threads that do nothing else. */

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

/* Two to this power: weights are rounded to halves, of which it is within the last bit. */
GEON_INLINE float geon_power_of_two(float x)
{
#ifdef GEON_HOST
    return (float)exp2((double)x);
#else
    float found;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(x));
    return found;
#endif
}

template <class KIND, bool TURNED, int FAR, int STEPS, int WIDE>
GEON_INLINE void geon_multiply_by_warps(const uint32_t (&left)[STEPS][4], const unsigned char *tile,
                                        float (&sums)[2][WIDE])
{
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
#pragma unroll
        for (int j = 0; j < WIDE; j += 4) {
            uint32_t right[4];
            geon_hold_right_of<TURNED, FAR>(right, tile, 4 * j, 16 * k);
            KIND::multiply(sums[0][j], sums[0][j + 1], sums[1][j], sums[1][j + 1], left[k], right);
            KIND::multiply(sums[0][j + 2], sums[0][j + 3], sums[1][j + 2], sums[1][j + 3], left[k],
                           right + 2);
        }
    }
}

/* Begins to add what threads hold of rows, times a tile in panels of FAR lines, to sums. */
template <class KIND, bool TURNED, int FAR, int STEPS, int WIDE>
GEON_INLINE void geon_begin_held(uint32_t (&left)[STEPS][4], const unsigned char *tile,
                                 float (&sums)[2][WIDE])
{
#ifdef GEON_BY_GROUPS
    if constexpr (WIDE == 16 || WIDE == 32) {
        geon_settle(left);
        geon_settle(sums);
        geon_begin_groups();
        const unsigned right = geon_described(tile, FAR * GEON_LINE);
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            const int behind =
                TURNED ? 16 * k * GEON_LINE : 16 * k / 64 * FAR * GEON_LINE + 16 * k % 64 * 2;
            geon_held_group<KIND, 4 * WIDE>::template multiply<TURNED>(sums, left[k],
                                                                       geon_inside(right, behind));
        }
    } else
        geon_multiply_by_warps<KIND, TURNED, FAR>(left, tile, sums);
    geon_commit_groups();
#else
    geon_multiply_by_warps<KIND, TURNED, FAR>(left, tile, sums);
#endif
}

/* Sums of nothing. */
template <int WIDE> GEON_INLINE void geon_clear(float (&sums)[2][WIDE])
{
#pragma unroll
    for (int j = 0; j < WIDE; j++)
        sums[0][j] = sums[1][j] = 0;
}

/* Waits until sums are found, but for those of so many that were begun last. */
template <int BUT, int WIDE> GEON_INLINE void geon_end_held(float (&sums)[2][WIDE])
{
#ifdef GEON_BY_GROUPS
    geon_wait_groups<BUT>();
    geon_settle(sums);
#endif
}

/* The scores of a tile in place of products. Where they are asked for only inside, GUARDED, what is
   behind the ends may be read by nobody. */
template <bool GUARDED, int WIDE, class Row, class Key, class Score>
GEON_INLINE void geon_score(float (&sums)[2][WIDE], int64_t row_end, int64_t key_end, Row row,
                            Key key, Score score)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            if (!GUARDED || (row(i) < row_end && key(j) < key_end))
                sums[i][j] = score(row(i), key(j), sums[i][j]);
        }
    }
}

/* No scores from the key `here` on, of a tile from `own` on for this thread: if so, it is the last. */
template <int WIDE> GEON_INLINE void geon_end_scores(float (&sums)[2][WIDE], int own, int64_t here)
{
    if (here >= 4 * WIDE)
        return;
#ifndef GEON_HOST
    asm volatile("" ::: "memory"); /* so that it is a branch, and no choice for each score */
#endif
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
        if (own + j % 2 + j / 2 * 8 >= here)
            sums[0][j] = sums[1][j] = -INFINITY;
    }
}

/* Scores of a tile become weights: powers of `scale` times a score less a base. Four neighbouring
   threads share a row. The base is the largest score so far, or one before it that is at most 8
   doublings less: so what was found before seldom shrinks, and no weight is larger than 256. */
template <int WIDE>
GEON_INLINE void geon_weigh_halves(float (&sums)[2][WIDE], float scale, float (&most)[2],
                                   float (&total)[2], float (&shrink)[2])
{
    const float doublings = scale * 1.44269504f; /* of a power of e */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float found[4]; /* four, so that one need not wait for the one before */
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            found[j % 4] = j < 4 ? sums[i][j] : fmaxf(found[j % 4], sums[i][j]);
        float largest = fmaxf(fmaxf(found[0], found[1]), fmaxf(found[2], found[3]));
#pragma unroll
        for (int bits = 2; bits > 0; bits /= 2)
            largest = fmaxf(largest, geon_exchanged(largest, bits));
        largest = fmaxf(largest, most[i]);
        if ((largest - most[i]) * doublings <= 8)
            largest = most[i];
        const float base = largest == -INFINITY ? 0 : largest * doublings;
        shrink[i] = geon_power_of_two(fmaf(most[i], doublings, -base));
        most[i] = largest;
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            sums[i][j] = geon_power_of_two(fmaf(sums[i][j], doublings, -base));
            found[j % 4] = j < 4 ? sums[i][j] : found[j % 4] + sums[i][j];
        }
        total[i] = fmaf(total[i], shrink[i], (found[0] + found[1]) + (found[2] + found[3]));
    }
}

/* Sums of values by weights as means. */
template <int WIDE>
GEON_INLINE void geon_share_halves(float (&found)[2][WIDE], const float (&total)[2])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float all = total[i];
#pragma unroll
        for (int bits = 2; bits > 0; bits /= 2)
            all += geon_exchanged(all, bits);
        const float share = 1 / all;
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            found[i][j] *= share;
    }
}

/* Goes over keys, KEYS at a time. `first(tiles)` finds the weights of the first keys; `both(tiles,
   before, key)` those of the keys from `key` on, while values are taken by the weights before, whose
   place they take in `after()`; and `last(tiles)` takes the last. */
template <int KEYS, int BYTES, class First, class Both, class After, class Last>
GEON_INLINE void geon_attend(geon_stages<BYTES> &stages, int64_t end, First first, Both both,
                             After after, Last last)
{
    if (end <= 0)
        return;
    stages.wait_to_read();
    first(stages.tiles());
    stages.next();
#pragma unroll 1
    for (int64_t key = KEYS; key < end; key += KEYS) {
        stages.wait_to_read();
        both(stages.tiles(), stages.before(), key);
        stages.release_before();
        after();
        stages.next();
    }
    last(stages.before());
    stages.release_before();
}
