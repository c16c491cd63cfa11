/* Vectors of so many numbers, which lie in memory from any element on. */
#define GEON_VECTOR(type, bytes, name, ...)                              \
    typedef type name __attribute__((vector_size(bytes), unused));       \
    typedef type name##_at                                               \
        __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias, unused));
/* M(element, bytes, name, type of masks, elements) of the vectors of at most 32 bytes, and of 64. */
#define GEON_NARROW_VECTORS(M)       \
    M(float, 8, f32x2, i32x2, 2)     \
    M(float, 16, f32x4, i32x4, 4)    \
    M(float, 32, f32x8, i32x8, 8)    \
    M(int32_t, 8, i32x2, i32x2, 2)   \
    M(int32_t, 16, i32x4, i32x4, 4)  \
    M(int32_t, 32, i32x8, i32x8, 8)  \
    M(double, 16, f64x2, i64x2, 2)   \
    M(double, 32, f64x4, i64x4, 4)   \
    M(int64_t, 16, i64x2, i64x2, 2)  \
    M(int64_t, 32, i64x4, i64x4, 4)
#define GEON_WIDE_VECTORS(M)           \
    M(float, 64, f32x16, i32x16, 16)   \
    M(int32_t, 64, i32x16, i32x16, 16) \
    M(double, 64, f64x8, i64x8, 8)     \
    M(int64_t, 64, i64x8, i64x8, 8)
GEON_NARROW_VECTORS(GEON_VECTOR)
GEON_WIDE_VECTORS(GEON_VECTOR)
GEON_VECTOR(double, 128, f64x16) /* of two registers */
/* The vector that begins at a place. */
#define GEON_AT(name, place) (*(name##_at *)&(place))
/* A vector put there, past the caches or not: then the place is one of a vector. */
#define GEON_PUT(name, past, place, value)                                       \
    do {                                                                         \
        const name geon_put = value;                                             \
        if (past)                                                                \
            PAST_STORE((geon_past_vector *)&(place), (geon_past_vector)geon_put); \
        else                                                                     \
            GEON_AT(name, place) = geon_put;                                     \
    } while (0)
/* The numbers of a vector in another type. */
#define GEON_AS(name, x) __builtin_convertvector(x, name)
/* A number as a vector of it; a vector stays what it is. */
#define GEON_EACH(name, x) ((x) - (name){0})
/* Elements of a where a truth is all ones, of b where it is 0. */
#define GEON_CHOSEN(name, bits, truth, a, b) \
    ((name)(((bits)(a) & (truth)) | ((bits)(b) & ~(truth))))
/* The larger and the smaller elements; a if that is NaN, b if that is NaN or both are equal. */
#define GEON_EXTREMES(type, bytes, name, bits, count)                                        \
    GEON_INLINE name name##_maximum(name a, name b)                                          \
    {                                                                                        \
        return GEON_CHOSEN(name, bits, (a > b) | (a != a), a, b);                            \
    }                                                                                        \
    GEON_INLINE name name##_minimum(name a, name b)                                          \
    {                                                                                        \
        return GEON_CHOSEN(name, bits, (a < b) | (a != a), a, b);                            \
    }
GEON_NARROW_VECTORS(GEON_EXTREMES)
#if defined(__AVX512F__) && !defined(__clang__)
/* An instruction for extremes gives b beside a NaN, so it runs where a is none (comparison 7). */
#define GEON_EXTREME_512(name, row, instruction, suffix, lanes)                              \
    GEON_INLINE name name##_##row(name a, name b)                                            \
    {                                                                                        \
        return __builtin_ia32_##instruction##suffix##512_mask(                               \
            a, b, a, __builtin_ia32_cmp##suffix##512_mask(a, a, 7, lanes, 4), 4);            \
    }
GEON_EXTREME_512(f32x16, maximum, max, ps, 0xffff)
GEON_EXTREME_512(f32x16, minimum, min, ps, 0xffff)
GEON_EXTREME_512(f64x8, maximum, max, pd, 0xff)
GEON_EXTREME_512(f64x8, minimum, min, pd, 0xff)
#define GEON_EXTREME_512_OF_INTEGERS(name, row, instruction, word, lanes)               \
    GEON_INLINE name name##_##row(name a, name b)                                        \
    {                                                                                    \
        typedef word of __attribute__((vector_size(64)));                                \
        return (name)__builtin_ia32_##instruction##512_mask((of)a, (of)b, (of)a, lanes); \
    }
