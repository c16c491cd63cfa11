/* Overlapping windows that tiles read in place: the start of each row, in the operand or in a band. */

/* The indices of loops, row-major, at the flat one. */
GEON_INLINE void geon_indices(int64_t *at, const int64_t *extents, int64_t loops, int64_t flat)
{
    for (int64_t d = loops - 1; d > 0; --d) {
        at[d] = flat % extents[d];
        flat /= extents[d];
    }
    if (loops > 0)
        at[0] = flat;
}

/* From the end of one run of the last loop to the next. */
GEON_INLINE void geon_carry(int64_t *at, const int64_t *extents, int64_t loops)
{
    for (int64_t d = loops - 1; d > 0 && at[d] == extents[d]; --d) {
        at[d] = 0;
        ++at[d - 1];
    }
}

GEON_INLINE int64_t geon_offset(const int64_t *at, const int64_t *strides, int64_t loops)
{
    int64_t offset = 0;
    for (int64_t d = 0; d < loops; ++d)
        offset += at[d] * strides[d];
    return offset;
}

/* Whether all guards of a plane hold: of each its bounds, its constant and a term for each index. */
static QUICK int geon_are_inside(const struct geon_band *band, const int64_t *at, int64_t indices)
{
    const int64_t *guard = band->guard;
    for (int64_t g = 0; g < band->guards; ++g, guard += 3 + indices) {
        const int64_t place = guard[2] + geon_offset(at, guard + 3, indices);
        if (place < guard[0] || place >= guard[1])
            return 0;
    }
    return 1;
}

/* How many positions from a row's first one on are below a bound of those of the first row. */
GEON_INLINE int64_t geon_until(const struct geon_inside *inside, int64_t bound, int64_t row)
{
    if (bound == INT64_MAX)
        return bound;
    const int64_t rest = bound - row * inside->step;
    return inside->apart == 1 ? rest : (rest + inside->apart - 1) / inside->apart;
}

/* The lines of a band that the last run of rows has, the memory behind, and that run's first index. */
struct geon_lines {
    TYPE *place, *unused;
    int64_t before;
};

/* One line of a band, plane by plane; `at` has room for the indices of planes. */
static QUICK void geon_show_planes(
    const struct TAG(geon_view) *view, int64_t *at, const TYPE *from, int64_t wide, int64_t begin,
    int64_t end, TYPE *to)
{
    const struct geon_band *band = view->band;
    const int64_t loops = view->batches + view->loops, apart = band->line / band->count;
    for (int64_t plane = 0; plane < band->count; ++plane, to += apart) {
        geon_indices(at + loops, band->plane_extents, band->planes, plane);
        TAG(geon_line)(to, from, geon_offset(at + loops, band->plane_strides, band->planes),
                       band->far, band->each, wide, begin,
                       geon_are_inside(band, at, loops + band->planes) ? end : 0);
    }
}

/* The lines that `run` rows show which adjoin, but for those that the run above had: their place. */
static QUICK TYPE *geon_show_run(
    const struct TAG(geon_view) *view, int64_t *at, const TYPE *from, int64_t run,
    struct geon_lines *made)
{
    const struct geon_band *band = view->band;
    const int64_t row = at[view->batches + view->loops - 1], line = band->line;
    const int64_t down = band->down_step ? at[band->down] : 0;
    const int below = made->before == 0 && down > 0 && band->down_step < band->height;
    const int64_t begin = geon_until(&band->across, band->across.low, row);
    const int64_t end = geon_until(&band->across, band->across.high, row);
    const int64_t wide = (run - 1) * band->step + band->span;
    TYPE *place = below ? made->place + band->down_step * line : made->unused, *to = place;
    int64_t deep = 0;
    if (below) {
        deep = band->height - band->down_step;
        to += deep * line;
        from += deep * band->down_far;
    }
    for (; deep < band->height; ++deep, to += line, from += band->down_far) {
        const int64_t position = down * band->down_step + deep;
        const int is_inside = !band->down_step
            || (position >= band->below.low && position < band->below.high);
        if (band->planes || band->guards)
            geon_show_planes(view, at, from, wide, begin, is_inside ? end : 0, to);
        else
            TAG(geon_line)(to, from, 0, band->far, band->each, wide, begin, is_inside ? end : 0);
    }
    *made = (struct geon_lines){place, place + band->height * line, row};
    return place;
}

/* Places of some rows, `step` elements apart. */
#define PLACES (VECTOR * TYPE_BYTES / (int64_t)sizeof(int64_t))
typedef int64_t geon_some_places __attribute__((
    vector_size(VECTOR * TYPE_BYTES), aligned(sizeof(int64_t)), may_alias));
static QUICK void geon_fill_places(const TYPE **rows, const TYPE *place, int64_t step, int64_t count)
{
    const int64_t bytes = step * TYPE_BYTES;
    geon_some_places some = {0};
    int64_t e = 0;
    for (int64_t lane = 0; lane < PLACES; ++lane)
        some[lane] = (int64_t)(intptr_t)place + lane * bytes;
    for (; e + PLACES <= count; e += PLACES, some += PLACES * bytes)
        *(geon_some_places *)(rows + e) = some;
    for (; e < count; ++e)
        rows[e] = place + e * step;
}

QUICK void TAG(geon_places)(
    const struct TAG(geon_view) *view, int64_t batch, int64_t row_start, int64_t count, TYPE *to,
    const TYPE **rows)
{
    if (count <= 0)
        return; /* of none there may be loops without a turn */
    const struct geon_band *band = view->band;
    const int64_t batches = view->batches, loops = batches + view->loops, last = loops - 1;
    const int64_t *extents = view->extents;
    const int64_t step = band ? band->step * band->each : view->strides[last];
    int64_t at[loops + (band ? band->planes : 0)];
    struct geon_lines made = {to, to, 1};
    geon_indices(at, extents, batches, batch);
    geon_indices(at + batches, extents + batches, view->loops, row_start);
    for (int64_t done = 0, run; done < count; done += run) {
        const TYPE *place = view->from + geon_offset(at, view->strides, loops);
        run = LEAST(extents[last] - at[last], count - done);
        if (band)
            place = geon_show_run(view, at, place, run, &made);
        geon_fill_places(rows + done, place, step, run);
        at[last] += run;
        geon_carry(at + batches, extents + batches, view->loops);
    }
}
