"""A case for every public function of tensors: how it is called, and what it gives with 50 digits.

Operands are float64 arrays by axes; the expected values are computed on arrays of mpmath numbers,
so that they are right far beyond the last bit of a float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import sympy

import geon
from geon.op_graph.building.elementwise_build import Elementwise

mpmath.mp.dps = 50
A, B, K = geon.Axis("A", 3), geon.Axis("B", 4), geon.Axis("K", 4)
S = geon.Axis("S")


@dataclass(frozen=True)
class Case:
    """``build`` of tensors beside ``expected`` of mpmath arrays, for these operands.

    ``strong`` are operands that stay tensors in every form. Results that are ``exact`` are truth
    values and positions. Others are within ``relative`` of what is expected.
    """

    build: Callable[..., Any]
    expected: Callable[..., Any]
    operands: tuple[tuple[np.ndarray, tuple[geon.Axis, ...]], ...]
    strong: tuple[int, ...] = ()
    exact: bool = False
    relative: float = 1e-15


def draw(shape, low=0.2, high=1.9, seed=0):
    """Numbers that no float32 holds, spread between two bounds."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def each(function):
    """A function of mpmath numbers on arrays of them."""
    return np.frompyfunc(function, function.__code__.co_argcount, 1)


def precisely(array):
    """The same numbers as an array of mpmath numbers; others as they are."""
    array = np.asarray(array)
    return np.frompyfunc(mpmath.mpf, 1, 1)(array) if array.dtype.kind == "f" else array


X1, X2 = (draw((3,)), (A,)), (draw((3, 4), seed=1), (A, B))
Y1, Y2 = (draw((3,), seed=2), (A,)), (draw((3, 4), seed=3), (A, B))
W = (np.asarray(0.1), ())
V = (np.asarray(0.7), ())
ROWS = {name: row for name in dir(geon) if isinstance(row := getattr(geon, name), Elementwise)}

# What SymPy has no formula for, on mpmath numbers.
BY_HAND = {
    "floordivide": lambda x, y: mpmath.floor(x / y),
    "mod": lambda x, y: x - y * mpmath.floor(x / y),
    "sign": lambda x: mpmath.sign(x),
    "where": lambda x, y, z: y if x else z,
    "floor": lambda x: mpmath.floor(x),
    "ceil": lambda x: mpmath.ceil(x),
    "round": lambda x: mpmath.nint(x),
    "trunc": lambda x: mpmath.floor(x) if x > 0 else mpmath.ceil(x),
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "betainc": lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
    "airy_aip": lambda x: mpmath.airyai(x, derivative=1),
    "airy_bip": lambda x: mpmath.airybi(x, derivative=1),
}
# Functions of several roundings, whose documentation has their errors.
LOOSE = dict.fromkeys(("gammainc", "gammaincc", "betainc", "j1", "y0", "y1"), 4e-15)
LOOSE["j0"] = 1e-13  # near a root
LOOSE |= dict.fromkeys(("airy_ai", "airy_aip", "airy_bi", "airy_bip"), 1e-13)
CHOICES = {
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "isnan": lambda x: mpmath.isnan(x),
    "isinf": lambda x: mpmath.isinf(x),
    "isfinite": lambda x: mpmath.isfinite(x),
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) != bool(y),
    "logical_not": lambda x: not x,
}


def _row(name):
    row = ROWS[name]
    domain = [(0.2, 1.9)] * row.arity if name in CHOICES else row.domain
    operands = tuple(
        (draw((3, 4), low, high, seed), (A, B)) for seed, (low, high) in enumerate(domain)
    )
    if name == "where":
        operands = ((operands[0][0] > 0, (A, B)), *operands[1:])
    if name in CHOICES:
        return Case(row, each(CHOICES[name]), operands, exact=True)
    if name in BY_HAND:
        strong = (0,) if name == "where" else ()
        return Case(row, each(BY_HAND[name]), operands, strong, relative=LOOSE.get(name, 1e-15))
    letters = sympy.symbols("x y z")[: row.arity]
    formula = sympy.lambdify(letters, sympy.sympify(row.sympy), "mpmath")
    return Case(row, each(formula), operands, relative=LOOSE.get(name, 1e-15))


