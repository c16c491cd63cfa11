/* Lines sorted by keys: a short one by a block in shared memory, longer ones by the digits of keys,
   the lowest first, in tiles of a block each. Equal keys stay as they lie. */
enum { GEON_SORTERS = 256, GEON_SORTED_TILE = 2048, GEON_SORTED_LINE = 1024, GEON_SORTED_CHUNK = 32 };
enum { GEON_SORTER_WARPS = GEON_SORTERS / 32, GEON_SORTER_ROUNDS = GEON_SORTED_TILE / GEON_SORTERS };

/* How many of the keys from `low` to `high`, which ascend, come before `mine`, or are equal to it
   where those come before. */
template <class K>
GEON_INLINE int geon_keys_before(const K *keys, int low, int high, K mine, bool equal_too)
{
    const int first = low;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (keys[middle] < mine || (equal_too && keys[middle] == mine))
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

/* Calls back with each place of a line of `n` elements, and the position of the element that comes
   there. Chunks are put in order by comparing all with all, then merged. */
template <class K, class Key, class Store>
GEON_INLINE void geon_sort_line(int n, Key key, Store store)
{
    __shared__ K keys[2][GEON_SORTED_LINE];
    __shared__ uint16_t positions[2][GEON_SORTED_LINE];
    for (int k = threadIdx.x; k < n; k += GEON_SORTERS)
        keys[1][k] = key(k);
    __syncthreads();
    for (int k = threadIdx.x; k < n; k += GEON_SORTERS) {
        const int start = k / GEON_SORTED_CHUNK * GEON_SORTED_CHUNK;
        const K mine = keys[1][k];
        int place = start;
        for (int other = start; other < start + GEON_SORTED_CHUNK && other < n; other++)
            place += keys[1][other] < mine || (keys[1][other] == mine && other < k);
        keys[0][place] = mine;
        positions[0][place] = (uint16_t)k;
    }
    __syncthreads();
    int from = 0;
    for (int width = GEON_SORTED_CHUNK; width < n; width *= 2, from = 1 - from) {
        for (int k = threadIdx.x; k < n; k += GEON_SORTERS) {
            const int start = k / (2 * width) * (2 * width);
            const int middle = start + width < n ? start + width : n;
            const int end = start + 2 * width < n ? start + 2 * width : n;
            const K mine = keys[from][k];
            const int before = k < middle ? geon_keys_before(keys[from], middle, end, mine, false)
                                          : geon_keys_before(keys[from], start, middle, mine, true);
            const int place = (k < middle ? k : start + k - middle) + before;
            keys[1 - from][place] = mine;
            positions[1 - from][place] = positions[from][k];
        }
        __syncthreads();
    }
    for (int k = threadIdx.x; k < n; k += GEON_SORTERS)
        store(k, positions[from][k]);
}

/* How many keys of a tile have each digit, `down` bits above the lowest. */
template <class Key>
GEON_INLINE void geon_count_digits(int64_t n, int64_t tile, int down, uint32_t *counts,
                                   int64_t tiles, Key key)
{
    __shared__ uint32_t found[GEON_SORTERS];
    found[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < GEON_SORTED_TILE; k += GEON_SORTERS) {
        const int64_t place = tile * GEON_SORTED_TILE + k;
        if (place < n)
            atomicAdd(&found[key(place) >> down & 255], 1u);
    }
    __syncthreads();
    counts[threadIdx.x * tiles + tile] = found[threadIdx.x];
}

/* The sum of the values of a block's threads up to this one; `held` has them all in the end. */
GEON_INLINE uint32_t geon_sum_so_far(uint32_t mine, uint32_t *held)
{
    held[threadIdx.x] = mine;
    __syncthreads();
    for (int apart = 1; apart < GEON_SORTERS; apart *= 2) {
        if ((int)threadIdx.x >= apart)
            mine += held[threadIdx.x - apart];
        __syncthreads();
        held[threadIdx.x] = mine;
        __syncthreads();
    }
    return mine;
}

/* The counts of a digit by tile become those of the tiles before; `total` is that of all. */
GEON_INLINE void geon_sum_counts(uint32_t *counts, int64_t tiles, uint32_t *total)
{
    __shared__ uint32_t held[GEON_SORTERS];
    uint32_t before = 0;
    for (int64_t first = 0; first < tiles; first += GEON_SORTERS) {
        const int64_t at = first + threadIdx.x;
        const uint32_t mine = at < tiles ? counts[at] : 0;
        const uint32_t sum = geon_sum_so_far(mine, held);
        if (at < tiles)
            counts[at] = before + sum - mine;
        before += held[GEON_SORTERS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *total = before;
}

/* The elements of a tile moved to where their digit's are. A warp has neighbouring elements, 32 at a
   time, so that equal digits stay in their order. */
template <class K, class Key, class Position>
GEON_INLINE void geon_move_by_digit(int64_t n, int64_t tile, int down, const uint32_t *counts,
                                    int64_t tiles, const uint32_t *totals, Key key,
                                    Position position, K *keys, uint32_t *positions)
{
    __shared__ uint32_t found[GEON_SORTER_WARPS][GEON_SORTERS], held[GEON_SORTERS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t first =
        tile * GEON_SORTED_TILE + warp * (32 * GEON_SORTER_ROUNDS) + lane;
    K own[GEON_SORTER_ROUNDS];
    uint32_t rank[GEON_SORTER_ROUNDS];
#pragma unroll
    for (int k = 0; k < GEON_SORTER_WARPS; k++)
        found[k][threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GEON_SORTER_ROUNDS; k++) {
        const bool inside = first + 32 * k < n;
        own[k] = inside ? key(first + 32 * k) : (K)0;
        const unsigned digit = inside ? (unsigned)(own[k] >> down & 255) : 256;
        const unsigned same = __match_any_sync(0xffffffffu, digit);
        const uint32_t before = inside ? found[warp][digit] : 0;
        rank[k] = before + __popc(same & ((1u << lane) - 1));
        __syncwarp(0xffffffffu);
        if (inside && lane == 31 - __clz((int)same))
            found[warp][digit] = before + __popc(same);
        __syncwarp(0xffffffffu);
    }
    const uint32_t total = totals[threadIdx.x];
    uint32_t start = geon_sum_so_far(total, held) - total + counts[threadIdx.x * tiles + tile];
#pragma unroll
    for (int k = 0; k < GEON_SORTER_WARPS; k++) {
        const uint32_t count = found[k][threadIdx.x];
        found[k][threadIdx.x] = start;
        start += count;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GEON_SORTER_ROUNDS; k++) {
        if (first + 32 * k >= n)
            continue;
        const uint32_t to = found[warp][own[k] >> down & 255] + rank[k];
        keys[to] = own[k];
        positions[to] = position(first + 32 * k);
    }
}