GEON_EXTREME_512_OF_INTEGERS(i32x16, maximum, pmaxsd, int, 0xffff)
GEON_EXTREME_512_OF_INTEGERS(i32x16, minimum, pminsd, int, 0xffff)
GEON_EXTREME_512_OF_INTEGERS(i64x8, maximum, pmaxsq, long long, 0xff)
GEON_EXTREME_512_OF_INTEGERS(i64x8, minimum, pminsq, long long, 0xff)
#else
GEON_WIDE_VECTORS(GEON_EXTREMES)
#endif
/* Elements of a vector folded into one, its halves first: in one order on every machine that has
   vectors of this size. */
#ifdef __clang__
#define GEON_TURNED(x, turned, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#else
#define GEON_TURNED(x, turned, ...) __builtin_shuffle(x, (turned){__VA_ARGS__})
#endif
#define GEON_SUM(a, b) ((a) + (b))
#define GEON_PRODUCT(a, b) ((a) * (b))
#define GEON_FOLD(type, name, row, turned, count, ROW) \
    GEON_INLINE type name##_fold_##row(name x) { GEON_FOLD_##count(turned, ROW) return x[0]; }
#define GEON_FOLDS(type, bytes, name, turned, count) \
    GEON_FOLD(type, name, add, turned, count, GEON_SUM) \
    GEON_FOLD(type, name, multiply, turned, count, GEON_PRODUCT) \
    GEON_FOLD(type, name, maximum, turned, count, name##_maximum) \
    GEON_FOLD(type, name, minimum, turned, count, name##_minimum)
#define GEON_FOLD_2(turned, ROW) x = ROW(x, GEON_TURNED(x, turned, 1, 0));
#define GEON_FOLD_4(turned, ROW) \
    x = ROW(x, GEON_TURNED(x, turned, 2, 3, 0, 1)); \
    x = ROW(x, GEON_TURNED(x, turned, 1, 0, 3, 2));
#define GEON_FOLD_8(turned, ROW) \
    x = ROW(x, GEON_TURNED(x, turned, 4, 5, 6, 7, 0, 1, 2, 3)); \
    x = ROW(x, GEON_TURNED(x, turned, 2, 3, 0, 1, 6, 7, 4, 5)); \
    x = ROW(x, GEON_TURNED(x, turned, 1, 0, 3, 2, 5, 4, 7, 6));
#define GEON_FOLD_16(turned, ROW) \
    x = ROW(x, GEON_TURNED(x, turned, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)); \
    x = ROW(x, GEON_TURNED(x, turned, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)); \
    x = ROW(x, GEON_TURNED(x, turned, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)); \
    x = ROW(x, GEON_TURNED(x, turned, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
GEON_NARROW_VECTORS(GEON_FOLDS)
GEON_WIDE_VECTORS(GEON_FOLDS)
/* Square roots; compilers know the loop for one instruction where there is no name for that. */
#if defined(__AVX512F__) && !defined(__clang__)
#define GEON_ROOT_f32x16(a) __builtin_ia32_sqrtps512_mask(a, a, 0xffff, 4)
#define GEON_ROOT_f64x8(a) __builtin_ia32_sqrtpd512_mask(a, a, 0xff, 4)
#else
#define GEON_ROOT_f32x16(a) GEON_ROOTS(f32x16, sqrtf, a)
#define GEON_ROOT_f64x8(a) GEON_ROOTS(f64x8, sqrt, a)
#endif
#if defined(__AVX__) && !defined(__clang__)
#define GEON_ROOT_f32x8(a) __builtin_ia32_sqrtps256(a)
#define GEON_ROOT_f64x4(a) __builtin_ia32_sqrtpd256(a)
#else
#define GEON_ROOT_f32x8(a) GEON_ROOTS(f32x8, sqrtf, a)
#define GEON_ROOT_f64x4(a) GEON_ROOTS(f64x4, sqrt, a)
#endif
#if defined(__SSE2__) && !defined(__clang__)
#define GEON_ROOT_f32x4(a) __builtin_ia32_sqrtps(a)
#define GEON_ROOT_f64x2(a) __builtin_ia32_sqrtpd(a)
#else
#define GEON_ROOT_f32x4(a) GEON_ROOTS(f32x4, sqrtf, a)
#define GEON_ROOT_f64x2(a) GEON_ROOTS(f64x2, sqrt, a)
#endif
#define GEON_ROOT_f32x2(a) GEON_ROOTS(f32x2, sqrtf, a)
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
