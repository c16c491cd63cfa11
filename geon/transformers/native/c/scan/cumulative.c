/* Prefixes combined by COMBINE, accumulated in TOTAL from START on; IDENTITY is the first exclusive
   result. A contiguous line is scanned by vectors, other lines in lanes. If there are few
   lines, each is cut into parts, and the totals of the parts are computed first. Without REORDERS
   the operation is not reassociated. */
#include "scan/cumulative.h"
#define ONE(M) M(0)
#define TWO(M) ONE(M) M(1)
#define THREE(M) TWO(M) M(2)
#define FOUR(M) THREE(M) M(3)
#define FIVE(M) FOUR(M) M(4)
#define SIX(M) FIVE(M) M(5)
#define SEVEN(M) SIX(M) M(6)
#define EIGHT(M) SEVEN(M) M(7)
#include "scan/contiguous.h"
#include "scan/strips.h"
#include "scan/short_lines.h"

struct PART(work) {
    const TYPE *x;
    RESULT *out;
    TOTAL *totals;
    int64_t outer, n, inner, blocks, length, parts, each;
    int exclusive, reverse;
};

/* A piece of work: so many rows of so many columns from `at` on, which in the order of the sum come
   after those of other parts; `totals` are what its own come to. */
struct PART(piece) {
    int64_t part, rows, width, at;
    TOTAL *totals;
};

static struct PART(piece) PART(piece)(const struct PART(work) *all, int64_t index)
{
    struct PART(piece) found;
    int64_t column = index % all->blocks * WIDTH, outer = index / all->blocks / all->parts;
    found.part = index / all->blocks % all->parts;
    int64_t before = found.part * all->length, left = all->n - before;
    found.rows = left < all->length ? left : all->length;
    found.width = all->inner - column < WIDTH ? all->inner - column : WIDTH;
    int64_t row = all->reverse ? left - found.rows : before;
    found.at = (outer * all->n + row) * all->inner + column;
    found.totals = all->totals + (outer * all->parts + found.part) * all->inner + column;
    return found;
}

/* Running totals of some rows, from those given on; without `out` only what they come to. */
static void PART(columns)(const TYPE *x, RESULT *out, int64_t rows, int64_t width, int64_t step,
                          TOTAL *totals, int exclusive)
{
    static void (*const strips[])(const TYPE *, RESULT *, int64_t, int64_t, int64_t, TOTAL *, int)
        = {PART(elements1), PART(elements2), PART(elements3), PART(elements4), PART(elements5),
           PART(elements6), PART(elements7)};
    if (width < LANES) {
        strips[width - 1](x, out, rows, step, width, totals, exclusive);
        return;
    }
    /* Rows of wide blocks are taken up again strip by strip, while their pages are known. */
    int64_t tile = width > 8 * LANES ? ROWS : rows;
    for (int64_t i = 0; i < rows; i += tile) {
        int64_t some = rows - i < tile ? rows - i : tile;
        for (int64_t j = 0, taken; j < width; j += taken) {
            int64_t left = width - j;
            const TYPE *from = x + i * step + j;
            RESULT *to = out ? out + i * step + j : NULL;
            if (left == 8 * LANES || left >= 9 * LANES) {
                taken = 8 * LANES;
                PART(vectors)(from, to, some, step, taken, totals + j, exclusive);
            } else if (left == LANES || (left > 2 * LANES && left <= 3 * LANES)) {
                taken = LANES;
                PART(vector)(from, to, some, step, taken, totals + j, exclusive);
            } else {
                taken = left < 2 * LANES ? left : 2 * LANES;
                PART(pair)(from, to, some, step, taken, totals + j, exclusive);
            }
        }
    }
}

static void PART(sum)(const struct PART(work) *all, int64_t index)
{
    struct PART(piece) piece = PART(piece)(all, index);
    if (piece.part == all->parts - 1)
        return;
    if (all->inner == 1) {
        *piece.totals = PART(total)(all->x + piece.at, piece.rows);
        return;
    }
    for (int64_t j = 0; j < piece.width; j++)
        piece.totals[j] = START;
    PART(columns)(all->x + piece.at, NULL, piece.rows, piece.width, all->inner, piece.totals, 0);
}

GEON_INLINE void PART(line)(const struct PART(work) *all, int64_t at, int64_t n, TOTAL start)
{
    const TYPE *x = all->x + at;
    RESULT *out = all->out + at;
    if (all->exclusive && all->reverse)
        PART(scan)(x, out, n, start, 1, 1);
    else if (all->exclusive)
        PART(scan)(x, out, n, start, 1, 0);
    else if (all->reverse)
        PART(scan)(x, out, n, start, 0, 1);
    else
        PART(scan)(x, out, n, start, 0, 0);
}

