/* to[c * each + k] = from[c] for k < each: broadcast vectors of one element each; the next ones
   overwrite the excess lanes. There must be room for a vector behind the last element. */
#include "move/has_shuffle.h"
typedef TYPE PART(same) __attribute__((vector_size(32), aligned(BYTES), may_alias));

static __attribute__((unused)) void PART(spread)(const void *source, void *target, int64_t each,
                                                 int64_t count)
{
    typedef TYPE element __attribute__((may_alias));
    const element *from = source;
    const int64_t lanes = 32 / BYTES;
#if HAS_PICK
    if (PART(few_rows)(from, 0, target, each, count))
        return;
#endif
    for (int64_t c = 0; c < count; c++) {
        element *own = (element *)target + c * each;
        const PART(same) value = from[c] - (PART(same)){0};
        for (int64_t k = 0; k < each; k += lanes)
            *(PART(same) *)(own + k) = value;
    }
}
