"""``f.source`` is one C file, which compilers accept as it stands and has what units share once."""

import shutil
import subprocess
import tempfile

import pytest

import geon
from geon.transformers.native.emit.one_file import one_file
from geon.transformers.native.emit.unit_texts import transposes
from geon.transformers.native.library.library_kernels import fill_function, library_text
from geon.transformers.native.names.dialect import PRELUDE
from geon.transformers.native.toolchain.compilers import find_toolchain

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

FLAGS = ["-std=gnu11", "-march=native", "-Wall", "-Wno-unknown-pragmas", "-Wno-unused-variable"]
N, C, H = geon.Axis("N"), geon.Axis("C", 40), geon.Axis("H", 300)
T, K, Y, X = geon.Axis("T"), geon.Axis("K", 5), geon.Axis("Y", 20), geon.Axis("X", 20)


def programs():
    """Yield names, results and placeholders."""
    x = geon.placeholder([N, C], name="x")
    w = geon.Variable([C, H], initial_value=1, name="w")
    product = geon.tanh(geon.dot(x, w))
    yield "product", [product, geon.deriv(geon.sum(product), w)], [x]
    wide, eight = geon.placeholder([N, C], "float64"), geon.placeholder([C, geon.Axis("F", 8)])
    of_wide = geon.dot(wide, geon.cast(eight, "float64"))
    yield (
        "products of several types",
        [geon.dot(x, w), geon.dot(x, eight), of_wide],
        [x, wide, eight],
    )
    image = geon.placeholder([N, geon.Axis("D", 3), Y, X])
    taps = geon.placeholder(
        [geon.Axis("D", 3), geon.Axis("O", 4), geon.Axis("J", 3), geon.Axis("I", 3)]
    )
    convolved = geon.convolution(image, taps, {Y: "J", X: "I"})
    yield "convolution", [convolved, geon.deriv(geon.sum(convolved), taps)], [image, taps]
    largest, places = geon.top_k(x, 3, C)
    sorts = [
        geon.sort(x, C),
        geon.argsort(x, C),
        largest,
        places,
        geon.sort(wide, C),
        geon.cumsum(x, N),
    ]
    yield "sort", sorts, [x, wide]
    steps = geon.placeholder([T, N, K])
    last, seen = geon.scan(lambda c, e: (geon.sin(c + e), c * e), steps[{T: 0}], steps, over=T)
    yield "scan", [last, seen, geon.deriv(geon.sum(seen), steps)], [steps]
    at = geon.placeholder([N], "int64")
    added = geon.scatter(w, at, geon.broadcast(geon.sum(x, C), [N, H]), C, mode="add")
    yield "scatter", [added, geon.gather(w, at, C)], [at, x]
    yield "random", [geon.Random(0).normal([C, H]) + geon.Random(1).uniform([C, H])], []
    half, other = geon.placeholder([N, C], "float16"), geon.placeholder([C, K], "bfloat16")
    halves = [
        geon.dot(half, geon.cast(other, "float16")),
        geon.sort(half, C),
        geon.softmax(half, C),
    ]
    yield "halves", [*halves, geon.exp(other)], [half, other]


def compilers():
    """Yield the compilers that are here: the one of geon, gcc and clang."""
    yield find_toolchain().command
    for name in ("gcc", "clang"):
        if shutil.which(name):
            yield (name,)


def test_compilers_take_the_source_as_it_stands():
    failures = {}
    for name, results, placeholders in programs():
        text = geon.NativeTransformer().computation(results, *placeholders).source
        assert text.count("#include <stdint.h>") == 1
        for command in dict.fromkeys(compilers()):
            arguments = [*command, *FLAGS, "-fsyntax-only", "-x", "c", "-"]
            ran = subprocess.run(arguments, input=text, capture_output=True, text=True)
            wrong = [s for s in ran.stderr.splitlines() if "error:" in s or "redefined" in s]
            if ran.returncode or wrong:
                failures[name, command] = wrong
    assert not failures


