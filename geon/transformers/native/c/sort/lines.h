#include "sort/rows.h"
/* K_DECLARED, K_GIVEN and K_OF_ALL are what PART(line) takes besides, or nothing. Lines of the result
   have LENGTH elements. */
#if PARTIAL
#define LENGTH k
#define K_DECLARED , int64_t k
#define K_GIVEN , all->k
#define K_OF_ALL , k
#else
#define LENGTH n
#define K_DECLARED
#define K_GIVEN
#define K_OF_ALL
#if FLOATING /* NaN is the largest */
#define IS_LATER(a, b) (!((a) <= (b)) & ((b) == (b)))
#else
#define IS_LATER(a, b) ((b) < (a))
#endif
#include "sort/few.h"
#endif
/* Enough lines of n elements side by side: of long ones a network is worth more lanes than half. */
#define ARE_MANY(some, n) ((n) <= NEAR_ROWS ? (some) >= FEWEST_LANES : 2 * (some) > TOGETHER)
#define IS_SHARED (IS_QUICK && !PAIRED)
#if IS_SHARED
#include "sort/parallel.h"
#endif

/* The function NAME, which gives lines to tasks: PART(line) works on one. A thread's scratch memory
   has two words for each element of a line, and then room for `turned` lines. */
struct PART(lines) {
    const TYPE *x;
    RESULT *out;
    char *scratch;
    int64_t lines, n, inner, k, each, turned;
};

/* How many lines of a column are brought side by side. */
static int64_t PART(turned_lines)(int64_t n, int64_t k, int64_t inner)
{
    int64_t most = TILE / (n * (int64_t)sizeof(TYPE) + k * (int64_t)sizeof(RESULT) + 1);
    most = most < MOST_LINES ? most : MOST_LINES;
    return n <= LONGEST_ROWS || most < 2 ? 1 : most < inner ? most : inner;
}

static int64_t PART(words_bytes)(int64_t n)
{
    return (2 * n * (int64_t)sizeof(WORD) + 63) / 64 * 64;
}

/* The bytes of a thread's scratch memory. */
static int64_t PART(part_bytes)(int64_t n, int64_t k, int64_t turned)
{
    int64_t each = n * (int64_t)sizeof(TYPE) + k * (int64_t)sizeof(RESULT);
    return PART(words_bytes)(n) + (turned > 1 ? (turned * each + 63) / 64 * 64 : 0);
}

/* Long lines that adjoin, brought side by side into memory where their elements do. */
static void PART(turned)(const struct PART(lines) *all, const struct PART(some) *some, WORD *words)
{
    int64_t n = all->n, k = all->k, inner = all->inner;
    RESULT *found = (RESULT *)((char *)words + PART(words_bytes)(n));
    TYPE *held = (TYPE *)(found + all->turned * k);
    const TYPE *x = all->x + some->from[0];
    RESULT *out = all->out + some->to[0];
    if (some->some >= FEWEST_TURNED)
        PART(turn)(x, inner, held, n, n, some->some);
    for (int64_t lane = 0; some->some < FEWEST_TURNED && lane < some->some; lane++)
        for (int64_t i = 0; i < n; i++)
            held[lane * n + i] = x[i * inner + lane];
    for (int64_t lane = 0; lane < some->some; lane++)
        PART(line)(held + lane * n, found + lane * k, n, 1, words K_GIVEN);
    if (some->some >= FEWEST_TURNED)
        PART(turn_back)(found, k, out, inner, some->some, k);
    for (int64_t lane = 0; some->some < FEWEST_TURNED && lane < some->some; lane++)
        for (int64_t i = 0; i < k; i++)
            out[i * inner + lane] = found[lane * k + i];
}

/* Lines that begin next to each other in x, or as many as there are. */
static void PART(sorted)(const struct PART(lines) *all, const struct PART(some) *some, WORD *words)
{
    int64_t n = all->n, k = all->k;
    int are_many = ARE_MANY(some->some, n);
    (void)k;
#if PARTIAL
    int are_kept = k <= MOST_KEPT && (k <= 3 ? 2 * k : 4 * k) <= n && n <= MOST_ROWS;
    if (some->some >= FEWEST_LANES && are_kept) {
        PART(kept)(some);
        return;
    }
#endif
    if (are_many && n <= LONGEST_ROWS) {
        PART(together)(some);
    } else if (some->some > 1 && all->turned > 1 && PART(adjoin)(some)) {
        PART(turned)(all, some, words);
    } else {
        for (int64_t lane = 0; lane < some->some; lane++)
            PART(line)(all->x + some->from[lane], all->out + some->to[lane], n, all->inner, words
                       K_GIVEN);
    }
}

/* Lines that are a few elements apart: those of as many blocks as rows have words are turned whole,
   and what is in one place of each block adjoins then. */
#define IS_BETWEEN(lines, n, inner)                                                               \
    ((inner) > 1 && (inner) < TOGETHER && (n) * (inner) >= FEWEST_TURNED &&                       \
     (n) * (inner) <= NEAR_ROWS && (lines) >= (inner) * TOGETHER)
