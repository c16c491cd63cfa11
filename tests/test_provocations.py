"""Mistakes that new users made: what each raises and says, a row for each."""

import operator
import subprocess
import sys

import numpy as np
import pytest
import xarray

import geon
from geon.frontends import neon
from geon.frontends import xarray as gx
from geon.frontends.neon import axis as ax
from geon.op_graph.syntax import foreign_names, submodule_names

A, N, T = geon.Axis("A", 3), geon.Axis("N"), geon.Axis("T")
x = geon.placeholder([N, A], name="x")
y = geon.placeholder([N, T, A], name="y")
w = geon.Variable([A], initial_value=0, name="w")
i = geon.placeholder([N], "int64", name="i")
loss = geon.mean(geon.dot(x, w), name="loss")


@geon.custom_deriv(lambda g, out, a: [g])
def scaled(a):
    return a * geon.sum(w)


def times(count, last=None):
    values = np.arange(float(count))
    values[-1] = count if last is None else last
    return xarray.DataArray(np.zeros(count), dims="t", coords={"t": values})


added = gx.compile(lambda a, b: a + b)
GIVEN = geon.ArgumentError
ROWS = [
    (
        lambda: loss(np.ones((1, 3))),
        GIVEN,
        "loss() (made at .*) is an expression and was called at",
    ),
    (lambda: loss(1), GIVEN, "transformer.computation(loss, x)(value of x)"),
    (lambda: geon.assign(w, 1) + 1, geon.DTypeError, "assign(w(A:3)) (made at .*) is run for its"),
    (lambda: 2 * geon.assign(w, 1), geon.DTypeError, "no value to compute with at HERE; list it"),
    (lambda: -geon.doall([geon.assign(w, 1)]), geon.DTypeError, "among the results of transformer"),
    (lambda: geon.assign(w, 1)[0], geon.DTypeError, "or with the variable"),
    (lambda: neon.Adam(lr=0.1), GIVEN, "Adam at HERE has no argument lr=; write rate= for lr="),
    (lambda: neon.AdamW(weight_decay=1), GIVEN, "write decay= for weight_decay="),
    (lambda: neon.Affine(units=3), GIVEN, "Affine at HERE has no argument units=; write axes= for"),
    (lambda: neon.LayerNorm(eps=1), GIVEN, "write epsilon= for eps="),
    (
        lambda: neon.schedules.Cosine(1, total=3),
        GIVEN,
        "Cosine at HERE has no argument total=; it t",
    ),
    (
        lambda: neon.Sequential(neon.Bias(0.0), geon.relu),
        GIVEN,
        "Sequential at HERE was given 2 parts one after another; give a list: Sequential([a, b])",
    ),
    (lambda: neon.Bias(0.0)(geon.placeholder([ax.N])), geon.AxisError, "say which with axes="),
    (
        lambda: geon.scan(lambda c: c, 0.0, y, over="T"),
        GIVEN,
        "scan at HERE: step is called with the carries and the part of xs at the step, and "
        "<lambda>.<locals>.<lambda>(c) takes others; write lambda carry, x: (carry + x, carry)",
    ),
    (lambda: geon.fixed_point(lambda: 1.0, 0.0), GIVEN, "f is called with x, and"),
    (lambda: geon.while_loop(lambda: True, lambda c: c, 0.0), GIVEN, "condition is called with"),
    (
        lambda: geon.cond(geon.sum(w) > 0, lambda c: c, lambda: w),
        GIVEN,
        "is called with no arguments, and",
    ),
    (
        lambda: geon.scan(lambda c, v: (c, v), 0.0, y, over=10),
        geon.AxisError,
        "over=10 is no axis of xs; give a geon.Axis; xs has the axes N, T, A: say which; "
        "geon.Axis('step', 10) is an axis of so many steps",
    ),
    (lambda: geon.scan(lambda c, v: (c, v), 0.0, y), geon.AxisError, "the axes N, T, A: say which"),
    (
        lambda: geon.deriv(loss, "w"),
        GIVEN,
        "deriv at HERE: x is 'w' of type str; give a tensor or a list of tensors; geon.find(y",
    ),
    (
        lambda: geon.deriv(loss, {"w": w}),
        GIVEN,
        "type dict; give a tensor or a list of tensors; gi",
    ),
    (lambda: geon.deriv(geon.dot(x, w), w), geon.DerivativeError, "per=['N'] gives the derivative"),
    (
        lambda: geon.sum([x, x]),
        geon.DTypeError,
        "a list with x(N, A:3) (made at .*) is no tensor, at HERE; geon.stack(tensors, axis) makes",
    ),
    (lambda: neon.Adam()([w]), GIVEN, "a list stands where the cost does; an optimiser is given t"),
    (
        lambda: geon.deriv(geon.sum(scaled(x)), w),
        geon.DerivativeError,
        "scaled, called at HERE, has a rule of custom_deriv and reads it otherwise than as an "
        "argument, which makes it a constant: make it an argument",
    ),
    (
        lambda: geon.placeholder([A], "double"),
        geon.DTypeError,
        "no dtype 'double'; it has .*; write 'float64'",
    ),
    (
        lambda: x.cast("string"),
        geon.DTypeError,
        "'string'; it has .*; give each text a number",
    ),
    (
        lambda: added(times(1460), times(100)),
        geon.FeedError,
        "[0.0, 1.0, 2.0, 3.0, ...] of length 1460 in a(t) .* 2.0, 3.0, ...] of length 100 in b(t)",
    ),
    (
        lambda: added(times(9), times(9, 7.5)),
        geon.FeedError,
        "the same; they differ from position 8",
    ),
    (
        lambda: gx.compile(lambda a: a.sel(t=1))(times(3)),
        AttributeError,
        'sel\'; write x[{"dim": po',
    ),
    (lambda: gx.compile(lambda a: a.isel(t=1))(times(3)), AttributeError, "positions along their"),
    (
        lambda: gx.compile(lambda a: a.groupby("t"))(times(3)),
        AttributeError,
        "write geon.segment_mean(x, groups, axis)",
    ),
    (
        lambda: gx.compile(lambda a: xarray.where(a > 0, a, 0))(times(3)),
        AttributeError,
        "geon.where(condition, x, y) for xr.where",
    ),
    (lambda: bool(geon.mean(x)), geon.SymbolicError, "the symbolic tensor mean() "),
    (lambda: geon.deriv(geon.softmax(x, A), x), geon.DerivativeError, "y is softmax(N, A:3) "),
    (lambda: geon.deriv(geon.log_softmax(x, A), x), geon.DerivativeError, "log_softmax(N, A:3) "),
    (lambda: w[i], geon.IndexRangeError, "geon.gather(w, i, A) takes many at once"),
    (lambda: geon.cholesky, AttributeError, "write geon.linalg.cholesky(x, [I, J])"),
    (lambda: geon.eig, AttributeError, "'eig'; geon does not have it yet: compute it with NumPy"),
    (lambda: geon.multi_dot, AttributeError, "write geon.contract("),
    (lambda: geon.switch, AttributeError, "write geon.case_of(index, branches)"),
    (lambda: geon.custom_vjp, AttributeError, "write geon.custom_deriv(rule), a decorator"),
    (lambda: geon.linalg.eigvals, AttributeError, "write geon.linalg.eigh(x, [I, J]) for a sym"),
    (lambda: geon.linalg.norm, AttributeError, "write geon.L2_norm(x, A) of vectors"),
    (lambda: geon.fft.fft2, AttributeError, "write geon.fft.fftn(x, [A, B])"),
    (lambda: geon.distributions.norm, AttributeError, "write geon.distributions.Normal(loc"),
    (
        lambda: geon.distributions.Normal(0.0, 1.0).rvs,
        AttributeError,
        "'Normal' object has no attribute 'rvs'; write d.sample(geon.Random(seed), axes)",
    ),
    (
        lambda: geon.distributions.Normal(0.0, 1.0).sample(3),
        geon.ArgumentError,
        "sample at HERE: random=3 is no stream of random numbers; make one with random = geon.R",
    ),
    (
        lambda: neon.Dense,
        AttributeError,
        "neon' has no attribute 'Dense'; write neon.Affine(axes, ",
    ),
    (lambda: neon.Conv2d, AttributeError, "write neon.Convolution"),
    (lambda: neon.ReLU, AttributeError, "write geon.relu, a function among the layers"),
]


