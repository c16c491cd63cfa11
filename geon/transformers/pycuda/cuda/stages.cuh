/* Tiles of halves that come to shared memory steps ahead of the one that is multiplied: the last
   threads of a block bring them, the others multiply. A step has 64 summed indices. A tile lies in
   panels of lines of 128 bytes, in which pieces of 16 bytes are exchanged by the number of their line,
   so that what lies below each other is in different banks: as tensor cores of Hopper read it, and
   ldmatrix too. */
enum { GEON_STEP = 64, GEON_LINE = 128, GEON_PIECE = 16, GEON_BRINGING = 128, GEON_MOST_STAGES = 8 };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GEON_BY_GROUPS 1 /* four warps multiply together, and go on meanwhile */
/* What was written to shared memory is seen by tensor cores that read it by themselves. */
GEON_INLINE void geon_show_to_groups() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* Threads have COUNT registers from now on: those that bring tiles give some to the others. */
template <int COUNT> GEON_INLINE void geon_give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> GEON_INLINE void geon_take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
#elif !defined(GEON_HOST)
template <int COUNT> GEON_INLINE void geon_give_registers() {}
template <int COUNT> GEON_INLINE void geon_take_registers() {}
#endif

/* Where the element lies, in bytes, that is `near` along memory and `far` across, in panels of FAR
   lines of 64 elements. */
template <int FAR> GEON_INLINE int geon_place(int near, int far)
{
    return near / 64 * (FAR * GEON_LINE) + far * GEON_LINE +
           ((near % 64 / 8) ^ (far % 8)) * GEON_PIECE + near % 8 * 2;
}

#ifdef GEON_HOST
/* On the host, copies are done at once. */
typedef geon_host_barrier geon_barrier;
GEON_INLINE void geon_copy_ahead(unsigned char *into, const uint16_t *source, int inside)
{
    uint16_t piece[8] = {};
    for (int k = 0; k < inside; k++)
        piece[k] = source[k];
    memcpy(into, piece, sizeof piece);
}
GEON_INLINE void geon_wait_for_copies() {}
GEON_INLINE void geon_begin_barrier(geon_barrier *barrier, int count)
{
    geon_host_begin_barrier(barrier, (unsigned)count);
}
GEON_INLINE void geon_arrive(geon_barrier *barrier) { geon_host_arrive(barrier); }
GEON_INLINE void geon_arrive_with_copies(geon_barrier *barrier) { geon_host_arrive(barrier); }
GEON_INLINE void geon_await(geon_barrier *barrier, int parity)
{
    geon_host_await(barrier, (unsigned)parity);
}
template <int COUNT> GEON_INLINE void geon_meet() { geon_host_meet(COUNT); }
template <int COUNT> GEON_INLINE void geon_give_registers() {}
template <int COUNT> GEON_INLINE void geon_take_registers() {}
#ifndef GEON_HOST_STAGES
#define GEON_HOST_STAGES 3
#endif
#define GEON_STAGES(BYTES)                                                                         \
    alignas(1024) __shared__ unsigned char geon_space[GEON_HOST_STAGES * (BYTES)];                 \
    __shared__ geon_barrier geon_barriers[2 * GEON_MOST_STAGES];                                   \
    geon_stages<BYTES> stages = {geon_space, geon_barriers, GEON_HOST_STAGES};
#else
/* Counts threads that arrive; who waits does so for the parity of how often all have. */
typedef uint64_t geon_barrier;
GEON_INLINE unsigned geon_shared(const void *place)
{
    return (unsigned)__cvta_generic_to_shared(place);
}
/* Copies 16 bytes, of which `inside` elements are there: the others are 0. */
GEON_INLINE void geon_copy_ahead(unsigned char *into, const uint16_t *source, int inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(geon_shared(into)), "l"(source), "r"(2 * inside)
                 : "memory");
}
GEON_INLINE void geon_wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
GEON_INLINE void geon_begin_barrier(geon_barrier *barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(geon_shared(barrier)), "r"(count)
                 : "memory");
}
GEON_INLINE void geon_arrive(geon_barrier *barrier)
{
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(
                     geon_shared(barrier))
                 : "memory");
}
/* Arrives when all copies that the thread has begun are done. */
GEON_INLINE void geon_arrive_with_copies(geon_barrier *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(geon_shared(barrier))
                 : "memory");
}
#if __CUDA_ARCH__ >= 900
#define GEON_TEST "mbarrier.try_wait"
#else
#define GEON_TEST "mbarrier.test_wait"
#endif
GEON_INLINE void geon_await(geon_barrier *barrier, int parity)
{
    unsigned done;
    do
        asm volatile("{\n.reg .pred p;\n" GEON_TEST ".parity.shared.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(geon_shared(barrier)), "r"(parity)
                     : "memory");
    while (!done);
}
/* A barrier of the first COUNT threads of a block. */
template <int COUNT> GEON_INLINE void geon_meet()
{
    asm volatile("bar.sync 1, %0;" ::"n"(COUNT) : "memory");
}
extern __shared__ unsigned char geon_dynamic[];
/* As many stages as the host has found room for. */
#define GEON_STAGES(BYTES)                                                                         \
    unsigned geon_size;                                                                            \
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(geon_size));                                     \
    __shared__ geon_barrier geon_barriers[2 * GEON_MOST_STAGES];                                   \
    geon_stages<BYTES> stages = {geon_dynamic + (-geon_shared(geon_dynamic) & 1023u),              \
                                 geon_barriers, (int)((geon_size - 1024) / (BYTES))};
