"""Distributions of vectors and those made of others, and divergences."""

import numpy as np
import pytest
from scipy import integrate, stats

import geon
from geon import distributions as gd
from geon.testing.cases import for_each

B, N, S = geon.Axis("B", 2), geon.Axis("N"), geon.Axis("S")
C, D, K = geon.Axis("C", 4), geon.Axis("D", 3), geon.Axis("K", 2)
NUMPY = geon.NumPyTransformer()
FACTOR = np.array([[1.0, 0.0, 0.0], [-0.5, 2.0, 0.0], [0.3, 0.7, 0.4]])


def constant(values, *axes):
    """A float64 constant."""
    return geon.constant(np.asarray(values, np.float64), axes)


def value(*results, lengths=None):
    """The results' values."""
    found = NUMPY.computation(list(results), lengths=lengths)()
    return found[0] if len(found) == 1 else found


def test_dirichlet_is_that_of_scipy():
    alpha = np.array([[0.5, 1.0, 2.0, 30.0], [1.0, 1.0, 1.0, 1.0]])
    ours = gd.Dirichlet(constant(alpha, B, C), C)
    points = np.array([[0.1, 0.2, 0.3, 0.4], [0.05, 0.05, 0.4, 0.5]])
    found = value(ours.log_prob(constant(points, B, C)), ours.entropy(), ours.mean, ours.variance)
    theirs = [stats.dirichlet(a) for a in alpha]
    np.testing.assert_allclose(found[0], [t.logpdf(x) for t, x in zip(theirs, points, strict=True)])
    np.testing.assert_allclose(found[1], [t.entropy() for t in theirs])
    np.testing.assert_allclose(found[2], [t.mean() for t in theirs])
    np.testing.assert_allclose(found[3], [t.var() for t in theirs])
    assert ours.sample(geon.Random(0), [N]).axes.names == ("N", "B", "C")
    outside = value(ours.log_prob(constant([-0.1, 0.5, 0.3, 0.3], C)))
    assert np.isneginf(outside).all()


def test_multinomial_is_that_of_scipy():
    p = [0.1, 0.2, 0.7, 0.0]
    ours = gd.Multinomial(12, constant(p, C))
    counts = np.array([[1, 3, 8, 0], [0, 0, 12, 0], [1, 2, 8, 1], [1, 1, 1, 0], [1.5, 2.5, 8, 0]])
    found = value(ours.log_prob(constant(counts, geon.Axis("case", 5), C)))
    theirs = stats.multinomial(12, p)
    np.testing.assert_allclose(found[:2], theirs.logpmf(counts[:2].astype(int)), rtol=1e-10)
    assert np.isneginf(found[2:]).all()
    np.testing.assert_allclose(value(ours.mean), theirs.mean())
    np.testing.assert_allclose(value(ours.variance), np.diag(theirs.cov()))
    assert (value(ours.sample(geon.Random(0), [N]), lengths={N: 50}).sum(1) == 12).all()


def test_multivariate_normal_is_that_of_scipy():
    ours = gd.MultivariateNormal(constant([1.0, 2.0, 3.0], D), constant(FACTOR + 9 * np.triu(
        np.ones((3, 3)), 1), D, D.prime))  # fmt: skip
    points = np.array([[1.0, 2.0, 3.0], [0.0, 5.0, -1.0]])
    theirs = stats.multivariate_normal([1, 2, 3], FACTOR @ FACTOR.T)
    found = value(ours.log_prob(constant(points, B, D)), ours.entropy(), ours.variance, ours.mean)
    np.testing.assert_allclose(found[0], theirs.logpdf(points))
    np.testing.assert_allclose(found[1], theirs.entropy())
    np.testing.assert_allclose(found[2], np.diag(FACTOR @ FACTOR.T))
    np.testing.assert_allclose(found[3], [1, 2, 3])
    other = gd.MultivariateNormal(
        constant([1.0, 2.0, 3.0], D), covariance=constant(FACTOR @ FACTOR.T, D, D.prime)
    )
    np.testing.assert_allclose(value(other.log_prob(constant(points, B, D))), found[0])
    with pytest.raises(geon.ArgumentError, match="neither factor nor covariance is given"):
        gd.MultivariateNormal(0.0)
    sample = value(ours.sample(geon.Random(0), [N]), lengths={N: 20_000})
    np.testing.assert_allclose(np.cov(sample.T), FACTOR @ FACTOR.T, atol=0.1)


