"""Formulas of Bessel functions of orders 0 and 1, and of the inverse normal distribution function.

Each is written once against a namespace ``ops``, as those of ``gamma_formulas``: polynomials on two
intervals. Coefficients were fitted here by interpolation at Chebyshev points in 60-digit
arithmetic, highest power first, until the rest was below 1e-18 of the largest value. float32 is
computed in float64.

In float64 the error is at most 4 ulp for I, K and ``ndtri``. Of J and Y it is at most 4 and 9 units
of 2^-53 times the smaller of 1 and 1 / sqrt(x), or of the value where that is larger: near a root
it is an absolute error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .gamma_formulas import horner

__all__ = ["i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "ndtri", "y0", "y1"]

# exp(-x) I0(x) in x / 4 - 1, for 0 <= x <= 8.
I0_NEAR = (
    -1.185234248268441e-09, 4.470516727511739e-09, -7.723094556846558e-09,
    2.6265363151970122e-08, -1.1384114641747183e-07, 3.675842926555429e-07,
    -1.0883393970072532e-06, 3.2293390826404927e-06, -9.251680584432652e-06,
    2.520232727107692e-05, -6.550861389620851e-05, 0.00016240542162878106,
    -0.00038290209550065975, 0.0008563152748272306, -0.001811886793937724, 0.003617126448897043,
    -0.0067923998730731695, 0.011960077907026221, -0.01968265469059234, 0.030177912022978357,
    -0.04298594945479612, 0.05677703201991695, -0.06954119561719381, 0.07927522590716347,
    -0.08496338091616305, 0.08734341617552313, -0.08904344136075962, 0.09451562853995103,
    -0.11300432688620549, 0.2070019212239867,
)  # fmt: skip
# sqrt(x) exp(-x) I0(x) in 16 / x - 1, for x >= 8.
I0_FAR = (
    4.005238846702162e-11, 1.6645451564642178e-11, -3.210168438362619e-10,
    -1.2429467480056573e-10, 1.2061877911088818e-09, 4.3888571547469544e-10,
    -2.871869508524614e-09, -1.0267334267893136e-09, 4.990505091951665e-09,
    1.9833583862817004e-09, -6.938999072018767e-09, -3.820994672299635e-09,
    7.92317947570021e-09, 7.697661807066973e-09, -5.573331905701052e-09,
    -1.3453822864344357e-08, -6.709029544522708e-09, 7.563772001596294e-09,
    2.1542697325910057e-08, 3.9324708330539615e-08, 8.872269443582848e-08,
    2.973599383077841e-07, 1.483847543234434e-06, 1.1143033788352458e-05,
    0.00013621607439233397, 0.0033605519836678865, 0.4021765094450081,
)  # fmt: skip
# exp(-x) I1(x) / x in x / 4 - 1, for 0 <= x <= 8.
I1_NEAR = (
    3.728453207939234e-10, -1.41695079121077e-09, 2.6032065423311576e-09,
    -8.984420960424589e-09, 3.802984785138283e-08, -1.2424759932738304e-07,
    3.759367306404118e-07, -1.1327072698408053e-06, 3.293899139003749e-06,
    -9.136543922789093e-06, 2.4233753149624307e-05, -6.142360299099794e-05,
    0.0001484212433475852, -0.0003411760289073331, 0.0007445123445061157, -0.00153887456203039,
    0.0030057624197775295, -0.005534567847563678, 0.009583962150731578, -0.015571309243980052,
    0.023686016957729535, -0.03367135552108536, 0.04467457262125467, -0.055280039226991644,
    0.06376740371340721, -0.06848260620582691, 0.0680575999095116, -0.061124338029666284,
    0.044687709875608835,
)  # fmt: skip
# sqrt(x) exp(-x) I1(x) in 16 / x - 1, for x >= 8.
I1_FAR = (
    -4.168120418916055e-11, -1.5626577102923738e-11, 3.3398748250674825e-10,
    1.1618122392816485e-10, -1.2547994068967566e-09, -4.086980353473458e-10,
    2.9887386680459713e-09, 9.568517355033334e-10, -5.202225700802528e-09,
    -1.8736443977245844e-09, 7.268245451539376e-09, 3.721979294684954e-09,
    -8.401103632911856e-09, -7.77859255224256e-09, 6.149852812100864e-09,
    1.4076395433630581e-08, 6.694265496870812e-09, -8.436290416288976e-09,
    -2.3368016543536956e-08, -4.3128111751518845e-08, -1.000134002193138e-07,
    -3.4838565069224345e-07, -1.834910109185791e-06, -1.5038547198145535e-05,
    -0.00021923576383430914, -0.00974957719323576, 0.38939845902587233,
)  # fmt: skip
# K0(x) + log(x / 2) I0(x) in x^2 / 2 - 1, for 0 < x <= 2.
K0_NEAR = (
    3.518631515854722e-14, 5.452564662772586e-12, 6.623013272794453e-10, 6.093361894172114e-08,
    4.054506619949891e-06, 0.0001828055582791554, 0.005053392643196092, 0.07177701034240509,
    0.3404973210133806, -0.30362077291575545,
)  # fmt: skip
# sqrt(x) exp(x) K0(x) in 4 / x - 1, for x >= 2.
K0_FAR = (
    -2.9077787597134676e-11, 4.4463261136366103e-11, 1.126316337253865e-10,
    -1.5750973144550936e-10, -2.7839866456665423e-10, 3.8830274992955615e-10,
    2.4099061000258984e-10, -2.426111314422848e-10, -6.304229346995597e-10,
    1.057377791771955e-09, -1.3806246402872276e-09, 3.17062995799429e-09,
    -7.539817679119337e-09, 1.7316225981819848e-08, -4.1260785805968574e-08,
    1.0287980689458582e-07, -2.6892248671184386e-07, 7.427932208028755e-07,
    -2.1911758052676744e-06, 7.002244287487694e-06, -2.473520470025926e-05,
    9.956054749305854e-05, -0.00047976905676172516, 0.003032891810273794, -0.03107146182488956,
    1.2185953385133905,
)  # fmt: skip
# x (K1(x) - log(x / 2) I1(x)) in x^2 / 2 - 1, for 0 < x <= 2.
K1_NEAR = (
    -3.5962181014457795e-15, -6.214271617329577e-13, -8.53273511404978e-11,
    -9.032127501740678e-09, -7.081133770184678e-07, -3.891869064371633e-05,
    -0.0013831688466153064, -0.02785423521977184, -0.24383852886774365, -0.3322409552403131,
    0.8850882877295894,
)  # fmt: skip
# sqrt(x) exp(x) K1(x) in 4 / x - 1, for x >= 2.
K1_FAR = (
    3.1505349914223394e-11, -4.829107281627359e-11, -1.2166048210035733e-10,
    1.7042975296652008e-10, 3.015605420607711e-10, -4.219063551782296e-10,
    -2.5722618233876927e-10, 2.560533082941086e-10, 6.970364983931104e-10,
    -1.1800978084982549e-09, 1.5795148419024103e-09, -3.639264909950203e-09,
    8.683982534096583e-09, -2.0109398585523833e-08, 4.8376958519292994e-08,
    -1.2195093824501613e-07, 3.229983779937386e-07, -9.067229884830243e-07,
    2.7300392852920254e-06, -8.961205912549711e-06, 3.2843865708633974e-05,
    -0.00013959021964175084, 0.0007357241549032677, -0.005566729880072931, 0.10334973775386527,
    1.363151890371342,
)  # fmt: skip
# J0(x) in x^2 / 32 - 1, for 0 <= x <= 8.
J0_NEAR = (
    4.0037632815796753e-13, -1.243301171273326e-11, 3.3634475788173604e-10,
    -7.91532308295207e-09, 1.5956109104549218e-07, -2.717749223632098e-06,
    3.8473197855944365e-05, -0.0004435459224311503, 0.004058078989140991, -0.028472718610882047,
    0.14598884856759264, -0.5074680458471, 1.0383794611437211, -0.8080888076696872,
    -0.6484692830871837, 0.9303012472958572, 0.04582966485981377,
)  # fmt: skip
# J1(x) / x in x^2 / 32 - 1, for 0 <= x <= 8.
J1_NEAR = (
    -4.0045728425886457e-13, 1.1658972367678622e-11, -2.943013798001659e-10,
    6.431190177265836e-09, -1.196708186787801e-07, 1.8684526037206013e-06,
    -2.404574865968694e-05, 0.0002494945813597261, -0.0020290394945705996, 0.012456814392263375,
    -0.05474581821284722, 0.15858376432721838, -0.2595948652859303, 0.15151665143806636,
    0.08105866038589796, -0.05814382795599107,
)  # fmt: skip
# Y0(x) - 2 / pi log(x / 2) J0(x) in x^2 / 32 - 1, for 0 < x <= 8.
Y0_NEAR = (
    -7.073366667072138e-13, 2.144060805263636e-11, -5.646268915099188e-10,
    1.2898070896458873e-08, -2.5144107029169115e-07, 4.1220543483587725e-06,
    -5.5818304627065164e-05, 0.0006104345643799194, -0.005235027670798993, 0.03380285696399606,
    -0.15453679652310554, 0.4482460446356314, -0.6193407826303358, -0.21245999442065944,
    1.3609456599655456, -0.4179207423206952, -0.3620273432371452,
)  # fmt: skip
# (Y1(x) - 2 / pi (log(x / 2) J1(x) - 1 / x)) / x in x^2 / 32 - 1, for 0 < x <= 8.
Y1_NEAR = (
    -2.1613972615079663e-14, 6.992898479018741e-13, -1.9764090840240263e-11,
    4.871020797907703e-10, -1.0315388849003179e-08, 1.852420184052382e-07,
    -2.77650558055625e-06, 3.406363375316396e-05, -0.00033372257011146276,
    0.0025271340466828155, -0.01413192339424849, 0.054390116307946296, -0.12641995056569882,
    0.12052035426888161, 0.09022750636730935, -0.20760857842830602, 0.04510266206869483,
)  # fmt: skip
# The even part P of the modulus of order 0 in 2 (8 / x)^2 - 1, for x >= 8 (DLMF 10.17).
P0 = (
    -1.180002783020184e-14, 3.339452259070809e-14, -6.416781008015415e-14,
    2.4531772967345006e-13, -1.0636861151667625e-12, 4.786995821368028e-12,
    -2.4882702786880542e-11, 1.5500565496632596e-10, -1.2121182069774233e-09,
    1.280376144080092e-08, -2.0527448156307146e-07, 6.137416080109497e-06,
    -0.0005363673192130047, 0.9994572757882519,
)  # fmt: skip
# Its odd part Q, times x / 8.
Q0 = (
    -9.572065985377527e-16, 2.144902957829335e-15, -1.2429356588527797e-15,
    4.687981531507937e-15, -2.264373726402857e-14, 6.962833501774954e-14,
    -2.2894045665095434e-13, 8.597568595721077e-13, -3.5908691821499985e-12,
    1.7033142359521874e-11, -9.47035030693847e-11, 6.432781585673823e-10,
    -5.668716125225146e-09, 7.106214859523438e-08, -1.4771388326463828e-06,
    6.833149099343887e-05, -0.015555113879513518,
)  # fmt: skip
# P and Q of order 1.
P1 = (
    1.2489929194563941e-14, -3.5455617466606254e-14, 6.864486664846182e-14,
    -2.6335760672461096e-13, 1.1462229852806783e-12, -5.191158004646548e-12,
    2.720406848040165e-11, -1.713107485294131e-10, 1.3603058049468316e-09,
    -1.4708512991275258e-08, 2.4536766222672443e-07, -7.9596946984383e-06,
    0.0008988049416705579, 1.0009070262780821,
)  # fmt: skip
Q1 = (
    -2.25538400007773e-15, 5.34452727774352e-15, -4.9913293396817805e-15,
    1.7495330566839972e-14, -7.413329287139412e-14, 2.5034109684582305e-13,
    -9.23446956586953e-13, 3.875456046538219e-12, -1.852470068817663e-11,
    1.0395096687547827e-10, -7.151105285512477e-10, 6.420132496338991e-09,
    -8.29196070902235e-08, 1.8212018512314264e-06, -9.621458822054426e-05, 0.04677687402744898,
)  # fmt: skip


TINY = 1e-300  # half of any number above is exact


def in_double(formula: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the formula of float64 as one of any float, computed in float64."""

    def computed(x: Any, ops: Any) -> Any:
        dtype = str(x.dtype)
        if dtype == "float64":
            return formula(x, ops)
        return ops.cast(formula(ops.cast(x, "float64"), ops), dtype)

    computed.__doc__ = formula.__doc__
    return computed


