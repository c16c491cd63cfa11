"""The table of what elementwise rows cost is what their C text says."""

import re
from pathlib import Path

import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.transformers.kernels.analysis.op_counts import DRAW
from geon.transformers.kernels.costs.machine import RowCost
from geon.transformers.printing.scalars import c_expressions
from geon.transformers.printing.scalars.helpers import definitions
from geon.transformers.printing.scalars.op_costs import ROW_COSTS
from tests.transformers.c_text import mentioned

FUNCTION = re.compile(r"GEON_INLINE [\w ]+?\b(geon_\w+)\(")
CALL = re.compile(r"\bgeon_\w+(?=\()")
FUSED = re.compile(r"\b(?:GEON_FMA_F\d\d|fmaf?)\(")
SIGN = re.compile(r"(?<=[\w)\]]) [-+*/] (?=[\w(-])")
QUOTIENT = re.compile(r"(?<=[\w)\]]) / (?=[\w(-])")
ROOT = re.compile(r"\bsqrtf?\(")
# Comparisons, choices, bits, and what is one instruction of a vector unit; of a choice of the
# lesser or larger of two both signs are one. Integers become others for nothing.
OTHER = re.compile(
    r" (?:[<>]=?|[=!]=|&&?|\|\|?|\^|<<|>>|\?) |~"
    r"|\b(?:fabs|copysign|rint|floor|ceil|trunc)f?\(|\((?:float|double)\)(?=[\w(])"
)
EXTREME = re.compile(r"(\w+) [<>] (\w+) \? (?:\1 : \2|\2 : \1)")
PORTABLE = re.compile(r"^#else\n.*?^(?=#endif)", re.MULTILINE | re.DOTALL)
UNCOUNTED = ("cast", "copy", "stop_gradient", "where")
NAMES = [str(row.name) for row in PRIMITIVES.values() if row.kind == "elementwise"]


def bodies(text):
    """The bodies of C functions by name, without the ways of machines that cannot fuse."""
    found = {}
    for part in re.split(r"(?=^GEON_INLINE )", PORTABLE.sub("", text), flags=re.MULTILINE):
        named = FUNCTION.match(part)
        if named is not None:
            found[named[1]] = part[part.index("{") :]
    return found


def counted(text, of, known):
    """Operations, statements and divisions, those of the functions that are called included."""
    fused, signs, quotients, roots, others, extremes = (
        len(each.findall(text)) for each in (FUSED, SIGN, QUOTIENT, ROOT, OTHER, EXTREME)
    )
    statements = fused + signs + roots + others - extremes
    total = [2 * fused + signs + roots, statements, quotients + roots]
    for name in CALL.findall(text):
        if name not in known:
            known[name] = (0, 0, 0)  # none calls itself
            known[name] = counted(of.get(name, ""), of, known)
        total = [x + y for x, y in zip(total, known[name], strict=True)]
    return tuple(total)


def cost(name, dtype):
    count = arity(name)
    text = c_expressions.expression(name, [dtype] * count, dtype, ["x", "y"][:count])
    found = counted(text, bodies(definitions(mentioned(text))), {})
    operations, statements, divisions = found
    strips = c_expressions.strip_function(name, dtype, dtype)
    serial = c_expressions.is_serial(name, [dtype] * count) and strips is None
    return RowCost(max(operations, 1), max(statements, 1), divisions, serial)


def arity(name):
    """How many operands a row's expression has: the most that it reads."""
    pair = c_expressions.expression(name, ["float32"] * 2, "float32", ["x", "y"])
    return 2 if re.search(r"\by\b", pair) else 1


def test_counts():
    assert counted("x + y", {}, {}) == (1, 1, 0)
    assert counted("x * y + z", {}, {}) == (2, 2, 0)
    assert counted("-x", {}, {}) == (0, 0, 0)
    assert counted("GEON_FMA_F32(x, y, z) / z", {}, {}) == (3, 2, 1)
    assert counted("x < y ? x : y", {}, {}) == (0, 1, 0)
    once = counted("geon_f(x)", {"geon_f": "{ return x * x; }"}, {})
    twice = counted("geon_f(x) + geon_f(y)", {"geon_f": "{ return x * x; }"}, {})
    assert once == (1, 1, 0) and twice == (3, 3, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_table_is_what_the_text_says(dtype):
    there = [n for n in NAMES if n not in UNCOUNTED and c_expressions.accepts(n, dtype)]
    wrong = {}
    for name in there:
        wanted, stated = cost(name, dtype), ROW_COSTS.get((name, dtype), RowCost())
        if wanted != stated:
            wrong[name] = (stated, wanted)
    assert not wrong
    assert {name for name, of in ROW_COSTS if of == dtype} <= set(there)


def test_wide_integers_divide_one_by_one():
    for (name, dtype), each in ROW_COSTS.items():
        if not dtype.startswith("float") and name != DRAW:
            serial = name == "power" or dtype in ("int64", "uint64")
            assert each.serial is serial is c_expressions.is_serial(name, [dtype] * 2)
            assert each == cost(name, dtype)


def test_a_draw_takes_a_part_of_its_counters_ten_rounds():
    """A counter's lanes have 8 bytes, and give four elements of 4 bytes or two of 8."""
    text = definitions(["geon_philox"])
    loop, _, rest = text[text.index("round = 0;") :].partition("\n    }\n")
    each = 10 * counted(loop[loop.index("{") :], {}, {})[1] + counted(rest, {}, {})[1]
    for dtype, elements, lanes in (("uint32", 4, 2), ("uint64", 2, 1)):
        stated = ROW_COSTS[DRAW, dtype].statements
        assert 0.8 < stated / (each * lanes / elements) < 1.25


def test_no_text_is_looked_at_for_costs():
    folder = Path(geon.__file__).parent / "transformers"
    costs = [f"costs/{name}" for name in ("kernel_costs", "library_costs", "roofline", "machine")]
    for name in [*costs, "analysis/op_counts", "analysis/footprint"]:
        text = (folder / "kernels" / f"{name}.py").read_text()
        assert "import re\n" not in text and "printing" not in text.split('"""', 2)[2]
