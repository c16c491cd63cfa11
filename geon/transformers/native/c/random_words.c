/* Generate consecutive words of Philox 4x32-10, a multiple of 64: 16 counters at once fill vectors,
   and the four words of a counter are consecutive. */
#include "random_words.h"

void NAME(uint32_t *words, int64_t count, uint32_t counter, uint64_t seed, uint64_t draw,
          uint64_t call)
{
    for (int64_t i = 0; i < count; i += 64) {
        uint64_t pairs[32];
        for (uint32_t lane = 0; lane < 16; lane++) {
            uint64_t low, high;
            geon_philox(counter + (uint32_t)(i / 4) + lane, seed, draw, call, &low, &high);
            pairs[2 * lane] = low;
            pairs[2 * lane + 1] = high;
        }
        memcpy(words + i, pairs, sizeof pairs);
    }
}