static void PART(between)(const struct PART(lines) *all, int64_t start, int64_t end, WORD *words)
{
    TYPE held[NEAR_ROWS * TOGETHER] __attribute__((aligned(64)));
    RESULT found[NEAR_ROWS * TOGETHER] __attribute__((aligned(64)));
    int64_t n = all->n * all->inner, k = all->k * all->inner, inner = all->inner * TOGETHER;
    struct PART(some) some = {.some = TOGETHER, .n = all->n, .inner = inner, .k = all->k};
    for (int64_t lane = 0; lane < TOGETHER; lane++)
        some.from[lane] = some.to[lane] = lane;
    for (int64_t block = start; block < end; block += TOGETHER) {
        int64_t count = end - block < TOGETHER ? end - block : TOGETHER;
        if (count < TOGETHER)
            __builtin_memset(held, 0, (size_t)(n * TOGETHER) * sizeof(TYPE));
        PART(turn)(all->x + block * n, n, held, TOGETHER, count, n);
        int64_t at = 0;
#if !PARTIAL
        if (all->n <= MOST_FEW) {
            PART(few)(held, found, inner, all->n, inner);
            at = inner;
        }
#endif
        for (; at < inner; at += TOGETHER) {
            some.x = held + at, some.out = found + at;
            PART(sorted)(all, &some, words);
        }
        PART(turn_back)(found, TOGETHER, all->out + block * k, k, k, count);
    }
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(lines) *all = argument;
    int64_t n = all->n, k = all->k, width = all->inner, start = index * all->each;
    int64_t end = start + all->each < all->lines ? start + all->each : all->lines;
    if (n == 1) {
        for (int64_t line = start; line < end; line++)
            all->out[line] = POSITIONS ? 0 : (RESULT)all->x[line];
        return;
    }
#if !PARTIAL
    if (n <= (width == 1 ? MOST_ADJOINING : width >= TOGETHER ? MOST_FEW : 0)) {
        for (int64_t line = start, count; line < end; line += count) {
            int64_t at = line / width * n * width + line % width, left = width - line % width;
            count = width == 1 || end - line < left ? end - line : left;
            PART(few)(all->x + at, all->out + at, count, n, width);
        }
        return;
    }
#endif
    WORD *words = (WORD *)(all->scratch + geon_seat() * PART(part_bytes)(n, k, all->turned));
    if (IS_BETWEEN(all->lines, n, width)) {
        PART(between)(all, start / width, end / width, words);
        return;
    }
    struct PART(some) some = {.x = all->x, .out = all->out, .n = n, .inner = width, .k = k};
    int64_t outer = start / width, inner = start % width;
    int64_t widest = all->turned > 1 ? all->turned : TOGETHER;
    int stays = all->turned > 1 || width >= TOGETHER; /* in lines that begin next to each other */
    for (int64_t line = start; line < end; line += some.some) {
        int64_t most = stays && width - inner < end - line ? width - inner : end - line;
        some.some = most < widest ? most : widest;
        for (int64_t lane = 0; lane < some.some; lane++) {
            some.from[lane] = outer * n * width + inner;
            some.to[lane] = outer * k * width + inner;
            if (++inner == width)
                inner = 0, outer++;
        }
        PART(sorted)(all, &some, words);
    }
}

void NAME(int32_t threads, const TYPE *x, RESULT *out, char *scratch, int64_t outer,
          int64_t n, int64_t inner K_DECLARED)
{
    int64_t each = 1 + GRAIN / (n + 1), turned = PART(turned_lines)(n, LENGTH, inner);
    int64_t lines = outer * inner;
    int64_t step = n > LONGEST_ROWS              ? turned
                   : IS_BETWEEN(lines, n, inner) ? inner * TOGETHER
                                                 : TOGETHER;
    int64_t share = (lines + threads - 1) / threads;
    if (n <= LONGEST_ROWS || step <= share)
        each = (each + step - 1) / step * step; /* whole vectors of lines */
    else
        each = each > share ? each : share; /* few long ones: each thread has some */
    struct PART(lines) all = {x, out, scratch, lines, n, inner, LENGTH, each, turned};
    if (!all.lines || !n || !all.k)
        return;
#if IS_SHARED
    int are_few = all.lines < 2 * threads && all.lines % threads;
    if (are_few && n >= SHORTEST_SHARED && !SCANNED(all.k, n)) {
        for (int64_t line = 0; line < all.lines; line++) {
            int64_t from = line / inner * n * inner + line % inner;
            int64_t to = line / inner * all.k * inner + line % inner;
            WORD *words = (WORD *)scratch;
            if (!PART(shared)(threads, x + from, out + to, words, n, inner, all.k))
                PART(line)(x + from, out + to, n, inner, words K_OF_ALL);
        }
        return;
    }
#endif
    geon_pool_run(PART(task), &all, (all.lines + each - 1) / each, threads);
}
