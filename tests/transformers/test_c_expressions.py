"""Every scalar C expression against the interpreter: all rows, all dtypes, all special values."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.rows.elementwise import copy
from geon.op_graph.values.dtypes import DTYPES, FLOAT8S, FLOATS, as_dtype, resolve
from geon.testing.cases import for_each
from geon.transformers.native.names.dialect import PRELUDE
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.printing.scalars.c_expressions import (
    C_TYPES,
    ELEMENTARY_ROWS,
    accepts,
    calls,
    cast,
    expression,
    literal,
    tables,
)
from geon.transformers.printing.scalars.helpers import definitions, helpers
from tests.transformers.c_text import mentioned, with_helpers

from .special_values import assert_close, assert_equal_bits, special_values

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
STANDARD = "-std=gnu11 -Wall -Wextra -Werror -fPIC -shared -fwrapv -ffp-contract=off".split()
FAST = "-O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd".split()
CHECKED = "-O1 -fsanitize=undefined,float-cast-overflow".split()
LOWERED = (
    *(
        "airy_ai",
        "airy_aip",
        "airy_bi",
        "airy_bip",
        "lgamma",
        "polygamma",
        "erfcx_derivative",
        "weighted_product",
        "gammainc",
        "gammaincc",
    ),
    *(
        "betainc",
        "ndtri",
        "i0",
        "i0e",
        "i1",
        "i1e",
        "j0",
        "j1",
        "k0",
        "k0e",
        "k1",
        "k1e",
        "y0",
        "y1",
    ),
)
COMPLEX = ("real", "imag", "conj", "as_complex")  # of parts, before any target sees them
ULPS = 8  # of both the NumPy function and ours
# Slopes have a root, where two terms of this size cancel: the ulp is that of the terms.
TERMS = {"gelu_derivative": 0.25, "gelu_tanh_derivative": 0.25, "silu_derivative": 0.25}
ROWS = {
    name: row
    for name, row in PRIMITIVES.items()
    if row.kind == "elementwise" and name not in (*LOWERED, *COMPLEX)
}
WITH_ATTRIBUTES = ("cast", "copy", "stop_gradient")
NARROW = ("float16", "bfloat16", *FLOAT8S)  # they are kept as bits
STORED = (*DTYPES, *FLOAT8S)


def operand_dtypes(name, dtype):
    """The operands' dtypes where the row is used with ``dtype``, or None where it is not."""
    row = ROWS[name]
    given = [as_dtype("bool"), *[as_dtype(dtype)] * 2] if name == "where" else None
    given = given or [as_dtype(dtype)] * row.arity
    try:
        targets, result, _ = resolve(row.rule, tuple((d, False) for d in given))
    except geon.DTypeError:
        return None
    if [t.name for t in targets] != [d.name for d in given]:
        return None
    return [t.name for t in targets], result.name


def as_wide(dtype, other):
    """True of two unlike dtypes, neither bool, whose elements have as many bits."""
    unlike = dtype != other and "bool" not in (dtype, other)
    return unlike and as_dtype(dtype).itemsize == as_dtype(other).itemsize


def cases():
    """(row, operand dtypes, result dtype) of every elementwise row with every dtype it takes."""
    found = []
    for name in ROWS:
        for dtype in STORED:
            if name == "cast":
                found += [(name, (dtype,), target) for target in STORED]
            elif name == "bitcast":
                found += [(name, (dtype,), target) for target in STORED if as_wide(dtype, target)]
            elif name in ("copy", "stop_gradient"):
                found.append((name, (dtype,), dtype))
            elif (dtype not in NARROW or name == "where") and operand_dtypes(name, dtype):
                operands, result = operand_dtypes(name, dtype)
                found.append((name, tuple(operands), result))
    return found


CASES = cases()


def text_of(case):
    name, operands, result = case
    return expression(name, operands, result, [f"x{k}" for k in range(len(operands))])


def undefined(text):
    """The helper functions that a text calls and nobody defines."""
    found = re.findall(r"\bgeon_\w+(?=\()", with_helpers(text))
    return sorted(set(found) - helpers().keys())


def loop(symbol, text, operands, result):
    """A loop of the expression of local variables x0, x1, ...; a bool is read as its byte."""
    held = ["uint8_t" if d == "bool" else C_TYPES[d] for d in operands]
    pointers = "".join(f"const {t} *in{k}, " for k, t in enumerate(held))
    reads = "".join(
        f"        {C_TYPES[d]} x{k} = in{k}[i]{' != 0' * (d == 'bool')};\n        (void)x{k};\n"
        for k, d in enumerate(operands)
    )
    return (
        f"void {symbol}({pointers}{C_TYPES[result]} *restrict out, int64_t n)\n"
        f"{{\n    for (int64_t i = 0; i < n; i++) {{\n{reads}        out[i] = {text};\n    }}\n}}\n"
    )


