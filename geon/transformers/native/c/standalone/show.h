/* Prints arrays to standard output, elements in brackets for each dimension. */
#include <inttypes.h>
#include <stdio.h>

/* An element's kind: f a float, h a float16, t a bfloat16, e a float8_e4m3fn, m a float8_e5m2,
   c a complex number of two floats, i and u integers, b a truth. */
typedef struct {
    const char *label;
    char kind;
    int bytes;
    int rank;
} geon_shown;

static double geon_shown_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    double value = (bits & 1023) + (exponent ? 1024 : 0);
    for (int k = exponent ? exponent : 1; k < 25; k++)
        value /= 2;
    for (int k = 25; k < exponent; k++)
        value *= 2;
    if (exponent == 31)
        value = bits & 1023 ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -value : value;
}

/* Both have bits of a half; a float8_e4m3fn has an exponent that is less by 8, and one NaN. */
static double geon_shown_float8(char kind, uint8_t bits)
{
    if (kind == 'm')
        return geon_shown_half((uint16_t)(bits << 8));
    if ((bits & 127) == 127)
        return (double)NAN;
    return 256 * geon_shown_half((uint16_t)((bits & 128) << 8 | (bits & 127) << 7));
}

static double geon_shown_float(const geon_shown *shown, const void *at)
{
    uint16_t half;
    float f32;
    double f64;
    if (shown->bytes == 1)
        return geon_shown_float8(shown->kind, *(const uint8_t *)at);
    if (shown->kind != 'f') {
        memcpy(&half, at, sizeof half);
        const uint32_t bits = (uint32_t)half << 16;
        memcpy(&f32, &bits, sizeof f32);
        return shown->kind == 't' ? (double)f32 : geon_shown_half(half);
    }
    if (shown->bytes == 4) {
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    }
    memcpy(&f64, at, sizeof f64);
    return f64;
}

static void geon_show_element(const geon_shown *shown, const void *at)
{
    /* Little-endian: the first bytes of a wider integer. */
    uint64_t bits = 0;
    const int digits = shown->kind != 'f' ? 5 : shown->bytes == 4 ? 9 : 17;
    const geon_shown part = {shown->label, 'f', shown->bytes / 2, 0};
    switch (shown->kind) {
    case 'c':
        geon_show_element(&part, at);
        at = (const char *)at + part.bytes;
        fputs(signbit(geon_shown_float(&part, at)) ? "" : "+", stdout);
        geon_show_element(&part, at);
        putchar('j');
        return;
    case 'b': fputs(*(const uint8_t *)at ? "True" : "False", stdout); return;
    case 'i':
    case 'u':
        memcpy(&bits, at, (size_t)shown->bytes);
        if (shown->kind == 'u') {
            printf("%" PRIu64, bits);
        } else {
            const int shift = 64 - 8 * shown->bytes;
            printf("%" PRId64, (int64_t)(bits << shift) >> shift);
        }
        return;
    default: printf("%.*g", digits, geon_shown_float(shown, at));
    }
}

static void geon_show_array(const geon_shown *shown, const int64_t *lengths, const void *data)
{
    int64_t count = 1;
    for (int d = 0; d < shown->rank; d++)
        count *= lengths[d];
    printf("%s = ", shown->label);
    for (int d = 0; count == 0 && d < shown->rank; d++)
        putchar('[');
    for (int64_t k = 0; k < count; k++) {
        int opened = 0;
        int64_t below = 1;
        for (int d = shown->rank - 1; d >= 0 && k % (below *= lengths[d]) == 0; d--)
            opened++;
        if (k > 0)
            fputs(opened ? "\n " : " ", stdout);
        for (int d = 0; d < opened; d++)
            putchar('[');
        geon_show_element(shown, (const char *)data + k * shown->bytes);
        below = 1;
        for (int d = shown->rank - 1; d >= 0 && (k + 1) % (below *= lengths[d]) == 0; d--)
            putchar(']');
    }
    for (int d = 0; count == 0 && d < shown->rank; d++)
        putchar(']');
    putchar('\n');
}
