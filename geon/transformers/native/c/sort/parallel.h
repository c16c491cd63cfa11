/* Sort one long line on all threads. Each thread partitions a chunk of it at the same pivots into
   pieces. The parts of each piece are then gathered, and pieces are sorted independently. Words are
   distinct or indistinguishable, so the result does not depend on the pieces. */
#define MOST_CHUNKS 32
#define MOST_PIECES 128
#define SAMPLES_OF_PIECE 16

struct PART(shared) {
    const TYPE *x;
    RESULT *out;
    WORD *words, *other;
    int64_t n, inner, k, chunks, pieces;
    WORD pivots[MOST_PIECES];
    int64_t counts[MOST_CHUNKS][MOST_PIECES], starts[MOST_PIECES + 1];
    int is_signed[MOST_CHUNKS];
};

GEON_INLINE int64_t PART(chunk_start)(const struct PART(shared) *all, int64_t chunk)
{
    return all->n / all->chunks * chunk + (all->n % all->chunks) * chunk / all->chunks;
}

/* Parts words into pieces `first` up to `last`, which follow each other in `to`. */
static void PART(split)(const struct PART(shared) *all, WORD *to, WORD *other, int64_t n,
                        int is_other, int64_t first, int64_t last, int64_t *counts)
{
    if (last - first == 1) {
        counts[first] = n;
        if (is_other)
            __builtin_memcpy(to, other, (size_t)n * sizeof(WORD));
        return;
    }
    int64_t middle = (first + last) / 2;
    const WORD *from = is_other ? other : to;
    int64_t low = PART(parted)(from, n, to, other, all->pivots[middle]);
    PART(split)(all, to + low, other, n - low, 1, middle, last, counts);
    PART(split)(all, to, other + (n - low), low, 0, first, middle, counts);
}

static void PART(split_task)(void *argument, int64_t chunk)
{
    struct PART(shared) *all = argument;
    int64_t start = PART(chunk_start)(all, chunk), end = PART(chunk_start)(all, chunk + 1);
    PART(words_of)(all->x, start, end, all->inner, all->words);
#if SIGNS
    all->is_signed[chunk] = PART(has_signs)(all->x, start, end, all->inner);
#endif
    PART(split)(all, all->words + start, all->other + start, end - start, 0, 0, all->pieces,
                all->counts[chunk]);
}

static void PART(join_task)(void *argument, int64_t piece)
{
    struct PART(shared) *all = argument;
    WORD *to = all->other + all->starts[piece];
    for (int64_t chunk = 0; chunk < all->chunks; chunk++) {
        const WORD *from = all->words + PART(chunk_start)(all, chunk);
        for (int64_t before = 0; before < piece; before++)
            from += all->counts[chunk][before];
        int64_t count = all->counts[chunk][piece];
        __builtin_memcpy(to, from, (size_t)count * sizeof(WORD));
        to += count;
    }
}

static void PART(piece_task)(void *argument, int64_t piece)
{
    struct PART(shared) *all = argument;
    int64_t start = all->starts[piece], n = all->starts[piece + 1] - start, k = all->k - start;
    if (n == 0 || k <= 0)
        return;
    k = k < n ? k : n;
    WORD *words = all->words + start;
    PART(quick)(words, all->other + start, n, k, 1, 2 * (64 - __builtin_clzll((uint64_t)n)));
    PART(put_found)(words, k, all->inner, all->out + start * all->inner);
}

/* Sorts a line; 0 where it has zeros with signs, which one thread puts back. */
static int PART(shared)(int32_t threads, const TYPE *x, RESULT *out, WORD *words, int64_t n,
                        int64_t inner, int64_t k)
{
    struct PART(shared) all = {.x = x, .out = out, .words = words, .other = words + n, .n = n,
                               .inner = inner, .k = k, .pieces = 2};
    all.chunks = 2 * threads < MOST_CHUNKS ? 2 * threads : MOST_CHUNKS;
    while (all.pieces < 4 * threads && all.pieces < MOST_PIECES)
        all.pieces *= 2;
    int64_t samples = all.pieces * SAMPLES_OF_PIECE, step = n / samples;
    for (int64_t i = 0; i < samples; i++)
        words[i] = WORD_OF(x[(i * step + step / 2) * inner], i * step + step / 2);
    WORD *sorted = PART(words)(words, words + n, samples, samples);
    for (int64_t piece = 1; piece < all.pieces; piece++)
        all.pivots[piece] = sorted[piece * SAMPLES_OF_PIECE];
    geon_pool_run(PART(split_task), &all, all.chunks, threads);
    for (int64_t chunk = 0; chunk < all.chunks; chunk++)
        if (all.is_signed[chunk])
            return 0;
    for (int64_t piece = 0; piece < all.pieces; piece++) {
        all.starts[piece + 1] = all.starts[piece];
        for (int64_t chunk = 0; chunk < all.chunks; chunk++)
            all.starts[piece + 1] += all.counts[chunk][piece];
    }
    geon_pool_run(PART(join_task), &all, all.pieces, threads);
    geon_pool_run(PART(piece_task), &all, all.pieces, threads);
    return 1;
}
