"""Probability distributions over named axes: densities, samples, entropies and divergences."""

import sys as _sys
from typing import NoReturn as _NoReturn

from .base import Distribution
from .bounded import Beta, TruncatedNormal, Uniform, VonMises
from .compound import EXP, SIGMOID, SOFTPLUS, Independent, Mixture, Transform, Transformed, affine
from .discrete import Bernoulli, Binomial, Categorical, Geometric, NegativeBinomial, Poisson
from .divergence import kl_divergence
from .location_scale import (
    Cauchy,
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Laplace,
    Logistic,
    Normal,
    StudentT,
)
from .positive import ChiSquare, Exponential, Gamma, InverseGamma, LogNormal, Pareto, Weibull
from .vectors import Dirichlet, Multinomial, MultivariateNormal

__all__ = [
    "EXP",
    "SIGMOID",
    "SOFTPLUS",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "ChiSquare",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Mixture",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "Pareto",
    "Poisson",
    "StudentT",
    "Transform",
    "Transformed",
    "TruncatedNormal",
    "Uniform",
    "VonMises",
    "Weibull",
    "affine",
    "kl_divergence",
]


def __getattr__(name: str) -> _NoReturn:
    from ..op_graph.syntax.foreign_names import missing_function
    from ..op_graph.syntax.submodule_names import DISTRIBUTIONS

    raise missing_function(_sys.modules[__name__], name, DISTRIBUTIONS)
