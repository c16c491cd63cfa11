"""Families of geon.distributions: what scipy.stats says of them, derivatives, samples and edges."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import geon
from geon import distributions as gd
from geon.testing.cases import for_each

B, N, C = geon.Axis("B", 3), geon.Axis("N"), geon.Axis("C", 4)
NUMPY = geon.NumPyTransformer()


def over_b(*values):
    """A float64 constant over B."""
    return geon.constant(np.array(values, np.float64), [B])


MU, SIGMA, SHAPE = (0.5, -3.0, 100.0), (1.0, 0.2, 30.0), (0.4, 2.5, 40.0)
LOW, HIGH, CHANCE = (-1.0, 2.0, 40.0), (1.0, 2.5, 1000.0), (0.2, 0.5, 0.9)
REAL = np.array([-60.0, -3.1, 0.0, 0.3, 2.2, 99.0, 120.0])
POSITIVE = np.array([-1.0, 0.0, 1e-3, 0.7, 1.0, 5.0, 300.0])
UNIT = np.array([-0.5, 0.0, 1e-3, 0.3, 0.99, 1.0, 2.0])
WHOLE = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 7.0, 40.0])
ANGLES = np.array([-3.5, -3.0, -1.0, 0.0, 0.4, 2.0, 3.1])
COUNTS = (3, 20, 5000)

# Of each family: parameters, the same one of SciPy, and values. Families of the second part lack
# what their names say, or SciPy does.
FAMILIES = {
    "Normal": ((MU, SIGMA), lambda m, s: stats.norm(m, s), REAL),
    "Laplace": ((MU, SIGMA), lambda m, s: stats.laplace(m, s), REAL),
    "Logistic": ((MU, SIGMA), lambda m, s: stats.logistic(m, s), REAL),
    "Gumbel": ((MU, SIGMA), lambda m, s: stats.gumbel_r(m, s), REAL),
    "Cauchy": ((MU, SIGMA), lambda m, s: stats.cauchy(m, s), REAL),
    "StudentT": ((MU, SIGMA, (1.5, 2.5, 40.0)), lambda m, s, d: stats.t(d, m, s), REAL),
    "HalfNormal": ((SIGMA,), lambda s: stats.halfnorm(scale=s), POSITIVE),
    "HalfCauchy": ((SIGMA,), lambda s: stats.halfcauchy(scale=s), POSITIVE),
    "Exponential": ((SIGMA,), lambda s: stats.expon(scale=s), POSITIVE),
    "Gamma": ((SHAPE, SIGMA), lambda a, s: stats.gamma(a, scale=s), POSITIVE),
    "ChiSquare": ((SHAPE,), lambda d: stats.chi2(d), POSITIVE),
    "InverseGamma": ((SHAPE, SIGMA), lambda a, s: stats.invgamma(a, scale=s), POSITIVE),
    "Weibull": ((SHAPE, SIGMA), lambda a, s: stats.weibull_min(a, scale=s), POSITIVE),
    "Pareto": ((SHAPE, SIGMA), lambda a, s: stats.pareto(a, scale=s), POSITIVE),
    "LogNormal": ((CHANCE, CHANCE), lambda m, s: stats.lognorm(s, scale=np.exp(m)), POSITIVE),
    "Uniform": ((LOW, HIGH), lambda a, b: stats.uniform(a, np.subtract(b, a)), REAL),
    "Beta": ((SHAPE, CHANCE), lambda a, b: stats.beta(a, b), UNIT),
    "TruncatedNormal": (
        (MU, SIGMA, LOW, HIGH),
        lambda m, s, a, b: stats.truncnorm(
            np.subtract(a, m) / s, np.subtract(b, m) / s, m, s
        ),
        np.array([-1.5, -1.0, 0.0, 0.5, 2.1, 50.0, 400.0]),
    ),
    "VonMises": (
        ((0.0, 0.0, 0.0), (0.3, 4.0, 200.0)),
        lambda m, k: stats.vonmises(k, m),
        ANGLES,
    ),
    "Bernoulli": ((CHANCE,), lambda p: stats.bernoulli(p), WHOLE),
    "Poisson": ((SHAPE,), lambda m: stats.poisson(m), WHOLE),
    "Binomial": ((COUNTS, CHANCE), lambda n, p: stats.binom(n, p), WHOLE),
    "Geometric": ((CHANCE,), lambda p: stats.geom(p), WHOLE),
    "NegativeBinomial": ((SHAPE, CHANCE), lambda n, p: stats.nbinom(n, p), WHOLE),
}  # fmt: skip
LACKING = {
    "cdf": "VonMises",
    "quantile": "StudentT Gamma ChiSquare InverseGamma Beta VonMises Bernoulli Poisson Binomial"
    " Geometric NegativeBinomial",
    "entropy": "",
}


def parts(name):
    """A family over B, the same of SciPy, and values."""
    given, theirs, values = FAMILIES[name]
    arrays = [np.array(each, np.float64) for each in given]
    return getattr(gd, name)(*(over_b(*each) for each in given)), theirs(*arrays), values


def computed(results, *leaves, lengths=None):
    """The results as float64 arrays."""
    return NUMPY.computation(results, *leaves, lengths=lengths)


def asked(name, what, distribution, argument):
    """The value of a method; the test ends where the family lacks it and says so."""
    if name in LACKING[what].split():
        with pytest.raises(
            geon.ArgumentError, match=f"{what} at .* has no {what} in closed form; .* estimates it"
        ):
            getattr(distribution, what)(*argument)
        return None
    return getattr(distribution, what)(*argument)


@for_each("name", FAMILIES)
def test_densities_and_moments_are_those_of_scipy(name):
    ours, theirs, values = parts(name)
    x = geon.placeholder([N, B], "float64")
    discrete = hasattr(theirs, "pmf")
    f = computed([ours.log_prob(x), ours.mean, ours.variance, ours.std], x)
    found = f(np.repeat(values[:, None], 3, 1))
    with np.errstate(all="ignore"):
        log_prob = (theirs.logpmf if discrete else theirs.logpdf)(values[:, None])
    assert np.isnan(f(np.full((1, 3), np.nan))[0]).all()
    if name == "VonMises":
        log_prob[0] = -np.inf  # SciPy takes angles beyond pi
    np.testing.assert_allclose(found[0], log_prob, rtol=1e-9, atol=1e-11)
    if name == "VonMises":
        return
    mean, variance = theirs.stats("mv")
    np.testing.assert_allclose(found[1], mean, rtol=1e-9)
    np.testing.assert_allclose(found[2], variance, rtol=1e-7)
    np.testing.assert_allclose(found[3], np.sqrt(variance), rtol=1e-7)


@for_each("name", FAMILIES)
def test_distribution_functions_quantiles_and_entropies_are_those_of_scipy(name):
    ours, theirs, values = parts(name)
    p = np.array([0.0, 1e-9, 1e-4, 0.2, 0.5, 0.9, 0.999, 1.0])[:, None]
    x = geon.placeholder([N, B], "float64")
    found = {
        what: asked(name, what, ours, argument)
        for what, argument in (("cdf", [x]), ("quantile", [x]), ("entropy", []))
    }
    known = [what for what in found if found[what] is not None]
    f = computed([found[what] for what in known], x)

    def got(what, *values):
        """The result of a method at values that are the same for all of B."""
        return f(np.repeat(np.reshape(values, (-1, 1)), 3, 1))[known.index(what)]

    if "cdf" in known:
        wanted = theirs.cdf(values[:, None])
        np.testing.assert_allclose(got("cdf", *values), wanted, rtol=1e-9, atol=1e-12)
    if "quantile" in known:
        np.testing.assert_allclose(got("quantile", *p), theirs.ppf(p), rtol=1e-8, atol=1e-9)
        assert np.isnan(got("quantile", 1.5)).all()
    if "entropy" in known:
        entropy, wanted = got("entropy", 0.5), theirs.entropy()
        compared = np.isfinite(wanted)  # SciPy gives NaN for a distant tail
        assert compared.sum() > 1
        np.testing.assert_allclose(entropy[compared], wanted[compared], rtol=1e-7, atol=1e-9)


SUMMED = {  # a family of whole numbers, its arguments, and values that have nearly all probability
    "Poisson": (
        [0.0, 1e-3, 3, 90, 128, 300, 1e5],
        stats.poisson,
        lambda m: np.arange(max(0, m - 60 - 12 * m**0.5), m + 60 + 12 * m**0.5) // 1,
    ),
    "Binomial": (
        [(0, 0.5), (9, 1), (7, 0), (5, 0.3), (1000, 1e-3), (1000, 0.8), (300, 0.5), (10**5, 0.4)],
        stats.binom,
        lambda n, p: np.arange(n + 1),
    ),
    "NegativeBinomial": (
        [(4, 1), (0.05, 0.05), (1, 1e-3), (20, 0.01), (100, 0.3), (1000, 0.9), (1e-3, 1e-2)],
        stats.nbinom,
        lambda n, p: np.arange(100_000.0),
    ),
}


@for_each("name", SUMMED)
@for_each("dtype", ["float32", "float64"])
def test_entropies_of_whole_numbers_are_sums(name, dtype):
    given, theirs, values = SUMMED[name]
    rows = [np.atleast_1d(each) for each in given]
    row_axis = geon.Axis("row", len(rows))
    columns = [
        geon.constant(np.array(each), [row_axis], dtype=dtype) for each in zip(*rows, strict=True)
    ]
    (found,) = computed([getattr(gd, name)(*columns).entropy()])()
    for entropy, row in zip(found, rows, strict=True):
        log_p = theirs.logpmf(values(*row), *row)
        wanted = stats.entropy(np.exp(log_p))
        assert entropy == pytest.approx(wanted, rel=1e-5 if dtype == "float32" else 1e-10)


def test_derivatives_of_entropies_of_whole_numbers():
    given = [50.0, 200.0], [3.0, 40.0], [0.1, 0.3]
    pair = geon.Axis("pair", 2)
    m, n, p = (geon.placeholder([pair], "float64") for _ in given)
    for ours, leaves, data in [
        (gd.Poisson(m), [m], given[:1]),
        (gd.Binomial(300.0, p), [p], given[2:]),
        (gd.NegativeBinomial(n, p), [n, p], given[1:]),
    ]:
        feeds = dict(zip(leaves, data, strict=True))
        geon.check_gradients(geon.sum(ours.entropy()), feeds)


@for_each("name", ["InverseGamma", "NegativeBinomial"])
def test_samples_have_the_distribution(name):
    sampled(name)


@pytest.mark.slow
@for_each("name", FAMILIES)
def test_samples_of_each_family_have_the_distribution(name):
    sampled(name)


def sampled(name):
    """Compare the samples of a family with its distribution function in SciPy."""
    ours, theirs, _ = parts(name)
    sample = ours.sample(geon.Random(11), [N])
    assert sample.axes.names == ("N", "B")
    found = computed(sample, lengths={N: 4000})()
    assert found.dtype == (np.int64 if ours.is_discrete else np.float64)
    for k, column in enumerate(found.T):
        if ours.is_discrete:
            # Counts are made continuous by the probabilities of less and of this count.
            low, high = (theirs.cdf(column[:, None] - j)[:, k] for j in (1, 0))
            u = low + (high - low) * np.random.default_rng(k).random(4000)
        else:
            u = theirs.cdf(column[:, None])[:, k]
        assert stats.kstest(u, "uniform").pvalue > 1e-3, k


@for_each("name", ["StudentT", "TruncatedNormal"])
def test_derivatives_by_parameters_are_those_of_differences(name):
    differentiated(name)


@pytest.mark.slow
@for_each("name", FAMILIES)
def test_derivatives_of_each_family_are_those_of_differences(name):
    differentiated(name)


def differentiated(name):
    """Compare derivatives of a log-density by its parameters with central differences."""
    given = FAMILIES[name][0]
    x = over_b(*parts(name)[1].ppf(0.4))
    leaves = [geon.placeholder([B], "float64") for _ in given]
    total = geon.sum(getattr(gd, name)(*leaves).log_prob(x))
    wanted = [k for k in range(len(given)) if (name, k) != ("Binomial", 0)]
    slopes = geon.deriv(total, [leaves[k] for k in wanted])
    f = computed([total, *slopes], *leaves)
    arrays = [np.array(each, np.float64) for each in given]
    found = f(*arrays)[1:]
    for k, slope in zip(wanted, found, strict=True):
        for i in range(3):
            step = 1e-6 * max(1, abs(arrays[k][i]))
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in arrays]
                moved[k][i] += sign * step
                ends.append(f(*moved)[0])
            difference = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(slope[i], difference, rtol=1e-5, atol=1e-5 * abs(ends[0]))


def test_float32_keeps_its_digits_at_large_parameters():
    cases = [
        (gd.Poisson(1e6), 1_000_500.0, stats.poisson(1e6).logpmf(1_000_500)),
        (gd.Gamma(1e6, 1.0), 1_000_500.0, stats.gamma(1e6).logpdf(1_000_500)),
        (gd.Beta(1e6, 2e6), 0.3335, stats.beta(1e6, 2e6).logpdf(np.float32(0.3335))),
        (gd.StudentT(0.0, 1.0, 1e7), 2.0, stats.norm.logpdf(2)),
        (gd.NegativeBinomial(1e5, 0.5), 100_300.0, stats.nbinom(1e5, 0.5).logpmf(100_300)),
        (gd.Cauchy(0.0, 1.0), 1e30, -math.log(math.pi) - 60 * math.log(10)),
        (gd.TruncatedNormal(0.0, 1.0, 20.0, 21.0), 20.01, stats.truncnorm(20, 21).logpdf(20.01)),
    ]
    for ours, x, wanted in cases:
        found = computed(ours.log_prob(geon.constant(np.float32(x))))()
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=3e-4, atol=2e-3, err_msg=repr(type(ours)))


def test_derivatives_are_finite_where_values_are_outside():
    x = geon.placeholder([N], "float64")
    a = geon.placeholder([], "float64")
    for ours in (gd.Gamma(a, 1.0), gd.Beta(a, 2.0), gd.LogNormal(a, 1.0), gd.Poisson(a),
                 gd.InverseGamma(a, 1.0), gd.Binomial(5, a / 3)):  # fmt: skip
        total = geon.sum(geon.where(x > 0, ours.log_prob(x), 0.0))
        slopes = computed(geon.deriv(total, [a, x]), a, x)(1.5, [-1.0, -0.5, 0.5, 0.7, 2.0])
        assert all(np.isfinite(each).all() for each in slopes), ours


def test_the_entropy_of_halves_of_axes_and_numbers_is_over_all_axes():
    ours = gd.Normal(geon.placeholder([B]), 2.0)
    assert ours.entropy().axes is ours.mean.axes is ours.variance.axes is geon.Axes(B)
    both = gd.Normal(geon.placeholder([B]), geon.placeholder([C]))
    assert both.axes.names == both.sample(geon.Random(0)).axes.names == ("B", "C")


def test_probabilities_and_logits_are_two_ways_to_say_one_family():
    logits = geon.constant(np.array([[0.1, 2.0, -3.0, 0.0]] * 3), [B, C])
    p = geon.softmax(logits, C) * 5
    x = geon.placeholder([N, B], "int64")
    values = np.array([[0, 1, 3], [2, 2, 2], [-1, 4, 0]])
    made = []
    for ours in (gd.Categorical(logits=logits, over=C), gd.Categorical(p, over="C")):
        results = [ours.log_prob(x), ours.mean, ours.variance, ours.entropy()]
        made.append(computed(results, x)(values))
        assert ours.axes is geon.Axes(B)
    for one, other in zip(*made, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    chances = np.exp([0.1, 2, -3, 0]) / np.exp([0.1, 2, -3, 0]).sum()
    np.testing.assert_allclose(np.exp(made[0][0][:2]), chances[values[:2]])
    assert np.isneginf(made[0][0][2, :2]).all()
    np.testing.assert_allclose(made[0][3], stats.entropy(chances))
    np.testing.assert_allclose(made[0][1], chances @ np.arange(4))
    bernoulli = gd.Bernoulli(logits=over_b(-800.0, 0.3, 800.0))
    found = computed([bernoulli.log_prob(1.0), bernoulli.log_prob(0), bernoulli.entropy()])()
    np.testing.assert_allclose(found[0], [-800, -math.log1p(math.exp(-0.3)), 0])
    np.testing.assert_allclose(found[1], [0, -math.log1p(math.exp(0.3)), -800])
    np.testing.assert_allclose(found[2], [0, stats.bernoulli(1 / (1 + np.exp(-0.3))).entropy(), 0])


def test_every_transformer_computes_them(transformer):
    x = geon.placeholder([N, B], "float64")
    names = ("StudentT", "TruncatedNormal", "NegativeBinomial")
    results = [parts(name)[0].log_prob(x) for name in names]
    values = np.repeat(np.array([0.5, 1.0, 3.0])[:, None], 3, 1)
    ours = transformer.computation(results, x)(values)
    for one, other in zip(ours, NUMPY.computation(results, x)(values), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gd.Normal(0.0, 0.0), "Normal at .*: scale = 0.0; give a number above 0"),
        (lambda: gd.Bernoulli(1.5), "p = 1.5; give a probability from 0 to 1"),
        (lambda: gd.Uniform(1.0, 1.0), "low = 1.0 and high = 1.0; give a low below high"),
        (lambda: gd.Bernoulli(), "neither p nor logits is given"),
        (lambda: gd.Categorical(geon.placeholder([B, C])), "name the one of the classes as over="),
        (lambda: gd.Binomial(2.5), "count = 2.5; give a whole number of at least 0"),
    ],
)
def test_parameters_are_refused(build, message):
    with pytest.raises(geon.ArgumentError, match=message):
        build()


def test_parameters_of_no_numbers_are_refused():
    for name, family in vars(gd).items():
        if isinstance(family, type) and issubclass(family, gd.Distribution):
            required = [f for f in dataclasses.fields(family) if f.default is dataclasses.MISSING]
            for wrong in ("a", b"x", {}, slice(1), object(), B, np.array(["a"])):
                for count in range(1, max(len(required), 1) + 1):
                    arguments = [0.5] * (count - 1) + [wrong] * (max(len(required), 1) - count + 1)
                    with pytest.raises(geon.GeonError):
                        raise AssertionError(f"{name}{tuple(arguments)} is {family(*arguments)}")