def test_multivariate_normal_has_batches_and_derivatives():
    factor = geon.placeholder([B, D, D.prime], "float64")
    x = geon.placeholder([N, B, D], "float64")
    ours = gd.MultivariateNormal(0.0, factor)
    assert ours.axes is geon.Axes(B)
    made = ours.log_prob(x)
    assert set(made.axes.names) == {"N", "B"}
    slope = geon.deriv(geon.sum(made), factor)
    f = NUMPY.computation([geon.sum(made), slope], factor, x)
    factors = np.stack([FACTOR, FACTOR @ np.diag([2.0, 1, 3])])
    points = np.random.default_rng(0).normal(size=(5, 2, 3))
    total, slopes = f(factors, points)
    wanted = sum(
        stats.multivariate_normal(np.zeros(3), L @ L.T).logpdf(points[:, b]).sum()
        for b, L in enumerate(factors)
    )
    np.testing.assert_allclose(total, wanted)
    moved = factors.copy()
    moved[1, 2, 1] += 1e-6
    np.testing.assert_allclose(slopes[1, 2, 1], (f(moved, points)[0] - total) / 1e-6, rtol=1e-4)
    assert slopes[1, 1, 2] == 0


def test_independent_sums_over_its_axes():
    base = gd.Normal(constant(np.zeros((2, 3)), B, D), constant([1.0, 2.0, 3.0], D))
    ours = gd.Independent(base, "D")
    x = constant(np.arange(6.0).reshape(2, 3), B, D)
    one, other, entropy = value(ours.log_prob(x), base.log_prob(x), ours.entropy())
    np.testing.assert_allclose(one, other.sum(1))
    np.testing.assert_allclose(entropy, stats.norm(0, [1, 2, 3]).entropy().sum())
    assert ours.sample(geon.Random(0), [N]).axes.names == ("N", "B", "D")
    with pytest.raises(geon.AxisError, match="'Z' is no axis of the distribution over"):
        gd.Independent(base, "Z")


def test_a_mixture_is_the_weighted_sum():
    weights = gd.Categorical(constant([0.3, 0.7], K))
    ours = gd.Mixture(weights, gd.Normal(constant([-2.0, 3.0], K), constant([1.0, 0.5], K)))
    x = constant([-2.0, 0.0, 3.0], D)
    points = np.array([-2.0, 0.0, 3.0])
    parts = [stats.norm(-2, 1), stats.norm(3, 0.5)]
    density = 0.3 * parts[0].pdf(points) + 0.7 * parts[1].pdf(points)
    found = value(ours.log_prob(x), ours.cdf(x), ours.mean, ours.variance)
    np.testing.assert_allclose(found[0], np.log(density))
    np.testing.assert_allclose(found[1], 0.3 * parts[0].cdf(points) + 0.7 * parts[1].cdf(points))
    sample = value(ours.sample(geon.Random(4), [N]), lengths={N: 5000})
    np.testing.assert_allclose([found[2], found[3]], [1.5, 0.3 + 0.7 * 0.25 + 0.21 * 25])
    result = stats.kstest(sample, lambda x: 0.3 * parts[0].cdf(x) + 0.7 * parts[1].cdf(x))
    assert result.pvalue > 1e-3
    with pytest.raises(geon.AxisError, match=r"the components over \(D:3\) lack K:2"):
        gd.Mixture(weights, gd.Normal(x, 1.0))


def test_derivatives_go_through_draws_of_draws():
    """The shape of each step is the draw before it; differences of means say what is right."""
    begin = geon.placeholder([], "float64")

    def chained(stream):
        def step(carry, _):
            return gd.Beta(3 * carry * carry + 0.5, 2.0).sample(stream), None

        return geon.scan(step, geon.broadcast(begin, [N]), over=geon.Axis("steps", 2))[0]

    means = [geon.mean(chained(geon.Random(1))) for _ in range(2)]
    slope = geon.deriv(means[0], begin)
    found = NUMPY.computation([slope], begin, lengths={N: 20_000})(1.0)[0]
    ends = [
        geon.NumPyTransformer().computation(means[1], begin, lengths={N: 20_000})(at)
        for at in (0.9, 1.1)  # each the first call of its transformer: the same words
    ]
    np.testing.assert_allclose(found, (ends[1] - ends[0]) / 0.2, rtol=0.1)