def compiled(folder, name, loops, flags):
    """The shared object of loops and of all they need."""
    text = "\n".join(loops)
    source = folder / f"{name}.c"
    source.write_text(PRELUDE + with_helpers(text))
    made = folder / f"{name}.so"
    command = [COMPILER, *STANDARD, *flags, str(source), "-o", str(made), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


def symbol_of(case):
    return "_".join([case[0], *case[1], "to", case[2]])


@pytest.fixture(scope="module", params=[FAST, CHECKED], ids=["fast", "checked"])
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expressions")
    loops = [
        loop(symbol_of(case), text_of(case), case[1], case[2])
        for case in CASES
        if not undefined(text_of(case))
    ]
    return compiled(folder, "expressions", loops, request.param)


def run(library, symbol, arrays, dtype):
    out = np.zeros(arrays[0].shape, as_dtype(dtype))
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)]
    getattr(library, symbol)(*pointers, ctypes.c_int64(out.size))
    return out


def random_values(dtype, count, random):
    made = as_dtype(dtype)
    bits = random.integers(0, 256, count * made.itemsize, dtype=np.uint8)
    if dtype == "bool":
        return (bits & 1).astype(bool)
    anything = np.frombuffer(bits.tobytes(), made)
    small = random.integers(-9, 10, count).astype(np.float64)
    if dtype in FLOATS:
        small = small * random.uniform(0, 1, count) * 4.0 ** random.integers(-3, 6, count)
    with np.errstate(all="ignore"):
        near = small.astype(made) if dtype in FLOATS else small.astype(np.int64).astype(made)
    return np.where(random.integers(0, 2, count).astype(bool), anything, near)


def operand_values(dtypes):
    """Every special value with every other, then random bits and random small numbers."""
    random = np.random.default_rng(7)
    grids = np.meshgrid(*[special_values(d) for d in dtypes], indexing="ij")
    parts = [
        (g.ravel(), random_values(d, 3000, random)) for g, d in zip(grids, dtypes, strict=True)
    ]
    return [np.ascontiguousarray(np.concatenate(p)) for p in parts]


def reference(case, arrays):
    name, operands, result = case
    axis = geon.Axis("P", len(arrays[0]))
    leaves = [geon.placeholder([axis], d) for d in operands]
    if name == "bitcast":
        return arrays[0].view(as_dtype(result))
    if name == "cast":
        op = geon.cast(leaves[0], result)
    elif name in WITH_ATTRIBUTES:
        op = (copy if name == "copy" else geon.stop_gradient)(leaves[0])
    else:
        op = ROWS[name].apply(*leaves)
    if name in ELEMENTARY_ROWS:
        return accurate(name, arrays).astype(result)
    known = dict(zip(leaves, arrays, strict=True))
    return arrays[0] if op is leaves[0] else interpret([op], known, {})[op]


def accurate(name, arrays):
    """An elementary row computed in float64 (and so that small results do not become 0)."""
    wide = [x.astype(np.float64) for x in arrays]
    if name == "sigmoid":
        small = np.exp(-np.abs(wide[0]))
        return np.where(wide[0] < 0, small, 1) / (1 + small)
    return np.asarray(ROWS[name].reference(*wide))


def test_every_row_has_an_expression_for_every_dtype():
    assert len(CASES) > 500
    missing = [(n, *o) for n, o, _ in CASES if not accepts(n, o[-1])]
    assert not missing, f"rows without a C expression: {missing}"
    lacking = {symbol_of(case): undefined(text_of(case)) for case in CASES}
    lacking = {k: v for k, v in lacking.items() if v}
    assert not lacking, f"expressions that call what nobody defines: {lacking}"


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(geon.UnavailableError, match="'exp' of float16"):
        expression("exp", ("float16",), "float16", ("x",))
    with pytest.raises(geon.UnavailableError, match="polygamma"):
        expression("polygamma", ("float32",), "float32", ("x",), (1,))


@needs_compiler
@for_each("name", ROWS)
def test_values_are_those_of_the_reference(library, name, capfd):
    mine = [case for case in CASES if case[0] == name]
    assert mine
    for case in mine:
        arrays = operand_values(case[1])
        with np.errstate(all="ignore"):
            expected = reference(case, arrays)
        got = run(library, symbol_of(case), arrays, case[2])
        if name in ELEMENTARY_ROWS or (name == "power" and case[2] in FLOATS):
            assert_close(got, expected, ULPS, symbol_of(case), TERMS.get(name, 0))
        else:
            with np.errstate(invalid="ignore"):
                assert_equal_bits(got, expected, symbol_of(case))
    assert "runtime error" not in capfd.readouterr().err


@needs_compiler
@pytest.mark.parametrize("dtype", STORED)
def test_literals_are_exact(dtype, tmp_path):
    values = np.concatenate(
        [special_values(dtype), random_values(dtype, 500, np.random.default_rng(3))]
    )
    stores = "".join(f"    out[{i}] = {literal(v, dtype)};\n" for i, v in enumerate(values))
    text = f"void fill({C_TYPES[dtype]} *out)\n{{\n{stores}}}\n"
    out = np.zeros(len(values), as_dtype(dtype))
    compiled(tmp_path, "literals", [text], ["-O0"]).fill(ctypes.c_void_p(out.ctypes.data))
    with np.errstate(invalid="ignore"):
        assert_equal_bits(out, values, dtype)


