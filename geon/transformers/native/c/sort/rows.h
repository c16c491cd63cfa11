/* Sort lines in lanes, as rows of words. A program defines an element's number (ROW_NUMBER), the
   result of a number (ROW_FOUND), and whether signs of zeros are restored (SIGNS). Elements that
   are not contiguous are copied through a buffer with TOGETHER elements for each index. */
#include "sort/network.h"
#define FEWEST_TURNED 8 /* of lines and of elements, for blocks that registers turn */
#if VECTOR_BYTES == 16 && NUMBER_BYTES == 8 && !ARE_DOUBLES /* two lanes, slowly compared */
#define LONGEST_ROWS NARROW_ROWS
#elif VECTOR_BYTES < 64 && !PAIRED && ROW_DOWN != 8 /* as many bytes as of wider rows */
#define LONGEST_ROWS (2 * MOST_ROWS)
#else
#define LONGEST_ROWS MOST_ROWS
#endif

/* Lines that are worked on at once: long ones are brought side by side by whole lines of the cache,
   which have at least as many elements as rows have words. */
#define MOST_LINES (CACHE_LINE / KEY_BYTES)

/* Lines that begin `from` elements after x and `to` after out, whose elements are `inner` apart. */
struct PART(some) {
    const TYPE *x;
    RESULT *out;
    int64_t from[MOST_LINES], to[MOST_LINES];
    int64_t some, n, inner, k;
};

GEON_INLINE int PART(adjoin)(const struct PART(some) *all)
{
    return all->from[all->some - 1] - all->from[0] == all->some - 1;
}

/* Lines of fewer than FEWEST_TURNED elements that adjoin, taken apart into rows and put together
   again: with their length known, compilers move whole vectors. */
#define MOVED(M) \
    switch (n) { M(2) M(3) M(4) M(5) M(6) M(7) }
#define APART(N)                                                                                  \
    case N:                                                                                       \
        for (int64_t lane = 0; lane < TOGETHER; lane++)                                           \
            for (int64_t i = 0; i < N; i++)                                                       \
                held[i * TOGETHER + lane] = x[lane * N + i];                                      \
        break;
#define BESIDE(N)                                                                                 \
    case N:                                                                                       \
        for (int64_t lane = 0; lane < TOGETHER; lane++)                                           \
            for (int64_t i = 0; i < N; i++)                                                       \
                out[lane * N + i] = held[i * TOGETHER + lane];                                    \
        break;
static void PART(apart)(const TYPE *restrict x, int64_t n, TYPE *restrict held)
{
    MOVED(APART)
}

static void PART(beside)(const RESULT *restrict held, int64_t n, RESULT *restrict out)
{
    MOVED(BESIDE)
}
#undef APART

/* Elements `start` up to `end` of each line. */
static void PART(gather)(const struct PART(some) *all, int64_t start, int64_t end, TYPE *held)
{
    const TYPE *x = all->x + start * all->inner;
    int64_t n = end - start;
    if (all->some < TOGETHER)
        __builtin_memset(held, 0, (size_t)(n * TOGETHER) * sizeof(TYPE));
    if (all->inner == 1 && n >= FEWEST_TURNED) {
        PART(turn)(x + all->from[0], all->n, held, TOGETHER, all->some, n);
    } else if (all->inner == 1 && all->some == TOGETHER && n == all->n && n > 1) {
        PART(apart)(x + all->from[0], n, held);
    } else if (PART(adjoin)(all)) {
        for (int64_t i = 0; i < n; i++)
            __builtin_memcpy(held + i * TOGETHER, x + all->from[0] + i * all->inner,
                             (size_t)all->some * sizeof(TYPE));
    } else if (n < FEWEST_TURNED) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t lane = 0; lane < all->some; lane++)
                held[i * TOGETHER + lane] = x[all->from[lane] + i * all->inner];
    } else {
        for (int64_t lane = 0; lane < all->some; lane++)
            for (int64_t i = 0; i < n; i++)
                held[i * TOGETHER + lane] = x[all->from[lane] + i * all->inner];
    }
}