static void PART(run)(const struct PART(work) *all, int64_t index)
{
    struct PART(piece) piece = PART(piece)(all, index);
    int64_t first = piece.at + (all->reverse ? (piece.rows - 1) * all->inner : 0);
    if (all->inner == 1) {
        PART(line)(all, piece.at, piece.rows, piece.part ? piece.totals[-1] : START);
    } else {
        TOTAL totals[WIDTH];
        for (int64_t j = 0; j < piece.width; j++)
            totals[j] = START;
        if (piece.part)
            __builtin_memcpy(totals, piece.totals - all->inner, (size_t)piece.width * sizeof *totals);
        int64_t step = all->reverse ? -all->inner : all->inner;
        PART(columns)(all->x + first, all->out + first, piece.rows, piece.width, step, totals,
                      all->exclusive);
    }
    for (int64_t j = 0; all->exclusive && piece.part == 0 && j < piece.width; j++)
        all->out[first + j] = IDENTITY;
}

static void PART(sums)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t end = (index + 1) * all->each, most = all->outer * all->parts * all->blocks;
    for (int64_t piece = index * all->each; piece < end && piece < most; piece++)
        PART(sum)(all, piece);
}

static void PART(lines)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t end = (index + 1) * all->each, n = all->n;
    for (int64_t line = index * all->each; line < end && line < all->outer; line++) {
        PART(line)(all, line * n, n, START);
        if (all->exclusive)
            all->out[line * n + (all->reverse ? n - 1 : 0)] = IDENTITY;
    }
}

static void PART(short_lines)(void *argument, int64_t index)
{
    static void (*const lines[])(const TYPE *, RESULT *, int64_t, int, int)
        = {PART(lines2), PART(lines3), PART(lines4), PART(lines5), PART(lines6), PART(lines7)};
    const struct PART(work) *all = argument;
    int64_t first = index * all->each, left = all->outer - first, n = all->n;
    lines[n - 2](all->x + first * n, all->out + first * n, left < all->each ? left : all->each,
                 all->exclusive, all->reverse);
}

/* Lines of which some are side by side, with those of the next outer index after them. */
static void PART(wide_lines)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t line = index * all->each, end = line + all->each, width = all->inner;
    int64_t last = (all->n - 1) * width, step = all->reverse ? -width : width;
    for (; line < end && line < all->outer; line++) {
        int64_t at = line * all->n * width + (all->reverse ? last : 0);
        TOTAL totals[WIDTH];
        for (int64_t j = 0; j < width; j++)
            totals[j] = START;
        PART(columns)(all->x + at, all->out + at, all->n, width, step, totals, all->exclusive);
        for (int64_t j = 0; all->exclusive && j < width; j++)
            all->out[at + j] = IDENTITY;
    }
}

static void PART(runs)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t end = (index + 1) * all->each, most = all->outer * all->parts * all->blocks;
    for (int64_t piece = index * all->each; piece < end && piece < most; piece++)
        PART(run)(all, piece);
}

void NAME(int32_t threads, const TYPE *x, RESULT *out, char *scratch, int64_t outer, int64_t n,
          int64_t inner, int exclusive, int reverse)
{
    int64_t blocks = (inner + WIDTH - 1) / WIDTH, width = inner < WIDTH ? inner : WIDTH;
    if (outer == 0 || n == 0 || inner == 0)
        return;
    int64_t length = PIECE / width < LEAST_ROWS ? LEAST_ROWS : PIECE / width;
    if (!REORDERS || outer * blocks >= FEW_LINES || n < FEW_PIECES * length)
        length = n;
    int64_t parts = (n + length - 1) / length, each = 1 + GRAIN / (length * width);
    int64_t tasks = (outer * parts * blocks + each - 1) / each;
    struct PART(work) all = {x, out, (TOTAL *)scratch, outer, n, inner, blocks, length, parts, each,
                             exclusive, reverse};
    if (parts > 1) {
        geon_pool_run(PART(sums), &all, tasks, threads);
        for (int64_t i = 0; i < outer; i++)
            for (int64_t j = inner; j < (parts - 1) * inner; j++) {
                TOTAL *total = all.totals + i * parts * inner + j;
                *total = COMBINE(total[-inner], *total);
            }
    }
    void (*task)(void *, int64_t) = PART(runs);
    if (parts == 1 && inner == 1)
        task = n >= 2 && n <= 7 ? PART(short_lines) : PART(lines);
    else if (parts == 1 && blocks == 1)
        task = PART(wide_lines);
    geon_pool_run(task, &all, tasks, threads);
}
