"""What is compiled, how often, and that nothing of the user's gets into what is compiled."""

import subprocess

import numpy as np
import pytest

import geon
from geon.transformers.native.emit import module_text
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.toolchain import shared_objects
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
N, C, H = geon.Axis("N"), geon.Axis("C", 7), geon.Axis("H", 5)
NAMES = [
    'quote " and \\',
    "line\nfeed",
    "end */ of comment",
    "/* begin",
    "ünï¢ødé ∂",
    "??/",
    "%s{}",
]


@pytest.fixture
def transformer():
    with geon.NativeTransformer() as made:
        yield made


def network(names=("x", "w", "b", "h")):
    x = geon.placeholder([N, C], name=names[0])
    w = geon.placeholder([C, H], name=names[1])
    b = geon.placeholder([H], name=names[2])
    h = geon.tanh(geon.dot(x, w) + b, name=names[3])
    return [h, *geon.deriv(geon.sum(h * h), [w, b])], (x, w, b)


def feeds(rng, rows):
    return [rng.standard_normal(shape).astype("f4") for shape in ((rows, 7), (7, 5), (5,))]


def units(transformer, names):
    results, inputs = network(names)
    f = transformer.computation(results, *inputs)
    return make_module(for_vectors(f.plan, 64), f.linking, annotate=False).units, f.source


def test_one_compile_serves_every_batch_length(transformer):
    results, inputs = network()
    f = transformer.computation(results, *inputs)
    rng = np.random.default_rng(0)
    f(*feeds(rng, 3))
    before = shared_objects.compiled
    for rows in (1, 0, 2, 48, 97, 300, 1000):
        x, w, b = feeds(rng, rows)
        h = np.tanh(x @ w + b)
        slope = 2 * h * (1 - h * h)
        for got, wanted in zip(f(x, w, b), (h, x.T @ slope, slope.sum(0)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert shared_objects.compiled == before


def test_names_and_lines_are_not_compiled(transformer):
    plain, _ = units(transformer, ("x", "w", "b", "h"))
    for name in NAMES:
        named, source = units(transformer, (name, name + "1", name + "2", name + "3"))
        assert named == plain
        assert source.isascii()
        done = subprocess.run(
            [
                *find_toolchain().command,
                "-std=gnu11",
                "-march=native",
                "-fsyntax-only",
                "-x",
                "c",
                "-",
            ],
            input=transformer.computation(*_one(name)).source,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def _one(name):
    x = geon.placeholder([N], name=name)
    return geon.exp(x, name=name), x


def test_equal_layers_are_one_function(transformer):
    x = geon.placeholder([N, H])
    weights = [geon.placeholder([H, H.prime]) for _ in range(6)]
    h = x
    for w in weights:
        h = geon.tanh(geon.rename(geon.dot(h, w), {H.prime: H}))
    f = transformer.computation(h, x, *weights)
    text = "\n".join(make_module(for_vectors(f.plan, 64), f.linking, annotate=False).units)
    assert len(f.plan.schedule.kernels) == 6
    assert text.count("kernel_0(threads") >= 4 and "kernel_3(" not in text


def test_an_equal_computation_compiles_nothing(transformer):
    results, inputs = network()
    transformer.computation(results, *inputs)(*feeds(np.random.default_rng(0), 4))
    before = shared_objects.compiled
    results, inputs = network(("other", "names", "than", "before"))
    transformer.computation(results, *inputs)(*feeds(np.random.default_rng(0), 4))
    assert shared_objects.compiled == before


def test_the_source_says_names_axes_and_lines(transformer):
    results, inputs = network()
    source = transformer.computation(results, *inputs).source
    assert "/* h: tanh (N, H:5) float32, " in source
    assert f"{__name__.rpartition('.')[2]}.py:" in source


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_long_run_is_divided_between_kernels(transformer, monkeypatch, most):
    """Each is another program: equal ones are compiled once."""
    monkeypatch.setattr(module_text, "MAX_RUN_LINES", most)
    x, t = geon.placeholder([C], name="x"), geon.Axis("T", 3)
    y = x
    for k in range(most, most + 4):
        y = geon.scan(lambda h, _, k=k: (geon.sin(h) + k, None), y, over=t)[0]
    f = transformer.computation(y, x, check="nan")
    wanted = np.linspace(0, 1, 7)
    for k in range(most, most + 4):
        for _ in range(3):
            wanted = np.sin(wanted) + k
    np.testing.assert_allclose(f(np.linspace(0, 1, 7)), wanted, rtol=1e-5)
    assert "geon_run_part_1(" in f.source
    with pytest.raises(geon.NonFiniteError, match="test_compiling"):
        f(np.full(7, np.inf))
