"""What C for gcc and clang says in its own way: the text that modules begin with, and lanes."""

from __future__ import annotations

from typing import Any

from ...printing.nests.scalar_statements import LANES
from ...printing.nests.vector_function_passes import STRIP
from .loop_lines import SIMD, for_loop
from .math_declarations import declarations

INCLUDES = """\
#include <stddef.h>
#include <stdint.h>
#include <string.h>
"""
COMPILERS = """\

#ifdef __clang__
#define GEON_BY_COMPILER(gcc, clang) (clang)
#define GEON_USED(x) (void)(x)
#else
#define GEON_BY_COMPILER(gcc, clang) (gcc)
#define GEON_USED(x) __asm__ volatile("" : : "r"(x))
#endif
"""
TYPES = """\

typedef uint16_t geon_half;   /* the bits of a float16 */
typedef uint16_t geon_bfloat; /* the bits of a bfloat16 */
#define GEON_INLINE static inline __attribute__((always_inline, unused))
#define GEON_OUTLINED static __attribute__((noinline, cold, unused))
#define GEON_LIKELY(x) __builtin_expect(x, 1)
#define GEON_UNLIKELY(x) __builtin_expect(x, 0)
#define GEON_LEADING_ZEROS(x) __builtin_clzll(x)
#define GEON_TURN(k, at, ...) { const int64_t k = at; __VA_ARGS__ }
#define GEON_FOUR_TURNS(k, at, ...) \\
    GEON_TURN(k, at, __VA_ARGS__) GEON_TURN(k, at + 1, __VA_ARGS__) \\
    GEON_TURN(k, at + 2, __VA_ARGS__) GEON_TURN(k, at + 3, __VA_ARGS__)
#define GEON_UNROLL_10 _Pragma("GCC unroll 10")
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define GEON_FMA_F32(a, b, c) fmaf(a, b, c)
#define GEON_FMA_F64(a, b, c) fma(a, b, c)
#define GEON_EXACT_QUOTIENT 0x1p53 /* below it, a quotient times the divisor is exact in an FMA */
#else
#define GEON_FMA_F32(a, b, c) ((a) * (b) + (c))
#define GEON_FMA_F64(a, b, c) ((a) * (b) + (c))
#define GEON_EXACT_QUOTIENT 1.0
#endif
#if defined(__AVX2__) && !defined(__AVX512DQ__) /* it has no such conversions */
#define GEON_WIDE_BY_HALVES
#endif
#define GEON_EACH_OF_STRIP(k) _Pragma("omp simd") for (int64_t k = 0; k < 16; k++)
#ifdef __AVX512F__ /* sixteen lanes */
typedef float GEON_STRIP_F32 __attribute__((vector_size(64)));
typedef double GEON_HALF_STRIP_F64 __attribute__((vector_size(64)));
typedef struct { GEON_HALF_STRIP_F64 low, high; } GEON_STRIP_F64;
typedef uint16_t GEON_STRIP_U16 __attribute__((vector_size(32)));
typedef int16_t GEON_STRIP_I16 __attribute__((vector_size(32)));
typedef uint32_t GEON_STRIP_U32 __attribute__((vector_size(64)));
#define GEON_ROUNDED_HALF(a) \\
    (GEON_STRIP_U16)__builtin_ia32_vcvtps2ph512_mask(a, 8, (GEON_STRIP_I16){0}, 0xffff)
#define GEON_WIDE_U16(h) __builtin_convertvector(h, GEON_STRIP_U32)
#define GEON_OF_HALF(h) \\
    __builtin_ia32_vcvtph2ps512_mask((GEON_STRIP_I16)(h), (GEON_STRIP_F32){0}, 0xffff, 4)
#define GEON_FROM_F32(k, least) \\
    __builtin_ia32_cmpps512_mask(k, least - (GEON_STRIP_F32){0}, 21, 0xffff, 4)
#define GEON_FROM_F64(k, least) \\
    __builtin_ia32_cmppd512_mask(k, least - (GEON_HALF_STRIP_F64){0}, 21, 0xff, 4)
#define GEON_SCALED_F32(a, k) \\
    __builtin_ia32_scalefps512_mask(a, k, (GEON_STRIP_F32){0}, GEON_FROM_F32(k, -150.0f), 4)
#define GEON_SCALED_F64(a, k) \\
    __builtin_ia32_scalefpd512_mask(a, k, (GEON_HALF_STRIP_F64){0}, GEON_FROM_F64(k, -1075.0), 4)
#ifdef __clang__ /* one instruction each; of two that have no order, the second */
#define GEON_LARGER_F32(a, b) __builtin_ia32_maxps512(a, b, 4)
#define GEON_SMALLER_F32(a, b) __builtin_ia32_minps512(a, b, 4)
#define GEON_LARGER_F64(a, b) __builtin_ia32_maxpd512(a, b, 4)
#define GEON_SMALLER_F64(a, b) __builtin_ia32_minpd512(a, b, 4)
#else
#define GEON_LARGER_F32(a, b) __builtin_ia32_maxps512_mask(a, b, a, 0xffff, 4)
#define GEON_SMALLER_F32(a, b) __builtin_ia32_minps512_mask(a, b, a, 0xffff, 4)
#define GEON_LARGER_F64(a, b) __builtin_ia32_maxpd512_mask(a, b, a, 0xff, 4)
#define GEON_SMALLER_F64(a, b) __builtin_ia32_minpd512_mask(a, b, a, 0xff, 4)
#endif
#else /* eight lanes, twice */
typedef float GEON_EIGHT_F32 __attribute__((vector_size(32)));
typedef struct { GEON_EIGHT_F32 low, high; } GEON_STRIP_F32;
typedef double GEON_FOUR_F64 __attribute__((vector_size(32)));
typedef struct { GEON_FOUR_F64 first, second, third, last; } GEON_STRIP_F64;
typedef int32_t GEON_EIGHT_I32 __attribute__((vector_size(32)));
#define GEON_EIGHT(x) ((x) - (GEON_EIGHT_F32){0})
#define GEON_BOTH(i) for (int i = 0; i < 2; i++)
#if defined(__FMA__) && defined(__clang__)
#define GEON_FMA_EIGHT(a, b, c) __builtin_elementwise_fma(a, b, c)
#elif defined(__FMA__)
#define GEON_FMA_EIGHT(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#else
#define GEON_FMA_EIGHT(a, b, c) ((a) * (b) + (c))
#endif
#define GEON_CLAMP(a, x, y) \\
    __builtin_ia32_maxps256(GEON_EIGHT(x), __builtin_ia32_minps256(GEON_EIGHT(y), a))
#define GEON_STEP(p, x, c) GEON_BOTH(i) p[i] = GEON_FMA_EIGHT(p[i], x[i], GEON_EIGHT(c));
#ifdef __F16C__
typedef int16_t GEON_EIGHT_I16 __attribute__((vector_size(16)));
#define GEON_EIGHT_ROUNDED_HALVES(a) (GEON_EIGHT_I16)__builtin_ia32_vcvtps2ph256(a, 0)
#define GEON_WIDE_I16(h) __builtin_convertvector(h, GEON_EIGHT_I32)
#ifdef __clang__
typedef _Float16 GEON_EIGHT_HALVES __attribute__((vector_size(16)));
#define GEON_OF_EIGHT_HALVES(h) __builtin_convertvector((GEON_EIGHT_HALVES)(h), GEON_EIGHT_F32)
typedef uint16_t GEON_EIGHT_U16 __attribute__((vector_size(16)));
#define GEON_SMALLER_I16(a, b) __builtin_elementwise_min(a, b)
#define GEON_SMALLER_U16(a, b) \\
    (GEON_EIGHT_I16)__builtin_elementwise_min((GEON_EIGHT_U16)(a), (GEON_EIGHT_U16)(b))
#else
#define GEON_OF_EIGHT_HALVES(h) __builtin_ia32_vcvtph2ps256(h)
#define GEON_SMALLER_I16(a, b) __builtin_ia32_pminsw128(a, b)
#define GEON_SMALLER_U16(a, b) __builtin_ia32_pminuw128(a, b)
#endif
#endif
#endif
"""
PRELUDE = INCLUDES + declarations() + COMPILERS + TYPES