/* The first k elements of each line. */
static void PART(spread)(const struct PART(some) *all, const RESULT *held)
{
    if (all->inner == 1 && all->k >= FEWEST_TURNED) {
        PART(turn_back)(held, TOGETHER, all->out + all->to[0], all->k, all->k, all->some);
    } else if (all->inner == 1 && all->some == TOGETHER && all->k > 1) {
        PART(beside)(held, all->k, all->out + all->to[0]);
    } else if (PART(adjoin)(all)) {
        for (int64_t i = 0; i < all->k; i++)
            __builtin_memcpy(all->out + all->to[0] + i * all->inner, held + i * TOGETHER,
                             (size_t)all->some * sizeof(RESULT));
    } else if (all->k < FEWEST_TURNED) {
        for (int64_t i = 0; i < all->k; i++)
            for (int64_t lane = 0; lane < all->some; lane++)
                all->out[all->to[lane] + i * all->inner] = held[i * TOGETHER + lane];
    } else {
        for (int64_t lane = 0; lane < all->some; lane++)
            for (int64_t i = 0; i < all->k; i++)
                all->out[all->to[lane] + i * all->inner] = held[i * TOGETHER + lane];
    }
}

/* The row of elements that adjoin, which have place i of their lines. */
GEON_INLINE void PART(row_of)(const TYPE *x, int64_t i, PART(row) *row)
{
    NUMBER *key = (NUMBER *)&row->key;
    (void)i;
    for (int64_t lane = 0; lane < TOGETHER; lane++)
        key[lane] = (NUMBER)(ROW_NUMBER(x[lane], i) ^ ROW_HELD);
#if PAIRED
    row->at = (uint64_t)i - (PART(vector)){0};
#endif
}

GEON_INLINE void PART(found_of)(const PART(row) *row, RESULT *out)
{
#if PAIRED
    PART(vector) words = row->at;
#else
    PART(vector) words = row->key ^ ROW_HELD;
#endif
    const NUMBER *word = (const NUMBER *)&words;
    for (int64_t lane = 0; lane < TOGETHER; lane++)
        out[lane] = ROW_FOUND(word[lane]);
}

/* Rows behind all others. */
GEON_INLINE void PART(ended)(PART(row) *rows, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        rows[i].key = ROW_LAST - (PART(vector)){0};
#if PAIRED
        rows[i].at = ROW_LAST - (PART(vector)){0};
#endif
    }
}

#if SIGNS
/* Zeros of both signs have one key: their signs, in the order they had. */
struct PART(signs) {
    int64_t zeros[TOGETHER];
    unsigned char negative[TOGETHER][LONGEST_ROWS];
};

/* Whether there is a zero with a sign in a line; then the signs of all zeros of all. */
static int PART(signs_of)(const TYPE *x, int64_t step, int64_t n, struct PART(signs) *signs)
{
    NUMBER special[TOGETHER] = {0}, any = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t lane = 0; lane < TOGETHER; lane++)
            special[lane] |= BITS_OF(x[i * step + lane]) == PART(top);
    for (int64_t lane = 0; lane < TOGETHER; lane++)
        any |= special[lane];
    for (int64_t lane = 0; any && lane < TOGETHER; lane++) {
        int64_t zeros = 0;
        for (int64_t i = 0; i < n; i++) {
            signs->negative[lane][zeros] = BITS_OF(x[i * step + lane]) == PART(top);
            zeros += KEY_OF(x[i * step + lane]) == PART(top);
        }
        signs->zeros[lane] = zeros;
    }
    return any != 0;
}

static void PART(put_signs)(const struct PART(some) *all, const PART(row) *rows,
                            const struct PART(signs) *signs)
{
    for (int64_t lane = 0; lane < all->some; lane++) {
        RESULT *out = all->out + all->to[lane];
        int64_t before = 0;
        for (int64_t i = 0; signs->zeros[lane] && i < all->n; i++)
            before += (NUMBER)(rows[i].key[lane] ^ ROW_HELD) < PART(top);
        for (int64_t i = 0; i < signs->zeros[lane]; i++)
            out[(before + i) * all->inner] = OF_BITS(signs->negative[lane][i] ? PART(top) : 0);
    }
}
#endif

