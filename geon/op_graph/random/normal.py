"""Conversion of random words to uniform and standard normal values, equal on every target.

Only exactly specified operations are used: integer shifts, exact conversions of integers to floats,
additions, subtractions, products, divisions, square roots, comparisons and selections. A target
must keep their order and must not contract a product and a sum into one rounding. `ops` is a
namespace with the functions named as in NumPy, and `cast(x, dtype_name)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..special.gamma_formulas import horner

__all__ = ["Quotient", "normal_from_bits", "quotient", "uniform_from_bits"]


Quotient = tuple[Sequence[float], Sequence[float]]


class _NormalForm(NamedTuple):
    """The constants of one dtype: its grid and three quotients of polynomials, highest power first.

    Comments give the largest relative error of each fit for 2^-(significant_bits + 1) <= p <=
    0.075. All coefficients of a float32 form are exact or round to float32 once.
    """

    unused_bits: int
    significant_bits: int
    centre: Quotient  # z / q as a function of 0.425^2 - q^2
    square_roots: int
    logarithm: Quotient  # -log(p) / (1 - s) as a function of s, p after the square roots
    tail: Quotient  # z as a function of sqrt(-log(p))


_CENTRE_END = 27853 / 65536  # 0.425 to a value that both dtypes hold exactly
_CENTRE_SHIFT = 0.180625  # 0.425 squared

_FORMS = {
    "float32": _NormalForm(
        unused_bits=8,
        significant_bits=24,
        # Wichura's PPND7.
        centre=(
            (59.10937472, 159.29113202, 50.434271938, 3.3871327179),
            (67.1875636, 78.757757664, 17.895169469, 1.0),
        ),
        square_roots=3,
        # Fit 9.7e-9.
        logarithm=(
            (0.8615943, 18.049992, 20.122093, 3.7275069, 0.09711891),
            (1.0, 2.8101263, 1.3988377, 0.14612548, 0.0021632926),
        ),
        # Fit 4.8e-8.
        tail=(
            (1.4165255, 3.7659826, -1.1060456, -2.5045733),
            (1.0, 2.7184165, 0.9368629),
        ),
    ),
    "float64": _NormalForm(
        unused_bits=11,
        significant_bits=53,
        # Wichura's PPND16.
        centre=(
            (
                2509.0809287301227,
                33430.57558358813,
                67265.7709270087,
                45921.95393154987,
                13731.69376550946,
                1971.5909503065513,
                133.14166789178438,
                3.3871328727963665,
            ),
            (
                5226.495278852854,
                28729.085735721943,
                39307.89580009271,
                21213.794301586597,
                5394.196021424751,
                687.1870074920579,
                42.31333070160091,
                1.0,
            ),
        ),
        square_roots=4,
        # Fit 6.9e-17.
        logarithm=(
            (
                0.4493173404605976,
                58.20802603867137,
                473.3718549040841,
                1064.170540501932,
                894.3675274975926,
                313.4295264203909,
                46.70029623659675,
                2.7963103388991626,
                0.05677093508286262,
                0.00024388294370420585,
            ),
            (
                1.0,
                13.979253931623704,
                49.85436892352968,
                65.89043992232784,
                37.147322014649895,
                9.379745595384001,
                1.0473150165678742,
                0.0477258500585988,
                0.0007274798241375637,
                2.1469417995750115e-06,
            ),
        ),
        # Fit 7.9e-18.
        tail=(
            (
                1.4142539168140145,
                55.67909339362512,
                587.4595627736519,
                2373.9906010556165,
                4085.9459858979717,
                1490.8523748727162,
                -2991.958365849921,
                -2048.1986050094265,
                -205.3525445842629,
            ),
            (
                1.0,
                39.37723107409342,
                418.3238210514044,
                1761.2354409115414,
                3544.747825395677,
                3145.876042570541,
                957.5960442933687,
                58.0091125915716,
            ),
        ),
    ),
}


def uniform_from_bits(bits: Any, dtype: str, ops: Any) -> Any:
    """Return values in [0, 1), equally spaced by 2^-24 (float32) or 2^-53 (float64).

    `bits` is uint32 for float32 and uint64 for float64; its highest 24 or 53 bits are used, and
    every value is exact.
    """
    form = _FORMS[dtype]
    kept = ops.cast(ops.right_shift(bits, form.unused_bits), dtype)
    return kept * 2.0**-form.significant_bits


def normal_from_bits(bits: Any, dtype: str, ops: Any) -> Any:
    """Return standard normal values: the inverse normal distribution function of the bits.

    `bits` is uint32 for float32 and uint64 for float64. Its highest 24 (53) bits k represent the
    probability (k + 1/2) 2^-24 (2^-53), so results are symmetric about 0 and reach 5.4 (8.3) on
    either side. Complementing the bits changes only the sign. The error is at most 9.1 ulp in
    float32 (all arguments) and 8 ulp in float64 (sampled), largest where the tails begin.

    The middle 85 % follow M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988), 477-484.
    As there, the tails are a rational function of sqrt(-log p), but fitted to the p that occur.
    -log p is a rational function of the eighth (float32) or sixteenth (float64) root of p, which is
    computed by repeated square roots. The fits are Remez exchanges in 50-digit arithmetic.
    """
    form = _FORMS[dtype]
    kept = ops.cast(ops.right_shift(bits, form.unused_bits), dtype)
    half = 2.0 ** (form.significant_bits - 1)
    # Every step to q = probability - 1/2 and p, the smaller of the two tails, is exact.
    q = (kept - half + 0.5) * (0.5 / half)
    size = ops.absolute(q)
    root = 0.5 - size
    for _ in range(form.square_roots):
        root = ops.sqrt(root)
    tail = ops.sqrt((1.0 - root) * quotient(root, form.logarithm))
    tail = quotient(tail, form.tail)
    centre = size * quotient(_CENTRE_SHIFT - q * q, form.centre)
    magnitude = ops.where(size <= _CENTRE_END, centre, tail)
    return ops.where(q < 0.0, -magnitude, magnitude)


def quotient(x: Any, coefficients: Quotient) -> Any:
    """Return the quotient of two polynomials in `x`, coefficients from the highest power down."""
    numerator, denominator = coefficients
    return horner(x, numerator) / horner(x, denominator)