def test_a_mixture_of_vectors_draws_whole_vectors():
    weights = gd.Categorical(constant([0.5, 0.5], K))
    base = gd.Normal(constant([[0.0] * 3, [50.0] * 3], K, D), 1.0)
    sample = gd.Mixture(weights, gd.Independent(base, D)).sample(geon.Random(4), [N])
    assert sample.axes.names == ("N", "D")
    found = value(sample, lengths={N: 100})
    assert (np.ptp(found, axis=1) < 20).all()
    assert 0.2 < (found[:, 0] > 25).mean() < 0.8


TRANSFORMED = {
    "exp": (gd.Transformed(gd.Normal(0.5, 2.0), gd.EXP), stats.lognorm(2, scale=np.exp(0.5))),
    "affine": (gd.Transformed(gd.Gamma(2.0), gd.affine(3.0, 2.0)), stats.gamma(2, 3, 2)),
    "sigmoid": (gd.Transformed(gd.Logistic(), gd.SIGMOID), stats.uniform()),
}


@for_each("name", TRANSFORMED)
def test_transformed_densities(name):
    ours, theirs = TRANSFORMED[name]
    points = theirs.ppf([0.1, 0.5, 0.9])
    made = ours.log_prob(constant(points, D))
    np.testing.assert_allclose(value(made), theirs.logpdf(points), rtol=1e-6, atol=1e-6)
    sample = value(ours.sample(geon.Random(3), [N]), lengths={N: 4000})
    assert stats.kstest(sample.astype(float), theirs.cdf).pvalue > 1e-3


def test_the_slope_of_a_transform_is_that_of_its_value():
    x = geon.placeholder([N], "float64")
    for each in (gd.EXP, gd.SIGMOID, gd.SOFTPLUS, gd.affine(1.0, 3.0)):
        y = each.forward(x)
        results = [each.log_derivative(x), geon.log(geon.deriv(geon.sum(y), x)), each.inverse(y)]
        one, other, back = NUMPY.computation(results, x)([-2.0, 0.1, 3.0])
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(back, [-2, 0.1, 3], rtol=1e-9)


# Divergences ------------------------------------------------------------------------------------

PAIRS = {
    "Normal": (gd.Normal(0.3, 1.5), gd.Normal(-1.0, 2.0), -9, 9),
    "LogNormal": (gd.LogNormal(0.3, 0.5), gd.LogNormal(-0.1, 0.7), 1e-9, 40),
    "Laplace": (gd.Laplace(0.3, 1.5), gd.Laplace(-1.0, 2.0), -40, 40),
    "Gumbel": (gd.Gumbel(0.3, 1.5), gd.Gumbel(-1.0, 2.0), -9, 60),
    "Cauchy": (gd.Cauchy(0.3, 1.5), gd.Cauchy(-1.0, 2.0), -np.inf, np.inf),
    "HalfNormal": (gd.HalfNormal(1.5), gd.HalfNormal(2.0), 0, 15),
    "Exponential": (gd.Exponential(1.5), gd.Exponential(2.0), 0, 70),
    "Gamma": (gd.Gamma(2.5, 1.5), gd.Gamma(4.0, 0.7), 0, 80),
    "Exponential Gamma": (gd.Exponential(1.5), gd.Gamma(2.0, 0.7), 0, 80),
    "Gamma Exponential": (gd.Gamma(2.0, 0.7), gd.Exponential(1.5), 0, 80),
    "ChiSquare": (gd.ChiSquare(5.0), gd.ChiSquare(3.0), 0, 90),
    "InverseGamma": (gd.InverseGamma(2.5, 1.5), gd.InverseGamma(4.0, 0.7), 1e-2, np.inf),
    "Weibull": (gd.Weibull(1.7, 1.5), gd.Weibull(1.2, 0.7), 0, 15),
    "Pareto": (gd.Pareto(1.7, 1.5), gd.Pareto(1.2, 0.7), 1.5, np.inf),
    "Uniform": (gd.Uniform(0.1, 0.9), gd.Uniform(0.0, 2.0), 0.1, 0.9),
    "Beta": (gd.Beta(2.0, 3.0), gd.Beta(1.5, 0.7), 0, 1),
    "Bernoulli": (gd.Bernoulli(0.3), gd.Bernoulli(0.8), 0, 1),
    "Bernoulli logits": (gd.Bernoulli(logits=0.3), gd.Bernoulli(logits=-1.0), 0, 1),
    "Binomial": (gd.Binomial(7, 0.3), gd.Binomial(7, 0.8), 0, 7),
    "Poisson": (gd.Poisson(2.5), gd.Poisson(4.0), 0, 60),
    "Geometric": (gd.Geometric(0.3), gd.Geometric(0.8), 1, 120),
}