#endif

/* Stages of BYTES in shared memory, which some threads fill in turn and others read in turn; each of
   both has a place of its own. */
template <int BYTES> struct geon_stages {
    unsigned char *space;
    geon_barrier *barriers; /* of stages that are filled, and that are read */
    int count, at, parity;
    __device__ __forceinline__ unsigned char *tiles() const { return space + at * BYTES; }
    __device__ __forceinline__ unsigned char *before() const
    {
        return space + (at == 0 ? count - 1 : at - 1) * BYTES;
    }
    /* All threads of a block begin, of which so many warps read. */
    __device__ __forceinline__ void begin(int readers) const
    {
        if (threadIdx.x == 0) {
            for (int k = 0; k < count; k++) {
                geon_begin_barrier(barriers + k, GEON_BRINGING + GEON_BRINGING / 32);
                geon_begin_barrier(barriers + GEON_MOST_STAGES + k, readers);
            }
        }
        __syncthreads();
    }
    __device__ __forceinline__ void next()
    {
        if (++at == count) {
            at = 0;
            parity ^= 1;
        }
    }
    __device__ __forceinline__ void wait_to_fill() const
    {
        geon_await(barriers + GEON_MOST_STAGES + at, parity ^ 1);
    }
    /* What the thread has copied and written to the stage is all of its part; copies may be on their
       way. */
    __device__ __forceinline__ void pass()
    {
        geon_arrive_with_copies(barriers + at);
        __syncwarp(0xffffffffu);
        if (threadIdx.x % 32 == 0)
            geon_arrive(barriers + at); /* for what the warp has written */
        next();
    }
    __device__ __forceinline__ void wait_to_read() const
    {
        geon_await(barriers + at, parity);
#ifdef GEON_BY_GROUPS
        geon_show_to_groups();
#endif
    }
    /* The warp does not read this stage, or the one before, any more. */
    __device__ __forceinline__ void release(int stage) const
    {
        __syncwarp(0xffffffffu);
        if (threadIdx.x % 32 == 0)
            geon_arrive(barriers + GEON_MOST_STAGES + stage);
    }
    __device__ __forceinline__ void release() const { release(at); }
    __device__ __forceinline__ void release_before() const { release(at == 0 ? count - 1 : at - 1); }
};

/* Begins to bring a tile of NEAR elements along memory and FAR across, from the indices `near` and
   `far` on, both below their ends; `offset` says where an element lies behind `source`. */
template <int NEAR, int FAR, class T, class Offset>
GEON_INLINE void geon_bring_tile(unsigned char *tile, const T *source, int64_t near,
                                 int64_t near_end, int64_t far, int64_t far_end, Offset offset)
{
    geon_each_chunk<NEAR, FAR, 8, GEON_BRINGING>([&](int, int in_near, int in_far) {
        unsigned char *const into = tile + geon_place<FAR>(in_near, in_far);
        const int64_t left = near_end - near - in_near;
        const int inside = far + in_far >= far_end || left <= 0 ? 0 : left < 8 ? (int)left : 8;
        const uint16_t *const from =
            inside ? (const uint16_t *)source + offset(near + in_near, far + in_far)
                   : (const uint16_t *)source;
        if (inside == 0 || (uintptr_t)from % GEON_PIECE == 0)
            geon_copy_ahead(into, from - (inside ? 0 : (uintptr_t)from % GEON_PIECE / 2), inside);
        else
            *(geon_chunk<uint16_t, 8> *)into = geon_load_chunk<8>(from, left);
    });
}

/* The same with `step` elements from line to line: where all pieces begin at multiples of 16 bytes,
   each thread has pieces below each other, which it finds by additions. */