# Modified functions ------------------------------------------------------------------------------


def _scaled_i(size: Any, near: Any, far: Any, power: int, ops: Any) -> Any:
    """Return exp(-|x|) I(|x|) from its two tables; the near one is that of I(x) / x^power."""
    inside = size <= 8.0
    low, high = ops.where(inside, size, 8.0), ops.where(inside, 8.0, size)
    first = horner(0.25 * low - 1.0, near)
    first = first * low if power else first
    return ops.where(inside, first, horner(16.0 / high - 1.0, far) / ops.sqrt(high))


def _i0e(x: Any, ops: Any) -> Any:
    return _scaled_i(ops.absolute(x), I0_NEAR, I0_FAR, 0, ops)


def _i1e(x: Any, ops: Any) -> Any:
    size = _scaled_i(ops.absolute(x), I1_NEAR, I1_FAR, 1, ops)
    return ops.where(x < 0.0, -size, size)


def _times_exp(scaled: Any, x: Any, ops: Any) -> Any:
    """Return the product with exp(x) in two steps, which overflows only if the result does."""
    half = ops.exp(0.5 * x)
    return (scaled * half) * half


@in_double
def i0e(x: Any, ops: Any) -> Any:
    """Return exp(-|x|) I0(x)."""
    return _i0e(x, ops)


