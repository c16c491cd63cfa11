"""Eigenvalues, singular values, QR and what is made of them, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import geon
from geon import linalg
from geon.op_graph.op_graph import deep_order
from tests.kinds import numpy_only

I, J, B, K = (geon.Axis(name) for name in "IJBK")  # noqa: E741
BY_CALLS = pytest.mark.parametrize("transformer_name", ["numpy", "native"])


def random(*shape, dtype="float64", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@BY_CALLS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_of_matrices_of_open_size_have_their_properties(transformer, dtype):
    x = geon.placeholder([B, I, J], dtype)
    results = [*linalg.qr(x, [I, J]), *linalg.svd(x, [I, J])]
    f = transformer.computation(results, x)
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-10}
    for m, n, batch in [(1, 1, 3), (5, 3, 2), (40, 40, 2), (70, 9, 1), (3, 2, 0)]:
        given = random(batch, m, n, dtype=dtype)
        q, r, u, s, v = f(given)
        np.testing.assert_allclose(q @ r, given, **close)
        np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.tile(np.eye(n), (batch, 1, 1)), **close)
        np.testing.assert_array_equal(r, np.triu(r))
        np.testing.assert_allclose((u * s[:, None]) @ v.swapaxes(1, 2), given, **close)
        np.testing.assert_allclose(s, np.linalg.svd(given)[1][:, :n], **close)
        np.testing.assert_allclose(v.swapaxes(1, 2) @ v, np.tile(np.eye(n), (batch, 1, 1)), **close)


@BY_CALLS
def test_eigenvalues_and_vectors(transformer):
    x = geon.placeholder([B, I, J], "float64")
    f = transformer.computation([*linalg.eigh(x, [I, J]), linalg.eigvalsh(x, [J, I])], x)
    for n, batch in [(1, 2), (4, 3), (35, 2), (2, 0)]:
        given = random(batch, n, n)
        given = given + given.swapaxes(1, 2)
        values, vectors, again = f(given)
        np.testing.assert_allclose(given @ vectors, vectors * values[:, None], 0, 1e-10)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(given), 1e-9, 1e-10)
        np.testing.assert_allclose(values, again, 1e-9, 1e-10)


@BY_CALLS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvalues_without_vectors(transformer, dtype):
    x = geon.placeholder([B, I, J], dtype)
    values = linalg.eigvalsh(x, [I, J])
    f = transformer.computation(values, x)
    for n, batch in [(0, 2), (1, 2), (3, 5), (90, 2), (2, 0)]:
        given = random(batch, n, n, dtype=dtype)
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(f(given), np.linalg.eigvalsh(given), 0, tolerance)
    given = random(3, 4, 4, dtype=dtype)
    given[1, 2, 2] = np.nan
    with pytest.raises(geon.LinearAlgebraError, match="the matrix at B = 1"):
        f(given)
    slopes = geon.deriv(geon.sum(values**3), x)
    g = transformer.computation([values, slopes], x)
    names = [[op.primitive.name for op in deep_order(each.program.roots)] for each in (f, g)]
    assert "eigh" not in names[0] and "eigvalsh" not in names[1]
    assert [each.count("eigvalsh") + each.count("eigh") for each in names] == [1, 1]
    given = random(2, 4, 4, dtype=dtype)
    given += given.swapaxes(1, 2)
    found, slope = g(given)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(given), 0, 1e-5)
    np.testing.assert_allclose(slope, 3 * given @ given, 0, 1e-4)


@BY_CALLS
def test_wide_matrices_of_known_size(transformer):
    i, j = I.with_length(3), J.with_length(5)
    x = geon.placeholder([i, j], "float64")
    f = transformer.computation(
        [*linalg.qr(x, [I, J], axis=K), *linalg.svd(x, [I, J], axis=K), linalg.pinv(x, [I, J])], x
    )
    given = random(3, 5)
    q, r, u, s, v, inverse = f(given)
    np.testing.assert_allclose(q @ r, given, 1e-9)
    np.testing.assert_allclose((u * s) @ v.T, given, 1e-9)
    np.testing.assert_allclose(inverse, np.linalg.pinv(given), 1e-9)
    assert linalg.svd(x, [I, J], axis=K)[2].axes.names == ("J", "K")


@BY_CALLS
def test_functions_of_wide_matrices_of_open_size(transformer):
    x = geon.placeholder([B, I, J], "float64", name="x")
    b = geon.placeholder([B, I], "float64", name="b")
    results = [
        linalg.pinv(x, [I, J], wide=True),
        linalg.lstsq(x, b, [I, J], wide=True),
        linalg.cond(x, [I, J], wide=True),
        linalg.matrix_rank(x, [I, J], wide=True),
        linalg.matrix_norm(x, [I, J], 2, wide=True),
        linalg.matrix_norm(x, [I, J], "nuclear", wide=True),
    ]
    f = transformer.computation(results, x, b)
    for m, n in [(1, 3), (3, 5), (9, 12), (4, 4)]:
        given, side = random(2, m, n), random(2, m, seed=1)
        inverse, solution, condition, rank, largest, nuclear = f(given, side)
        wanted = np.linalg.pinv(given)
        np.testing.assert_allclose(inverse, wanted, 1e-7, 1e-9)
        np.testing.assert_allclose(solution, (wanted @ side[..., None])[..., 0], 1e-7, 1e-9)
        np.testing.assert_allclose(condition, np.linalg.cond(given), 1e-8)
        np.testing.assert_array_equal(rank, np.linalg.matrix_rank(given))
        np.testing.assert_allclose(largest, np.linalg.norm(given, 2, (1, 2)), 1e-9)
        np.testing.assert_allclose(nuclear, np.linalg.norm(given, "nuc", (1, 2)), 1e-9)
    with pytest.raises(geon.GuardError, match="wide=True|over"):
        f(random(1, 3, 2), random(1, 3))
    with pytest.raises(geon.GuardError, match="or give wide=True"):
        transformer.computation(linalg.cond(x, [I, J]), x)(random(1, 2, 3))
    with pytest.raises(geon.ArgumentError, match="wide=1; give True, False or None"):
        linalg.pinv(x, [I, J], wide=1)


@BY_CALLS
def test_wide_matrices_of_open_size(transformer):
    x = geon.placeholder([B, I, J], "float64", name="x")
    q, r = linalg.qr(x, [I, J], axis=K, wide=True)
    u, s, v = linalg.svd(x, [I, J], axis=K, wide=True)
    slope = geon.deriv(geon.sum(geon.square(r)) + geon.sum(s * s), x)
    f = transformer.computation([q, r, u, s, v, slope], x)
    for m, n, batch in [(1, 1, 2), (3, 5, 2), (9, 40, 2), (4, 4, 1)]:
        given = random(batch, m, n)
        q, r, u, s, v, slope = f(given)
        assert q.shape == (batch, m, m) and r.shape == (batch, m, n) and v.shape == (batch, n, m)
        np.testing.assert_allclose(q @ r, given, 1e-9, 1e-10)
        np.testing.assert_allclose((u * s[:, None]) @ v.swapaxes(1, 2), given, 1e-9, 1e-10)
        np.testing.assert_allclose(slope, 4 * given, 1e-7, 1e-8)
    with pytest.raises(geon.GuardError, match=r"qr at .* x\(B, I, J\) .*wide=True needs as many"):
        transformer.computation(linalg.qr(x, [I, J], wide=True)[0], x)(random(1, 3, 2))
    with pytest.raises(geon.GuardError, match=r"svd at .*over \(J, I\)"):
        transformer.computation(linalg.svd(x, [I, J], wide=True)[1], x)(random(1, 3, 2))
    with pytest.raises(geon.ArgumentError, match="wide=1; give True, False or None"):
        linalg.qr(x, [I, J], wide=1)
    known = geon.placeholder([I.with_length(3), J.with_length(2)], "float64", name="known")
    for function in (linalg.qr, linalg.svd):
        with pytest.raises(geon.AxisError, match="has 3 rows and 2 columns; wide=True needs"):
            function(known, [I, J], wide=True)


@BY_CALLS
def test_composites(transformer):
    a, b = geon.placeholder([I, J], "float64"), geon.placeholder([I, K], "float64")
    f = transformer.computation(
        [linalg.lstsq(a, b, [I, J]), linalg.pinv(a, [I, J]), linalg.matrix_rank(a, [I, J]),
         linalg.cond(a, [I, J]),
         *(linalg.matrix_norm(a, [I, J], order)
           for order in ("frobenius", "nuclear", 2, 1, "inf"))], a, b,
    )  # fmt: skip
    side = random(7, 2, seed=1)
    for given in (random(7, 4), random(7, 2) @ random(2, 4, seed=2)):
        x, inverse, rank, condition, *norms = f(given, side)
        np.testing.assert_allclose(x, np.linalg.lstsq(given, side)[0], 1e-8, 1e-10)
        np.testing.assert_allclose(inverse, np.linalg.pinv(given), 1e-8, 1e-10)
        assert rank == np.linalg.matrix_rank(given)
        assert (condition > 1e12) == (rank < 4)
        for norm, order in zip(norms, ("fro", "nuc", 2, 1, np.inf), strict=True):
            np.testing.assert_allclose(norm, np.linalg.norm(given, order), 1e-10)


@BY_CALLS
@pytest.mark.parametrize("power", [0, 1, 5, -2])
def test_powers(transformer, power):
    a = geon.placeholder([B, I, J], "float64")
    f = transformer.computation(linalg.matrix_power(a, power, [I, J]), a)
    given = random(3, 4, 4)
    np.testing.assert_allclose(f(given), np.linalg.matrix_power(given, power), 1e-8)


@BY_CALLS
def test_exponentials_and_their_derivative(transformer):
    a, t = geon.placeholder([B, I, J], "float64"), geon.placeholder([], "float64")
    made = linalg.expm(t * a, [I, J])
    f = transformer.computation([made, geon.deriv(geon.sum(made), t)], a, t)
    given = random(3, 4, 4)
    for scale in (0.0, 1e-3, 1.0, 10.0):
        found, slope = f(given, scale)
        right = scipy.linalg.expm(scale * given)
        np.testing.assert_allclose(found, right, 1e-9, 1e-12 * np.abs(right).max())
        np.testing.assert_allclose(slope, (given @ right).sum(), 1e-8)


@numpy_only
def test_the_derivative_of_least_squares_without_full_rank(transformer):
    x, b = geon.placeholder([I, K], "float64"), geon.placeholder([I], "float64")
    i, j, k = I.with_length(5), J.with_length(4), K.with_length(2)
    x, b = geon.placeholder([i, k], "float64"), geon.placeholder([i], "float64")
    fixed = geon.constant(random(2, 4, seed=3), [k, j], dtype="float64")
    found = linalg.lstsq(geon.dot(x, fixed, K), b, [I, J])
    geon.check_gradients(geon.sum(geon.square(found)), {x: random(5, 2), b: random(5, seed=1)})


# Degenerate cases ---------------------------------------------------------------------------------


@numpy_only
def test_derivatives_of_symmetric_functions_of_equal_eigenvalues(transformer):
    i, j = I.with_length(3), J.with_length(3)
    x = geon.placeholder([i, j], "float64")
    values = linalg.eigh(x, [I, J])[0]
    f = transformer.computation(geon.deriv(geon.sum(geon.exp(values)), x), x)
    np.testing.assert_allclose(f(np.eye(3)), np.e * np.eye(3), 1e-12)


@numpy_only
def test_derivatives_of_the_nuclear_norm_at_equal_singular_values(transformer):
    i, j = I.with_length(3), J.with_length(3)
    x = geon.placeholder([i, j], "float64")
    f = transformer.computation(geon.deriv(linalg.matrix_norm(x, [I, J], "nuclear"), x), x)
    turned = np.linalg.qr(random(3, 3))[0]
    np.testing.assert_allclose(f(2 * turned), turned, 1e-9, 1e-12)


@BY_CALLS
@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_a_matrix_with_nan_raises(transformer, name):
    a = geon.placeholder([B, I, J], "float64")
    f = transformer.computation(getattr(linalg, name)(a, [I, J])[1], a)
    given = np.tile(np.eye(3), (4, 1, 1))
    f(given)
    given[2, 1, 0] = np.nan
    with pytest.raises(geon.LinearAlgebraError, match="NaN.*B = 2"):
        f(given)


def test_wrong_arguments_are_refused_with_the_cure():
    a = geon.placeholder([I.with_length(3), J.with_length(3)])
    for build, error, words in [
        (lambda: linalg.matrix_norm(a, [I, J], "max"), geon.ArgumentError, "frobenius"),
        (lambda: linalg.matrix_power(a, 0.5, [I, J]), geon.ArgumentError, "no integer"),
    ]:
        with pytest.raises(error, match=words):
            build()


@numpy_only
def test_open_wide_matrices_are_refused_at_the_call(transformer):
    a = geon.placeholder([I, J], name="a")
    f = transformer.computation(linalg.svd(a, [I, J])[1], a)
    with pytest.raises(geon.GuardError, match="exchange the axes"):
        f(np.zeros((2, 3)))
