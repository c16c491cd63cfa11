"""Draws of geon.Random: their distributions, bits on every transformer, derivatives and errors.

Seeds are fixed, and the bits of a draw are equal everywhere, so no test fails by chance.
"""

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import geon
from geon.op_graph.draws.gamma_derivative import log_gamma_derivative
from geon.op_graph.draws.log_factorial import log_factorial
from geon.op_graph.draws.truncated import log_ndtri
from geon.op_graph.draws.von_mises_derivative import von_mises_derivative
from geon.op_graph.random.exponential import exponential_from_bits
from geon.testing.cases import for_each
from tests.op_graph.evaluation import NUMPY_OPS

N, A, C = geon.Axis("N"), geon.Axis("A", 3), geon.Axis("C", 4)
COUNT = 10_000
NUMPY = geon.NumPyTransformer()
P = geon.constant([0.1, 0.2, 0.7, 0.0], [C])

CONTINUOUS = {
    "exponential": (lambda s, d: s.exponential([N], 2.0, d), stats.expon(scale=2)),
    "laplace": (lambda s, d: s.laplace([N], 1, 2.0, d), stats.laplace(1, 2)),
    "gumbel": (lambda s, d: s.gumbel([N], 1, 2.0, d), stats.gumbel_r(1, 2)),
    "logistic": (lambda s, d: s.logistic([N], 1, 2.0, d), stats.logistic(1, 2)),
    "cauchy": (lambda s, d: s.cauchy([N], 1, 2.0, d), stats.cauchy(1, 2)),
    "weibull": (lambda s, d: s.weibull([N], 1.5, 2.0, d), stats.weibull_min(1.5, scale=2)),
    "pareto": (lambda s, d: s.pareto([N], 1.5, 2.0, d), stats.pareto(1.5, scale=2)),
    "log_normal": (
        lambda s, d: s.log_normal([N], 0.5, 0.7, d),
        stats.lognorm(0.7, scale=np.e**0.5),
    ),
    "truncated_normal": (
        lambda s, d: s.truncated_normal([N], 1, 2.0, -1, 6, d),
        stats.truncnorm(-1, 2.5, 1, 2),
    ),
    "truncated_normal far out": (
        lambda s, d: s.truncated_normal([N], 0, 1, 7, np.inf, d),
        stats.truncnorm(7, np.inf),
    ),
    "gamma": (lambda s, d: s.gamma([N], 2.5, 3.0, d), stats.gamma(2.5, scale=3)),
    "gamma of a small shape": (lambda s, d: s.gamma([N], 0.3, 3, d), stats.gamma(0.3, scale=3)),
    "gamma of a large shape": (lambda s, d: s.gamma([N], 1e4, 3, d), stats.gamma(1e4, scale=3)),
    "chi_square": (lambda s, d: s.chi_square([N], 3, d), stats.chi2(3)),
    "beta": (lambda s, d: s.beta([N], 0.5, 2.0, d), stats.beta(0.5, 2)),
    "student_t": (lambda s, d: s.student_t([N], 3.5, 1, 2, d), stats.t(3.5, 1, 2)),
    "von_mises": (lambda s, d: s.von_mises([N], 0, 2.0, d), stats.vonmises(2)),
    "von_mises nearly uniform": (lambda s, d: s.von_mises([N], 0, 1e-9, d), stats.vonmises(1e-9)),
    "von_mises of a small spread": (lambda s, d: s.von_mises([N], 0, 1e5, d), stats.vonmises(1e5)),
}
COUNTS = {
    "poisson of a small mean": (lambda s: s.poisson([N], 3.2), stats.poisson(3.2)),
    "poisson": (lambda s: s.poisson([N], 30.5), stats.poisson(30.5)),
    "poisson of mean 0": (lambda s: s.poisson([N], 0.0), stats.randint(0, 1)),
    "binomial of a small mean": (lambda s: s.binomial([N], 20, 0.3), stats.binom(20, 0.3)),
    "binomial": (lambda s: s.binomial([N], 60, 0.3), stats.binom(60, 0.3)),
    "binomial of likely successes": (lambda s: s.binomial([N], 60, 0.8), stats.binom(60, 0.8)),
    "binomial of sure successes": (lambda s: s.binomial([N], 60, 1.0), stats.randint(60, 61)),
    "geometric": (lambda s: s.geometric([N], 0.2), stats.geom(0.2)),
    "geometric of sure successes": (lambda s: s.geometric([N], 1.0), stats.randint(1, 2)),
    "negative_binomial": (lambda s: s.negative_binomial([N], 3.5, 0.4), stats.nbinom(3.5, 0.4)),
    "integers": (lambda s: s.integers([N], -3, 4), stats.randint(-3, 4)),
    "integers between tensors": (
        lambda s: s.integers([N], geon.constant(-3), geon.constant(4)),
        stats.randint(-3, 4),
    ),
    "categorical of p": (lambda s: s.categorical([N], p=P), stats.rv_discrete(
        values=(range(4), [0.1, 0.2, 0.7, 0])
    )),
    "categorical of logits": (lambda s: s.categorical([N], geon.log(P) + 90), stats.rv_discrete(
        values=(range(4), [0.1, 0.2, 0.7, 0])
    )),
}  # fmt: skip