@in_double
def i1e(x: Any, ops: Any) -> Any:
    """Return exp(-|x|) I1(x)."""
    return _i1e(x, ops)


@in_double
def i0(x: Any, ops: Any) -> Any:
    """Return I0(x)."""
    size = ops.minimum(ops.absolute(x), 750.0)
    return _times_exp(_i0e(size, ops), size, ops)


@in_double
def i1(x: Any, ops: Any) -> Any:
    """Return I1(x)."""
    clamped = ops.maximum(ops.minimum(x, 750.0), -750.0)
    return _times_exp(_i1e(clamped, ops), ops.absolute(clamped), ops)


def _log_half(x: Any, ops: Any) -> Any:
    """Return log(x / 2), also for an x of which the half is rounded to 0."""
    tiny = x < TINY
    result = ops.log(ops.where(tiny, x, 0.5 * x))
    return ops.where(tiny, result - math.log(2.0), result)


def _k_near(x: Any, order: int, ops: Any) -> Any:
    """Return K0(x) or K1(x) for 0 < x <= 2."""
    logarithm, square = _log_half(x, ops), 0.5 * x * x - 1.0
    if order:
        i = _scaled_i(x, I1_NEAR, I1_FAR, 1, ops) * ops.exp(x)
        return horner(square, K1_NEAR) / x + logarithm * i
    i = _scaled_i(x, I0_NEAR, I0_FAR, 0, ops) * ops.exp(x)
    return horner(square, K0_NEAR) - logarithm * i


