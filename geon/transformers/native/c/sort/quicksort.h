/* Vectorised quicksort of contiguous words: partition at pivots, down to runs that are sorted in
   registers. With a limit k only the least k words are in order. */
#include "sort/blocks.h"
#include "sort/compress.h"
#define LONGEST_BLOCK (16 * LANES)
#define SAMPLES (4 * LANES)

/* Parts n words at a pivot: those up to it to `low`, those above to `high`, of which one may begin
   where `from` does. How many are up to it. A vector is loaded whole before as much is stored. */
static int64_t PART(parted)(const WORD *from, int64_t n, WORD *low, WORD *high, WORD pivot)
{
    const PART(vector) limit = pivot - (PART(vector)){0};
    int64_t i = 0;
    WORD *start = low;
    for (; i + LANES <= n; i += LANES) {
        PART(vector) x = *(const PART(vector) *)(from + i);
        PART(mask) above = ABOVE(x, limit);
        *(PART(vector) *)low = PRESSED(x, (PART(mask))~above);
        *(PART(vector) *)high = PRESSED(x, above);
        int64_t count = __builtin_popcount(above);
        high += count;
        low += LANES - count;
    }
    for (; i < n; i++) {
        WORD word = from[i];
        *low = word;
        low += word <= pivot;
        *high = word;
        high += word > pivot;
    }
    return low - start;
}

/* A word that about k of n others are up to, or half of them where more are asked for. */
static WORD PART(pivot)(const WORD *from, int64_t n, int64_t k)
{
    WORD some[SAMPLES];
    int64_t step = n / SAMPLES;
    for (int64_t i = 0; i < SAMPLES; i++)
        some[i] = from[i * step + step / 2];
    PART(block)(some, some, SAMPLES);
    int64_t place = k < n / 2 ? SAMPLES * k / n + SAMPLES / 16 : SAMPLES / 2;
    return some[place < SAMPLES / 2 ? place : SAMPLES / 2];
}

/* Sorts n words that lie in `to`, or in `other` of as much memory, into `to`. What is above a pivot
   goes to the other memory, where it leaves room for what is not. Where pivots are bad `turns` come
   to an end, and digits sort what is left. */
static void PART(quick)(WORD *to, WORD *other, int64_t n, int64_t k, int is_other, int turns)
{
    const WORD *from = is_other ? other : to;
    if (n <= LONGEST_BLOCK) {
        PART(block)(from, to, n);
        return;
    }
    if (turns == 0) {
        if (PART(digits)(is_other ? other : to, is_other ? to : other, n) != to)
            __builtin_memcpy(to, other, (size_t)n * sizeof(WORD));
        return;
    }
    WORD pivot = PART(pivot)(from, n, k);
    int64_t low = PART(parted)(from, n, to, other, pivot);
    if (low == n) { /* it is the largest: all that equal it have their places */
        low = pivot > 0 ? PART(parted)(to, n, to, other, pivot - 1) : 0;
        for (int64_t i = low; i < n; i++)
            to[i] = pivot;
    } else if (low < k) {
        PART(quick)(to + low, other, n - low, k - low, 1, turns - 1);
    }
    if (low > 0)
        PART(quick)(to, other + (n - low), low, k < low ? k : low, 0, turns - 1);
}