/* Sorts up to TOGETHER lines of up to LONGEST_ROWS elements. */
static void PART(together)(const struct PART(some) *all)
{
    PART(row) rows[LONGEST_ROWS];
    char held[LONGEST_ROWS * TOGETHER * sizeof(RESULT)] __attribute__((aligned(64)));
    int64_t step = all->inner, n = all->n, count = n <= 2 ? 2 : n <= 4 ? 4 : (n + 7) / 8 * 8;
    int is_there = all->some == TOGETHER && PART(adjoin)(all) && (step > 1 || n == 1);
    const TYPE *x = all->x + all->from[0];
    if (!is_there) {
        PART(gather)(all, 0, n, (TYPE *)held);
        x = (const TYPE *)held;
        step = TOGETHER;
    }
    for (int64_t i = 0; i < n; i++)
        PART(row_of)(x + i * step, i, rows + i);
    PART(ended)(rows + n, count - n);
#if SIGNS
    struct PART(signs) signs;
    int is_signed = PART(signs_of)(x, step, n, &signs);
#endif
    PART(network)(rows, count);
    RESULT *out = is_there ? all->out + all->to[0] : (RESULT *)held;
    for (int64_t i = 0; i < all->k; i++)
        PART(found_of)(rows + i, out + i * step);
    if (!is_there)
        PART(spread)(all, out);
#if SIGNS
    if (is_signed)
        PART(put_signs)(all, rows, &signs);
#endif
}

#if PARTIAL
#define MOST_KEPT 8
/* Moves n rows through the least k, which registers hold: k is known where this is called. */
GEON_INLINE void PART(keep)(const PART(row) *rows, int64_t n, PART(row) *least, const int64_t k)
{
    PART(row) kept[MOST_KEPT];
#pragma GCC unroll 8
    for (int64_t place = 0; place < k; place++)
        kept[place] = least[place];
    for (int64_t i = 0; i < n; i++) {
        PART(row) row = rows[i];
#pragma GCC unroll 8
        for (int64_t place = 0; place < k; place++)
            PART(exchange)(kept + place, &row);
    }
#pragma GCC unroll 8
    for (int64_t place = 0; place < k; place++)
        least[place] = kept[place];
}

#define KEEP(K)                                                                                   \
    case K:                                                                                       \
        PART(keep)(rows, end - start, least, K);                                                  \
        break;
/* The least k words of lines of any length: those found so far are held in order. Rows are made
   before they are moved through, as what was just stored in parts cannot be loaded at once. */
static void PART(kept)(const struct PART(some) *all)
{
    PART(row) rows[NEAR_ROWS], least[MOST_KEPT];
    char held[NEAR_ROWS * TOGETHER * sizeof(RESULT)] __attribute__((aligned(64)));
    int is_there = all->some == TOGETHER && PART(adjoin)(all) && all->inner > 1;
    PART(ended)(least, MOST_KEPT);
    for (int64_t start = 0; start < all->n; start += NEAR_ROWS) {
        int64_t end = start + NEAR_ROWS < all->n ? start + NEAR_ROWS : all->n;
        const TYPE *x = all->x + all->from[0] + start * all->inner;
        if (!is_there) {
            PART(gather)(all, start, end, (TYPE *)held);
            x = (const TYPE *)held;
        }
        int64_t step = is_there ? all->inner : TOGETHER;
        for (int64_t i = start; i < end; i++)
            PART(row_of)(x + (i - start) * step, i, rows + (i - start));
        switch (all->k) {
            KEEP(1) KEEP(2) KEEP(3) KEEP(4) KEEP(5) KEEP(6) KEEP(7) KEEP(8)
        }
    }
    RESULT *out = is_there ? all->out + all->to[0] : (RESULT *)held;
    for (int64_t i = 0; i < all->k; i++)
        PART(found_of)(least + i, out + i * (is_there ? all->inner : TOGETHER));
    if (!is_there)
        PART(spread)(all, out);
}
#endif
