/* Words of random bits from position `first` to before `end`, of one draw in one call. Loops along
   a draw read consecutive words, and 64 at once cost little more than one. */
struct geon_words {
    int64_t first, end;
    uint32_t words[RUN + 64];
};
__attribute__((visibility("hidden"))) void NAME(
    uint32_t *words, int64_t count, uint32_t counter, uint64_t seed, uint64_t draw, uint64_t call);
/* Where the words from `first` to before `stop` lie, no more than RUN. Where they are made, so are
   those after them that lie before `end`, as far as there is room. */
GEON_INLINE const void *geon_words_at(struct geon_words *held, int64_t first, int64_t stop,
                                      int64_t end, uint64_t seed, uint64_t draw, uint64_t call)
{
    if (first < held->first || stop > held->end) {
        const int64_t begin = first - first % 4;
        const int64_t room = end < begin + RUN ? end : begin + RUN, last = room > stop ? room : stop;
        const int64_t count = (last - begin + 63) / 64 * 64;
        NAME(held->words, count, (uint32_t)(begin / 4), seed, draw, call);
        held->first = begin;
        held->end = begin + count;
    }
    return held->words + (first - held->first);
}