class ArrayLanes:
    """Rows side by side as arrays over them: their number is ``lanes``, that at hand ``lane``."""

    number = "lanes"
    tiles = flat = windows = stages = together = wraps = hides = fetches = True
    spares = False  # nor has it to: arrays without elements lie in zeros

    vectors: Any = None  # that statements are of, where they are not of numbers

    def held(self, name: str, ctype: str) -> str:
        """The value called ``name`` of the row that is at hand."""
        return self.at(name, ctype)

    def alone(self, name: str) -> str:
        """An array of one, as states of lanes are arrays."""
        return f"{name}[0]"

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """The statements that make ``name`` the value ``text`` of each row."""
        return [self.array(ctype, name), self.stored(f"{self.at(name, ctype)} = {text};", True)]

    def stored(self, statement: str, side_by_side: bool) -> str:
        """The statement, run for each row."""
        return f"{self.head()} {statement}" if side_by_side else statement

    def all(self, statements: list[str]) -> list[str]:
        """Statements that are run for each row, in one loop."""
        return self.loop("0", "lanes", statements)

    def array_of(self, text: str) -> str | None:
        """The array whose value at hand is called ``text``; None where it is none."""
        name = text.removesuffix("[lane]")
        return None if name == text else name

    def array(self, ctype: str, name: str, size: int = LANES) -> str:
        """The statement that declares an array over lanes."""
        return f"{ctype} {name}[{size}];"

    def at(self, name: str, ctype: str, index: str = "lane") -> str:
        """An element of an array of ``ctype`` over lanes, that of the lane at hand."""
        return f"{name}[{index}]"

    def each(self, ctype: str, text: str) -> str:
        """A number of ``ctype`` as the value of lanes."""
        return text

    def converted(self, ctype: str, to: str, name: str) -> str:
        """What an array of ``ctype`` has of the lane at hand, as a value of a wider type."""
        return self.at(name, ctype)

    def narrowed(self, ctype: str, name: str, wide: str) -> str:
        """The statement that makes an array of ``ctype`` what another one has in float64."""
        return f"{self.head()} {name}[lane] = ({ctype}){wide}[lane];"

    def head(self, high: str = "lanes", low: str = "0") -> str:
        """The head of a loop over lanes, before one statement."""
        return f"for (int64_t lane = {low}; lane < {high}; lane++)"

    def loop(self, low: str, high: str, body: list[str], pragma: bool = True) -> list[str]:
        """A loop over lanes, from which compilers make vectors where the ``pragma`` says so."""
        return [*([SIMD] if pragma else []), *for_loop("lane", low, high, body)]


