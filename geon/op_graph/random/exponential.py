"""Conversion of random words to standard exponential values, equal on every target.

Like ``normal``, only exactly specified operations are used, in one order: conversions of integers
to floats, additions, subtractions, products, divisions, square roots, comparisons and selections.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .normal import Quotient, quotient

__all__ = ["exponential_from_bits"]


class _ExponentialForm(NamedTuple):
    """The constants of one dtype: two quotients of polynomials, highest power first.

    Comments give the largest relative error of each fit.
    """

    width: int  # bits of a word
    near: Quotient  # -log(1 - u) / u for 0 < u <= 1/2
    square_roots: int
    far: Quotient  # -log(p) / (1 - r) as a function of r, p after the square roots, for p < 1/4


_FORMS = {
    "float32": _ExponentialForm(
        width=32,
        # Fit 9.3e-10.
        near=(
            (-0.0136633627, 0.444537669, -1.36129356, 1.0),
            (-0.164128551, 1.04184788, -1.86129343, 1.0),
        ),
        square_roots=3,
        # Fit 6.2e-9 for p >= 2^-33.
        far=(
            (0.700195829, 19.7368773, 31.3403966, 9.83867727, 0.686716446, 0.00757735941),
            (1.0, 3.65986298, 2.62323855, 0.48380817, 0.0217413107, 0.000148945609),
        ),
    ),
    "float64": _ExponentialForm(
        width=64,
        # Fit 6.0e-18.
        near=(
            (
                0.00025915447771705433,
                -0.035403795825462284,
                0.4233291405337385,
                -1.7878892397046857,
                3.409384818033567,
                -3.0086445119755036,
                1.0,
            ),
            (
                0.009352027973020397,
                -0.1794905097677592,
                1.1321296578573858,
                -3.2835279393822314,
                4.830373740687744,
                -3.508644511975501,
                1.0,
            ),
        ),
        square_roots=4,
        # Fit 3.0e-18 for p >= 2^-65.
        far=(
            (
                0.3531864300293727,
                62.18601946421833,
                690.9284395967551,
                2216.460953591261,
                2823.3793516970545,
                1630.7891624352324,
                452.1752526951288,
                60.81889816843128,
                3.845627308557456,
                0.10485623076116427,
                0.0010197748611295893,
                2.1723762884651055e-06,
            ),
            (
                1.0,
                18.325943787316117,
                88.98292170457925,
                168.1376450923202,
                144.60624886997755,
                60.910219829701084,
                12.913969342407995,
                1.3675645771807805,
                0.06913932981375671,
                0.001509050369981764,
                1.1496595167897106e-05,
                1.7527964114716036e-08,
            ),
        ),
    ),
}


def tail_from_bits(bits: Any, dtype: str, ops: Any) -> tuple[Any, Any]:
    """Return the smaller tail of a uniform value, above 0 and at most 1/2, and which tail it is.

    The word k of w bits is the probability (k + 1/2) 2^-w. The first result is this probability or
    its complement, with all digits of the dtype; the second is True where it is the probability.
    """
    width = _FORMS[dtype].width
    is_low = ops.equal(ops.right_shift(bits, width - 1), 0)
    count = ops.where(is_low, bits, (1 << width) - 1 - bits)
    return (ops.cast(count, dtype) + 0.5) * 2.0**-width, is_low


def exponential_from_bits(bits: Any, dtype: str, ops: Any) -> Any:
    """Return standard exponential values: -log(1 - u) of the uniform value u of the bits.

    ``bits`` is uint32 for float32 and uint64 for float64; the word k of w bits is u = (k + 1/2)
    2^-w. Results lie between 2^-33 (2^-65) and 22.9 (45.1), with all digits at both ends. The
    error is at most 9 (20) units in the last place. Below u = 3/4 they are a rational function of
    u, or of 2 u - 1 added to log(2); above, of a root of 1 - u by repeated square roots.
    """
    form = _FORMS[dtype]
    tail, is_low = tail_from_bits(bits, dtype, ops)
    u = ops.where(is_low, tail, 1.0 - 2.0 * tail)
    near = u * quotient(u, form.near)
    root = tail
    for _ in range(form.square_roots):
        root = ops.sqrt(root)
    far = (1.0 - root) * quotient(root, form.far)
    return ops.where(is_low, near, ops.where(tail < 0.25, far, near + math.log(2)))
