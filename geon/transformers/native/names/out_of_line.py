"""Elementary functions with many call sites in a kernel, compiled out of line.

gcc takes as long for each inlined copy of an elementary function as for 20 to 60 statements of
other text, and for register allocation more than in proportion to their number. With `omp declare
simd` it makes one vector function, which vectorised loops call. clang makes none, so there all
copies are inlined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ....op_graph.values.dtypes import name_of
from ...kernels.ir.scalar_code import Apply, Scalar, walk
from ...printing.scalars import c_expressions
from ...printing.scalars.c_expressions import OUT_OF_LINE

MIN_SITES = 4  # calls in a kernel from which on a function is not inlined
MACRO = """\
#ifdef __clang__
#define GEON_OUT_OF_LINE GEON_INLINE
#else
#define GEON_OUT_OF_LINE _Pragma("omp declare simd notinbranch") \\
    static __attribute__((noinline, unused))
#endif
"""
DEFINITION = """\
GEON_OUT_OF_LINE {type} {name}{suffix}({parameters}) {{
    return {name}({arguments});
}}
"""


def out_of_line(roots: Iterable[Scalar]) -> frozenset[str]:
    """Return the elementary functions of floats that scalar code calls at many sites."""
    sites = Counter(
        helper
        for value in walk(*roots)
        if isinstance(value, Apply) and value.row.cost == "expensive" and not value.attrs
        for helper in _helpers(value)
    )
    return frozenset(helper for helper, count in sites.items() if count >= MIN_SITES)


def _helpers(value: Apply) -> tuple[str, ...]:
    """Return the helper of an op whose operands and result are of one type of C's floats."""
    result, dtypes = name_of(value.dtype), [name_of(arg.dtype) for arg in value.args]
    if result not in ("float32", "float64") or {*dtypes} != {result}:
        return ()
    return c_expressions.calls(value.row.name, dtypes, result)


def inlined(calls: Iterable[str]) -> list[str]:
    """Return the helpers whose definitions these calls need."""
    return list(dict.fromkeys(name.removesuffix(OUT_OF_LINE) for name in calls))


def out_of_line_definitions(calls: Iterable[str]) -> list[str]:
    """Return the definitions of those called functions that are not inlined."""
    names = [name.removesuffix(OUT_OF_LINE) for name in calls if name.endswith(OUT_OF_LINE)]
    return [MACRO, *map(_definition, names)] if names else []


def _definition(name: str) -> str:
    """Return the function that calls the inlined helper ``name``."""
    ctype = "float" if name.endswith("_f32") else "double"
    arguments = ["a", "b"][: c_expressions.arity(name)]
    return DEFINITION.format(
        type=ctype,
        name=name,
        suffix=OUT_OF_LINE,
        parameters=", ".join(f"{ctype} {each}" for each in arguments),
        arguments=", ".join(arguments),
    )
