/* Bits of Philox 4x32-10. 16 counters at once fill vectors; the four words of a counter are
   neighbours in the result. A uint64 is two words, the low one first, as little-endian machines hold
   it. */
#include "random_bits.h"

struct PART(work) {
    TYPE *out;
    int64_t words;
    uint32_t key[2], draw, call;
};

static void PART(sixteen)(const struct PART(work) *all, uint32_t counter, uint32_t *words)
{
    for (uint32_t lane = 0; lane < 16; lane++) {
        uint32_t a = counter + lane, b = 0, c = all->draw, d = all->call;
        uint32_t k0 = all->key[0], k1 = all->key[1];
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
            uint64_t left = (uint64_t)a * 0xD2511F53u, right = (uint64_t)c * 0xCD9E8D57u;
            a = (uint32_t)(right >> 32) ^ b ^ k0;
            b = (uint32_t)right;
            c = (uint32_t)(left >> 32) ^ d ^ k1;
            d = (uint32_t)left;
        }
        words[4 * lane] = a;
        words[4 * lane + 1] = b;
        words[4 * lane + 2] = c;
        words[4 * lane + 3] = d;
    }
}

static void PART(task)(void *argument, int64_t index)
{
    const struct PART(work) *all = argument;
    int64_t start = index * GRAIN, end = start + GRAIN;
    uint32_t words[64];
    end = end < all->words ? end : all->words;
    for (int64_t i = start; i < end; i += 64) {
        int64_t count = end - i < 64 ? end - i : 64;
        PART(sixteen)(all, (uint32_t)(i / 4), words);
        __builtin_memcpy((char *)all->out + i * 4, words, (size_t)count * 4);
    }
}

void NAME(int32_t threads, TYPE *out, int64_t count, uint64_t seed, uint64_t draw,
          const uint64_t *calls)
{
    struct PART(work) all = {
        out, count * (int64_t)(sizeof *out / 4), {(uint32_t)seed, (uint32_t)(seed >> 32)},
        (uint32_t)draw, (uint32_t)*calls};
    geon_pool_run(PART(task), &all, (all.words + GRAIN - 1) / GRAIN, threads);
}