def sampled(build, *, seed=1, transformer=NUMPY, count=COUNT):
    """The value of a draw, or of several, over N."""
    return transformer.computation(build(geon.Random(seed)), lengths={N: count})()


@for_each("name", CONTINUOUS)
def test_numbers_have_the_distribution(name):
    compared(name, "float32")


@pytest.mark.slow
@for_each("name", CONTINUOUS)
def test_numbers_of_float64_have_the_distribution(name):
    compared(name, "float64")


def compared(name, dtype):
    """Compare draws with the distribution function of SciPy."""
    build, expected = CONTINUOUS[name]
    found = sampled(lambda stream: build(stream, dtype))
    assert found.dtype == dtype
    assert stats.kstest(found.astype(np.float64), expected.cdf).pvalue > 1e-3


@for_each("name", COUNTS)
def test_counts_have_the_distribution(name):
    build, expected = COUNTS[name]
    found = sampled(build)
    assert found.dtype == np.int64
    low, high = int(expected.ppf(1e-9)), int(expected.ppf(1 - 1e-9))
    values = np.arange(low, high + 1)
    wanted = expected.pmf(values) * COUNT
    seen = (found[:, None] == values).sum(0)
    assert seen.sum() == COUNT
    assert not seen[wanted == 0].any()
    often = wanted > 10
    seen, wanted = (np.append(each[often], each[~often].sum()) for each in (seen, wanted))
    if often.sum() > 1:
        used = wanted > 0
        expected = wanted[used] * COUNT / wanted.sum()
        assert stats.chisquare(seen[used], expected).pvalue > 1e-3


def test_a_large_poisson_mean_and_a_large_binomial_count():
    poisson, binomial = sampled(lambda s: [s.poisson([N], 1e8), s.binomial([N], 10**9, 0.1)])
    assert stats.kstest((poisson - 1e8) / 1e4, "norm").pvalue > 1e-3
    assert stats.kstest((binomial - 1e8) / 9e7**0.5, "norm").pvalue > 1e-3


# Bits on every transformer ----------------------------------------------------------------------

EQUAL = {
    "exponential": lambda s: s.exponential([N, A]),
    "exponential of float64": lambda s: s.exponential([N, A], dtype="float64"),
    "exponential of float16": lambda s: s.exponential([N, A], dtype="float16"),
    "laplace": lambda s: s.laplace([N, A]),
    "integers": lambda s: s.integers([N, A], 0, 10),
    "most integers": lambda s: s.integers([N, A], -(2**63), 2**62),
    "half of the words drawn again": lambda s: s.integers([N, A], 0, 2**31 + 1),
    "permutation": lambda s: s.permutation([A, N], N),
    "categorical": lambda s: s.categorical([N], p=P),
    "poisson": lambda s: s.poisson([N], 4.0),
    "binomial": lambda s: s.binomial([N], 100, 0.4),
    "choice": lambda s: s.choice(P, [N]),
}
CLOSE = {
    "gamma": lambda s: s.gamma([N, A], 0.8),
    "truncated": lambda s: s.truncated_normal([N, A]),
    "von_mises": lambda s: s.von_mises([N, A]),
    "dirichlet": lambda s: s.dirichlet([N, A], 0.5, A),
}


def test_bits_are_those_of_numpy(transformer):
    builds = {**EQUAL, **CLOSE}
    found = sampled(
        lambda s: [build(s) for build in builds.values()], transformer=transformer, count=997
    )
    wanted = sampled(lambda s: [build(s) for build in builds.values()], count=997)
    for name, ours, numpys in zip(builds, found, wanted, strict=True):
        if name in EQUAL:
            np.testing.assert_array_equal(ours, numpys, err_msg=name)
        else:
            np.testing.assert_allclose(ours, numpys, rtol=2e-5, atol=1e-6, err_msg=name)


