/* SQUARE(from, from_step, to, to_step) transposes LANES rows of LANES elements in registers: rows k
   and k + LANES / 2 are interleaved, log2(LANES) times. */
#if LANES == 16
#define ALL_SHUFFLES FOUR_TIMES(8)
#define COLUMNS x
#elif LANES == 8
#define ALL_SHUFFLES THRICE(4)
#define COLUMNS y
#else
#define ALL_SHUFFLES TWICE(2)
#define COLUMNS x
#endif
GEON_INLINE void SQUARE(const TYPE *from, int64_t from_step, TYPE *to, int64_t to_step)
{
    typedef TYPE line __attribute__((vector_size(LANES * BYTES), aligned(BYTES), may_alias));
    line x[LANES], y[LANES];
    EACH for (int64_t k = 0; k < LANES; k++)
        x[k] = *(const line *)(from + k * from_step);
    ALL_SHUFFLES
    EACH for (int64_t k = 0; k < LANES; k++)
        *(line *)(to + k * to_step) = COLUMNS[k];
}
