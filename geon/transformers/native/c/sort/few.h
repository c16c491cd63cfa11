/* Sort lines of a few elements, a vector of lines at once: odd-even transposition, a stable exchange
   of neighbours if IS_LATER(a, b). Lines are contiguous, or their elements `inner` apart.
   With POSITIONS the results are the elements' indices. */
#define MOST_FEW 8
#define MOST_ADJOINING 4
#define EACH_3(M) ROWS_2(M) M(2)
#define EACH_5(M) ROWS_4(M) M(4)
#define EACH_6(M) EACH_5(M) M(5)
#define EACH_7(M) EACH_6(M) M(6)
#define EVEN_4(M) M(0, 1) M(2, 3)
#define EVEN_6(M) EVEN_4(M) M(4, 5)
#define EVEN_8(M) EVEN_6(M) M(6, 7)
#define ODD_5(M) M(1, 2) M(3, 4)
#define ODD_7(M) ODD_5(M) M(5, 6)
#define TURNS_2(M) M(0, 1)
#define TURNS_3(M) M(0, 1) M(1, 2) M(0, 1)
#define TURNS_4(M) EVEN_4(M) M(1, 2) EVEN_4(M) M(1, 2)
#define TURNS_5(M) EVEN_4(M) ODD_5(M) EVEN_4(M) ODD_5(M) EVEN_4(M)
#define TURNS_6(M) EVEN_6(M) ODD_5(M) EVEN_6(M) ODD_5(M) EVEN_6(M) ODD_5(M)
#define TURNS_7(M) EVEN_6(M) ODD_7(M) EVEN_6(M) ODD_7(M) EVEN_6(M) ODD_7(M) EVEN_6(M)
#define TURNS_8(M) EVEN_8(M) ODD_7(M) EVEN_8(M) ODD_7(M) EVEN_8(M) ODD_7(M) EVEN_8(M) ODD_7(M)

#define FEW_LOADED(k) TYPE r##k = x[line * apart + (k) * step]; KEY at##k = k;
#define FEW_STORED(k) out[line * apart + (k) * step] = POSITIONS ? (RESULT)at##k : (RESULT)r##k;
#define FEW_EXCHANGED(i, j)                                                                       \
    {                                                                                             \
        TYPE a = r##i, b = r##j;                                                                  \
        KEY at = at##i;                                                                           \
        int is_later = IS_LATER(a, b);                                                            \
        r##i = is_later ? b : a, r##j = is_later ? a : b;                                         \
        at##i = is_later ? at##j : at, at##j = is_later ? at : at##j;                             \
    }
/* The result may be in the place of what is sorted: a line is read before it is written. */
#define FEW_LINES(n, EACH)                                                                        \
    GEON_INLINE void PART(few_##n)(const TYPE *x, RESULT *out, int64_t lines, int64_t apart,      \
                                   int64_t step)                                                  \
    {                                                                                             \
        _Pragma("omp simd") for (int64_t line = 0; line < lines; line++)                          \
        {                                                                                         \
            EACH(FEW_LOADED) TURNS_##n(FEW_EXCHANGED) EACH(FEW_STORED)                            \
        }                                                                                         \
    }
FEW_LINES(2, ROWS_2)
FEW_LINES(3, EACH_3)
FEW_LINES(4, ROWS_4)
FEW_LINES(5, EACH_5)
FEW_LINES(6, EACH_6)
FEW_LINES(7, EACH_7)
FEW_LINES(8, ROWS_8)

#define ADJOINING(N)                                                                              \
    case N:                                                                                       \
        PART(few_##N)(x, out, lines, N, 1);                                                       \
        break;
#define APART(N)                                                                                  \
    case N:                                                                                       \
        PART(few_##N)(x, out, lines, 1, inner);                                                   \
        break;
static void PART(few)(const TYPE *x, RESULT *out, int64_t lines, int64_t n, int64_t inner)
{
    if (inner == 1)
        switch (n) { ADJOINING(2) ADJOINING(3) ADJOINING(4) }
    else
        switch (n) { APART(2) APART(3) APART(4) APART(5) APART(6) APART(7) APART(8) }
}
