"""Factorisations, solutions and determinants, against NumPy's."""

import numpy as np
import pytest

import geon
from geon import linalg
from tests.kinds import numpy_only

I, J, B, K = (geon.Axis(name) for name in "IJBK")  # noqa: E741
BY_CALLS = pytest.mark.parametrize("transformer_name", ["numpy", "native"])


def matrices(batch, n, dtype="float64", seed=0):
    """Well-conditioned symmetric matrices."""
    x = np.random.default_rng(seed).normal(size=(batch, n, n))
    return (x @ x.swapaxes(1, 2) / n + np.eye(n)).astype(dtype)


def functions(a, b):
    """The functions of a matrix and right-hand sides."""
    return [
        linalg.cholesky(a, [I, J]),
        linalg.solve(a, b, [I, J]),
        linalg.solve(a, b, [J, I]) if "J" in b.axes.names else linalg.inv(a, [I, J]),
        linalg.det(a, [I, J]),
        *linalg.slogdet(a, [I, J]),
        linalg.triangular_solve(a, b, [I, J]),
        linalg.triangular_solve(a, b, [I, J], lower=False, unit=True),
        linalg.cholesky_solve(linalg.cholesky(a, [I, J]), b, [I, J]),
    ]


def expected(a, b):
    """What they are, by NumPy."""
    n = a.shape[-1]
    upper = np.triu(a, 1) + np.eye(n, dtype=a.dtype)
    return [
        np.linalg.cholesky(a),
        np.linalg.solve(a, b),
        np.linalg.inv(a),
        np.linalg.det(a),
        *np.linalg.slogdet(a),
        np.linalg.solve(np.tril(a), b),
        np.linalg.solve(upper, b),
        np.linalg.solve(a, b),
    ]


def assert_all_close(found, known, tolerance):
    assert len(found) == len(known)
    for value, right in zip(found, known, strict=True):
        assert value.shape == right.shape
        np.testing.assert_allclose(value, right, tolerance, tolerance * np.abs(right).max())


@BY_CALLS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_matrices_of_open_size(transformer, dtype):
    a, b = geon.placeholder([B, I, J], dtype), geon.placeholder([B, I, K], dtype)
    f = transformer.computation(functions(a, b), a, b)
    for n, batch, sides in [(1, 3, 1), (2, 1, 2), (3, 40, 1), (7, 17, 9), (8, 3, 8), (9, 3, 1),
                            (30, 2, 4), (3, 0, 2), (0, 2, 1)]:  # fmt: skip
        given = matrices(batch, n, dtype)
        side = np.random.default_rng(1).normal(size=(batch, n, sides)).astype(dtype)
        if given.size:
            tolerance = 1e-4 if dtype == "float32" else 1e-11
            assert_all_close(f(given, side), expected(given, side), tolerance)
        else:
            assert [value.shape for value in f(given, side)] == [
                value.shape for value in expected(given, side)
            ]


def test_functions_of_small_matrices_of_known_size(transformer):
    i, j = I.with_length(3), J.with_length(3)
    a, b = geon.placeholder([B, i, j], "float64"), geon.placeholder([B, i, K], "float64")
    f = transformer.computation(functions(a, b), a, b)
    given, side = matrices(21, 3), np.random.default_rng(1).normal(size=(21, 3, 2))
    assert_all_close(f(given, side), expected(given, side), 1e-12)


