/* Vectors of so many numbers, which lie in memory from any element on. */
#define GEON_VECTOR(type, bytes, name)                                   \
    typedef type name __attribute__((vector_size(bytes), unused));       \
    typedef type name##_at                                               \
        __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias, unused));
GEON_VECTOR(float, 8, geon_f32x2)
GEON_VECTOR(float, 16, geon_f32x4)
GEON_VECTOR(float, 32, geon_f32x8)
GEON_VECTOR(float, 64, geon_f32x16)
GEON_VECTOR(int32_t, 8, geon_i32x2)
GEON_VECTOR(int32_t, 16, geon_i32x4)
GEON_VECTOR(int32_t, 32, geon_i32x8)
GEON_VECTOR(int32_t, 64, geon_i32x16)
GEON_VECTOR(double, 16, geon_f64x2)
GEON_VECTOR(double, 32, geon_f64x4)
GEON_VECTOR(double, 64, geon_f64x8)
GEON_VECTOR(int64_t, 16, geon_i64x2)
GEON_VECTOR(int64_t, 32, geon_i64x4)
GEON_VECTOR(int64_t, 64, geon_i64x8)
/* The vector that begins at a place. */
#define GEON_AT(name, place) (*(name##_at *)&(place))
/* A number as a vector of it; a vector stays what it is. */
#define GEON_EACH(name, x) ((x) - (name){0})
/* Elements of a where a truth is all ones, of b where it is 0. */
#define GEON_CHOSEN(name, bits, truth, a, b) \
    ((name)(((bits)(a) & (truth)) | ((bits)(b) & ~(truth))))
/* Square roots; compilers know the loop for one instruction where there is no name for that. */
#if defined(__AVX512F__) && !defined(__clang__)
#define GEON_ROOT_geon_f32x16(a) __builtin_ia32_sqrtps512_mask(a, a, 0xffff, 4)
#define GEON_ROOT_geon_f64x8(a) __builtin_ia32_sqrtpd512_mask(a, a, 0xff, 4)
#else
#define GEON_ROOT_geon_f32x16(a) GEON_ROOTS(geon_f32x16, sqrtf, a)
#define GEON_ROOT_geon_f64x8(a) GEON_ROOTS(geon_f64x8, sqrt, a)
#endif
#if defined(__AVX__) && !defined(__clang__)
#define GEON_ROOT_geon_f32x8(a) __builtin_ia32_sqrtps256(a)
#define GEON_ROOT_geon_f64x4(a) __builtin_ia32_sqrtpd256(a)
#else
#define GEON_ROOT_geon_f32x8(a) GEON_ROOTS(geon_f32x8, sqrtf, a)
#define GEON_ROOT_geon_f64x4(a) GEON_ROOTS(geon_f64x4, sqrt, a)
#endif
#if defined(__SSE2__) && !defined(__clang__)
#define GEON_ROOT_geon_f32x4(a) __builtin_ia32_sqrtps(a)
#define GEON_ROOT_geon_f64x2(a) __builtin_ia32_sqrtpd(a)
#else
#define GEON_ROOT_geon_f32x4(a) GEON_ROOTS(geon_f32x4, sqrtf, a)
#define GEON_ROOT_geon_f64x2(a) GEON_ROOTS(geon_f64x2, sqrt, a)
#endif
#define GEON_ROOT_geon_f32x2(a) GEON_ROOTS(geon_f32x2, sqrtf, a)
#define GEON_ROOTS(name, root, a)                                          \
    ({                                                                     \
        name of = a;                                                       \
        for (unsigned k = 0; k < sizeof of / sizeof of[0]; k++)            \
            of[k] = root(of[k]);                                           \
        of;                                                                \
    })
/* Lets a vector stay in its register: gcc loads it from memory again for each use, as long as that
   holds it, and computes sums when they are stored, so that all terms wait in registers. */
#if defined(__x86_64__) && !defined(__clang__)
#define GEON_KEPT(x) __asm__("" : "+v"(x));
#elif defined(__aarch64__) && !defined(__clang__)
#define GEON_KEPT(x) __asm__("" : "+w"(x));
#else
#define GEON_KEPT(x)
#endif