# Functions of C files, whose units have many macros and types of the same names.
CALLED = [
    *[("sort", "float32"), ("argsort", "float64"), ("top_k", "float32"), ("sort", "int8")],
    *[("bottom_k", "float64"), ("argmax", "float32"), ("cumsum", "float32"), ("cummax", "int32")],
    *[("eigh", "float32"), ("eigvalsh", "float64"), ("lu", "float32"), ("lu_solve", "float64")],
    *[("scatter_add", "float32", "int64"), ("scatter_set", "float64", "int32")],
]


@pytest.mark.parametrize("order", [1, -1], ids=["first to last", "last to first"])
def test_functions_of_c_files_in_one_file(order):
    functions = [library_text(name, tuple(dtypes)) for name, *dtypes in CALLED]
    units = [unit for each in (*functions, fill_function()) for unit in each.units]
    text = one_file([*units, PRELUDE + "".join(transposes().values())][::order])
    wrong = ("error:", "redefined", "implicit")
    for command in dict.fromkeys(compilers()):
        arguments = [*command, *FLAGS, "-fsyntax-only", "-x", "c", "-"]
        ran = subprocess.run(arguments, input=text, capture_output=True, text=True)
        found = [line for line in ran.stderr.splitlines() if any(word in line for word in wrong)]
        assert ran.returncode == 0 and not found, found


def test_names_of_several_meanings():
    """What units call alike stays apart: macros, types, functions, what macros make of names."""
    shared = "#define INLINE static inline\nINLINE int twice(int x)\n{\n    return 2 * x;\n}\n"
    form = """
#define TYPE KIND
#define JOINED(a, b) a##b
#define OF(a, b) JOINED(a, b)
typedef TYPE number;
struct pair {
    number x, y;
};
static number OF(su, m)(struct pair p)
{
    return p.x + p.y;
}
static number pair(number x)
{
    return sum((struct pair){x, twice(x)});
}
KIND of_KIND(KIND x);
KIND of_KIND(KIND x)
{
    return pair(x);
}
#undef TYPE
"""
    whole, part = (shared + form.replace("KIND", kind) for kind in ("int", "float"))
    text = one_file([whole, part, "int TYPE;\n"])
    assert text.count("INLINE int twice") == 1
    assert text.count("typedef TYPE number;") == 2 and text.endswith("#undef TYPE\n\nint TYPE;\n")
    arguments = [*find_toolchain().command, *FLAGS, "-Werror", "-fsyntax-only", "-x", "c", "-"]
    ran = subprocess.run(arguments, input=text, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def code_of(text):
    """What the program of a text returns."""
    with tempfile.TemporaryDirectory() as folder:
        made = f"{folder}/main"
        command = [*find_toolchain().command, "-x", "c", "-", "-o", made]
        subprocess.run(command, input=text, text=True, check=True)
        return subprocess.run([made]).returncode


def test_names_that_macros_paste():
    """A function of equal text in two units calls the static function of its own unit."""
    form = """
#define WIDTH KIND
static int low_1(void)
{
    return WIDTH;
}
#define CALL(kind, number) low_##number()
static int either(void)
{
    return CALL(low, 1);
}
int of_KIND(void);
int of_KIND(void)
{
    return either();
}
"""
    main = "int main(void)\n{\n    return of_3() * 10 + of_4();\n}\n"
    text = one_file([form.replace("KIND", "3"), form.replace("KIND", "4"), main])
    assert code_of(text) == 34


def test_macros_that_a_condition_undefines():
    """A macro that is still defined after a condition did not hold is undefined where asked."""
    one = """
#define SIDE 3
#if __STDC_VERSION__ < 1
#undef SIDE
#endif
int of_3(void);
int of_3(void)
{
    return SIDE;
}
#undef SIDE
"""
    other = """
#ifdef SIDE
int of_4(void);
int of_4(void)
{
    return SIDE;
}
#else
int of_4(void);
int of_4(void)
{
    return 1;
}
#endif
"""
    main = "int main(void)\n{\n    return of_3() * 10 + of_4();\n}\n"
    assert code_of(one_file([one, other, main])) == 31
