/* Register tiles: HIGH and LOW rows, one and two vectors wide. Rows lie ALONG lines of memory, or
   BESIDE each other, ROWS of them for each summed index. */
#define ALONG(along, beside) along
#define BESIDE(along, beside) beside

#define TILE_POINT(i, ...) at[i] = left + 3 * i * LEFT(line, 1);
#define TILE_ADVANCE(i, by) at[i] += by * LEFT(1, ROWS);
#define TILE_ROW(r, each) AGAIN(WIDTH, each, r)
#define TILE_OUT(c, r) *(geon_vector *)(out + r * out_step + c * VECTOR)
#define TILE_NEAR(c, r) __builtin_prefetch(out + r * out_step + c * VECTOR, 1);
#define TILE_CLEAR(c, r) geon_vector sum_##r##_##c = {0};
#define TILE_ADD(c, r) TILE_OUT(c, r) += sum_##r##_##c;
#define TILE_STORE(c, r) TILE_OUT(c, r) = sum_##r##_##c;
#define TILE_LOAD(c, k)                                                                           \
    geon_vector b_##c = *(const geon_vector *)(right + k * step + c * VECTOR);
#define TILE_HOLD(c, ...) HOLD(b_##c);
#define TILE_MULTIPLY(r, k)                                                                       \
    {                                                                                             \
        const TYPE x = at[r / 3][r % 3 * LEFT(line, 1) + k * LEFT(1, ROWS)];                      \
        const geon_vector a = SPLAT(x);                                                           \
        AGAIN(WIDTH, TILE_FMA, r)                                                                 \
        USED(a);                                                                                  \
    }
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