template <int NEAR, int FAR, class T>
GEON_INLINE void geon_bring_lines(unsigned char *tile, const T *source, int64_t step, int64_t near,
                                  int64_t near_end, int64_t far, int64_t far_end)
{
    enum {
        ABREAST = NEAR / 8,
        APART = GEON_BRINGING / ABREAST,
        TURNS = APART < 8 ? 8 / APART : 1 /* after which lines are exchanged in the same way */
    };
    const bool whole = ABREAST * APART == GEON_BRINGING && FAR % APART == 0 && APART * TURNS % 8 == 0;
    if (!whole || ((uintptr_t)source | (uintptr_t)(2 * step)) % GEON_PIECE) {
        geon_bring_tile<NEAR, FAR>(tile, source, near, near_end, far, far_end,
                                   [&](int64_t in, int64_t line) { return line * step + in; });
        return;
    }
    const int me = threadIdx.x % GEON_BRINGING, in_near = me % ABREAST * 8, in_far = me / ABREAST;
    const int64_t left = near_end - near - in_near, below = far_end - far - in_far;
    const int inside = left < 0 ? 0 : left < 8 ? (int)left : 8;
    const int lines = below < FAR ? (int)below : FAR;
    const uint16_t *from = (const uint16_t *)source + ((far + in_far) * step + near + in_near);
    unsigned char *into[TURNS];
#pragma unroll
    for (int k = 0; k < TURNS; k++)
        into[k] = tile + geon_place<FAR>(in_near, in_far + k * APART) - k * APART * GEON_LINE;
#pragma unroll
    for (int line = 0; line < FAR; line += APART, from += APART * step) {
        const int here = line < lines ? inside : 0;
        geon_copy_ahead(into[line / APART % TURNS] + line * GEON_LINE,
                        here ? from : (const uint16_t *)source, here);
    }
}

/* Fills such a tile with elements that are computed, or 0 behind the ends. */
template <int NEAR, int FAR, class Element>
GEON_INLINE void geon_fill_panels(unsigned char *tile, int64_t near, int64_t near_end, int64_t far,
                                  int64_t far_end, Element element)
{
#pragma unroll 1
    for (int k = threadIdx.x % GEON_BRINGING; k < NEAR * FAR; k += GEON_BRINGING) {
        const int in_near = k % NEAR, in_far = k / NEAR;
        const bool inside = near + in_near < near_end && far + in_far < far_end;
        *(uint16_t *)(tile + geon_place<FAR>(in_near, in_far)) =
            inside ? element(near + in_near, far + in_far) : 0;
    }
}

/* What a thread holds of an operand, as in ``matrices.cuh``, of a tile in panels of FAR lines. */
template <bool TURNED, int FAR>
GEON_INLINE void geon_hold_left_of(uint32_t (&held)[4], const unsigned char *tile, int line,
                                   int deep)
{
    const int lane = threadIdx.x % 32, low = lane % 16, high = lane / 16 * 8;
    if (TURNED)
        geon_load_matrices_turned(held, (const uint16_t *)(tile + geon_place<FAR>(
                                            line + low / 8 * 8, deep + lane % 8 + high)));
    else
        geon_load_matrices(
            held, (const uint16_t *)(tile + geon_place<FAR>(deep + high, line + low)));
}

template <bool TURNED, int FAR>
GEON_INLINE void geon_hold_right_of(uint32_t (&held)[4], const unsigned char *tile, int line,
                                    int deep)
{
    const int lane = threadIdx.x % 32, low = lane % 16, high = lane / 16 * 8;
    if (TURNED)
        geon_load_matrices_turned(
            held, (const uint16_t *)(tile + geon_place<FAR>(line + high, deep + low)));
    else
        geon_load_matrices(held, (const uint16_t *)(tile + geon_place<FAR>(
                                     deep + low / 8 * 8, line + lane % 8 + high)));
}

#ifdef GEON_BY_GROUPS
/* How a group finds a tile: panels of lines of 128 bytes, `across` bytes from panel to panel. The
   half that says where is found once for a tile, by `geon_described`, and by additions inside it. */
