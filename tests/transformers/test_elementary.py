"""Elementary functions in C: their error in ulp on the whole domain, and that loops vectorise."""

import ctypes
import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import special

from geon.transformers.native.names.dialect import PRELUDE
from geon.transformers.printing.elementary.definitions import ELEMENTARY
from geon.transformers.printing.scalars.c_functions import FUNCTIONS

COMPILER = next(
    filter(None, map(shutil.which, [os.environ.get("CC", ""), "cc", "gcc", "clang"])), ""
)
pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler found as $CC, cc, gcc or clang")

FLAGS = (
    "-std=gnu11 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fopenmp-simd"
    " -Wall -Wextra -Werror"
).split()
UNARY = (
    "exp expm1 log log1p sigmoid softplus sin cos tan asin acos atan sinh cosh tanh asinh acosh"
    " atanh erf"
).split()
# What is made of erfc, and activations; the slopes have a root.
TAILS = "erfc erfcx ndtr log_ndtr erfinv sigmoid_derivative gelu gelu_tanh silu".split()
SLOPES = "gelu_derivative gelu_tanh_derivative silu_derivative".split()
UNARY += TAILS + SLOPES
BINARY = ["atan2", "pow", "exp_product"]
NAMES = [(name, dtype) for dtype in ("f32", "f64") for name in UNARY + BINARY]

# Functions of float64 that are the C library's; sin and cos are so for large arguments alone.
LIBRARY = "tan asinh acosh atanh".split()
VECTORS = [f"geon_{name}_{dtype}" for name, dtype in NAMES if dtype == "f32"]
VECTORS += [f"geon_{name}_f64" for name in UNARY + BINARY if name not in ("sin", "cos", *LIBRARY)]
VECTORS += ["geon_sin_bounded_f64", "geon_cos_bounded_f64"]


def definitions(names):
    """The definitions of these functions after those of all they call."""
    found = {}

    def add(name):
        if name not in found:
            for called in re.findall(r"geon_\w+", ELEMENTARY[name]):
                if called != name:
                    add(called)
            found[name] = ELEMENTARY[name]

    for name in names:
        add(name)
    return "\n".join(found.values())


def loop(name):
    """One line of C: the function over arrays."""
    scalar = "float" if name.endswith("f32") else "double"
    second = f"const {scalar} *restrict y, " if name[5:-4] in BINARY else ""
    call = f"{name}(x[i], y[i])" if second else f"{name}(x[i])"
    return (
        f"void loop_{name}(const {scalar} *restrict x, {second}{scalar} *restrict out, ptrdiff_t n)"
        f" {{ for (ptrdiff_t i = 0; i < n; i++) out[i] = {call}; }}"
    )


ERF_OF_LONG_DOUBLE = """
void erf_of_long_double(const long double *x, long double *out, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) out[i] = __builtin_erfl(x[i]);
}
"""


def compiled(folder, *flags):
    """A library with a loop over arrays for every function."""
    names = [f"geon_{name}_{dtype}" for name, dtype in NAMES]
    names += ["geon_sin_bounded_f64", "geon_cos_bounded_f64"]
    text = PRELUDE + definitions(names) + ERF_OF_LONG_DOUBLE + "\n".join(map(loop, names)) + "\n"
    source, target = folder / "loops.c", folder / "loops.so"
    source.write_text(text)
    command = [COMPILER, *FLAGS, *flags, "-shared", "-fPIC", str(source), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


@pytest.fixture(scope="module", params=["machine", "no-fma"])
def library(request, tmp_path_factory):
    if request.param == "machine":
        flags = ["-march=native"]
    elif platform.machine() in ("x86_64", "AMD64"):
        flags = ["-march=native", "-mno-fma"]
    else:
        pytest.skip("only x86 machines come with and without fused multiply-adds")
    loops = compiled(tmp_path_factory.mktemp("elementary"), *flags)
    return SimpleNamespace(loops=loops, fused=request.param == "machine")


def run(loops, name, *arguments):
    """The function of float arrays, computed by its loop."""
    arguments = [np.ascontiguousarray(x) for x in arguments]
    out = np.empty_like(arguments[0])
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*arguments, out)]
    getattr(loops, name)(*pointers, ctypes.c_ssize_t(out.size))
    return out


