"""``Random``: a stream of random numbers with the draws of all distributions."""

from __future__ import annotations

from .continuous import ContinuousDraws
from .counts import CountDraws
from .gamma import GammaDraws
from .multivariate import MultivariateDraws
from .positions import PositionDraws


class Random(PositionDraws, CountDraws, GammaDraws, MultivariateDraws, ContinuousDraws):
    """A stream of random numbers; building the same draws from the same seed gives the same bits.

    ``seed`` is an integer from 0 to 2^64 - 1. Each method builds a new draw: an op whose elements
    are random and differ from call to call. In a loop a draw differs from step to step. Between
    calls the stream stores only ``counter``, a persistent variable, so that checkpoints contain it:
    under the name ``name.calls``, or without a name as ``random_calls().0``, numbered in the order
    in which a transformer meets the streams. The random words are equal bit for bit on every
    transformer, and so are ``bits``, ``uniform``, ``normal``, ``bernoulli``, ``exponential``,
    ``laplace``, ``integers``, ``permutation``, ``shuffle``, and ``categorical`` and ``choice`` from
    probabilities. Other draws compute logarithms or powers of these words, which differ by
    rounding. Parameters are numbers or tensors over some of the axes of the draw. Raises
    ``DTypeError`` for a seed out of range.
    """

    __slots__ = ()