def test_literals_read_like_numbers():
    assert literal(0.1, "float32") == "0.1f"
    assert literal(-2, "int32") == "(-2)"
    assert literal(-(2**63), "int64") == "INT64_MIN"
    assert literal(True, "bool") == "1"
    assert literal(1.0, "bfloat16") == "0x3f80"


@needs_compiler
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_reductions_step_from_their_identity(name, tmp_path):
    """A reducer that folds a row is that row's expression, from the reducer's identity."""
    reducer = PRIMITIVES[name].reducer
    dtypes = ["bool"] if name in ("any", "all") else ["int64", "uint64", "float32", "float64"]
    dtypes += ["int8", "uint16"] if name in ("max", "min") else []
    loops = []
    for dtype in dtypes:
        kind = C_TYPES[dtype]
        first = literal(reducer.identity((as_dtype(dtype),))[0], dtype)
        step = expression(reducer.folds.name, [dtype] * 2, dtype, ["a", "x[i]"])
        loops.append(
            f"void {name}_{dtype}(const {kind} *x, {kind} *out, int64_t n)\n{{\n"
            f"    {kind} a = {first};\n"
            f"    for (int64_t i = 0; i < n; i++)\n"
            f"        a = {step};\n    *out = a;\n}}\n"
        )
    library = compiled(tmp_path, "reductions", loops, FAST)
    random = np.random.default_rng(5)
    for dtype in dtypes:
        for count in (1, 2, 7, 100):
            x = random_values(dtype, count, random)
            if dtype in FLOATS:
                x = random.uniform(0.5, 1.5, count).astype(dtype)
                if count == 7:
                    x[3] = np.nan
            out = np.zeros(1, as_dtype(dtype))
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, out)]
            getattr(library, f"{name}_{dtype}")(*pointers, ctypes.c_int64(count))
            assert_close_or_equal(out[0], getattr(np, name)(x), f"{name} of {count} {dtype}")


def assert_close_or_equal(got, expected, what):
    if got.dtype.name in FLOATS:
        np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=what)
    else:
        assert got == expected, what


def test_definitions_come_once_and_after_what_they_call():
    text = definitions(["geon_half_to_f32", "geon_half_to_f32"])
    assert text == definitions(["geon_half_to_f32"])
    assert text.count("GEON_INLINE float geon_half_to_f32") == 1
    assert text.index("geon_bits_f32(float") < text.index("float geon_half_to_f32")
    for name in helpers():
        assert not undefined(f"{name}("), name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_an_expression_calls_is_known(case):
    name, operands, result = case
    assert list(calls(name, operands, result)) == mentioned(text_of(case))


def test_expressions_are_plain_c():
    """What only some compilers know stands in the prelude, as macros."""
    assert tables()
    assert not [name for name, text in tables().items() if "__builtin" in text]
    later = [name for name in helpers() if "__builtin" in definitions([name])]
    assert later == []


def test_a_cast_to_the_same_dtype_is_nothing():
    assert cast("float32", "float32", "x") == "x"


@needs_compiler
def test_float32_rows_become_vector_instructions(tmp_path):
    version = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True)
    if "Free Software Foundation" not in version.stdout:
        pytest.skip("the report of vectorised loops is read from gcc alone")
    scalar = {"floordivide", "mod", "power", *ELEMENTARY_ROWS}
    wanted = [c for c in CASES if c[1][-1] == "float32" and c[0] not in scalar]
    wanted += [c for c in CASES if c[0] == "cast" and "float32" in (c[1][0], c[2])]
    wanted += [c for c in CASES if c[0] == "where"]
    wanted = [c for c in dict.fromkeys(wanted) if c[0] not in ("copy", "stop_gradient")]
    wanted = [c for c in wanted if c[1][0] != c[2] or c[0] != "cast"]
    # Below AVX2 floats and integers of 64 bits become each other one by one.
    wide = ("int64", "uint64") if find_toolchain().vector_bytes < 32 else ()
    wanted = [c for c in wanted if c[0] != "cast" or (c[1][0] not in wide and c[2] not in wide)]
    lost = []
    sources = [loop(symbol_of(c), text_of(c), c[1], c[2]) for c in wanted]
    text = PRELUDE + definitions(mentioned("\n".join(sources)))
    lines = {}
    for case, source in zip(wanted, sources, strict=True):
        lines[symbol_of(case)] = text.count("\n") + 1, (text + source).count("\n") + 1
        text += source
    path = tmp_path / "vectors.c"
    path.write_text(text)
    # Equal functions are folded into one before loops are looked at, unless told otherwise.
    report = ["-fno-ipa-icf", "-fopt-info-vec-optimized", "-S", str(path), "-o", "/dev/null"]
    command = [COMPILER, *STANDARD, *FAST, *find_toolchain().flags, *report]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reported = [int(n) for n in re.findall(r"vectors\.c:(\d+):\d+: optimized: loop", done.stderr)]
    lost = [k for k, (a, b) in lines.items() if not any(a <= n <= b for n in reported)]
    assert not lost, f"loops that stayed scalar: {lost}"
