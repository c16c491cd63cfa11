"""Initialisers have the spread that their formulas say, for any order of axes."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

L, J, K = geon.Axis("L", 30), geon.Axis("J", 20), geon.Axis("K", 50)


def drawn(transformer, init, axes=(L, K, J), inputs=(L, J)):
    """The first value of a variable, as a matrix of inputs by outputs."""
    axes, inputs = geon.Axes(axes), geon.Axes(inputs)
    outputs = axes.without(inputs)
    v = geon.Variable(axes, initial_value=init(axes, inputs, outputs))
    value = transformer.get(v)
    order = [axes.index(axis) for axis in (*inputs, *axes.without(inputs))]
    return value.transpose(order).reshape(int(inputs.size), -1)


def test_constant(transformer):
    assert np.all(drawn(transformer, neon.Constant(0.5)) == 0.5)
    assert np.all(drawn(transformer, neon.Constant()) == 0)


@pytest.mark.parametrize(
    ("init", "reach"),
    [
        (lambda r: neon.Uniform(r, -0.5, 0.5), 0.5),
        (lambda r: neon.Glorot(r), (6 / 650) ** 0.5),
        (lambda r: neon.Glorot(r, gain=2), 2 * (6 / 650) ** 0.5),
        (lambda r: neon.Xavier(r), (3 / 600) ** 0.5),
    ],
    ids=["uniform", "glorot", "gain", "xavier"],
)
def test_even(transformer, init, reach):
    value = drawn(transformer, init(geon.Random(0)))
    assert 0.999 * reach < np.abs(value).max() <= reach
    assert abs(value.std() / (reach / 3**0.5) - 1) < 0.01
    assert abs(value.mean()) < 0.02 * reach


@pytest.mark.parametrize(
    ("init", "mean", "std"),
    [
        (lambda r: neon.Gaussian(r, 3, 0.1), 3, 0.1),
        (lambda r: neon.Kaiming(r), 0, (2 / 600) ** 0.5),
        (lambda r: neon.Kaiming(r, slope=0.5), 0, (2 / 1.25 / 600) ** 0.5),
    ],
    ids=["gaussian", "kaiming", "slope"],
)
def test_normal(transformer, init, mean, std):
    value = drawn(transformer, init(geon.Random(0)))
    assert abs(value.mean() - mean) < 0.02 * std
    assert abs(value.std() / std - 1) < 0.01


@pytest.mark.parametrize(
    ("axes", "inputs"), [((L, K, J), (L, J)), ((K, J), (J,)), ((J, K), (K,)), ((L,), ())]
)
def test_orthogonal(transformer, axes, inputs):
    value = drawn(transformer, neon.Orthogonal(geon.Random(0), 2.0), axes, inputs)
    product = value.T @ value if value.shape[0] >= value.shape[1] else value @ value.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=2e-5)


def test_groups_filters_gates_and_experts_have_a_matrix_each(transformer):
    """Orthogonal and Identity fill it for each; Sparse leaves out a share of each column."""
    x = geon.placeholder([ax.N, ax.T, geon.Axis("G", 2), geon.Axis("C", 6)], name="x")
    rows = {"over": ["C"]}
    made = {  # layers, the variable, its groups and inputs
        "groups": (
            lambda i: neon.Convolution({ax.T: 2}, K, i, apart="G"), "w", "G", ["T.window", "C"],
        ),
        "channels": (
            lambda i: neon.Convolution({ax.T: 3}, [], i, apart=["G", "C"]), "w", "GC", ["T.window"],
        ),
        "transposed": (
            lambda i: neon.Deconvolution({ax.T: 2}, K, i, apart="G"), "w", "G", ["T.window", "C"],
        ),
        "gates": (lambda i: neon.LSTM(K, i, **rows), "w", ["gate"], ["C"]),
        "states": (lambda i: neon.GRU(K, i, **rows), "u", ["gate"], ["K'"]),
        "experts": (
            lambda i: neon.MixtureOfExperts(geon.Axis("E", 3), J, K, i, **rows), "w", "E", ["C"],
        ),
        "one": (lambda i: neon.Linear(K, i, **rows), "w", "", ["C"]),
    }  # fmt: skip
    wrong = []
    for name, (build, place, groups, inputs) in made.items():
        for init in (neon.Orthogonal(geon.Random(0), 2.0), neon.Identity(2.0)):
            layer = build(init)
            layer(x)
            leaf = layer.variables[place]
            apart = [leaf.axes[each] for each in groups]
            inner = geon.Axes([leaf.axes[each] for each in inputs])
            order = [*apart, *inner, *leaf.axes.without(apart).without(inner)]
            value = transformer.get(leaf).transpose([leaf.axes.index(axis) for axis in order])
            for each in value.reshape(int(geon.Axes(apart).size), int(inner.size), -1):
                short = each if each.shape[0] <= each.shape[1] else each.T
                if not np.allclose(short @ short.T, 4 * np.eye(len(short)), atol=2e-5):
                    wrong.append((name, init))
    assert not wrong


def test_identity(transformer):
    value = drawn(transformer, neon.Identity(3.0))
    np.testing.assert_array_equal(value, 3 * np.eye(600, 50))


@pytest.mark.parametrize(("share", "zeros"), [(0, 0), (0.5, 300), (0.901, 541), (1, 600)])
def test_sparse(transformer, share, zeros):
    value = drawn(transformer, neon.Sparse(geon.Random(0), share, 0.1))
    assert np.all((value == 0).sum(axis=0) == zeros)
    if zeros < 600:
        assert abs(value[value != 0].std() - 0.1) < 0.01
        assert len(np.unique(value == 0, axis=1).T) > 1 or zeros == 0


def test_a_share_that_is_none_is_refused():
    with pytest.raises(geon.ArgumentError, match="from 0 to 1"):
        neon.Sparse(geon.Random(0), 1.5)


@pytest.mark.parametrize("kind", [neon.Glorot, neon.Kaiming, neon.Orthogonal, neon.Sparse])
def test_no_two_draws_of_a_stream_are_alike_and_a_seed_gives_them_again(make, kind):
    def both():
        init, transformer = kind(geon.Random(7)), make()
        return drawn(transformer, init), drawn(transformer, init)

    (one, two), (again, _) = both(), both()
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(one, again)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "init",
    [
        neon.Uniform(geon.Random(0)),
        neon.Gaussian(geon.Random(0)),
        neon.Glorot(geon.Random(0)),
        neon.Kaiming(geon.Random(0)),
        neon.Orthogonal(geon.Random(0)),
        neon.Constant(0.5),
    ],
    ids=lambda init: type(init).__name__,
)
def test_weights_of_any_float_dtype(transformer, init, dtype):
    x = geon.placeholder([geon.Axis("N"), J], dtype, name="x")
    layer = neon.Affine(K, init)
    y = layer(x)
    assert {leaf.dtype.name for leaf in layer.parameters()} == {y.dtype.name} == {dtype}
    found = transformer.computation(y, x)(np.ones((2, 20)))
    assert np.isfinite(np.float64(found)).all() and np.float64(found).any()


@pytest.mark.parametrize("empty_inputs", [True, False])
def test_a_matrix_without_elements_has_orthogonal_rows(transformer, empty_inputs):
    empty = geon.Axis("E", 0)
    inputs, outputs = ([empty], [J]) if empty_inputs else ([J], [empty])
    init = neon.Orthogonal(geon.Random(0))
    made = init(geon.Axes([*inputs, *outputs]), geon.Axes(inputs), geon.Axes(outputs))
    v = geon.Variable([*inputs, *outputs], initial_value=made, name="v")
    assert transformer.get(v).size == 0