def _modified_k(x: Any, order: int, scaled: bool, ops: Any) -> Any:
    near = x <= 2.0
    low, high = ops.where(near, x, 2.0), ops.where(near, 2.0, x)
    far = horner(4.0 / high - 1.0, K1_FAR if order else K0_FAR) / ops.sqrt(high)
    first = _k_near(low, order, ops)
    if scaled:
        first = first * ops.exp(low)
    else:
        far = _times_exp(far, -ops.minimum(high, 800.0), ops)
    value = ops.where(near, first, far)
    return ops.where(x > 0.0, value, ops.where(ops.equal(x, 0.0), math.inf, math.nan))


@in_double
def k0(x: Any, ops: Any) -> Any:
    """Return K0(x)."""
    return _modified_k(x, 0, False, ops)


@in_double
def k0e(x: Any, ops: Any) -> Any:
    """Return exp(x) K0(x)."""
    return _modified_k(x, 0, True, ops)


@in_double
def k1(x: Any, ops: Any) -> Any:
    """Return K1(x)."""
    return _modified_k(x, 1, False, ops)


@in_double
def k1e(x: Any, ops: Any) -> Any:
    """Return exp(x) K1(x)."""
    return _modified_k(x, 1, True, ops)


# Functions of the first and second kind ----------------------------------------------------------


