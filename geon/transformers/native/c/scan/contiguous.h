/* Vectors of LANES totals, and the scan of a contiguous line by COMBINE, a vector at a time. */
#if defined(__AVX512F__)
#define LANES 8
#define EACH(M, by) M(0, by), M(1, by), M(2, by), M(3, by), M(4, by), M(5, by), M(6, by), M(7, by)
#elif defined(__AVX__)
#define LANES 4
#define EACH(M, by) M(0, by), M(1, by), M(2, by), M(3, by)
#else
#define LANES 2
#define EACH(M, by) M(0, by), M(1, by)
#endif
#define SAME(lane, x) x
#define ABOVE(lane, by) ((lane) < (by) ? (lane) : LANES + (lane) - (by))
#define BELOW(lane, by) ((lane) + (by))

typedef TOTAL PART(totals)
    __attribute__((vector_size(LANES * sizeof(TOTAL)), aligned(sizeof(TOTAL)), may_alias));
typedef RESULT PART(results)
    __attribute__((vector_size(LANES * sizeof(RESULT)), aligned(sizeof(RESULT)), may_alias));
typedef HELD PART(elements)
    __attribute__((vector_size(LANES * sizeof(HELD)), aligned(sizeof(HELD)), may_alias));

/* A vector of one total; elements moved `by` lanes up or down, those of `fill` coming after them. */
#define SPLAT(x) ((PART(totals)){EACH(SAME, x)})
#define UP(x, fill, by) __builtin_shufflevector(fill, x, EACH(ABOVE, by))
#define DOWN(x, fill, by) __builtin_shufflevector(x, fill, EACH(BELOW, by))

GEON_INLINE PART(totals) PART(loaded)(const TYPE *x)
{
    PART(elements) found = *(const PART(elements) *)x;
#if WIDENED && defined(__AVX512F__) && !defined(__clang__)
    /* gcc widens floats in two halves. */
    return (PART(totals))__builtin_ia32_cvtps2pd512_mask(found, SPLAT(0), -1, 4);
#else
    return __builtin_convertvector(found, PART(totals));
#endif
}

#ifdef IS_CHOSEN
typedef __typeof__((PART(totals)){0} == (PART(totals)){0}) PART(truths);

/* Of each pair the element that IS_CHOSEN says. */
GEON_INLINE PART(totals) PART(chosen)(PART(totals) a, PART(totals) b)
{
    PART(truths) takes = IS_CHOSEN(a, b);
    return (PART(totals))(((PART(truths))a & takes) | ((PART(truths))b & ~takes));
}
#endif

GEON_INLINE PART(totals) PART(running)(PART(totals) x, int reverse)
{
    const PART(totals) start = SPLAT(START);
    x = COMBINE_LANES((reverse ? DOWN(x, start, 1) : UP(x, start, 1)), x);
#if LANES > 2
    x = COMBINE_LANES((reverse ? DOWN(x, start, 2) : UP(x, start, 2)), x);
#endif
#if LANES > 4
    x = COMBINE_LANES((reverse ? DOWN(x, start, 4) : UP(x, start, 4)), x);
#endif
    return x;
}

/* Running totals of a line from `start` on. */
GEON_INLINE void PART(scan)(const TYPE *x, RESULT *out, int64_t n, TOTAL start, int exclusive,
                            int reverse)
{
    PART(totals) before = SPLAT(start);
    int64_t i = 0;
    for (; REORDERS && i + LANES <= n; i += LANES) {
        int64_t at = reverse ? n - LANES - i : i;
        PART(totals) some = PART(running)(PART(loaded)(x + at), reverse);
        PART(totals) all = COMBINE_LANES(before, some);
        PART(totals) shifted = reverse ? DOWN(all, before, 1) : UP(all, before, 1);
        PART(totals) shown = exclusive ? shifted : all;
        *(PART(results) *)(out + at) = __builtin_convertvector(shown, PART(results));
        before = COMBINE_LANES(before, SPLAT(some[reverse ? 0 : LANES - 1]));
    }
    TOTAL total = before[0];
    for (; i < n; i++) {
        int64_t at = reverse ? n - 1 - i : i;
        TOTAL all = COMBINE(total, (TOTAL)(RESULT)x[at]);
        out[at] = (RESULT)(exclusive ? total : all);
        total = all;
    }
}

GEON_INLINE TOTAL PART(total)(const TYPE *x, int64_t n)
{
    PART(totals) a = SPLAT(START), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = COMBINE_LANES(a, PART(loaded)(x + i));
        b = COMBINE_LANES(b, PART(loaded)(x + i + LANES));
        c = COMBINE_LANES(c, PART(loaded)(x + i + 2 * LANES));
        d = COMBINE_LANES(d, PART(loaded)(x + i + 3 * LANES));
    }
    a = COMBINE_LANES(a, b);
    c = COMBINE_LANES(c, d);
    a = COMBINE_LANES(a, c);
    TOTAL total = START;
    for (int lane = 0; lane < LANES; lane++)
        total = COMBINE(total, a[lane]);
    for (; i < n; i++)
        total = COMBINE(total, (TOTAL)(RESULT)x[i]);
    return total;
}
