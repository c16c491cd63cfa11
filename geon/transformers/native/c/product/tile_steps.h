/* Steps of register tiles: HIGH or LOW rows, one or two vectors wide. Rows are contiguous ALONG
   summed indices, or BESIDE each other: ROWS contiguous elements for each summed index. */
#define ALONG(along, beside) along
#define BESIDE(along, beside) beside

/* What a tile knows is read from memory for each: a compiler would hold multiples of all steps in the
   registers that its loop needs. */
#define AFRESH __asm__ volatile("" : : : "memory")
#define TILE_POINT(i, ...) at[i] = left + 3 * i * LEFT(line, 1);
#define TILE_ADVANCE(i, by) at[i] += by * LEFT(1, ROWS);
#define TILE_ROW(r, each) AGAIN(WIDTH, each, r)
#define TILE_OUT(c, r) *(geon_vector *)(to + r * to_step + c * VECTOR)
#define TILE_NEAR(c, r) __builtin_prefetch(out + r * out_step + c * VECTOR, 1);
#define TILE_CLEAR(c, r) geon_vector sum_##r##_##c = {0};
#define TILE_ADD(c, r) TILE_OUT(c, r) += sum_##r##_##c;
#define TILE_STORE(c, r) TILE_OUT(c, r) = sum_##r##_##c;
/* Places of the result are found when sums are there: a compiler that knew them before would compute
   all of them, for both ways, ahead of the loop and put them into memory. */
#define TILE_PUT                                                                                  \
    {                                                                                             \
        TYPE *to = out;                                                                           \
        int64_t to_step = out_step;                                                               \
        __asm__("" : "+r"(to), "+r"(to_step));                                                    \
        if (accumulate) {                                                                         \
            REPEAT(ROWS, TILE_ROW, TILE_ADD)                                                      \
        } else {                                                                                  \
            REPEAT(ROWS, TILE_ROW, TILE_STORE)                                                    \
        }                                                                                         \
    }
#define TILE_LOAD(c, k)                                                                           \
    geon_vector b_##c = *(const geon_vector *)(right + k * step + c * VECTOR);
#define TILE_HOLD(c, ...) HOLD(b_##c);
#define TILE_MULTIPLY(r, k)                                                                       \
    {                                                                                             \
        const TYPE x = at[r / 3][r % 3 * LEFT(line, 1) + k * LEFT(1, ROWS)];                      \
        const geon_vector a = SPLAT(x);                                                           \
        AGAIN(WIDTH, TILE_FMA, r)                                                                 \
        TILE_SHARED(WIDTH, a);                                                                    \
    }
/* An element that several vectors are multiplied by is repeated in a register; for one alone the
   multiplication repeats it, where the processor has such ones, which takes no time. */
#define TILE_SHARED(width, a) TILE_SHARED_BY(width, a)
#define TILE_SHARED_BY(width, a) TILE_SHARED_##width(a)
#define TILE_SHARED_1(a) ((void)0)
#define TILE_SHARED_2(a) USED(a)
#define TILE_SHARED_3(a) USED(a)
#define TILE_FMA(c, r) sum_##r##_##c = VECTOR_FMA(a, b_##c, sum_##r##_##c);
#define TILE_USED(c, ...) USED(b_##c);
#define TILE_STEP(u)                                                                              \
    __builtin_prefetch(next + u * LEFT(64 / TYPE_BYTES, next_step));                              \
    {                                                                                             \
        REPEAT(WIDTH, TILE_LOAD, u)                                                               \
        REPEAT(WIDTH, TILE_HOLD)                                                                  \
        REPEAT(ROWS, TILE_MULTIPLY, u)                                                            \
        REPEAT(WIDTH, TILE_USED)                                                                  \
    }