def _waves(x: Any, order: int, second: bool, ops: Any) -> Any:
    """Return J or Y for x >= 8 by modulus and phase, DLMF 10.17.3 and 10.17.4."""
    ratio = 8.0 / x
    t = 2.0 * ratio * ratio - 1.0
    even = horner(t, P1 if order else P0)
    odd = ratio * horner(t, Q1 if order else Q0)
    clamped = ops.where(x < math.inf, x, 0.0)
    sine, cosine = ops.sin(clamped), ops.cos(clamped)
    # sqrt(2) times cosine and sine of x - pi / 4, or of x - 3 pi / 4
    c, s = (sine - cosine, -(sine + cosine)) if order else (sine + cosine, sine - cosine)
    wave = even * s + odd * c if second else even * c - odd * s
    return wave / (2.0 * ops.sqrt(0.25 * math.pi * x))  # pi x may overflow


def _j_near(x: Any, order: int, ops: Any) -> Any:
    t = x * x * 0.03125 - 1.0
    return x * horner(t, J1_NEAR) if order else horner(t, J0_NEAR)


def _first_kind(x: Any, order: int, ops: Any) -> Any:
    size = ops.absolute(x)
    near = size <= 8.0
    low, high = ops.where(near, size, 8.0), ops.where(near, 8.0, size)
    value = ops.where(near, _j_near(low, order, ops), _waves(high, order, False, ops))
    return ops.where(x < 0.0, -value, value) if order else value


def _second_kind(x: Any, order: int, ops: Any) -> Any:
    near = x <= 8.0
    low, high = ops.where(near, ops.where(x > 0.0, x, 1.0), 8.0), ops.where(near, 8.0, x)
    t = low * low * 0.03125 - 1.0
    product = _log_half(low, ops) * _j_near(low, order, ops)
    if order:
        close = low * horner(t, Y1_NEAR) + (2.0 / math.pi) * (product - 1.0 / low)
    else:
        close = horner(t, Y0_NEAR) + (2.0 / math.pi) * product
    value = ops.where(near, close, _waves(high, order, True, ops))
    return ops.where(x > 0.0, value, ops.where(ops.equal(x, 0.0), -math.inf, math.nan))


@in_double
def j0(x: Any, ops: Any) -> Any:
    """Return J0(x)."""
    return _first_kind(x, 0, ops)


@in_double
def j1(x: Any, ops: Any) -> Any:
    """Return J1(x)."""
    return _first_kind(x, 1, ops)


@in_double
def y0(x: Any, ops: Any) -> Any:
    """Return Y0(x)."""
    return _second_kind(x, 0, ops)


@in_double
def y1(x: Any, ops: Any) -> Any:
    """Return Y1(x)."""
    return _second_kind(x, 1, ops)


# The inverse normal distribution function --------------------------------------------------------

TAIL = 0.1  # probability below which the logarithm of the distribution function is inverted
HALLEY_STEPS = 3


@in_double
def ndtri(p: Any, ops: Any) -> Any:
    """Return the x of which ``ndtr`` is p.

    In the tails three steps of Halley's method on ``log_ndtr`` refine the asymptotic value.
    """
    above = p > 0.5
    q = ops.where(above, 1.0 - p, p)
    middle = math.sqrt(2.0) * ops.erfinv(2.0 * ops.maximum(q, TAIL) - 1.0)
    logarithm = ops.log(ops.minimum(q, TAIL))
    some = ops.maximum(logarithm, -1000.0)
    root = ops.sqrt(-2.0 * some)
    x = root - (ops.log(root) + 0.5 * math.log(2.0 * math.pi)) / root
    for _ in range(HALLEY_STEPS):
        hazard = math.sqrt(2.0 / math.pi) / ops.erfcx(math.sqrt(0.5) * x)
        step = (ops.log_ndtr(-x) - some) / hazard
        x = x + step / (1.0 + 0.5 * step * (hazard - x))
    tail = ops.where(logarithm < -1000.0, math.inf, x)
    value = ops.where(q > TAIL, middle, -tail)
    value = ops.where(above, -value, value)
    return ops.where(ops.logical_or(p < 0.0, p > 1.0), math.nan, value)