def test_each_mistake_is_answered():
    wrong = []
    for call, kind, message in ROWS:
        line = call.__code__.co_firstlineno
        try:
            call()
            said = "nothing"
        except Exception as error:
            said = (
                str(error).replace(__file__, "HERE").replace("tests/test_provocations.py", "HERE")
            )
            said = said.replace(f"HERE:{line}", "HERE")
            parts = message.split(".*")
            found = type(error) is kind and all(part in said for part in parts)
            if found:
                continue
        wrong.append((line, message, said))
    assert wrong == []


def test_names_that_python_knows_better_are_suggested_by_python():
    """Python prints what is alike where the error has the name and the module."""
    for module, wrong, right in (
        ("geon", "Placeholder", "placeholder"),
        ("neon", "LayrNorm", "Lay"),
    ):
        program = f"import geon\nfrom geon.frontends import neon\n{module}.{wrong}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert f"has no attribute '{wrong}'. Did you mean: '{right}" in done.stderr


def test_the_table_names_what_there_is_and_is_no_name_of_geon():
    import re

    missing = []
    for name, cure in {
        **foreign_names.FUNCTIONS,
        **foreign_names.NEON,
        **foreign_names.LACKING,
    }.items():
        for module, word in re.findall(r"\b(geon|neon)\.(\w+)", cure):
            if word != "frontends" and not hasattr({"geon": geon, "neon": neon}[module], word):
                missing.append((name, word))
    for table in (submodule_names.LINALG, submodule_names.FFT, submodule_names.DISTRIBUTIONS):
        for name, cure in table.items():
            for path in re.findall(r"\bgeon\.([\w.]+)", cure):
                try:
                    operator.attrgetter(path)(geon)
                except AttributeError:
                    missing.append((name, path))
    assert missing == []
    assert not {*submodule_names.LINALG} & {*dir(geon.linalg)}
    assert not {*submodule_names.FFT} & {*dir(geon.fft)}
    assert not {*submodule_names.DISTRIBUTIONS} & {*dir(geon.distributions)}
    normal = geon.distributions.Normal(0.0, 1.0)
    assert all(
        hasattr(normal, each)
        for cure in submodule_names.METHODS.values()
        for each in re.findall(r"\bd\.(\w+)", cure)
    )
    assert not {*submodule_names.METHODS} & {*dir(normal)}
    assert not {*foreign_names.LACKING} & {*foreign_names.FUNCTIONS, *dir(geon)}
    assert not {*foreign_names.NEON} & {*dir(neon)}


def test_a_full_cache_says_so(transformer):
    cache = neon.Cache(geon.Axis("place", 2), name="cache")
    attention = neon.MultiHeadAttention(
        geon.Axis("head", 1), geon.Axis("key", 2), A, 0.1, causal=True
    )
    z = geon.placeholder([ax.N, ax.T, A], name="z")
    f = transformer.computation([attention(z, cache=cache), *cache.updates], z)
    with pytest.raises(geon.IndexRangeError) as caught:
        f(np.zeros((1, 3, 3)))
    assert "cache.times(T)" in str(caught.value)
    assert (
        "the cache is full: give neon.Cache an axis of more places, or set its position to 0"
        in str(caught.value)
    )