@for_each("dtype", ["float32", "float64"])
def test_the_exponential_is_accurate_at_both_ends(dtype):
    width, word = (32, np.uint32) if dtype == "float32" else (64, np.uint64)
    powers = [2**k for k in range(0, width, 3)]
    words = np.array([*powers, *(2**width - 1 - k for k in powers), 3 << width - 2], word)
    found = exponential_from_bits(words, dtype, NUMPY_OPS).astype(np.float64)
    upper = [(2**width - 1 - int(word) + 0.5) / 2**width for word in words]
    lower = [(int(word) + 0.5) / 2**width for word in words]
    wanted = [-np.log1p(-p) if p < 0.5 else -np.log(q) for p, q in zip(lower, upper, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == "float32" else 5e-15)


# Positions --------------------------------------------------------------------------------------


def test_permutations_are_independent_and_equally_likely():
    found = sampled(lambda s: s.permutation([N, A], A))
    assert (np.sort(found, 1) == np.arange(3)).all()
    _, seen = np.unique(found @ [9, 3, 1], return_counts=True)
    assert len(seen) == 6
    assert stats.chisquare(seen).pvalue > 1e-3


def test_shuffle_moves_whole_parts_or_each_index_by_itself():
    x = geon.constant(np.arange(12.0).reshape(4, 3), [C, A])
    together, apart = NUMPY.computation(
        [geon.Random(5).shuffle(x, C), geon.Random(5).shuffle(x, C, independent=[A])]
    )()
    values = np.arange(12.0).reshape(4, 3)
    assert sorted(map(tuple, together)) == sorted(map(tuple, values))
    assert (together != values).any()
    np.testing.assert_array_equal(np.sort(apart, 0), values)
    assert len({tuple(column // 3) for column in apart.T}) > 1


def test_the_derivative_of_a_shuffle_goes_to_the_elements():
    x = geon.placeholder([C])
    weights = geon.constant([1.0, 2.0, 3.0, 4.0], [C])
    shuffled = geon.Random(5).shuffle(x)
    value, slope = NUMPY.computation([shuffled, geon.deriv(geon.sum(shuffled * weights), x)], x)(
        [0, 1, 2, 3]
    )
    np.testing.assert_array_equal(slope[value.astype(int)], [1, 2, 3, 4])


@for_each("dtype", ["uint8", "int16", "uint32", "int64", "uint64"])
def test_integers_reach_all_that_their_dtype_holds(dtype):
    limits = np.iinfo(dtype)
    found = sampled(lambda s: s.integers([N], limits.min, limits.max + 1, dtype))
    assert found.dtype == dtype
    share = (found.astype(np.float64) - limits.min) / (float(limits.max) - limits.min)
    assert stats.kstest(share + 2e-3 * (dtype == "uint8"), "uniform").pvalue > 1e-3


def test_integers_between_tensors_without_an_integer_are_low():
    low, high = geon.placeholder([A], "int64"), geon.placeholder([A], "int64")
    f = NUMPY.computation(geon.Random(1).integers([N, A], low, high), low, high, lengths={N: 50})
    found = f([3, -5, 0], [3, -6, 2**40])
    assert (found[:, 0] == 3).all()
    assert (found[:, 1] == -5).all()
    assert (found[:, 2] > 2**30).any()


def test_choice_without_replacement_draws_no_position_twice():
    x = geon.constant([10, 20, 30, 40], [C])
    two = geon.Axis("two", 2)
    found = sampled(lambda s: s.choice(x, [N, two], p=[0.1, 0.2, 0.7, 0], replace=False))
    assert (found[:, 0] != found[:, 1]).all()
    p = [0.1, 0.2, 0.7]
    pairs = {(a, b): p[a] * p[b] / (1 - p[a]) for a in range(3) for b in range(3) if a != b}
    seen = [((found == [10 * a + 10, 10 * b + 10]).all(1)).sum() for a, b in pairs]
    assert sum(seen) == COUNT
    assert stats.chisquare(seen, np.array(list(pairs.values())) * COUNT).pvalue > 1e-3


def test_choice_takes_whole_parts_and_open_axes():
    x = geon.placeholder([N, A])
    found = NUMPY.computation(geon.Random(2).choice(x, [C], N), x)(np.arange(6.0).reshape(2, 3))
    assert found.shape == (4, 3)
    assert set(map(tuple, found)) <= {(0, 1, 2), (3, 4, 5)}


def test_rare_classes_are_drawn_as_often_as_they_should():
    p = geon.constant([1.0, 2e-4, 1e-4], [A])
    found = sampled(lambda s: s.categorical([N], p=p), count=1_000_000)
    seen = np.bincount(found, minlength=3)
    assert stats.chisquare(seen, np.array([1, 2e-4, 1e-4]) / 1.0003 * 1e6).pvalue > 1e-3


def test_multinomial_counts():
    found = sampled(lambda s: s.multinomial([N, C], 50, P, C))
    assert (found.sum(1) == 50).all()
    np.testing.assert_allclose(found.mean(0), [5, 10, 35, 0], rtol=0.01)
    wanted = 50 * (np.diag([0.1, 0.2, 0.7, 0]) - np.outer([0.1, 0.2, 0.7, 0], [0.1, 0.2, 0.7, 0]))
    np.testing.assert_allclose(np.cov(found.T), wanted, atol=0.3)


def test_dirichlet_and_multivariate_normal_moments():
    factor = np.tril(np.arange(1.0, 10).reshape(3, 3)) / 3
    dirichlet, normal = sampled(
        lambda s: [
            s.dirichlet([N, A], geon.constant([0.02, 1.0, 3.0], [A]), A, "float64"),
            s.multivariate_normal([N, A], 1.0, geon.constant(factor, [A, A.prime]), A, "float64"),
        ]
    )
    np.testing.assert_allclose(dirichlet.sum(1), 1)
    assert stats.kstest(dirichlet[:, 1], stats.beta(1, 3.02).cdf).pvalue > 1e-3
    np.testing.assert_allclose(np.cov(normal.T), factor @ factor.T, rtol=0.05, atol=0.05)
    np.testing.assert_allclose(normal.mean(0), 1, atol=0.1)


# Derivatives ------------------------------------------------------------------------------------


def quantile_slope(a, x):
    """The derivative of the logarithm of the gamma quantile by the shape, by differences."""
    p, q, h = special.gammainc(a, x), special.gammaincc(a, x), 1e-4 * a
    ends = [
        np.where(p < 0.5, special.gammaincinv(a + k * h, p), special.gammainccinv(a + k * h, q))
        for k in (-2, -1, 1, 2)
    ]
    logs = np.log(ends)
    return (8 * (logs[2] - logs[1]) - (logs[3] - logs[0])) / (12 * h)


@for_each(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-7)])
def test_the_slope_of_gamma_is_that_of_the_quantile(dtype, tolerance):
    shapes = np.array([0.05, 0.3, 0.9, 1.0, 2.0, 10.0, 300.0])
    quantiles = np.array([0.001, 0.2, 0.5, 0.8, 0.999])
    a = np.repeat(shapes, len(quantiles))
    x = special.gammaincinv(a, np.tile(quantiles, len(shapes)))
    kept = x > 1e-30
    a, x = a[kept].astype(dtype).astype(float), x[kept].astype(dtype).astype(float)
    leaves = [geon.placeholder([N], dtype) for _ in range(2)]
    made = log_gamma_derivative(*leaves, geon.log(leaves[1]))
    found = NUMPY.computation(made, *leaves)(a, x)
    np.testing.assert_allclose(found, quantile_slope(a, x), rtol=tolerance)


def test_derivatives_of_gamma_draws_have_the_right_means():
    """d E[log x] / da = trigamma(a), E[x] = a and E[x^2]'' = 2, at any order and through loops."""
    a = geon.placeholder([A], "float64")
    x = geon.Random(3).gamma([N, A], a, dtype="float64")
    mean_of_square = geon.deriv(geon.sum(geon.mean(x * x, N)), a)
    results = [
        geon.deriv(geon.sum(geon.mean(geon.log(x), N)), a),
        geon.deriv(geon.sum(geon.mean(x, N)), a),
        geon.deriv(geon.sum(mean_of_square), a),
        geon.jvp(geon.mean(x, N), a, geon.constant(np.ones(3), [A])),
    ]
    shapes = np.array([0.4, 3.0, 80.0])
    logs, means, second, forward = NUMPY.computation(results, a, lengths={N: COUNT})(shapes)
    np.testing.assert_allclose(logs, special.polygamma(1, shapes), rtol=0.03)
    np.testing.assert_allclose(means, 1, atol=0.03)
    np.testing.assert_allclose(second, 2, atol=0.1)
    np.testing.assert_allclose(forward, means, rtol=1e-9)


def test_the_slope_of_von_mises_is_that_of_the_quantile():
    concentrations = np.array([0.0, 1e-3, 0.5, 3.0, 29.0, 31.0, 1e4, 1e8])
    deviations = np.array([-5.0, -2.0, 1e-6, 0.5, 1.1, 1.5, 3.0])
    k = np.repeat(concentrations, len(deviations))
    x = np.tile(deviations, len(concentrations)) / np.sqrt(np.maximum(k, 1))
    k, x = k[np.abs(x) < np.pi], x[np.abs(x) < np.pi]
    leaves = [geon.placeholder([N], "float64") for _ in range(2)]
    found = NUMPY.computation(von_mises_derivative(*leaves), *leaves)(k, x)

    def integral(k, x):
        above = 1 - mpmath.besseli(1, k) / mpmath.besseli(0, k)
        return mpmath.quad(
            lambda t: (
                (2 * mpmath.sin(t / 2) ** 2 - above)
                * mpmath.exp(k * (mpmath.cos(t) - mpmath.cos(x)))
            ),
            mpmath.linspace(0, x, 4),
        )

    with mpmath.workdps(30):
        wanted = [float(integral(mpmath.mpf(a), mpmath.mpf(b))) for a, b in zip(k, x, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_derivatives_of_von_mises_draws_have_the_right_means():
    """E[cos x] = A(k) for the mean cosine A, with A' = 1 - A / k - A²."""
    k = geon.placeholder([A], "float64")
    x = geon.Random(5).von_mises([N, A], 0.3, k, "float64")
    cosine = geon.mean(geon.cos(x - 0.3), N)
    slope = geon.deriv(geon.sum(cosine), k)
    results = [slope, geon.deriv(geon.sum(slope), k)]
    given = np.array([0.3, 3.0, 80.0])
    first, second = NUMPY.computation(results, k, lengths={N: COUNT})(given)

    def wanted(k):
        mean = special.ive(1, k) / special.ive(0, k)
        return 1 - mean / k - mean**2

    np.testing.assert_allclose(first, wanted(given), rtol=0.05)
    step = 1e-4
    change = (wanted(given + step) - wanted(given - step)) / (2 * step)
    np.testing.assert_allclose(second, change, rtol=0.2, atol=0.01)


def test_derivatives_of_beta_dirichlet_and_student_draws():
    a, b = geon.placeholder([], "float64"), geon.placeholder([], "float64")
    stream = geon.Random(4)
    beta = stream.beta([N], a, b, dtype="float64")
    square = geon.square(stream.student_t([N], b, dtype="float64"))
    weights = geon.constant([1.0, 0.0, 0.0], [A])
    first = stream.dirichlet([N, A], geon.broadcast(1.0, [A]) + weights * a, A, "float64")
    results = [
        *geon.deriv(geon.mean(beta), [a, b]),
        geon.deriv(geon.mean(square), b),
        geon.deriv(geon.mean(geon.sum(first * weights, A)), a),
    ]
    found = NUMPY.computation(results, a, b, lengths={N: 3 * COUNT})(2.0, 12.0)
    wanted = [12 / 14**2, -2 / 14**2, -2 / 10**2, 2 / 5**2]
    np.testing.assert_allclose(found, wanted, rtol=0.05)


def test_small_gamma_draws_neither_fail_nor_lose_a_beta():
    a = geon.placeholder([], "float32")
    stream = geon.Random(4)
    gamma, beta = stream.gamma([N], a), stream.beta([N], a, a)
    slopes = [geon.deriv(geon.mean(each), a) for each in (gamma, beta)]
    values = NUMPY.computation([gamma, beta, *slopes], a, lengths={N: 1000})(1e-3)
    assert all(np.isfinite(each).all() for each in values)
    assert 0.4 < values[1].mean() < 0.6


def test_the_truncated_normal_has_the_slopes_of_its_quantile():
    bound = geon.placeholder([], "float64")
    x = geon.Random(4).truncated_normal([N], 0.5, 2.0, bound, 3.0, "float64")
    f = NUMPY.computation([x, geon.jvp(x, bound, 1.0)], bound, lengths={N: 50})
    _, slopes = f(-1.0)
    ends = [sampled_again(low) for low in (-1 - 1e-5, -1 + 1e-5)]
    np.testing.assert_allclose(slopes, (ends[1] - ends[0]) / 2e-5, rtol=1e-6, atol=1e-9)


def sampled_again(low):
    """The draw of the test above for a number as its lower bound, in its first call."""
    x = geon.Random(4).truncated_normal([N], 0.5, 2.0, low, 3.0, "float64")
    return NUMPY.computation(x, lengths={N: 50})()


def test_log_ndtri_inverts_log_ndtr():
    t = -np.exp(np.linspace(np.log(np.log(2)), 8, 60))
    leaf = geon.placeholder([N], "float64")
    found = NUMPY.computation(log_ndtri(leaf), leaf)(t)
    np.testing.assert_allclose(special.log_ndtr(found), t, rtol=1e-12)


def test_log_factorial():
    k = np.array([0, 1, 2, 5, 10, 50, 1e3, 1e6, 1e10, 1e15])
    leaf = geon.placeholder([N], "float64")
    found = NUMPY.computation(log_factorial(leaf), leaf)(k)
    np.testing.assert_allclose(found, special.gammaln(k + 1), rtol=1e-14, atol=1e-13)


# Values at the edge, errors ---------------------------------------------------------------------


def test_invalid_parameters_that_are_no_constants_give_nan_and_end():
    a = geon.placeholder([A], "float64")
    stream = geon.Random(1)
    draws = [
        stream.gamma([A], a, dtype="float64"),
        stream.poisson([A], a, "float64"),
        stream.binomial([A], 50, a, "float64"),
        stream.von_mises([A], 0, a, "float64"),
    ]
    for found in NUMPY.computation(draws, a)([np.nan, 0.5, np.nan]):
        assert np.isnan(found[[0, 2]]).all()
        assert np.isfinite(found[1])


def test_draws_over_no_elements():
    found = sampled(
        lambda s: [s.gamma([N]), s.poisson([N]), s.integers([N], 0, 3), s.permutation([N])], count=0
    )
    assert [len(each) for each in found] == [0, 0, 0, 0]


def test_draws_in_a_loop_differ_from_step_to_step():
    stream, steps = geon.Random(1), geon.Axis("steps", 4)
    _, values = geon.scan(lambda c, _: (c, stream.gamma([A], 2.0)), 0.0, over=steps)
    found = NUMPY.computation(values)()
    assert len(np.unique(found)) == 12


ERRORS = {
    "a scale below 0": (
        lambda s: s.exponential([A], -1), "exponential at .*: scale = -1; give a number of",
    ),
    "a shape of 0": (lambda s: s.gamma([A], 0), "shape = 0; give a number above 0"),
    "a NaN": (lambda s: s.beta([A], np.nan), "a = nan; give a number above 0"),
    "bounds": (lambda s: s.truncated_normal([A], low=2, high=1), "low = 2 and high = 1"),
    "no integer": (lambda s: s.integers([A], 3, 3), "low = 3 and high = 3; give a high above low"),
    "a fraction": (lambda s: s.binomial([A], 2.5), "count = 2.5; give a whole number"),
    "p of 0": (lambda s: s.geometric([A], 0), "p = 0; give a probability above 0"),
    "neither": (lambda s: s.categorical([A]), "neither logits nor p is given; give one of them"),
    "both": (lambda s: s.categorical([A], P, P), "both logits and p is given"),
}  # fmt: skip


@for_each("case", ERRORS)
def test_arguments_are_refused(case):
    build, message = ERRORS[case]
    with pytest.raises(geon.ArgumentError, match=message):
        build(geon.Random(0))


def test_axes_and_dtypes_are_refused():
    s = geon.Random(0)
    with pytest.raises(geon.AxisError, match=r"the result over \(A:3, C:4\) lacks none"):
        s.categorical([A, C], p=P)
    with pytest.raises(geon.AxisError, match="3 draws along A:3 without replacement from the 2"):
        s.choice(geon.constant([1.0, 2.0], [geon.Axis("two", 2)]), [A], replace=False)
    with pytest.raises(geon.AxisError, match="whose length must be an integer"):
        s.choice(P, [N], replace=False)
    with pytest.raises(geon.AxisError, match="lacks A:3 or its prime A':3; give it rows"):
        s.multivariate_normal([A], 0.0, P)
    with pytest.raises(geon.DTypeError, match="uint8 holds 0 to 255, not all of 0 to 256"):
        s.integers([A], 0, 257, "uint8")
    with pytest.raises(geon.DTypeError, match="low = 0.5 is no integer"):
        s.integers([A], 0.5, 3)
    with pytest.raises(geon.DTypeError, match="integers draws integers, not float32"):
        s.integers([A], 0, 3, "float32")
    with pytest.raises(geon.DTypeError, match="gamma draws floats, not int64"):
        s.gamma([A], 2.0, dtype="int64")
