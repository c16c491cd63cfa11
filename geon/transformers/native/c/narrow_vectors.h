/* Vectors of elements of 8 and 16 bits, which are loaded and widened to 32 bits. */
#define GEON_NARROW(type, bytes, name)      \
    GEON_VECTOR(type, 2 * bytes, name##x2)  \
    GEON_VECTOR(type, 4 * bytes, name##x4)  \
    GEON_VECTOR(type, 8 * bytes, name##x8)  \
    GEON_VECTOR(type, 16 * bytes, name##x16)
GEON_NARROW(int8_t, 1, i8)
GEON_NARROW(uint8_t, 1, u8)
GEON_NARROW(int16_t, 2, i16)
GEON_NARROW(uint16_t, 2, u16)
/* Each conversion doubles the bytes: gcc 12 makes scalars of one from 8 to 32 bits. */
#define GEON_WIDENED(count, name, half)                                             \
    GEON_INLINE i32x##count name##x##count##_widened(name##x##count a)              \
    {                                                                               \
        return GEON_AS(i32x##count, GEON_AS(half##x##count, a));                    \
    }
/* One instruction; it takes a register of 16 bytes, of which it may use the first ones only. */
#define GEON_WIDENED_BY(count, name, widened)                          \
    GEON_INLINE i32x##count name##x##count##_widened(name##x##count a) \
    {                                                                  \
        return (i32x##count)__builtin_ia32_##widened;                  \
    }
typedef char geon_16_bytes __attribute__((vector_size(16), unused));
#define GEON_8_OF(type, a) ((type)(i64x2){(int64_t)(a)})
#define GEON_4_OF(type, a) ((type)(i32x4){(int32_t)(a)})
#if defined(__AVX512F__) && !defined(__clang__)
#define GEON_WIDENED_16(bytes, words, from_bytes, from_words)                                   \
    GEON_WIDENED_BY(16, bytes, from_bytes##512_mask((geon_16_bytes)a, (i32x16){0}, 0xffff)) \
    GEON_WIDENED_BY(16, words, from_words##512_mask((i16x16)a, (i32x16){0}, 0xffff))
#else
#define GEON_WIDENED_16(bytes, words, from_bytes, from_words) \
    GEON_WIDENED(16, bytes, words)                            \
    GEON_WIDENED(16, words, words)
#endif
#if defined(__AVX2__) && !defined(__clang__)
#define GEON_WIDENED_8(bytes, words, from_bytes, from_words)                     \
    GEON_WIDENED_BY(8, bytes, from_bytes##256(GEON_8_OF(geon_16_bytes, a))) \
    GEON_WIDENED_BY(8, words, from_words##256((i16x8)a))
#define GEON_WIDENED_4(bytes, words, from_bytes, from_words)                     \
    GEON_WIDENED_BY(4, bytes, from_bytes##128(GEON_4_OF(geon_16_bytes, a))) \
    GEON_WIDENED_BY(4, words, from_words##128(GEON_8_OF(i16x8, a)))
#else
#define GEON_WIDENED_8(bytes, words, from_bytes, from_words) \
    GEON_WIDENED(8, bytes, words)                            \
    GEON_WIDENED(8, words, words)
#define GEON_WIDENED_4(bytes, words, from_bytes, from_words) \
    GEON_WIDENED(4, bytes, words)                            \
    GEON_WIDENED(4, words, words)
#endif
#define GEON_WIDENED_ALL(bytes, words, from_bytes, from_words) \
    GEON_WIDENED_16(bytes, words, from_bytes, from_words)      \
    GEON_WIDENED_8(bytes, words, from_bytes, from_words)       \
    GEON_WIDENED_4(bytes, words, from_bytes, from_words)       \
    GEON_WIDENED(2, bytes, words)                              \
    GEON_WIDENED(2, words, words)
GEON_WIDENED_ALL(i8, i16, pmovsxbd, pmovsxwd)
GEON_WIDENED_ALL(u8, u16, pmovzxbd, pmovzxwd)