def errors(got, wanted, size=0.0):
    """|got - wanted| in ulp of the correctly rounded result; infinite where the kind differs.

    The ulp is that of ``size`` where that is larger: of a term that cancels at a root.

    `wanted` is wider than `got`. Beyond the largest finite number the next power of two stands for
    infinity, on both sides. NaN must be NaN, and zeros have their sign.
    """
    dtype, wide = got.dtype.type, wanted.dtype.type
    end = wide(2) ** np.finfo(dtype).maxexp
    with np.errstate(all="ignore"):
        nearest = np.maximum(np.abs(wanted), size)
        nearest = np.minimum(nearest, np.finfo(dtype).max).astype(dtype)
        ulp = np.minimum(np.spacing(nearest), end * np.finfo(dtype).epsneg).astype(wide)
        error = np.abs(np.clip(got.astype(wide), -end, end) - np.clip(wanted, -end, end)) / ulp
    error = np.where(np.isnan(wanted) & np.isnan(got), 0, error)
    signed = np.isnan(wanted) | (np.signbit(got) == np.signbit(wanted)) | (size > np.abs(wanted))
    return np.where(signed & ~np.isnan(error), error, np.inf)


def assert_within(bound, got, wanted, *arguments, size=0.0):
    error = errors(got, wanted, size)
    worst = np.argmax(error)
    at = ", ".join(repr(x[worst]) for x in arguments)
    assert error[worst] <= bound, f"{error[worst]} ulp at {at}: {got[worst]} for {wanted[worst]}"


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def cubic(x):
    """The sigmoid's argument in gelu's tanh form, and x times its derivative."""
    scale = np.sqrt(8 / np.pi)
    return scale * (x + 0.044715 * x**3), scale * (x + 3 * 0.044715 * x**3)


def gated(x, u):
    return np.where(np.isinf(x), np.maximum(x, 0), x * sigmoid(u)) + 0.0 * np.sign(x)


def gated_terms(u, w):
    """The two terms of the derivative of x sigmoid(u), where w is x u'."""
    return sigmoid(u), np.where(np.abs(u) > 800, 0, w * sigmoid(u) * sigmoid(-u))


def normal_terms(x):
    near = np.clip(x, -40, 40)
    return special.ndtr(x), near * np.exp(-near * near / 2) / np.sqrt(2 * np.pi)


TERMS = {
    "gelu_derivative": normal_terms,
    "gelu_tanh_derivative": lambda x: gated_terms(*cubic(x)),
    "silu_derivative": lambda x: gated_terms(x, x),
}
NUMPY = {
    **{name: getattr(np, name, None) for name in UNARY},
    **{f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()},
    **{"sigmoid": sigmoid, "softplus": softplus, "erf": special.erf},
    **{"atan2": np.arctan2, "pow": np.power, "exp_product": lambda x, y: np.exp(x * y)},
    **{name: getattr(special, name) for name in "erfc erfcx ndtr log_ndtr erfinv".split()},
    "sigmoid_derivative": lambda x: sigmoid(x) * sigmoid(-x),
    "gelu": lambda x: np.where(np.isinf(x), np.maximum(x, 0), x * special.ndtr(x)),
    "gelu_tanh": lambda x: gated(x, cubic(x)[0]),
    "silu": lambda x: gated(x, x),
    **{name: lambda x, terms=terms: sum(terms(x)) for name, terms in TERMS.items()},
}

# Arguments ---------------------------------------------------------------------------------------

POINTS = [
    *(0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.25, 1.5, 2.0, 3.925, 5.93, 9.01, 17.3, 18.7, 36.7, 40.0),
    *(0.5**0.5, 2**0.5, np.log(2), np.log(2) / 2, np.pi / 4, np.pi / 2, 3 * np.pi / 4, np.pi),
    *(87.33, 88.0296, 88.7228, 89.0, 89.416, 103.279, 103.972, 104.0, 20.0),
    *(708.396, 709.782, 710.0, 710.4758, 744.44, 745.1332, 746.0),
    *(2.0**e for e in (-149, -126, -54, -27, -25, -13, 19, 23, 24, 25, 30, 45, 46, 53, 66, 87)),
    *(2.0**108, 3.4028234e38, 1.7e308, 5e-324, 2.0**-1022, 1e10),
]