@for_each("name", PAIRS)
def test_divergences_are_those_of_quadrature(name):
    p, q, low, high = PAIRS[name]
    x = geon.placeholder([N], "float64")
    f = NUMPY.computation([p.log_prob(x), q.log_prob(x)], x)

    def part(t):
        ours, others = f(np.atleast_1d(t))
        with np.errstate(all="ignore"):
            found = np.exp(ours) * (ours - others)
        return np.where(np.exp(ours) > 0, found, 0.0)

    if p.is_discrete:
        wanted = part(np.arange(low, high + 1.0)).sum()
    else:
        wanted = integrate.quad(lambda t: part(t)[0], low, high, limit=300)[0]
    np.testing.assert_allclose(value(gd.kl_divergence(p, q)), wanted, rtol=2e-5)
    np.testing.assert_allclose(value(gd.kl_divergence(p, p)), 0, atol=1e-6)


def test_divergences_of_vectors():
    first, second = [0.5, 1.0, 2.0, 3.0], [2.0, 1.0, 0.7, 1.0]
    p, q = (gd.Dirichlet(constant(each, C)) for each in (first, second))
    x = p.sample(geon.Random(1), [S])
    estimate = geon.mean(p.log_prob(x) - q.log_prob(x), S)
    found = value(gd.kl_divergence(p, q), estimate, lengths={S: 20_000})
    np.testing.assert_allclose(*found, rtol=0.03)
    c, d = (gd.Categorical(logits=constant(each, C)) for each in (first, second))
    shares = [np.exp(each) / np.exp(each).sum() for each in (first, second)]
    np.testing.assert_allclose(value(gd.kl_divergence(c, d)), stats.entropy(*shares))
    other = np.diag([1.0, 0.5, 2.0])
    m, n = (
        gd.MultivariateNormal(constant(mean, D), constant(factor, D, D.prime))
        for mean, factor in (([1.0, 0, 0], FACTOR), ([0.0, 1, 1], other))
    )
    precision, covariance = np.linalg.inv(other @ other.T), FACTOR @ FACTOR.T
    apart = np.array([1.0, -1, -1])
    wanted = 0.5 * (
        np.trace(precision @ covariance)
        + apart @ precision @ apart
        - 3
        - np.linalg.slogdet(precision @ covariance)[1]
    )
    np.testing.assert_allclose(value(gd.kl_divergence(m, n)), wanted)
    base = [gd.Normal(constant(each, C), 1.0) for each in (first, second)]
    one, each = value(
        gd.kl_divergence(gd.Independent(base[0], C), gd.Independent(base[1], C)),
        gd.kl_divergence(*base),
    )
    np.testing.assert_allclose(one, each.sum())


def test_what_q_lacks_is_infinite_and_unknown_pairs_raise():
    infinite = [
        gd.kl_divergence(gd.Uniform(0.0, 2.0), gd.Uniform(0.0, 1.0)),
        gd.kl_divergence(gd.Pareto(1.0, 1.0), gd.Pareto(1.0, 2.0)),
        gd.kl_divergence(gd.Bernoulli(0.5), gd.Bernoulli(0.0)),
        gd.kl_divergence(gd.Binomial(5, 0.5), gd.Binomial(4, 0.5)),
    ]
    assert np.isposinf(value(*infinite)).all()
    assert value(gd.kl_divergence(gd.Bernoulli(0.0), gd.Bernoulli(0.5))) == np.float32(np.log(2))
    with pytest.raises(geon.ArgumentError, match=r"Normal and Laplace have no .* p\.sample\("):
        gd.kl_divergence(gd.Normal(), gd.Laplace())