def sigmoid(x):
    return 1 / (1 + mp_exp(-x))


mp_exp = each(lambda x: mpmath.exp(x))
mp_log = each(lambda x: mpmath.log(x))
mp_sqrt = each(lambda x: mpmath.sqrt(x))
mp_erf = each(lambda x: mpmath.erf(x))
mp_tanh = each(lambda x: mpmath.tanh(x))
mp_digamma = each(lambda x: mpmath.digamma(x))
mp_polygamma = each(lambda x: mpmath.polygamma(2, x))


def rows_of(x):
    """The sum over B, kept as an axis."""
    return x.sum(1)[:, None]


def softmax(x):
    return mp_exp(x) / rows_of(mp_exp(x))


def variance(x, correction=0):
    return ((x - rows_of(x) / 4) ** 2).sum(1) / (4 - correction)


def running(x, ufunc):
    return ufunc.accumulate(x, axis=1)


def first_of(x, ufunc):
    """The position of each element's running extreme, of distinct elements."""
    return np.stack([(x == best[:, None]).argmax(1) for best in running(x, ufunc).T], 1)


GROUPS = geon.constant([1, 0, 0, 1], [B])
PICKED = np.array([2, 0, 1, 3, 3])
INDEX = geon.constant(PICKED, [geon.Axis("P", 5)])
PROBABLE = (draw((3, 4), 0.1, 0.9, 4), (A, B))
SHARE = (draw((3,), 0.1, 0.9, 6), (A,))
TRUTH = (draw((3, 4), 0.1, 0.9, 5), (A, B))


def shown(x):
    """The windows of three along the last axis."""
    return np.stack([x[:, k : x.shape[1] - 2 + k] for k in range(3)], 2)


def convolved(x, y):
    return geon.convolution(x, y, {B: R3})


R3 = geon.Axis("R", 3)
Y3 = (draw((3,), seed=7), (R3,))


def gelu_tanh(x):
    c = mpmath.sqrt(2 / mpmath.pi)
    return x * (1 + mp_tanh(c * (x + mpmath.mpf(0.044715) * x**3))) / 2


def assigned(value):
    """What a variable holds after an assignment in the same computation."""
    v = geon.Variable([A, B], "float64", initial_value=0)
    return geon.sequential([geon.assign(v, value), v])


def same(x):
    return x


@geon.custom_deriv(lambda g, out, x: [3.3 * g])
def scaled(x):
    return 1.1 * x


