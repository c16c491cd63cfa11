/* Weights of keys as they are found, tile after tile: powers of scores less the largest so far.
   LANES neighbouring threads share a row. */

/* Takes scores of a tile: `sums` become weights, `total` has their sum so far, and what was found
   before is to be multiplied by `shrink`. Behind the ends there are no scores. */
template <int LANES, int HIGH, int WIDE, class Row, class Key, class Score, class Power>
GEON_INLINE void geon_weigh(float (&sums)[HIGH][WIDE], float (&most)[HIGH], double (&total)[HIGH],
                            float (&shrink)[HIGH], int64_t row_end, int64_t key_end, Row row,
                            Key key, Score score, Power power)
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
        float largest = most[i];
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const bool inside = row(i) < row_end && key(j) < key_end;
            sums[i][j] = inside ? score(row(i), key(j), sums[i][j]) : -INFINITY;
            largest = sums[i][j] > largest ? sums[i][j] : largest;
        }
#pragma unroll
        for (int bits = LANES / 2; bits > 0; bits /= 2) {
            const float other = geon_exchanged(largest, bits);
            largest = other > largest ? other : largest;
        }
        const float base = largest == -INFINITY ? 0 : largest;
        shrink[i] = power(most[i] - base);
        most[i] = largest;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            sums[i][j] = power(sums[i][j] - base);
            sum += sums[i][j];
        }
        total[i] = total[i] * shrink[i] + sum;
    }
}

/* The sums of all threads of a row. */
template <int LANES, int HIGH> GEON_INLINE void geon_join(double (&total)[HIGH])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
#pragma unroll
        for (int bits = LANES / 2; bits > 0; bits /= 2)
            total[i] += geon_exchanged(total[i], bits);
    }
}

/* What was found, less what it shrinks to. */
template <class T, int HIGH, int WIDE>
GEON_INLINE void geon_shrink(T (&found)[HIGH][WIDE], const float (&shrink)[HIGH])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
        if (shrink[i] == 1) /* as after most tiles */
            continue;
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            found[i][j] *= shrink[i];
    }
}

/* Sums of values by weights as means. */
template <class T, int HIGH, int WIDE>
GEON_INLINE void geon_share(T (&found)[HIGH][WIDE], const double (&total)[HIGH])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            found[i][j] = (T)(found[i][j] / total[i]);
    }
}
