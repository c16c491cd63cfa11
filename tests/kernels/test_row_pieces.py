"""Reductions of what is joined or bordered: choices along rows, and along what each goes over."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.analysis.index_boxes import guards_of
from geon.transformers.kernels.nests.reduction_splitting import element_values
from tests.golden.emitting import Native

from .transformer import KernelsTransformer

N, M, K = geon.Axis("N"), geon.Axis("M"), geon.Axis("K")


def padded(values, before, after, value=0.0):
    """Values with a border along the last axis."""
    width = [(0, 0)] * (values.ndim - 1) + [(before, after)]
    return np.pad(values, width, constant_values=value)


# Reductions along what is cut, along what lies beside it, and along all, with what NumPy says.
ALONG = {
    "sum of a border": (
        lambda x: geon.sum(geon.pad(x, {K: (2, 3)}, value=1.5), K),
        lambda v: padded(v, 2, 3, 1.5).sum(-1),
    ),
    "sum of joined values": (
        lambda x: geon.sum(geon.concat([geon.exp(x), x], K), K),
        lambda v: np.concatenate([np.exp(v), v], -1).sum(-1),
    ),
    "largest": (
        lambda x: geon.max(geon.pad(x * 2.0, {K: (1, 0)}, value=-1.0), K),
        lambda v: padded(v * 2, 1, 0, -1.0).max(-1),
    ),
    "first largest": (
        lambda x: geon.argmax(geon.concat([x * 3.0, x * 2.0], K) + 1.0, [N, K]),
        lambda v: (
            np.concatenate([v * 3, v * 2], -1).transpose(1, 0, 2).reshape(v.shape[1], -1).argmax(-1)
        ),
    ),
    "first smallest across": (
        lambda x: geon.argmin(geon.pad(x, {K: (2, 2)}, value=1.0) * 2.0, N),
        lambda v: (padded(v, 2, 2, 1.0) * 2).argmin(0),
    ),
    "any": (
        lambda x: geon.any(geon.pad(x, {K: (0, 9)}) > 2.5, K),
        lambda v: (padded(v, 0, 9) > 2.5).any(-1),
    ),
    "rows": (
        lambda x: geon.sum(geon.pad(x, {N: (1, 3)}, value=2.0), K),
        lambda v: np.pad(v, [(1, 3), (0, 0), (0, 0)], constant_values=2.0).sum(-1),
    ),
    "all": (
        lambda x: geon.sum(geon.square(geon.concat([x + 1.0, x], N))),
        lambda v: np.square(np.concatenate([v + 1, v], 0)).sum(),
    ),
    "logarithm of a sum of exponentials": (
        lambda x: geon.logsumexp(geon.pad(x, {K: (300, 0)}), K),
        lambda v: np.log(np.exp(padded(v, 300, 0)).sum(-1)),
    ),
}

# The ways change at 64 rows side by side and at 256 elements of a row.
SHAPES = [(1, 1, 1), (3, 2, 255), (3, 2, 256), (2, 3, 257), (5, 1, 59), (5, 4, 60), (70, 3, 64)]


@pytest.mark.parametrize("name", ALONG)
def test_pieces_of_open_lengths_are_what_numpy_computes(name):
    make, plain = ALONG[name]
    x = geon.placeholder([N, M, K])
    with KernelsTransformer() as transformer:
        f = transformer.computation(make(x), x)
        for shape in SHAPES:
            data = np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype("float32")
            np.testing.assert_allclose(f(data), plain(data), rtol=1e-5, atol=1e-5)


def test_text_of_pieces_gives_the_same_bits_on_any_number_of_threads():
    x = geon.placeholder([N, M, K])
    names = ("sum of joined values", "first largest", "first smallest across", "rows", "all")
    ways = [ALONG[name] for name in names]
    results = [make(x) for make, _ in ways]
    found = {}
    for threads in (1, 2, 3):
        with geon.NativeTransformer(threads=threads) as transformer:
            f = transformer.computation(results, x)
            for shape in [*SHAPES, (40, 9, 600)]:
                data = np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")
                found.setdefault(shape, []).append(f(data))
                for (_, plain), got in zip(ways, found[shape][-1], strict=True):
                    want = plain(data.astype("float64"))
                    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-4)
    for one, *others in found.values():
        for other in others:
            assert [np.asarray(a).tobytes() for a in one] == [
                np.asarray(b).tobytes() for b in other
            ]


def test_few_long_rows_on_every_transformer(transformer):
    x = geon.placeholder([N, M, K])
    ways = [ALONG[name] for name in ("first largest", "sum of a border", "all")]
    f = transformer.computation([make(x) for make, _ in ways], x)
    for shape in ((2, 1, 20000), (3, 2, 257), (2, 2, 3)):
        data = np.random.default_rng(0).normal(size=shape).astype("float32")
        for (_, plain), found in zip(ways, f(data), strict=True):
            np.testing.assert_allclose(found, plain(data.astype("float64")), rtol=1e-4, atol=1e-3)


def nests(make):
    """The nests of a computation of one value."""
    x = geon.placeholder([N, M, K])
    with Native() as transformer:
        f = transformer.computation(make(x), x)
        return [kernel.work for kernel in f.plan.schedule.kernels]


@pytest.mark.parametrize("name", ALONG)
def test_no_element_of_a_piece_chooses(name):
    made = [nest for nest in nests(ALONG[name][0]) if any(guards_of(*element_values(nest)))]
    assert made
    for nest in made:
        assert nest.pieces
        for piece in nest.pieces:
            assert not any(guards_of(*element_values(piece)))


def test_short_rows_between_others_are_taken_side_by_side_as_others_are():
    (nest,) = nests(ALONG["rows"][0])
    assert nest.short is None  # nor does it choose
    assert [piece.short is not None for piece in nest.pieces] == [False, True, False]


def test_a_border_of_one_number_has_no_loop():
    (nest,) = nests(lambda x: geon.sum(geon.pad(x, {K: (400, 500)}, value=2.0), K))
    (piece,) = nest.pieces
    assert len(piece.passes) == 1


def test_equal_elements_are_reduced_without_a_loop():
    x = geon.placeholder([M])
    equal = geon.broadcast(geon.sum(x), [N, K]) + 1.0
    results = [geon.max(equal), geon.argmin(equal), geon.any(equal > 0), geon.sum(equal)]
    with KernelsTransformer() as transformer:
        f = transformer.computation(results, x, lengths={N: 3, K: 4})
        passes = [step for kernel in f.plan.schedule.kernels for step in kernel.work.passes]
        assert [len(step.reductions) for step in passes if step.loops] == [1]  # the sum of x
        assert [float(each) for each in f([1.0, 3.0])] == [5, 0, 1, 60]
        assert np.isnan(f([1.0, np.nan])[0])


def test_nothing_times_infinity_is_no_sum():
    x = geon.placeholder([N, K])
    op = geon.sum(geon.update(x, np.inf, {K: slice(0, K.length // 2)}) * 1.0, K)
    with geon.NativeTransformer() as transformer:
        f = transformer.computation(op, x)
        assert f(np.ones((2, 1), "float32")).tolist() == [1, 1]
        assert f(np.ones((2, 300), "float32")).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("rows", [0, 1, 3, 7, 8, 9, 40])
@pytest.mark.parametrize("columns", [1, 4, 31, 64, 300])
def test_a_row_over_two_axes_is_cut_where_it_is_long(rows, columns):
    """Few indices of one axis are many elements where there are many of the other."""
    x = geon.placeholder([N, M])
    y = geon.pad(x, {N: (1, 3), M: (2, 0)}, value=0.5)
    results = [geon.sum(y), geon.max(y), geon.sum(geon.square(geon.concat([x, x + 1.0], N)))]
    values = np.random.default_rng(rows).uniform(size=(rows, columns)).astype(np.float32)
    bordered = np.pad(values, [(1, 3), (2, 0)], constant_values=0.5)
    wanted = [bordered.sum(), bordered.max(), (values**2).sum() + ((values + 1) ** 2).sum()]
    for name in ("numpy", "native"):
        with geon.make_transformer(name) as transformer:
            found = transformer.computation(results, x)(values)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_what_is_long_is_known_from_all_axes_of_a_row():
    x = geon.placeholder([N, M])
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.sum(geon.pad(x, {N: (1, 3)})), x)
        (kernel,) = f.stages().plan.schedule.kernels
        n, m = N.expression + 4, M.expression
        assert n - 8 in kernel.work.holds and n * m - 256 in kernel.work.holds