def test_solutions_of_matrices_that_need_exchanges(transformer):
    i, j = I.with_length(4), J.with_length(4)
    a, b = geon.placeholder([B, i, j], "float64"), geon.placeholder([B, i], "float64")
    turned = geon.placeholder([j, B], "float64")
    results = [
        linalg.solve(a, b, [I, J]), linalg.solve(a, turned, [J, I]), linalg.det(a, [I, J]),
        linalg.slogdet(a, [I, J])[0],
    ]  # fmt: skip
    f = transformer.computation(results, a, b, turned)
    random = np.random.default_rng(2)
    given = np.stack([np.eye(4)[random.permutation(4)] for _ in range(30)])
    given = given + 0.1 * random.normal(size=given.shape)
    x, y, determinant, sign = f(given, *(side := random.normal(size=(2, 30, 4)))[:1], side[1].T)
    np.testing.assert_allclose(x, np.linalg.solve(given, side[0, :, :, None])[..., 0], 1e-9)
    back = np.linalg.solve(given.swapaxes(1, 2), side[1][..., None])[..., 0]
    np.testing.assert_allclose(y, back.T, 1e-9)
    np.testing.assert_allclose(determinant, np.linalg.det(given), 1e-9)
    np.testing.assert_array_equal(sign, np.linalg.slogdet(given)[0])


@BY_CALLS
def test_axes_in_any_order(transformer):
    a, b = geon.placeholder([J, B, I], "float64"), geon.placeholder([K, I, B], "float64")
    f = transformer.computation(
        [linalg.solve(a, b, [I, J]), linalg.cholesky(a, [I, J]), linalg.inv(a, [I, J]),
         linalg.triangular_solve(a, b, [I, J])], a, b
    )  # fmt: skip
    given, side = matrices(3, 5), np.random.default_rng(1).normal(size=(3, 5, 2))
    x, factor, inverse, half = f(given.transpose(2, 0, 1), side.transpose(2, 1, 0))
    assert linalg.inv(a, [I, J]).axes.names == ("I", "B", "J")
    np.testing.assert_allclose(x.transpose(2, 1, 0), np.linalg.solve(given, side), 1e-9)
    np.testing.assert_allclose(factor.transpose(1, 2, 0), np.linalg.cholesky(given), 1e-9)
    np.testing.assert_allclose(inverse.transpose(1, 2, 0), np.linalg.inv(given), 1e-9)
    lower = np.linalg.solve(np.tril(given), side)
    np.testing.assert_allclose(half.transpose(2, 1, 0), lower, 1e-9)


def test_a_matrix_and_its_transpose_share_a_factorisation():
    a, b = geon.placeholder([I, J]), geon.placeholder([I])
    x = linalg.solve(a, b, [I, J])
    gradient = geon.deriv(geon.sum(geon.square(x)), a)
    back = linalg.solve(a, geon.placeholder([J]), [J, I])
    found = {op for op in geon.op_graph.op_graph.post_order([x, gradient, back])
             if op.primitive.name == "lu"}  # fmt: skip
    assert len(found) == 1


# Failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cholesky", "solve", "inv"])
def test_a_failure_names_the_matrix_its_line_and_the_cure(transformer, name):
    C = geon.Axis("C", 2)
    i, j = I.with_length(2), J.with_length(2)
    a = geon.placeholder([B, C, i, j], "float64")
    made = {
        "cholesky": lambda: linalg.cholesky(a, [I, J]),
        "solve": lambda: linalg.solve(a, geon.iota(i), [I, J]),
        "inv": lambda: linalg.inv(a, [I, J]),
    }[name]()
    f = transformer.computation(made, a)
    given = np.tile(np.eye(2), (5, 2, 1, 1))
    assert np.isfinite(f(given)).all()
    given[3, 1] = given[4, 0] = [[1, 1], [1, 1]]
    with pytest.raises(geon.LinearAlgebraError, match="B = 3, C = 1; .*add a small") as caught:
        f(given)
    assert f"factorised at {__file__.rpartition('/')[2]}" in str(caught.value).replace(
        str(caught.value).partition("factorised at ")[2].rpartition("/")[0] + "/", ""
    )
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert np.isfinite(f(np.tile(np.eye(2), (5, 2, 1, 1)))).all()


