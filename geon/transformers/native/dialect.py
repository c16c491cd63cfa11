"""What C for gcc and clang says in its own way: the text that modules begin with, and lanes."""

from __future__ import annotations

from ..printing.scalars import LANES

PRELUDE = """\
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t geon_half;   /* the bits of a float16 */
typedef uint16_t geon_bfloat; /* the bits of a bfloat16 */
#define GEON_INLINE static inline __attribute__((always_inline, unused))
#define GEON_OUTLINED static __attribute__((noinline, cold, unused))
#define GEON_LIKELY(x) __builtin_expect(x, 1)
#define GEON_UNLIKELY(x) __builtin_expect(x, 0)
#define GEON_LEADING_ZEROS(x) __builtin_clzll(x)
#define GEON_UNROLL_10 _Pragma("GCC unroll 10")
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define GEON_FMA_F32(a, b, c) fmaf(a, b, c)
#define GEON_FMA_F64(a, b, c) fma(a, b, c)
#else
#define GEON_FMA_F32(a, b, c) ((a) * (b) + (c))
#define GEON_FMA_F64(a, b, c) ((a) * (b) + (c))
#endif
"""


class ArrayLanes:
    """Rows side by side as arrays over them: their number is ``lanes``, that at hand ``lane``."""

    number = "lanes"
    ahead = True

    def held(self, name: str) -> str:
        """The value called ``name`` of the row that is at hand."""
        return f"{name}[lane]"

    def alone(self, name: str) -> str:
        """An array of one, as states of lanes are arrays."""
        return f"{name}[0]"

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """The statements that make ``name`` the value ``text`` of each row."""
        return [f"{ctype} {name}[{LANES}];", self.stored(f"{self.held(name)} = {text};", True)]

    def stored(self, statement: str, side_by_side: bool) -> str:
        """The statement, run for each row."""
        if not side_by_side:
            return statement
        return f"for (int64_t lane = 0; lane < lanes; lane++) {statement}"