WHOLE = [name for name, row in ROWS.items() if row.rule in ("integer", "bits")]
CASES: dict[str, list[Case]] = {name: [_row(name)] for name in ROWS if name not in WHOLE}
CASES |= {
    # Constants and leaves.
    "constant": [Case(lambda x: geon.constant(0.1) * x, lambda x: mpmath.mpf(0.1) * x, (X2,))],
    "tensor_size": [Case(lambda x: x / geon.tensor_size(x), lambda x: x / 12, (X2,))],
    "iota": [Case(lambda x: x * geon.iota(B, "float64"), lambda x: x * np.arange(4), (X2,))],
    "cast": [Case(lambda x: geon.cast(x, "float64"), same, (X2,))],
    # Complex numbers.
    "real": [Case(lambda x: geon.real(x * (1 + 2j)), same, (X2,))],
    "imag": [Case(lambda x: geon.imag(x * (1 + 2j)), lambda x: 2 * x, (X2,))],
    "conj": [Case(lambda x: geon.imag(geon.conj(x * 2j)), lambda x: -2 * x, (X2,))],
    "angle": [Case(lambda x: geon.angle(x * (1 + 1j)), lambda x: 0 * x + mpmath.pi / 4, (X2,))],
    "as_complex": [
        Case(
            lambda x, y: abs(geon.as_complex(x, y)), each(lambda x, y: mpmath.hypot(x, y)), (X1, Y1)
        )
    ],
    "stop_gradient": [Case(geon.stop_gradient, same, (X2,))],
    "print": [Case(lambda x: geon.print(x, "value"), same, (X2,))],
    "assign": [Case(assigned, same, (X2,))],
    "SetItem": [Case(assigned, same, (X2,))],
    "sequential": [Case(lambda x: geon.sequential([x, 3 * x]), lambda x: 3 * x, (X2,))],
    "custom_deriv": [
        Case(scaled, lambda x: mpmath.mpf(1.1) * x, (X2,)),
        Case(
            lambda x: geon.deriv(geon.sum(scaled(x)), x),
            lambda x: 0 * x + mpmath.mpf(3.3),
            (X2,),
            strong=(0,),
        ),
    ],
    "checkpoint": [
        Case(geon.checkpoint(lambda x: x * 1.1), lambda x: mpmath.mpf(1.1) * x, (X2,)),
    ],
    "remat": [
        Case(lambda x: geon.remat(x * 1.1, "nothing"), lambda x: mpmath.mpf(1.1) * x, (X2,)),
    ],
    # Movement.
    "broadcast": [Case(lambda x: geon.broadcast(x, [B, A]), lambda x: np.array([x] * 4), (X1,))],
    "reorder": [Case(lambda x: geon.reorder(x, [B, A]), np.transpose, (X2,))],
    "rename": [Case(lambda x: geon.rename(x, {A: "Z"}), same, (X2,))],
    "cast_axes": [Case(lambda x: geon.cast_axes(x, [A, K]), same, (X2,))],
    "flip": [Case(lambda x: geon.flip(x, B), lambda x: x[:, ::-1], (X2,))],
    "flatten": [Case(geon.flatten, np.ravel, (X2,))],
    "unflatten": [
        Case(
            lambda x: geon.unflatten(x, B, [geon.Axis("P", 2), geon.Axis("Q", 2)]),
            lambda x: x.reshape(3, 2, 2),
            (X2,),
        )
    ],
    "expand": [Case(lambda x: geon.expand(x, B, 1), lambda x: np.array([x] * 4).T, (X1,))],
    "update": [
        Case(
            lambda x, y: geon.update(x, y, {B: 1}),
            lambda x, y: np.stack([x[:, 0], y, x[:, 2], x[:, 3]], 1),
            (X2, Y1),
        )
    ],
    "pad": [
        Case(
            lambda x, w: geon.pad(x, {B: (1, 2)}, value=w),
            lambda x, w: np.pad(x, ((0, 0), (1, 2)), constant_values=w),
            (X2, W),
        ),
        Case(
            lambda x: geon.pad(x, {B: (1, 2)}, "reflect"),
            lambda x: np.pad(x, ((0, 0), (1, 2)), "reflect"),
            (X2,),
        ),
    ],
    "concat": [
        Case(lambda x, y: geon.concat([x, y], B), lambda x, y: np.concatenate([x, y], 1), (X2, Y2))
    ],
    "stack": [
        Case(lambda x, y: geon.stack([x, y], S, 1), lambda x, y: np.stack([x, y], 1), (X2, Y2)),
        Case(lambda x, y: geon.stack([x, y], S), lambda x, y: np.stack([x, y]), (V, W)),
    ],
    "gather": [Case(lambda x: geon.gather(x, INDEX, B), lambda x: x[:, PICKED], (X2,))],
    "take_along": [Case(lambda x: geon.take_along(x, INDEX, B), lambda x: x[:, PICKED], (X2,))],
    "scatter": [
        Case(
            lambda x, y: geon.scatter(x, geon.constant([3, 1], [geon.Axis("P", 2)]), y, B),
            lambda x, y: np.stack([x[:, 0], y, x[:, 2], y], 1),
            (X2, Y1),
        ),
    ],
    # Windows.
    "window": [
        Case(lambda x: geon.window(x, {B: R3}), shown, (X2,)),
        Case(
            lambda x, w: geon.window(x, {A: geon.Window(R3, 2, pad=1)}, w),
            lambda x, w: np.moveaxis(shown(np.pad(x.T, ((0, 0), (1, 1)), constant_values=w)), 0, 1)[
                ::2
            ],
            (X2, W),
        ),
    ],
    "convolution": [Case(convolved, lambda x, y: shown(x) @ y, (X2, Y3))],
    "transposed_convolution": [
        Case(
            lambda x, y: geon.transposed_convolution(x, y, {B: R3}),
            lambda x, y: np.array([np.convolve(row, y) for row in x]),
            (X2, Y3),
        )
    ],
    "max_pool": [Case(lambda x: geon.max_pool(x, {B: 3}), lambda x: shown(x).max(2), (X2,))],
    "average_pool": [
        Case(lambda x: geon.average_pool(x, {B: 3}), lambda x: shown(x).sum(2) / 3, (X2,)),
        Case(
            lambda x: geon.average_pool(x, {B: geon.Window(3, pad=1)}),
            lambda x: shown(np.pad(x, ((0, 0), (1, 1)))).sum(2) / np.array([2, 3, 3, 2]),
            (X2,),
        ),
    ],
    "lp_pool": [
        Case(lambda x: geon.lp_pool(x, {B: 3}), lambda x: mp_sqrt((shown(x) ** 2).sum(2)), (X2,))
    ],
    "resize": [
        Case(
            lambda x: geon.resize(x, {B: 7}, align="corners"),
            lambda x: np.stack([x, (x + np.roll(x, -1, 1)) / 2], 2).reshape(3, 8)[:, :7],
            (X2,),
        ),
        Case(
            lambda x: geon.resize(x, {B: 8}, "nearest"),
            lambda x: np.repeat(x, 2, 1),
            (X2,),
        ),
    ],
    "roll": [Case(lambda x: geon.roll(x, {B: 1}), lambda x: np.roll(x, 1, 1), (X2,))],
    "diagonal": [
        Case(
            lambda x: geon.diagonal(x[:, :3], [A, B]),
            lambda x: x[[0, 1, 2], [0, 1, 2]],
            (X2,),
        )
    ],
    # Reductions and ordered work.
    "sum": [Case(lambda x: geon.sum(x, B), lambda x: x.sum(1), (X2,))],
    "prod": [Case(lambda x: geon.prod(x, B), lambda x: x.prod(1), (X2,))],
    "max": [Case(lambda x: geon.max(x, B), lambda x: x.max(1), (X2,))],
    "min": [Case(lambda x: geon.min(x, B), lambda x: x.min(1), (X2,))],
    "any": [Case(lambda x: geon.any(x, B), lambda x: np.array([True] * 3), (X2,), exact=True)],
    "all": [Case(lambda x: geon.all(x, B), lambda x: np.array([True] * 3), (X2,), exact=True)],
    "argmax": [Case(lambda x: geon.argmax(x, B), lambda x: x.argmax(1), (X2,), exact=True)],
    "argmin": [Case(lambda x: geon.argmin(x, B), lambda x: x.argmin(1), (X2,), exact=True)],
    "cumsum": [Case(lambda x: geon.cumsum(x, B), lambda x: running(x, np.add), (X2,))],
    "cumprod": [Case(lambda x: geon.cumprod(x, B), lambda x: running(x, np.multiply), (X2,))],
    "scan": [
        Case(
            lambda x: geon.scan(
                lambda c, each: (c + each, c + each),
                geon.cast(geon.broadcast(0.0, [A]), x.dtype),
                x,
                over=B,
            )[1],
            lambda x: running(x, np.add).T,
            (X2,),
            strong=(0,),
        )
    ],
    "fixed_point": [
        Case(
            lambda x: geon.fixed_point(lambda y: y / 2 + x, x, 0),
            lambda x: 2 * x,
            (X2,),
            strong=(0,),
        )
    ],
    "while_loop": [
        Case(
            lambda x: geon.while_loop(
                lambda c: c[1] < 3, lambda c: (c[0] / 3 + x, c[1] + 1), (x, 0)
            )[0],
            lambda x: ((x / 3 + x) / 3 + x) / 3 + x,
            (X2,),
            strong=(0,),
        )
    ],
    "associative_scan": [
        Case(
            lambda x: geon.associative_scan(geon.add, x, over=B),
            lambda x: running(x, np.add),
            (X2,),
            strong=(0,),
        )
    ],
    "case_of": [
        Case(
            lambda x: geon.case_of(1, [lambda: x, lambda: x + x]),
            lambda x: x + x,
            (X2,),
            strong=(0,),
        )
    ],
    "cond": [
        Case(
            lambda x: geon.cond(False, lambda: x, lambda: x + x),
            lambda x: x + x,
            (X2,),
            strong=(0,),
        )
    ],
    "sort": [Case(lambda x: geon.sort(x, B), lambda x: np.sort(x, 1), (X2,))],
    "argsort": [Case(lambda x: geon.argsort(x, B), lambda x: np.argsort(x, 1), (X2,), exact=True)],
    "top_k": [
        Case(lambda x: geon.top_k(x, 2, B)[0], lambda x: np.sort(x, 1)[:, :1:-1], (X2,)),
        Case(
            lambda x: geon.top_k(x, 2, B)[1],
            lambda x: np.argsort(x, 1)[:, :1:-1],
            (X2,),
            exact=True,
        ),
    ],
    "cummax": [Case(lambda x: geon.cummax(x, B), lambda x: running(x, np.maximum), (X2,))],
    "cummin": [Case(lambda x: geon.cummin(x, B), lambda x: running(x, np.minimum), (X2,))],
    "argcummax": [
        Case(lambda x: geon.argcummax(x, B), lambda x: first_of(x, np.maximum), (X2,), exact=True)
    ],
    "argcummin": [
        Case(lambda x: geon.argcummin(x, B), lambda x: first_of(x, np.minimum), (X2,), exact=True)
    ],
    "logcumsumexp": [
        Case(
            lambda x: geon.logcumsumexp(x, B),
            lambda x: each(lambda s: mpmath.log(s))(
                running(each(lambda t: mpmath.exp(t))(x), np.add)
            ),
            (X2,),
        )
    ],
    "kthvalue": [Case(lambda x: geon.kthvalue(x, 2, B)[0], lambda x: np.sort(x, 1)[:, 1], (X2,))],
    "mode": [Case(lambda x: geon.mode(x, B)[0], lambda x: x.min(1), (X2,))],
    "lexsort": [
        Case(lambda x: geon.lexsort([x > 9, x], B), lambda x: np.argsort(x, 1), (X2,), exact=True)
    ],
    "aminmax": [Case(lambda x: geon.aminmax(x, B)[1], lambda x: x.max(1), (X2,))],
    **{
        name: [
            Case(
                lambda x, f=f: f(x, 0.5, B),
                lambda x: np.sort(x, 1)[:, 1:3].sum(1) / 2,
                (X2,),
            )
        ]
        for name, f in (("quantile", geon.quantile), ("nanquantile", geon.nanquantile))
    },
    "percentile": [
        Case(lambda x: geon.percentile(x, 100, B), lambda x: x.max(1), (X2,)),
    ],
    **{
        name: [Case(lambda x, f=f: f(x, B), lambda x: np.sort(x, 1)[:, 1:3].sum(1) / 2, (X2,))]
        for name, f in (("median", geon.median), ("nanmedian", geon.nanmedian))
    },
    "nansum": [Case(lambda x: geon.nansum(x, B), lambda x: x.sum(1), (X2,))],
    "nanmean": [Case(lambda x: geon.nanmean(x, B), lambda x: x.sum(1) / 4, (X2,))],
    "count_nonzero": [
        Case(lambda x: geon.count_nonzero(x, B), lambda x: np.array([4] * 3), (X2,), exact=True)
    ],
    "renorm": [
        Case(
            lambda x: geon.renorm(x, B, 0.5),
            lambda x: x / mp_sqrt((x * x).sum(1))[:, None] / 2,
            (X2,),
        )
    ],
    # Searches, segments and selections.
    "searchsorted": [
        Case(
            lambda x, y: geon.searchsorted(geon.sort(x), y, A),
            lambda x, y: np.searchsorted(np.sort(x), y),
            (X1, (Y2[0][0], (B,))),
            exact=True,
        )
    ],
    "interp": [
        Case(
            lambda x: geon.interp(x, geon.sort(x), geon.sort(x) * 2),
            lambda x: 2 * x,
            (X1,),
        )
    ],
    "bucketize": [
        Case(
            lambda x, y: geon.bucketize(y, geon.sort(x)),
            lambda x, y: np.searchsorted(np.sort(x), y),
            (X1, (Y2[0][0], (B,))),
            exact=True,
        )
    ],
    "isin": [
        Case(
            lambda x, y: geon.isin(x, geon.concat([y, x[0:1]], A)),
            lambda x, y: np.array([True, False, False]),
            (X1, Y1),
            exact=True,
        )
    ],
    **{
        f"segment_{name}": [
            Case(
                lambda x, name=f"segment_{name}": getattr(geon, name)(x, GROUPS, S.with_length(2)),
                lambda x, f=f: np.stack([f(x[:, 1:3]), f(x[:, [0, 3]])], 1),
                (X2,),
            )
        ]
        for name, f in {
            "sum": lambda x: x.sum(1),
            "prod": lambda x: x.prod(1),
            "max": lambda x: x.max(1),
            "min": lambda x: x.min(1),
            "mean": lambda x: x.sum(1) / 2,
        }.items()
    },
    "bincount": [
        Case(
            lambda x: geon.bincount(GROUPS, S.with_length(2), weights=x[0]),
            lambda x: np.array([x[0, 1] + x[0, 2], x[0, 0] + x[0, 3]]),
            (X2,),
        )
    ],
    "histogram": [
        Case(
            lambda x: geon.histogram(x, S.with_length(2), 0, 2, weights=x),
            lambda x: np.array([x[x < 1].sum(), x[x >= 1].sum()]),
            (X2,),
        )
    ],
    "nonzero": [
        Case(
            lambda x: geon.nonzero(x > 1).count,
            lambda x: np.asarray((x > 1).sum()),
            (X2,),
            exact=True,
        )
    ],
    "compress": [
        Case(lambda x: geon.compress(x, x > 0).values, lambda x: x.reshape(-1), (X2,)),
    ],
    "masked_scatter": [
        Case(lambda x, y: geon.masked_scatter(x, x > 0, y), lambda x, y: y, (X1, Y1))
    ],
    "unique": [
        Case(lambda x: geon.unique(x).values, lambda x: np.sort(x.reshape(-1)), (X2,)),
    ],
    "unique_consecutive": [
        Case(lambda x: geon.unique_consecutive(x).values, lambda x: x.reshape(-1), (X2,)),
    ],
    # Products.
    "dot": [Case(geon.dot, lambda x, y: (x * y).sum(), (X2, Y2))],
    "contract": [
        Case(
            lambda x, y, z: geon.contract([x, y, z], over=[A, B]),
            lambda x, y, z: (x * y * z[:, None]).sum(),
            (X2, Y2, X1),
        )
    ],
    "outer": [
        Case(
            lambda x, y: geon.outer(geon.multiply, x, geon.rename(y, {A: K.name})),
            np.multiply.outer,
            (X1, Y1),
        )
    ],
    # Statistics and what is normalised.
    "mean": [Case(lambda x: geon.mean(x, B), lambda x: x.mean(1), (X2,))],
    "variance": [
        Case(lambda x: geon.variance(x, B), variance, (X2,)),
        Case(lambda x: geon.variance(x, B, correction=1), lambda x: variance(x, 1), (X2,)),
    ],
    "std": [Case(lambda x: geon.std(x, B), lambda x: mp_sqrt(variance(x)), (X2,))],
    "squared_L2": [Case(lambda x: geon.squared_L2(x, B), lambda x: (x * x).sum(1), (X2,))],
    "L2_norm": [Case(lambda x: geon.L2_norm(x, B), lambda x: mp_sqrt((x * x).sum(1)), (X2,))],
    "logsumexp": [Case(lambda x: geon.logsumexp(x, B), lambda x: mp_log(mp_exp(x).sum(1)), (X2,))],
    "softmax": [Case(lambda x: geon.softmax(x, B), softmax, (X2,))],
    "log_softmax": [Case(lambda x: geon.log_softmax(x, B), lambda x: mp_log(softmax(x)), (X2,))],
    "cross_entropy_binary": [
        Case(
            lambda y, t: geon.cross_entropy_binary(y, t, out_axes=A),
            lambda y, t: -(t * mp_log(y) + (1 - t) * mp_log(1 - y)).sum(1),
            (PROBABLE, TRUTH),
        )
    ],
    "cross_entropy_multi": [
        Case(
            lambda y, t: geon.cross_entropy_multi(y, t, out_axes=A),
            lambda y, t: -(t * mp_log(y)).sum(1),
            (PROBABLE, TRUTH),
        ),
        Case(
            lambda y, t: geon.cross_entropy_multi(y, t, usebits=True, out_axes=A),
            lambda y, t: -(t * mp_log(y)).sum(1) / mpmath.log(2),
            (PROBABLE, TRUTH),
        ),
    ],
    # Activations.
    "clip": [
        Case(
            geon.clip,
            lambda x, low, high: np.minimum(np.maximum(x, low), high),
            (X2, (np.asarray(0.6), ()), (np.asarray(1.1), ())),
        )
    ],
    "relu": [Case(lambda x: geon.relu(x - 1), lambda x: np.maximum(x - 1, 0), (X2,))],
    "leaky_relu": [
        Case(lambda x, w: geon.leaky_relu(-x, w), lambda x, w: -x * w, (X2, W)),
        Case(lambda x: geon.leaky_relu(-x), lambda x: -x * mpmath.mpf(0.01), (X2,)),
    ],
    "elu": [
        Case(lambda x, w: geon.elu(-x, w), lambda x, w: (mp_exp(-x) - 1) * w, (X2, W)),
    ],
    "gelu": [
        Case(geon.gelu, lambda x: x * (1 + mp_erf(x / mpmath.sqrt(2))) / 2, (X2,)),
        Case(lambda x: geon.gelu(x, approximate="tanh"), gelu_tanh, (X2,)),
    ],
    "silu": [Case(geon.silu, lambda x: x * sigmoid(x), (X2,))],
    "interpolation": [
        Case(geon.interpolation, lambda x, y, w: (1 - w) * x + w * y, (X2, Y2, W)),
        Case(
            geon.interpolation,
            lambda x, y, w: (1 - w[:, None]) * x + w[:, None] * y,
            (X2, Y2, SHARE),
        ),
    ],
    "onehot": [
        Case(
            lambda x: geon.sum(geon.onehot(geon.constant([1, 0, 3], A), B, "float64") * x, B),
            lambda x: x[[0, 1, 2], [1, 0, 3]],
            (X2,),
        )
    ],
    "digamma": [Case(geon.digamma, mp_digamma, ((draw((3, 4), 2.0, 5.0), (A, B)),))],
    "polygamma": [
        Case(lambda x: geon.polygamma(2, x), mp_polygamma, ((draw((3, 4), 0.5, 5.0), (A, B)),))
    ],
    # Derivatives.
    "deriv": [
        Case(
            lambda x, y: geon.deriv(geon.sum(x * x * x * y), x),
            lambda x, y: 3 * x * x * y,
            (X2, Y2),
            strong=(0,),
        ),
        Case(
            lambda x, y: geon.deriv(x * x, x, seed=y), lambda x, y: 2 * x * y, (X2, Y2), strong=(0,)
        ),
    ],
    "vjp": [
        Case(lambda x, y: geon.vjp(x * x, x, y), lambda x, y: 2 * x * y, (X2, Y2), strong=(0,))
    ],
    "jvp": [
        Case(lambda x, y: geon.jvp(x * x, x, y), lambda x, y: 2 * x * y, (X2, Y2), strong=(0,))
    ],
    "jacobian": [
        Case(
            lambda x: geon.jacobian(geon.sum(x * x * x), x), lambda x: 3 * x * x, (X2,), strong=(0,)
        )
    ],
    "hessian": [
        Case(
            lambda x: geon.sum(
                geon.hessian(geon.sum(x * x * x), x), reduction_axes=[a.prime for a in x.axes]
            ),
            lambda x: 6 * x,
            (X2,),
            strong=(0,),
        )
    ],
    "hvp": [
        Case(
            lambda x, y: geon.hvp(geon.sum(x * x * x), x, y),
            lambda x, y: 6 * x * y,
            (X2, Y2),
            strong=(0,),
        )
    ],
}
