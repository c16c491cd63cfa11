"""``kl_divergence``: the Kullback-Leibler divergence of pairs of families in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import geon

from ..errors import ArgumentError
from ..op_graph.core.argument_hints import public
from ..op_graph.core.source_info import user_call
from .base import Distribution, union
from .bounded import Beta, Uniform
from .compound import Independent
from .discrete import Bernoulli, Binomial, Categorical, Geometric, Poisson
from .formulas import EULER, deviance, log_beta
from .location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal
from .positive import ChiSquare, Exponential, Gamma, InverseGamma, LogNormal, Pareto, Weibull
from .vectors import Dirichlet, MultivariateNormal

if TYPE_CHECKING:
    from geon import Tensor

Rule = Callable[[Any, Any], "Tensor"]


def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    distance = geon.square((p.location - q.location) / q.scale)
    return 0.5 * (geon.square(ratio) - 1.0 + distance) - geon.log(ratio)


def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, geon.absolute(p.location - q.location)
    near = ratio * geon.exp(-distance / p.scale)
    return near + distance / q.scale - 1.0 - geon.log(ratio)


def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.location - q.location) / q.scale
    last = geon.exp(-apart + geon.lgamma(1.0 + ratio))
    return -geon.log(ratio) + EULER * (ratio - 1.0) + apart + last - 1.0


def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    top = geon.square(p.scale + q.scale) + geon.square(p.location - q.location)
    return geon.log(top / (4.0 * p.scale * q.scale))


def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(Normal(0.0, p.scale), Normal(0.0, q.scale))


def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = p.scale / q.scale
    return ratio - 1.0 - geon.log(ratio)


def _gamma(p: Gamma, q: Gamma) -> Tensor:
    ratio = p.scale / q.scale
    shapes = (p.shape - q.shape) * geon.digamma(p.shape) - geon.lgamma(p.shape)
    return shapes + geon.lgamma(q.shape) + p.shape * (ratio - 1.0) - q.shape * geon.log(ratio)


def _inverse_gamma(p: InverseGamma, q: InverseGamma) -> Tensor:
    return _gamma(Gamma(p.shape, 1.0 / p.scale), Gamma(q.shape, 1.0 / q.scale))


def _weibull(p: Weibull, q: Weibull) -> Tensor:
    """C. Bauckhage, "Computing the Kullback-Leibler divergence between two Weibull", 2013."""
    ratio = geon.log(p.scale / q.scale)
    moment = geon.exp(q.shape * ratio + geon.lgamma(q.shape / p.shape + 1.0))
    shapes = geon.log(p.shape / q.shape) - (p.shape - q.shape) * EULER / p.shape
    return shapes - q.shape * ratio + moment - 1.0


def _pareto(p: Pareto, q: Pareto) -> Tensor:
    inside = p.scale >= q.scale
    ratio = geon.log(geon.where(inside, p.scale / q.scale, 1.0))
    made = q.shape * ratio + geon.log(p.shape / q.shape) + q.shape / p.shape - 1.0
    return geon.where(inside, made, float("inf"))


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = geon.logical_and(p.low >= q.low, p.high <= q.high)
    made = geon.log((q.high - q.low) / (p.high - p.low))
    return geon.where(inside, made, float("inf"))


def _beta(p: Beta, q: Beta) -> Tensor:
    total = p.a + p.b
    first = (p.a - q.a) * (geon.digamma(p.a) - geon.digamma(total))
    second = (p.b - q.b) * (geon.digamma(p.b) - geon.digamma(total))
    return log_beta(q.a, q.b) - log_beta(p.a, p.b) + first + second


def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """Return the divergence; from logits it is finite for all of them."""
    first, second = p._both()
    if p.p is None and q.p is None:
        slopes = geon.softplus(q.logits) - geon.softplus(p.logits)
        return first * (p.logits - q.logits) + slopes
    other, rest = q._both()
    return geon.xlogy(first, first / other) + geon.xlogy(second, second / rest)


def _categorical(p: Categorical, q: Categorical) -> Tensor:
    if p.over.name != q.over.name:
        raise ArgumentError(
            f"{user_call('kl_divergence')}: the classes lie along {p.over} and along {q.over}; "
            "give both distributions one axis"
        )
    weights = p.normalized_p
    apart = geon.where(weights > 0, p.log_p - q.log_p, 0.0)
    return geon.sum(weights * apart, p.over)


def _binomial(p: Binomial, q: Binomial) -> Tensor:
    """Return the divergence; infinite where q has fewer trials, NaN where it has more."""
    single = _bernoulli(Bernoulli(p.p), Bernoulli(q.p))
    other = geon.where(p.count > q.count, float("inf"), float("nan"))
    return geon.where(geon.equal(p.count, q.count), p.count * single, other)


def _poisson(p: Poisson, q: Poisson) -> Tensor:
    is_zero = geon.equal(p.rate, 0.0)
    made = deviance(geon.where(is_zero, 1.0, p.rate), q.rate)
    return geon.where(is_zero, q.rate, made)


def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return _bernoulli(Bernoulli(p.p), Bernoulli(q.p)) / p.p


def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b, total = p.concentration, q.concentration, p._total
    slopes = geon.digamma(a) - geon.digamma(total)
    return q._log_beta() - p._log_beta() + geon.sum((a - b) * slopes, p.over)


def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    column = p.over.prime.prime
    apart = q.standardised(p.location - q.location)
    spread = q.standardised(geon.rename(p.factor, {p.over.prime: column}))
    trace = geon.sum(geon.square(spread), [p.over.prime, column])
    distance = geon.sum(geon.square(apart), p.over.prime)
    return 0.5 * (trace + distance - p._size()) + q._log_scale() - p._log_scale()


def _independent(p: Independent, q: Independent) -> Tensor:
    return geon.sum(kl_divergence(p.base, q.base), p.over)


RULES: dict[tuple[type, type], Rule] = {
    (Normal, Normal): _normal,
    (LogNormal, LogNormal): lambda p, q: _normal(p.normal, q.normal),
    (Laplace, Laplace): _laplace,
    (Gumbel, Gumbel): _gumbel,
    (Cauchy, Cauchy): _cauchy,
    (HalfNormal, HalfNormal): _half_normal,
    (Exponential, Exponential): _exponential,
    (Gamma, Gamma): _gamma,
    (Exponential, Gamma): lambda p, q: _gamma(Gamma(1.0, p.scale), q),
    (Gamma, Exponential): lambda p, q: _gamma(p, Gamma(1.0, q.scale)),
    (ChiSquare, ChiSquare): lambda p, q: _gamma(p.gamma, q.gamma),
    (InverseGamma, InverseGamma): _inverse_gamma,
    (Weibull, Weibull): _weibull,
    (Pareto, Pareto): _pareto,
    (Uniform, Uniform): _uniform,
    (Beta, Beta): _beta,
    (Bernoulli, Bernoulli): _bernoulli,
    (Categorical, Categorical): _categorical,
    (Binomial, Binomial): _binomial,
    (Poisson, Poisson): _poisson,
    (Geometric, Geometric): _geometric,
    (Dirichlet, Dirichlet): _dirichlet,
    (MultivariateNormal, MultivariateNormal): _multivariate_normal,
    (Independent, Independent): _independent,
}


@public
def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence of ``q`` from ``p``, the mean of log(p / q) under p.

    The result is over the axes of both distributions. It is infinite where p has values that q has
    not. Raises ``ArgumentError`` for a pair of families without a closed form in ``RULES``.
    """
    rule = RULES.get((type(p), type(q)))
    if rule is None:
        raise ArgumentError(
            f"{user_call('kl_divergence')}: {type(p).__name__} and {type(q).__name__} have no "
            "divergence in closed form; estimate it: x = p.sample(random, [S]), then "
            "geon.mean(p.log_prob(x) - q.log_prob(x), S)"
        )
    made = rule(p, q)
    every = union(p.axes, q.axes)
    return made if made.axes is every else geon.broadcast(made, every)
