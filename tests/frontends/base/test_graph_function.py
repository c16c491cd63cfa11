"""GraphFunction: what functions of PyTorch and JAX are made of, without either."""

import numpy as np
import pytest

import geon
from geon.frontends.base.graph_function import FunctionDescription

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)
RANDOM = np.random.default_rng(0)
A, W, SEED = (RANDOM.normal(size=shape) for shape in ((4, 3), (3, 2), (4, 2)))


@pytest.fixture
def described():
    x = geon.placeholder([N, C], "float64", name="x")
    w = geon.Variable([C, H], "float64", initial_value=0, name="w")
    results = {"y": geon.tanh(geon.dot(x, w)), "largest": geon.argmax(x, C), "w": geon.sum(w)}
    return FunctionDescription(results, [x, w], geon.NumPyTransformer())


def test_results_and_variables_as_inputs(described):
    y, largest, total = described.graph([A, W])
    np.testing.assert_allclose(y, np.tanh(A @ W))
    np.testing.assert_array_equal(largest, A.argmax(1))
    np.testing.assert_allclose(total, W.sum())
    assert described.variables == [] and described.names == ["x", "w"]


def test_derivatives_of_any_order(described):
    graph = described.graph
    assert graph.differentiable_results == (0, 2)
    y = np.tanh(A @ W)
    slopes = graph.vjp((0, 1), (0,))
    dx, dw = slopes([A, W, SEED])
    np.testing.assert_allclose(dx, SEED * (1 - y**2) @ W.T)
    np.testing.assert_allclose(dw, A.T @ (SEED * (1 - y**2)))
    (both,) = graph.vjp((1,), (0, 2))([A, W, SEED, np.float64(2)])
    np.testing.assert_allclose(both, dw + 2)
    (of_seed,) = slopes.vjp((2,), (0,))([A, W, SEED, np.ones((4, 3))])
    np.testing.assert_allclose(of_seed, (1 - y**2) * (np.ones((4, 3)) @ W))
    assert graph.vjp((0, 1), (0,)) is slopes


def test_batched_functions_are_mapped_where_their_inputs_are(described):
    many = RANDOM.normal(size=(5, 4, 3))
    batched, mapped = described.graph.batched((True, False))
    assert mapped == (True, True, False)
    y, largest, total = batched([many, W])
    np.testing.assert_allclose(y, np.tanh(many @ W))
    np.testing.assert_array_equal(largest, many.argmax(2))
    np.testing.assert_allclose(total, W.sum())
    twice, _ = batched.batched((True, False))
    np.testing.assert_allclose(twice([many[None], W])[0], np.tanh(many @ W)[None])


def test_shapes_of_results(described):
    assert described.graph.result_shapes([(7, 3), (3, 2)]) == [(7, 2), (7,), ()]
    with pytest.raises(geon.FeedError, match=r"x.*shape \(7, 4\); it needs C:3 = 3"):
        described.graph.result_shapes([(7, 4), (3, 2)])
    with pytest.raises(geon.FeedError, match=r"shape \(7,\)"):
        described.graph.result_shapes([(7,), (3, 2)])
    x = geon.placeholder([N], name="x")
    halved = geon.placeholder([geon.Axis("M", 2 * N.length)], name="halved")
    graph = FunctionDescription([x, halved], [x, halved], None).graph
    assert graph.result_shapes([(3,), (6,)]) == [(3,), (6,)]
    with pytest.raises(geon.FeedError, match="M"):
        graph.result_shapes([(3,), (5,)])


def test_lengths_of_a_computation_are_kept():
    Q = geon.Axis("Q")
    x = geon.placeholder([C], name="x")
    op = geon.sum(x) + geon.iota(Q)
    transformer = geon.NumPyTransformer()
    for lengths in ({"Q": 4}, {Q: 4}):
        graph = FunctionDescription(transformer.computation(op, x, lengths=lengths), [], None).graph
        assert graph.result_shapes([(3,)]) == [(4,)]
        np.testing.assert_array_equal(graph([np.ones(3, "f4")])[0], [3, 4, 5, 6])
    with pytest.raises(geon.FeedError, match="no input of the function fixes Q"):
        FunctionDescription(op, [x], transformer).graph.result_shapes([(3,)])