STRIP_BYTES = 64  # of an instruction set that has all functions of strips
HALF_STRIP_BYTES = 32  # and of one that has those which need no powers of two
SCALED = ("geon_exp_strip_f64", "geon_sigmoid_", "geon_softplus_")


class ArrayStrips:
    """Strips as arrays over their lanes, of which ``lane`` is at hand; the compiler makes them
    registers of ``vector_bytes``.

    The index of a strip's first element is called ``<variable>_strip``.
    """

    def __init__(self, vector_bytes: int) -> None:
        self.vector_bytes = vector_bytes

    def has(self, function: str) -> bool:
        """Whether a function of strips needs no instruction of wider vectors."""
        return self.vector_bytes == STRIP_BYTES or not function.startswith(SCALED)

    def held(self, name: str) -> str:
        """The value called ``name`` of the element that is at hand."""
        return f"{name}[lane]"

    def variable(self, name: str) -> str:
        """The loop variable ``name`` at the element that is at hand."""
        return f"({strip_start(name)} + lane)"

    def start(self, name: str) -> str:
        """The loop variable ``name`` at the first element of the strip."""
        return strip_start(name)

    @property
    def put(self) -> str:
        """The function that puts elements by: gcc 12 makes a copy, by 16 bytes, of a loop over an
        array that is not one register, which then waits for the wider ones that were stored.
        """
        return "" if self.vector_bytes == STRIP_BYTES else "geon_put_strip_f32"

    def declare(self, ctype: str, name: str) -> str:
        """The statement that declares ``name``, which has a value for each element."""
        return f"{ctype} {name}[{STRIP}];"

    def sums(self, name: str) -> str:
        """What a function is given that adds to the sum called ``name``."""
        return f"&{strip_sums(name)}"


def array_strips(vector_bytes: int) -> ArrayStrips | None:
    """The strips of an instruction set, where it has functions of them."""
    return ArrayStrips(vector_bytes) if vector_bytes >= HALF_STRIP_BYTES else None


def strip_start(variable: str) -> str:
    """The name of the index of a strip's first element."""
    return f"{variable}_strip"


def strip_sums(name: str) -> str:
    """The name of the sums of all lanes whose total is ``name``."""
    return f"{name}_lanes"