@functools.cache
def numbers(scalar):
    """A million floats: all exponents, subnormals, special ones and what lies beside them."""
    dtype = np.dtype(scalar)
    count = 1_000_000
    bits = np.dtype(f"uint{8 * dtype.itemsize}")
    random = np.random.default_rng(7)
    anything = random.integers(0, np.iinfo(bits).max, count // 2, bits, endpoint=True).view(dtype)
    with np.errstate(over="ignore"):
        points = np.array(POINTS).astype(dtype)
    steps = np.arange(-400, 401).astype(bits)
    beside = (np.minimum(points, np.finfo(dtype).max).view(bits)[:, None] + steps).view(dtype)
    quarters = np.arange(1, 20_000) * (np.pi / 2)
    subnormal = np.finfo(dtype).smallest_normal * random.random(10_000)
    rest = count // 2
    positive = [beside.ravel(), subnormal, quarters, random.exponential(1, rest // 8)]
    positive += [1 + 10.0 ** random.uniform(-16, 0, rest // 8), random.uniform(0, 1, rest // 8)]
    positive += [random.uniform(0, 120 if dtype.itemsize == 4 else 750, rest // 8)]
    chosen = np.concatenate([np.asarray(x, dtype) for x in positive])
    ends = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)
    return np.concatenate([anything, chosen, -chosen, ends])


@functools.cache
def pairs(scalar):
    """Two columns of arguments for atan2 and pow: any with any, and powers of a common size."""
    x = numbers(scalar)
    random = np.random.default_rng(8)
    first, second = random.permutation(x), random.permutation(x)
    limit = np.finfo(x.dtype).maxexp * 0.6
    base = np.exp(random.uniform(-limit, limit, x.size // 2)).astype(x.dtype)
    power = random.uniform(-1.3, 1.3, base.size) * np.finfo(x.dtype).maxexp * np.log(2)
    exponent = (power / np.log(base)).astype(x.dtype)
    few = [0, 1, 2, 3, 0.5, 1.5, np.inf, np.nan, 2**24, 2**24 - 1, 2**23 + 1, 1e-45, 3e38]
    few = np.array([*few, *(-value for value in few)], x.dtype)
    squares = np.array(np.meshgrid(few, few)).reshape(2, -1)
    return np.concatenate([first, base, squares[0]]), np.concatenate([second, exponent, squares[1]])


# Accuracy ----------------------------------------------------------------------------------------


# What the docstrings of the elementary modules say of the largest error, in ulp.
PROMISED_F32 = {"sin": 1.6, "cos": 1.6, "atan": 1.6, "acos": 1.6, "asin": 2.4, "tan": 3.2,
                "pow": 0.6, "atan2": 1.6}  # fmt: skip
PROMISED_F64 = {"exp": 1, "log": 1, "expm1": 1.5, "log1p": 1.5, "sigmoid": 1.5, "erf": 1.5,
                "tanh": 1.8, "softplus": 1.8, "sin": 1.5, "cos": 1.5, "pow": 1.1,
                "sinh": 1.6, "cosh": 1.6, "atan": 1.8, "atan2": 1.8, "asin": 1.2,
                "acos": 1.2}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_float32_within_4_ulp(library, name):
    """4 ulp; 5 for the new tails without fused products, whose polynomials round twice a step."""
    x = numbers(np.float32)
    assert x.size >= 1_000_000
    got = run(library.loops, f"loop_geon_{name}_f32", x)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = NUMPY[name](wide)
        size = np.abs(TERMS[name](wide)).max(axis=0) if name in TERMS else 0.0
    bound = PROMISED_F32.get(name, 4)
    if name in TAILS + SLOPES and not library.fused:
        bound = 5
    keep = ~((wanted == 0) & (got == 0)) if name in TAILS + SLOPES else slice(None)
    assert_within(bound, got[keep], wanted[keep], x[keep], size=size[keep] if name in TERMS else 0)


@pytest.mark.parametrize("name", BINARY)
def test_float32_of_two_arguments_within_4_ulp(library, name):
    x, y = pairs(np.float32)
    got = run(library.loops, f"loop_geon_{name}_f32", x, y)
    with np.errstate(all="ignore"):
        wanted = NUMPY[name](x.astype(np.float64), y.astype(np.float64))
    assert_within(PROMISED_F32.get(name, 4), got, wanted, x, y)


def bound_of_float64(name, fused):
    """What is promised; 2.5 for what the C library computes, and without fused products."""
    if name in TAILS:
        return 4
    return 2.5 if name in LIBRARY or not fused else PROMISED_F64.get(name, 2)


WIDE = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant + 8


@pytest.mark.skipif(
    not WIDE, reason="long double is float64 here: no wider reference for a million"
)
@pytest.mark.parametrize("name", [n for n in UNARY + BINARY if n not in TAILS + SLOPES])
def test_float64_within_2_ulp(library, name):
    if name in LIBRARY and not library.fused:
        pytest.skip("the C library's function, tested with the other flags")
    arguments = pairs(np.float64) if name in BINARY else (numbers(np.float64),)
    got = run(library.loops, f"loop_geon_{name}_f64", *arguments)
    with np.errstate(all="ignore"):
        wide = [x.astype(np.longdouble) for x in arguments]
        if name == "erf":
            wanted = run(library.loops, "erf_of_long_double", *wide)
        else:
            wanted = NUMPY[name](*wide)
    assert_within(bound_of_float64(name, library.fused), got, wanted, *arguments)


PRECISE = {
    **{name: getattr(mpmath, name, None) for name in UNARY},
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "log_ndtr": lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "sigmoid_derivative": lambda x: 1 / ((1 + mpmath.exp(-x)) * (1 + mpmath.exp(x))),
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x / (1 + mpmath.exp(-cubic_precisely(x))),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
}


def cubic_precisely(x):
    return mpmath.sqrt(8 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)


# The float64 nearest to a multiple of a quarter turn (2^-60 off) and other large angles.
ANGLES = [6381956970095103.0 * 2.0**797, 16367173.0 * 2.0**72, 1e22, 2.0**45, 2.0**45 - 1]


def hard_numbers(low, high):
    """A few hundred to three thousand finite float64 between the two."""
    random = np.random.default_rng(9)
    anything = random.choice(numbers(np.float64), 1000)
    near_one = 1 + random.uniform(0, 1, 200) ** 8
    x = [anything, random.normal(0, 3, 1000), random.uniform(-1, 1, 500), near_one, ANGLES]
    x = np.concatenate(x)
    return x[(x > low) & (x < high)]


@pytest.mark.parametrize("name", [name for name in UNARY if name not in SLOPES])
def test_float64_in_hard_places(library, name):
    """Against 1,200 bits, so that sums and arguments as large as 1e308 are exact."""
    domain = {"log": (0, np.inf), "log1p": (-1, np.inf), "acosh": (1, np.inf)}
    low, high = domain.get(
        name, (-1, 1) if name in ("asin", "acos", "atanh", "erfinv") else (-708, 708)
    )
    if name == "erfcx":
        low, high = -26, 1000
    if name in ("sin", "cos", "tan", "atan", "erf", "asinh"):
        low, high = -np.inf, np.inf
    x = hard_numbers(low, high)
    assert x.size > 400
    got = run(library.loops, f"loop_geon_{name}_f64", x)
    with mpmath.workprec(1200):
        precise = [PRECISE[name](mpmath.mpf(value)) for value in x.tolist()]
        heads = np.array([float(value) for value in precise])
        tails = [float(value - head) for value, head in zip(precise, heads.tolist(), strict=True)]
    # The error is got - head - tail; the first difference is exact.
    error = np.abs((got - heads) - np.array(tails)) / np.spacing(np.abs(heads))
    worst = np.argmax(error)
    bound = bound_of_float64(name, library.fused)
    assert error[worst] <= bound, f"{error[worst]} ulp at {x[worst]!r}: {got[worst]!r}"


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_bounded_sine_and_cosine_are_the_same(library, name):
    x = numbers(np.float64)
    x = x[np.abs(x) <= (2.0**45 if library.fused else 2.0**19)]
    assert x.size > 400_000
    bounded = run(library.loops, f"loop_geon_{name}_bounded_f64", x)
    np.testing.assert_array_equal(bounded, run(library.loops, f"loop_geon_{name}_f64", x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_others_rely_on(library, dtype):
    """Probabilities, tanh and erf stay within their range; small arguments return themselves."""
    suffix = "f32" if dtype is np.float32 else "f64"
    x = numbers(dtype)
    x = x[~np.isnan(x)]
    for name, limit in (("tanh", 1), ("erf", 1), ("erfc", 0), ("ndtr", 1), ("gelu_derivative", 1)):
        got = run(library.loops, f"loop_geon_{name}_{suffix}", np.array([1e6, 1e30], dtype))
        assert (got == limit).all(), name
    for name in ("tanh", "erf", "sin", "cos"):
        got = run(library.loops, f"loop_geon_{name}_{suffix}", x[np.isfinite(x)])
        assert np.abs(got).max() <= 1, name
    got = run(library.loops, f"loop_geon_sigmoid_{suffix}", x)
    assert got.min() >= 0
    assert got.max() <= 1
    tiny = x[np.abs(x) < np.finfo(dtype).eps / 16]
    for name in "sin tan asin atan sinh tanh asinh atanh expm1 log1p".split():
        got = run(library.loops, f"loop_geon_{name}_{suffix}", tiny)
        np.testing.assert_array_equal(got, tiny, name)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(tiny), name)


# Vector instructions -----------------------------------------------------------------------------

TARGETS = {
    "x86_64": [
        (["-march=x86-64-v4", "-mprefer-vector-width=512"], 64),
        (["-march=x86-64-v3"], 32),
    ],
    "aarch64": [([], 16)],
}


def is_gcc():
    told = subprocess.run([COMPILER, "--version"], capture_output=True, text=True).stdout
    return "Free Software Foundation" in told


@pytest.mark.parametrize("target", [0, 1])
def test_loops_vectorise(tmp_path, target):
    machine = platform.machine()
    if not is_gcc():
        pytest.skip("the report of vectorised loops is gcc's")
    if target >= len(TARGETS.get(machine, [])):
        pytest.skip(f"no target number {target} on {machine}")
    flags, width = TARGETS[machine][target]
    source = tmp_path / "loops.c"
    source.write_text(PRELUDE + definitions(VECTORS) + "\n".join(map(loop, VECTORS)) + "\n")
    report = "-fopt-info-vec-optimized"
    command = [COMPILER, *FLAGS, *flags, report, "-S", str(source), "-o", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = source.read_text().splitlines()
    found = re.findall(rf"loops.c:(\d+):.*loop vectorized using {width} byte", done.stderr)
    loops = {lines[int(number) - 1].split("(")[0] for number in found}
    assert loops == {f"void loop_{name}" for name in VECTORS}


# Text --------------------------------------------------------------------------------------------


def test_every_function_is_defined():
    for name, dtype in NAMES:
        assert f" geon_{name}_{dtype}(" in ELEMENTARY[f"geon_{name}_{dtype}"]


def test_definitions_use_only_what_is_defined():
    types = set(re.findall(r"^typedef \w+ (geon_\w+);", PRELUDE, re.M))
    for name, text in ELEMENTARY.items():
        assert text.startswith(("GEON_INLINE ", "GEON_OUTLINED ")), name
        assert set(re.findall(r"geon_\w+", text)) <= types | set(ELEMENTARY) | set(FUNCTIONS), name
        assert "<" not in re.sub(r" <[<=]? ", "", text), name


def test_import_needs_nothing_heavy():
    module = "geon.transformers.printing.elementary.definitions"
    code = f"import sys, {module}; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