GEON_INLINE unsigned geon_described(const unsigned char *tile, unsigned across)
{
    return geon_shared(tile) >> 4 | (across >> 4) << 16;
}
GEON_INLINE uint64_t geon_inside(unsigned described, int bytes)
{
    uint64_t found;
    asm("mov.b64 %0, {%1, %2};"
        : "=l"(found)
        : "r"(described + bytes / 16), "r"(1u << 30 | 1024u >> 4));
    return found;
}
GEON_INLINE void geon_begin_groups() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
GEON_INLINE void geon_commit_groups() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int BUT> GEON_INLINE void geon_wait_groups()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(BUT) : "memory");
}
/* What was computed is in its register before groups begin, and what they find after they end. */
GEON_INLINE void geon_settle(uint32_t &x) { asm volatile("" : "+r"(x)::"memory"); }
GEON_INLINE void geon_settle(float &x) { asm volatile("" : "+f"(x)::"memory"); }
template <class T, int HIGH, int WIDE> GEON_INLINE void geon_settle(T (&values)[HIGH][WIDE])
{
#pragma unroll
    for (int i = 0; i < HIGH; i++) {
#pragma unroll
        for (int j = 0; j < WIDE; j++)
            geon_settle(values[i][j]);
    }
}
/* Four sums of a thread, of two rows and two columns. */
#define GEON_OWN(J)                                                                                \
    "+f"(sums[0][2 * (J)]), "+f"(sums[0][2 * (J) + 1]), "+f"(sums[1][2 * (J)]),                    \
        "+f"(sums[1][2 * (J) + 1])
#define GEON_OWN_8(J)                                                                              \
    GEON_OWN(J), GEON_OWN(J + 1), GEON_OWN(J + 2), GEON_OWN(J + 3), GEON_OWN(J + 4),               \
        GEON_OWN(J + 5), GEON_OWN(J + 6), GEON_OWN(J + 7)
#define GEON_SUMS_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GEON_SUMS_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GEON_SUMS_256 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define GEON_OWN_64 GEON_OWN_8(0)
#define GEON_OWN_128 GEON_OWN_8(0), GEON_OWN_8(8)
#define GEON_OWN_256 GEON_OWN_128, GEON_OWN_8(16), GEON_OWN_8(24)

/* 64 rows of `left` times COLUMNS of `right`, 16 summed indices, added to sums: of two tiles, or of
   what the threads hold of the left one. The numbers are those of operands, behind the sums. */
template <class KIND, int COLUMNS> struct geon_group;
template <class KIND, int COLUMNS> struct geon_held_group;
#define GEON_GROUP(KIND, TYPE, N, LEFT, RIGHT, TURN_LEFT, TURN_RIGHT)                              \
    template <> struct geon_group<KIND, N> {                                                       \
        template <bool LEFT_TURNED, bool RIGHT_TURNED>                                             \
        GEON_INLINE void multiply(float (&sums)[2][N / 4], uint64_t left, uint64_t right)          \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
                         " {" GEON_SUMS_##N "}, %" #LEFT ", %" #RIGHT                              \
                         ", 1, 1, 1, %" #TURN_LEFT ", %" #TURN_RIGHT ";"                           \
                         : GEON_OWN_##N                                                            \
                         : "l"(left), "l"(right), "n"((int)LEFT_TURNED), "n"((int)RIGHT_TURNED)    \
                         : "memory");                                                              \
        }                                                                                          \
    };
#define GEON_GROUPS(N, LEFT, RIGHT, TURN_LEFT, TURN_RIGHT)                                         \
    GEON_GROUP(geon_float16, "f16", N, LEFT, RIGHT, TURN_LEFT, TURN_RIGHT)                         \
    GEON_GROUP(geon_bfloat16, "bf16", N, LEFT, RIGHT, TURN_LEFT, TURN_RIGHT)
GEON_GROUPS(256, 128, 129, 130, 131)

#define GEON_HELD_GROUP(KIND, TYPE, N, A, B, C, D, RIGHT, TURN_RIGHT)                              \
    template <> struct geon_held_group<KIND, N> {                                                  \
        template <bool RIGHT_TURNED>                                                               \
        GEON_INLINE void multiply(float (&sums)[2][N / 4], const uint32_t (&left)[4],              \
                                  uint64_t right)                                                  \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
                         " {" GEON_SUMS_##N "}, {%" #A ", %" #B ", %" #C ", %" #D "}, %" #RIGHT    \
                         ", 1, 1, 1, %" #TURN_RIGHT ";"                                            \
                         : GEON_OWN_##N                                                            \
                         : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right),     \
                           "n"((int)RIGHT_TURNED)                                                  \
                         : "memory");                                                              \
        }                                                                                          \
    };
#define GEON_HELD_GROUPS(N, A, B, C, D, RIGHT, TURN_RIGHT)                                         \
    GEON_HELD_GROUP(geon_float16, "f16", N, A, B, C, D, RIGHT, TURN_RIGHT)                         \
    GEON_HELD_GROUP(geon_bfloat16, "bf16", N, A, B, C, D, RIGHT, TURN_RIGHT)
GEON_HELD_GROUPS(64, 32, 33, 34, 35, 36, 37)
GEON_HELD_GROUPS(128, 64, 65, 66, 67, 68, 69)
#endif
