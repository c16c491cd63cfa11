/* Products by tensor cores: what the threads of a warp hold of tiles in shared memory, multiplied.
   Sums are float32. A thread has rows g, g + 8, g + 16, ... and columns 2t, 2t + 1, 2t + 8,
   2t + 9, ... of the part of its warp, where g is its number divided by 4 and t the rest. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "products by tensor cores need a device of compute capability 8.0 or more"
#endif

#ifndef GEON_HOST
GEON_INLINE void geon_load_matrices(uint32_t (&held)[4], const uint16_t *line)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(line);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(held[0]), "=r"(held[1]), "=r"(held[2]), "=r"(held[3])
                 : "r"(place)
                 : "memory");
}

GEON_INLINE void geon_load_matrices_turned(uint32_t (&held)[4], const uint16_t *line)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(line);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(held[0]), "=r"(held[1]), "=r"(held[2]), "=r"(held[3])
                 : "r"(place)
                 : "memory");
}

#define GEON_MMA(SHAPE)                                                                            \
    asm volatile("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "       \
                 "{%0, %1, %2, %3};"                                                               \
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(d)                                              \
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),          \
                   "r"(right[1]))
#endif

/* Four sums of a thread: those of a row and the row 8 below, in two columns. */
#define GEON_SUMS float &a, float &b, float &c, float &d

struct geon_float16 {
    /* Two values rounded, the first one in the lower half. */
    GEON_INLINE uint32_t pack(float low, float high)
    {
#ifdef GEON_HOST
        return geon_host_half(low) | geon_host_half(high) << 16;
#else
        uint32_t found;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(found) : "f"(high), "f"(low));
        return found;
#endif
    }
    GEON_INLINE void multiply(GEON_SUMS, const uint32_t *left, const uint32_t *right)
    {
#ifdef GEON_HOST
        geon_host_mma(false, a, b, c, d, left, right);
#else
        GEON_MMA("m16n8k16.row.col.f32.f16.f16.f32");
#endif
    }
};

struct geon_bfloat16 {
    GEON_INLINE uint32_t pack(float low, float high)
    {
#ifdef GEON_HOST
        return geon_host_brain(low) | geon_host_brain(high) << 16;
#else
        uint32_t found;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(found) : "f"(high), "f"(low));
        return found;
#endif
    }
    GEON_INLINE void multiply(GEON_SUMS, const uint32_t *left, const uint32_t *right)
    {
#ifdef GEON_HOST
        geon_host_mma(true, a, b, c, d, left, right);
#else
        GEON_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
#endif
    }
};

/* What a thread holds of an operand: of 16 lines from `line` on, and 16 elements of each from
   `deep` on. A tile has a row for each line, or, TURNED, a row for each index that is summed. */
template <bool TURNED, int WIDTH>
GEON_INLINE void geon_hold_left(uint32_t (&held)[4], const uint16_t (*tile)[WIDTH], int line,
                                int deep)
{
    const int lane = threadIdx.x % 32, low = lane % 16, high = lane / 16 * 8;
    if (TURNED)
        geon_load_matrices_turned(held, &tile[deep + lane % 8 + high][line + low / 8 * 8]);
    else
        geon_load_matrices(held, &tile[line + low][deep + high]);
}

template <bool TURNED, int WIDTH>
GEON_INLINE void geon_hold_right(uint32_t (&held)[4], const uint16_t (*tile)[WIDTH], int line,
                                 int deep)
{
    const int lane = threadIdx.x % 32, low = lane % 16, high = lane / 16 * 8;
    if (TURNED)
        geon_load_matrices_turned(held, &tile[deep + low][line + high]);
    else
        geon_load_matrices(held, &tile[line + lane % 8 + high][deep + low / 8 * 8]);
}

/* The products of two tiles, of which a warp has the rows from `row` and the columns from `column`
   on, added to the sums of its threads. */
template <class KIND, int DEPTH, bool LEFT_TURNED, bool RIGHT_TURNED, int HIGH, int WIDE, int LEFT,
          int RIGHT>
GEON_INLINE void geon_multiply_matrices(const uint16_t (*left_tile)[LEFT],
                                        const uint16_t (*right_tile)[RIGHT],
                                        float (&sums)[HIGH][WIDE], int row, int column)
{
#pragma unroll
    for (int deep = 0; deep < DEPTH; deep += 16) {
        uint32_t left[HIGH / 2][4], right[WIDE / 4][4];
#pragma unroll
        for (int i = 0; i < HIGH / 2; i++)
            geon_hold_left<LEFT_TURNED>(left[i], left_tile, row + 16 * i, deep);
#pragma unroll
        for (int j = 0; j < WIDE / 4; j++)
            geon_hold_right<RIGHT_TURNED>(right[j], right_tile, column + 16 * j, deep);
#pragma unroll
        for (int i = 0; i < HIGH; i += 2) {
#pragma unroll
            for (int j = 0; j < WIDE; j += 2)
                KIND::multiply(sums[i][j], sums[i][j + 1], sums[i + 1][j], sums[i + 1][j + 1],
                               left[i / 2], right[j / 4] + j % 4);
        }
    }
}

/* The rows of a thread, and its columns. */
struct geon_eighths {
    int64_t first;
    __device__ __forceinline__ int64_t operator()(int k) const { return first + 8 * k; }
};
struct geon_pairs {
    int64_t first;
    __device__ __forceinline__ int64_t operator()(int k) const { return first + k % 2 + k / 2 * 8; }
};