@BY_CALLS
def test_large_matrices_fail_with_their_place(transformer):
    a = geon.placeholder([B, I, J], "float64")
    given = matrices(3, 12)
    given[2, 5] = given[2, 4]
    given[2, :, 5] = given[2, :, 4]
    for result in (linalg.cholesky(a, [I, J]), linalg.slogdet(a, [I, J])[1]):
        y = geon.deriv(geon.sum(result), a)
        singular = given.copy()
        singular[2, 5] = singular[2, 4] = 0
        with pytest.raises(geon.LinearAlgebraError, match="the matrix at B = 2"):
            transformer.computation(y, a)(singular)


def test_without_a_check_a_matrix_that_is_not_positive_definite_becomes_nan(transformer):
    i, j = I.with_length(2), J.with_length(2)
    a = geon.placeholder([B, i, j], "float64")
    f = transformer.computation(linalg.cholesky(a, [I, J], check=False), a)
    found = f([[[1, 0], [0, 4]], [[1, 0], [0, -1]]])
    np.testing.assert_array_equal(found[0], [[1, 0], [0, 2]])
    assert np.isnan(found[1, 1, 1])


@BY_CALLS
@pytest.mark.parametrize("n", [2, 9])
def test_without_a_check_solutions_of_singular_matrices_become_nan(transformer, n):
    """The others stay as they are; so it is with derivatives, and with the transpose."""
    i, j = I.with_length(n), J.with_length(n)
    a, b = geon.placeholder([B, i, j], "float64", name="a"), geon.placeholder([B, i], "float64")
    found = linalg.solve(a, b, [I, J], check=False)
    turned = linalg.solve(a, b.rename({I: J}), [J, I], check=False)
    inverse = linalg.inv(a, [I, J], check=False)
    total = geon.sum(geon.square(found))
    f = transformer.computation([found, turned, inverse, *geon.deriv(total, [a, b])], a, b)
    x, sides = np.stack([np.eye(n), np.ones((n, n)), 2 * np.eye(n)]), np.ones((3, n))
    all_wanted = 1, 1, np.eye(n), np.full((n, n), -2), 2
    for value, wanted in zip(f(x, sides), all_wanted, strict=True):
        assert np.isnan(value[1]).all()
        np.testing.assert_allclose(value[0], wanted)
        assert np.isfinite(value[2]).all()
    with pytest.raises(geon.ArgumentError, match="check='no'"):
        linalg.solve(a, b, [I, J], check="no")
    with pytest.raises(geon.LinearAlgebraError, match="B = 1"):
        transformer.computation(linalg.inv(a, [I, J]), a)(x)


@BY_CALLS
def test_the_determinant_of_a_singular_matrix_is_zero(transformer):
    a = geon.placeholder([I, J], "float64")
    f = transformer.computation([linalg.det(a, [I, J]), *linalg.slogdet(a, [I, J])], a)
    assert [float(value) for value in f(np.zeros((3, 3)))] == [0.0, 0.0, -np.inf]


def test_variables_are_as_they_were_after_a_failure(transformer):
    i, j = I.with_length(2), J.with_length(2)
    v = geon.Variable([i, j], "float64", initial_value=np.eye(2))
    a = geon.placeholder([i, j], "float64")
    f = transformer.computation(geon.assign(v, linalg.cholesky(a, [I, J])), a)
    with pytest.raises(geon.LinearAlgebraError, match="it is the matrix; variables"):
        f(-np.eye(2))
    np.testing.assert_array_equal(transformer.get(v), np.eye(2))


# Scans --------------------------------------------------------------------------------------------


def filtered(y, noise):
    """A scan with a factorisation in each step; its last state and the sum of logarithms."""
    i, j = I.with_length(2), J.with_length(2)
    unit = geon.constant(np.eye(2), [i, j], dtype="float64")

    def step(state, seen):
        matrix = geon.outer(geon.multiply, state, state.rename({I: J})) + noise * unit
        factor = linalg.cholesky(matrix, [I, J])
        solved = linalg.cholesky_solve(factor, seen.rename({J: I}), [I, J])
        return 0.5 * state + solved.rename({J: I}), geon.sum(
            geon.log(geon.diagonal(factor, [I, J]))
        )

    begin = geon.constant([1.0, 2.0], [i], dtype="float64")
    last, logs = geon.scan(step, begin, y, over="T")
    return last, geon.sum(logs)


