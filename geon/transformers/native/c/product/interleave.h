/* Deinterleave and interleave contiguous lines of FEW elements, a vector of lines at a time. */
#define FEW_NAME(direction, few) FEW_JOINED(direction, few)
#define FEW_JOINED(direction, few) geon_##direction##_##few
static QUICK void FEW_NAME(apart, FEW)(
    TYPE *restrict to, int64_t step, const TYPE *restrict from, int64_t count)
{
    for (; count >= VECTOR; count -= VECTOR, to += VECTOR, from += FEW * VECTOR) {
        REPEAT(FEW, APART_LOAD)
        REPEAT(FEW, APART_STORE)
    }
}

static QUICK void FEW_NAME(together, FEW)(
    TYPE *restrict to, const TYPE *restrict from, int64_t step, int64_t count)
{
    for (; count >= VECTOR; count -= VECTOR, to += FEW * VECTOR, from += VECTOR) {
        REPEAT(FEW, TOGETHER_LOAD)
        REPEAT(FEW, TOGETHER_STORE)
    }
}
#undef FEW_NAME
#undef FEW_JOINED
#undef FEW