def test_a_scan_of_small_matrices_has_the_same_derivative_everywhere(transformer):
    t, j = geon.Axis("T"), J.with_length(2)
    y, noise = geon.placeholder([t, j], "float64"), geon.placeholder([], "float64")
    last, total = filtered(y, noise)
    results = [last, total, geon.deriv(total + geon.sum(last), noise)]
    f = transformer.computation(results, y, noise)
    data = np.random.default_rng(0).normal(size=(20, 2))

    def value(noise):
        state, logs = np.array([1.0, 2.0]), 0.0
        for seen in data:
            matrix = np.outer(state, state) + noise * np.eye(2)
            logs += np.log(np.diagonal(np.linalg.cholesky(matrix))).sum()
            state = 0.5 * state + np.linalg.solve(matrix, seen)
        return state, logs

    state, logs = value(0.7)
    found = f(data, 0.7)
    np.testing.assert_allclose(found[0], state, 1e-9)
    np.testing.assert_allclose(found[1], logs, 1e-9)
    high, low = value(0.7 + 1e-6), value(0.7 - 1e-6)
    slope = (high[1] - low[1] + (high[0] - low[0]).sum()) / 2e-6
    np.testing.assert_allclose(found[2], slope, 1e-6)
    with pytest.raises(geon.LinearAlgebraError, match=r"(step 0 along T|T = 0)\b.*add a small"):
        f(data, -100.0)


@pytest.mark.parametrize("transformer_name", ["native"])
def test_a_scan_of_small_matrices_is_one_kernel(transformer):
    t, j = geon.Axis("T"), J.with_length(2)
    y, noise = geon.placeholder([t, j], "float64"), geon.placeholder([], "float64")
    last, total = filtered(y, noise)
    f = transformer.computation([last, total], y, noise)
    kernels = f.plan.schedule.kernels
    assert [type(kernel.work).__name__ for kernel in kernels].count("OrderedLoop") == 1
    assert not any(type(kernel.work).__name__ == "Region" for kernel in kernels)


# Refusals -----------------------------------------------------------------------------------------


def test_wrong_arguments_are_refused_with_the_cure():
    a, b = geon.placeholder([B, I, J], name="a"), geon.placeholder([I], name="b")
    for build, error, words in [
        (lambda: linalg.cholesky(a, I), geon.ArgumentError, "give the two axes"),
        (lambda: linalg.cholesky(a, [I, I]), geon.AxisError, "geon.rename"),
        (lambda: linalg.cholesky(a, [I, K]), geon.AxisError, "K"),
        (lambda: linalg.solve(a, b.rename({I: J}), [I, J]), geon.AxisError, "lacks the axis"),
        (lambda: linalg.cholesky(geon.cast(a, "float16"), [I, J]), geon.DTypeError, "geon.cast"),
        (lambda: linalg.cholesky(geon.placeholder([I.with_length(2), J.with_length(3)]), [I, J]),
         geon.AxisError, "2 rows and 3 columns"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            build()


@numpy_only
def test_open_lengths_that_are_not_square_are_refused_at_the_call(transformer):
    a = geon.placeholder([I, J], name="a")
    f = transformer.computation(linalg.det(a, [I, J]), a)
    with pytest.raises(geon.GuardError, match="give a square one"):
        f(np.zeros((2, 3)))


@pytest.mark.parametrize("transformer_name", ["cuda-on-host"])
def test_large_matrices_on_a_gpu_are_refused_with_the_cure(transformer):
    a = geon.placeholder([I, J], name="a")
    with pytest.raises(geon.UnavailableError, match="more than 8 rows.*native"):
        transformer.computation(linalg.cholesky(a, [I, J]), a)(np.eye(9))
