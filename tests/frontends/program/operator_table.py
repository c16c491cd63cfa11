"""Inputs, attributes and expected outputs of operators, computed with NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special as sp

Array = np.ndarray[Any, Any]


def numbers(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Array:
    """Return numbers that lie apart from each other and from 0, in random order."""
    count = int(np.prod(shape))
    steps = low + (high - low) * (np.arange(count) + 0.37) / count
    return np.random.default_rng(seed + count).permutation(steps).reshape(shape)


@dataclass(frozen=True)
class Case:
    """One row: the outputs by slot, and the slots to differentiate by (None for all floats)."""

    inputs: dict[str, Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)
    slots: tuple[str, ...] | None = None
    tolerance: float = 1e-6


def of(
    f: Callable[..., Any], *inputs: Any, names: str = "X Y", out: str = "Out", **attrs: Any
) -> Case:
    """Return the case of a function of arrays with one output."""
    slots = dict(zip(names.split(), inputs, strict=False))
    return Case(slots, attrs, {out: f(*inputs)})


X = numbers(3, 4)
UNIT = numbers(3, 4, low=-0.9, high=0.9)
POSITIVE = numbers(3, 4, low=0.2, high=3.0)
ABOVE_ONE = numbers(3, 4, low=1.1, high=3.0)
SHARES = numbers(3, 4, low=0.05, high=0.95)


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


def softmax(x: Array, axis: int = -1) -> Array:
    return sp.softmax(x, axis)


UNARY: dict[str, tuple[Callable[..., Any], Array]] = {
    "abs": (np.abs, X),
    "acos": (np.arccos, UNIT),
    "acosh": (np.arccosh, ABOVE_ONE),
    "asin": (np.arcsin, UNIT),
    "asinh": (np.arcsinh, X),
    "atan": (np.arctan, X),
    "atanh": (np.arctanh, UNIT),
    "cbrt": (np.cbrt, POSITIVE),
    "ceil": (np.ceil, X),
    "cos": (np.cos, X),
    "cosh": (np.cosh, X),
    "deg2rad": (np.deg2rad, X),
    "digamma": (sp.digamma, POSITIVE),
    "erf": (sp.erf, X),
    "erfc": (sp.erfc, X),
    "erfcx": (sp.erfcx, X),
    "erfinv": (sp.erfinv, UNIT),
    "exp": (np.exp, X),
    "exp2": (np.exp2, X),
    "expm1": (np.expm1, X),
    "floor": (np.floor, X),
    "frac": (lambda x: x - np.trunc(x), X),
    "gelu": (lambda x: x * sp.ndtr(x), X),
    "i0": (sp.i0, X),
    "i0e": (sp.i0e, X),
    "i1": (sp.i1, X),
    "i1e": (sp.i1e, X),
    "j0": (sp.j0, POSITIVE),
    "j1": (sp.j1, POSITIVE),
    "k0": (sp.k0, POSITIVE),
    "k1": (sp.k1, POSITIVE),
    "k0e": (sp.k0e, POSITIVE),
    "k1e": (sp.k1e, POSITIVE),
    "airy_ai": (lambda x: sp.airy(x)[0], X),
    "airy_aip": (lambda x: sp.airy(x)[1], X),
    "airy_bi": (lambda x: sp.airy(x)[2], X),
    "airy_bip": (lambda x: sp.airy(x)[3], X),
    "bitwise_not": (np.invert, np.array([5, -3, 0])),
    "lgamma": (sp.gammaln, POSITIVE),
    "log": (np.log, POSITIVE),
    "log10": (np.log10, POSITIVE),
    "log1p": (np.log1p, POSITIVE),
    "log2": (np.log2, POSITIVE),
    "log_ndtr": (sp.log_ndtr, X),
    "ndtr": (sp.ndtr, X),
    "ndtri": (sp.ndtri, SHARES),
    "negative": (np.negative, X),
    "rad2deg": (np.rad2deg, X),
    "reciprocal": (np.reciprocal, X),
    "relu": (lambda x: np.maximum(x, 0), X),
    "round": (np.round, X),
    "rsqrt": (lambda x: x**-0.5, POSITIVE),
    "sigmoid": (sp.expit, X),
    "sign": (np.sign, X),
    "silu": (lambda x: x * sp.expit(x), X),
    "sin": (np.sin, X),
    "sinc": (np.sinc, X),
    "sinh": (np.sinh, X),
    "softplus": (softplus, X),
    "sqrt": (np.sqrt, POSITIVE),
    "square": (np.square, X),
    "tan": (np.tan, UNIT),
    "tanh": (np.tanh, X),
    "trunc": (np.trunc, X),
    "y0": (sp.y0, POSITIVE),
    "y1": (sp.y1, POSITIVE),
    "isnan": (np.isnan, np.array([1, np.nan])),
    "isinf": (np.isinf, np.array([1, np.inf])),
    "isfinite": (np.isfinite, np.array([1, np.inf])),
    "logical_not": (np.logical_not, np.array([True, False])),
    "signbit": (np.signbit, X),
    "softsign": (lambda x: x / (1 + np.abs(x)), X),
    "tanh_shrink": (lambda x: x - np.tanh(x), X),
    "logsigmoid": (lambda x: np.log(sp.expit(x)), X),
    "mish": (lambda x: x * np.tanh(softplus(x)), X),
    "spherical_j0": (lambda x: np.sin(x) / x, X),
    "squared_l2_norm": (lambda x: np.array([np.sum(x**2)]), X),
    "l1_norm": (lambda x: np.array([np.sum(np.abs(x))]), X),
    "mean": (lambda x: np.array([x.mean()]), X),
}
BOOLS = np.array([[True, False, True, False]]), np.array([[True, True, False, False]])
INTEGERS = np.array([7, -3, 12, 5]), np.array([2, 5, 4, 3])
Y = numbers(3, 4, seed=1)
BINARY: dict[str, tuple[Callable[..., Any], Array, Array]] = {
    "atan2": (np.arctan2, X, Y),
    "elementwise_add": (np.add, X, Y),
    "elementwise_div": (np.divide, X, Y),
    "elementwise_floordiv": (np.floor_divide, X, Y),
    "elementwise_max": (np.maximum, X, Y),
    "elementwise_min": (np.minimum, X, Y),
    "elementwise_mod": (np.mod, X, POSITIVE),
    "elementwise_mul": (np.multiply, X, Y),
    "elementwise_pow": (np.power, POSITIVE, Y),
    "elementwise_sub": (np.subtract, X, Y),
    "copysign": (np.copysign, X, Y),
    "fmax": (np.fmax, X, Y),
    "fmin": (np.fmin, X, Y),
    "fmod": (np.fmod, X, POSITIVE),
    "gammainc": (sp.gammainc, POSITIVE, ABOVE_ONE),
    "gammaincc": (sp.gammaincc, POSITIVE, ABOVE_ONE),
    "hypot": (np.hypot, X, Y),
    "logaddexp": (np.logaddexp, X, Y),
    "logaddexp2": (np.logaddexp2, X, Y),
    "xlogy": (sp.xlogy, X, POSITIVE),
    "xlog1py": (sp.xlog1py, X, POSITIVE),
    "minus": (np.subtract, X, Y),
    "gcd": (np.gcd, *INTEGERS),
    "lcm": (np.lcm, *INTEGERS),
    "less_than": (np.less, X, Y),
    "less_equal": (np.less_equal, X, Y),
    "greater_than": (np.greater, X, Y),
    "greater_equal": (np.greater_equal, X, Y),
    "equal": (np.equal, *INTEGERS),
    "not_equal": (np.not_equal, *INTEGERS),
    "logical_and": (np.logical_and, *BOOLS),
    "logical_or": (np.logical_or, *BOOLS),
    "logical_xor": (np.logical_xor, *BOOLS),
    "bitwise_and": (np.bitwise_and, *INTEGERS),
    "bitwise_or": (np.bitwise_or, *INTEGERS),
    "bitwise_xor": (np.bitwise_xor, *INTEGERS),
    "left_shift": (np.left_shift, np.abs(INTEGERS[0]), INTEGERS[1]),
    "right_shift": (np.right_shift, INTEGERS[0], INTEGERS[1]),
    "square_error_cost": (lambda x, y: (x - y) ** 2, X, Y),
}
ACTIVATIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "soft_relu": (lambda x: np.log1p(np.exp(np.clip(x, -1, 1))), {"threshold": 1.0}),
    "stanh": (lambda x: 2 * np.tanh(0.5 * x), {"scale_a": 0.5, "scale_b": 2.0}),
    "softshrink": (
        lambda x: np.where(x > 0.4, x - 0.4, np.where(x < -0.4, x + 0.4, 0)),
        {"lambda_": 0.4},
    ),
    "hard_shrink": (lambda x: np.where(np.abs(x) > 0.7, x, 0), {"threshold": 0.7}),
    "thresholded_relu": (lambda x: np.where(x > 0.5, x, 0), {"threshold": 0.5}),
    "hard_sigmoid": (lambda x: np.clip(0.3 * x + 0.4, 0, 1), {"slope": 0.3, "offset": 0.4}),
    "elu": (lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), {"alpha": 0.7}),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.1 * x), {"alpha": 0.1}),
    "selu": (lambda x: 1.2 * np.where(x > 0, x, 1.5 * np.expm1(x)), {"scale": 1.2, "alpha": 1.5}),
    "swish": (lambda x: x * sp.expit(1.5 * x), {"beta": 1.5}),
    "relu6": (lambda x: np.clip(x, 0, 1), {"threshold": 1.0}),
    "brelu": (lambda x: np.clip(x, -1, 1.2), {"t_min": -1.0, "t_max": 1.2}),
    "clip": (lambda x: np.clip(x, -0.5, 1), {"min": -0.5, "max": 1.0}),
    "scale": (lambda x: 3 * (x + 0.5), {"scale": 3.0, "bias": 0.5, "bias_after_scale": False}),
    "increment": (lambda x: x + 2.5, {"step": 2.5}),
    "nan_to_num": (lambda x: x, {}),
    "cumsum": (lambda x: np.cumsum(x, 1), {"axis": 1}),
    "cumprod": (lambda x: np.cumprod(x, 0), {"axis": 0}),
    "cummax": (lambda x: np.maximum.accumulate(x, 1), {}),
    "cummin": (lambda x: np.minimum.accumulate(x, 1), {}),
    "logcumsumexp": (lambda x: np.log(np.cumsum(np.exp(x), 1)), {}),
    "softmax": (softmax, {}),
    "log_softmax": (lambda x: sp.log_softmax(x, 0), {"axis": 0}),
    "clip_by_norm": (lambda x: x * min(1, 1.5 / np.linalg.norm(x)), {"max_norm": 1.5}),
    "arg_max": (lambda x: np.argmax(x, 1), {"axis": 1}),
    "arg_min": (lambda x: np.argmin(x, 0), {"axis": 0}),
    "reshape": (lambda x: x.reshape(2, 3, 2), {"shape": [2, -1, 2]}),
    "transpose": (np.transpose, {"axis": [1, 0]}),
    "expand": (lambda x: np.tile(x, (2, 3)), {"expand_times": [2, 3]}),
    "expand_v2": (lambda x: np.broadcast_to(x, (2, 3, 4)), {"shape": [2, -1, 4]}),
    "unsqueeze": (lambda x: x[:, None, :, None], {"axes": [1, 3]}),
    "flatten": (lambda x: x.reshape(1, 12), {"axis": 0}),
    "pad": (
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=3),
        {"paddings": [1, 0, 0, 2], "pad_value": 3.0},
    ),
    "crop": (lambda x: x[1:3, 2:4], {"offsets": [1, 2], "shape": [2, 2]}),
    "reverse": (lambda x: x[:, ::-1], {"axis": [1]}),
    "roll": (lambda x: np.roll(x, (1, -1), (0, 1)), {"shifts": [1, -1], "axis": [0, 1]}),
    "tril_triu": (lambda x: np.triu(x, 1), {"diagonal": 1, "lower": False}),
    "fill_zeros_like": (np.zeros_like, {}),
    "stop_gradient": (lambda x: x, {}),
}
FOLDS: dict[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "logsumexp": sp.logsumexp,
    "reduce_var": np.var,
    "reduce_std": np.std,
    "frobenius_norm": np.linalg.norm,
    "reduce_nanmean": np.nanmean,
    "reduce_nansum": np.nansum,
    "count_nonzero": np.count_nonzero,
    "reduce_squared_l2": lambda x, axis: np.sum(x * x, axis),
}
CASES: dict[str, Case] = {
    **{name: of(f, x) for name, (f, x) in UNARY.items()},
    **{name: of(f, x, y) for name, (f, x, y) in BINARY.items()},
    **{name: of(f, X, **attrs) for name, (f, attrs) in ACTIVATIONS.items()},
    **{name: Case({"X": X}, {"dim": [1]}, {"Out": f(X, axis=1)}) for name, f in FOLDS.items()},
}

# Networks -----------------------------------------------------------------------------------------

IMAGES, FILTERS = numbers(2, 3, 5, 6), numbers(4, 3, 3, 2, seed=1)


def convolved(x: Array, w: Array, stride: int, pad: int) -> Array:
    """The correlation of images with filters, by SciPy, image by image and channel by channel."""
    rank = w.ndim - 2
    wide = np.pad(x, [(0, 0), (0, 0), *[(pad, pad)] * rank])
    found = [
        [
            sum(scipy.signal.correlate(c, v, "valid") for c, v in zip(image, f, strict=True))
            for f in w
        ]
        for image in wide
    ]
    return np.array(found)[(..., *[slice(None, None, stride)] * rank)]


def spread(x: Array, w: Array) -> Array:
    """The transposed convolution with stride 1: the full convolution, summed over channels of x."""
    found = [
        [
            sum(scipy.signal.convolve(image[c], w[c, k]) for c in range(len(w)))
            for k in range(w.shape[1])
        ]
        for image in x
    ]
    return np.array(found)


def windows(x: Array, size: int, stride: int) -> Array:
    rank = x.ndim - 2
    found = np.lib.stride_tricks.sliding_window_view(x, [size] * rank, tuple(range(2, x.ndim)))
    return found[(slice(None), slice(None), *[slice(None, None, stride)] * rank)]


def normal(x: Array, axes: Any, epsilon: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def by_channel(v: Array, rank: int = 4) -> Array:
    return v.reshape(-1, *[1] * (rank - 2))


SCALE, BIAS = numbers(3, seed=2), numbers(3, seed=3)
H, GATES = numbers(2, 3), numbers(2, 12, seed=1)
RECURRENT = numbers(3, 9, seed=2)


def gru(x: Array, h: Array, w: Array) -> Array:
    u, r, c = np.split(x, 3, 1)
    u, r = sp.expit(u + h @ w[:, :3]), sp.expit(r + h @ w[:, 3:6])
    return u * np.tanh(c + (r * h) @ w[:, 6:]) + (1 - u) * h


def channel_squares(x: Array, alpha: float) -> Array:
    """2 plus alpha times the sum of squares of the two channels on both sides and the own one."""
    padded = np.pad(x**2, ((0, 0), (2, 2), (0, 0), (0, 0)))
    return 2 + alpha * sum(padded[:, k : k + x.shape[1]] for k in range(5))


def lstm() -> dict[str, Array]:
    i, f, o, g = np.split(GATES, 4, 1)
    c = sp.expit(f + 1) * H + sp.expit(i) * np.tanh(g)
    return {"C": c, "H": sp.expit(o) * np.tanh(c)}


SMALL = numbers(1, 2, 3, 3)
CUBE, CUBES = numbers(1, 2, 3, 4, 3), numbers(2, 2, 2, 2, 2, seed=1)
IDS = np.array([[2], [0], [2]])
NETWORKS: dict[str, Case] = {
    "conv2d": Case(
        {"Input": IMAGES, "Filter": FILTERS, "Bias": numbers(4)},
        {"strides": [2], "paddings": [1]},
        {"Output": convolved(IMAGES, FILTERS, 2, 1) + by_channel(numbers(4))},
    ),
    "conv3d": Case({"Input": CUBE, "Filter": CUBES}, {}, {"Output": convolved(CUBE, CUBES, 1, 0)}),
    "depthwise_conv2d": Case(
        {"Input": SMALL, "Filter": numbers(2, 1, 2, 2)},
        {},
        {
            "Output": np.concatenate(
                [
                    convolved(SMALL[:, k : k + 1], numbers(2, 1, 2, 2)[k : k + 1], 1, 0)
                    for k in range(2)
                ],
                1,
            )
        },
    ),
    "conv2d_transpose": Case(
        {"Input": SMALL, "Filter": numbers(2, 3, 2, 2)},
        {},
        {"Output": spread(SMALL, numbers(2, 3, 2, 2))},
    ),
    "conv3d_transpose": Case({"Input": CUBE, "Filter": CUBES}, {}, {"Output": spread(CUBE, CUBES)}),
    "pool2d": Case(
        {"X": IMAGES}, {"ksize": [2], "strides": [2]}, {"Out": windows(IMAGES, 2, 2).max((-1, -2))}
    ),
    "pool3d": Case(
        {"X": CUBE},
        {"pooling_type": "avg", "ksize": [2]},
        {"Out": windows(CUBE, 2, 1).mean((-1, -2, -3))},
    ),
    "batch_norm": Case(
        {"X": IMAGES, "Scale": SCALE, "Bias": BIAS, "Mean": np.zeros(3), "Variance": np.ones(3)},
        {"momentum": 0.8},
        {
            "Y": by_channel(SCALE) * normal(IMAGES, (0, 2, 3)) + by_channel(BIAS),
            "MeanOut": 0.2 * IMAGES.mean((0, 2, 3)),
            "VarianceOut": 0.8 + 0.2 * IMAGES.var((0, 2, 3)),
        },
        ("X", "Scale", "Bias"),
    ),
    "layer_norm": Case(
        {"X": X, "Scale": numbers(4), "Bias": numbers(4, seed=1)},
        {},
        {"Y": normal(X, 1) * numbers(4) + numbers(4, seed=1)},
    ),
    "group_norm": Case(
        {"X": numbers(2, 4, 3, 2)},
        {"groups": 2},
        {"Y": normal(numbers(2, 4, 3, 2).reshape(2, 2, 12), 2).reshape(2, 4, 3, 2)},
    ),
    "prelu": Case(
        {"X": IMAGES, "Alpha": SCALE},
        {"mode": "channel"},
        {"Out": np.where(IMAGES > 0, IMAGES, by_channel(SCALE) * IMAGES)},
    ),
    "lrn": Case(
        {"X": IMAGES}, {"alpha": 0.5}, {"Out": IMAGES * channel_squares(IMAGES, 0.5) ** -0.75}
    ),
    "maxout": of(lambda x: x.reshape(2, 2, 2, 3, 2).max(2), numbers(2, 4, 3, 2), groups=2),
    "lstm_unit": Case({"X": GATES, "C_prev": H}, {"forget_bias": 1.0}, lstm()),
    "gru_unit": Case(
        {"Input": GATES[:, :9], "HiddenPrev": H, "Weight": RECURRENT},
        {},
        {"Hidden": gru(GATES[:, :9], H, RECURRENT)},
    ),
    "lookup_table": Case(
        {"W": X, "Ids": IDS}, {"padding_idx": 0}, {"Out": X[IDS[:, 0]] * np.array([[1], [0], [1]])}
    ),
    "bilinear_interp": Case(
        {"X": SMALL},
        {"out_h": 5, "out_w": 5, "align_corners": True},
        {
            "Out": scipy.signal.convolve(
                np.kron(SMALL, [[1, 0], [0, 0]])[..., :5, :5],
                np.outer([0.5, 1, 0.5], [0.5, 1, 0.5])[None, None],
                "same",
            )
        },
    ),
    "nearest_interp": Case(
        {"X": SMALL}, {"out_h": 6, "out_w": 6}, {"Out": np.kron(SMALL, np.ones((2, 2)))}
    ),
}

# Losses -------------------------------------------------------------------------------------------

PROBABILITIES = softmax(X)
LABELS = np.array([[1], [3], [0]])
ROWS_OF = np.arange(3), LABELS[:, 0]
BITS = (Y > 0).astype(float)
SIGNS = 2 * BITS - 1


def huber(r: Array, d: float) -> Array:
    return np.where(np.abs(r) <= d, r * r / 2, d * (np.abs(r) - d / 2))


LOSSES: dict[str, Case] = {
    "cross_entropy": Case(
        {"X": PROBABILITIES, "Label": LABELS}, {}, {"Y": -np.log(PROBABILITIES[ROWS_OF])[:, None]}
    ),
    "softmax_with_cross_entropy": Case(
        {"Logits": X, "Label": PROBABILITIES[::-1]},
        {"soft_label": True},
        {"Loss": -(PROBABILITIES[::-1] * sp.log_softmax(X, 1)).sum(1, keepdims=True)},
        ("Logits",),
    ),
    "sigmoid_cross_entropy_with_logits": Case(
        {"X": X, "Label": SHARES},
        {},
        {"Out": -SHARES * np.log(sp.expit(X)) - (1 - SHARES) * np.log(sp.expit(-X))},
    ),
    "huber_loss": Case({"X": X, "Y": Y}, {"delta": 0.8}, {"Out": huber(Y - X, 0.8)}),
    "smooth_l1_loss": Case(
        {"X": X, "Y": Y}, {"sigma": 2.0}, {"Out": (huber(X - Y, 0.25) * 4).sum(1, keepdims=True)}
    ),
    "log_loss": Case(
        {"Predicted": SHARES, "Labels": BITS},
        {"epsilon": 0.01},
        {"Loss": -BITS * np.log(SHARES + 0.01) - (1 - BITS) * np.log(1.01 - SHARES)},
    ),
    "hinge_loss": Case(
        {"Logits": X, "Labels": BITS}, {}, {"Loss": np.maximum(0, 1 - SIGNS * X)}, ("Logits",)
    ),
    "modified_huber_loss": Case(
        {"X": X, "Y": BITS},
        {},
        {"Out": np.where(SIGNS * X < -1, -4 * SIGNS * X, np.maximum(0, 1 - SIGNS * X) ** 2)},
        ("X",),
    ),
    "rank_loss": Case(
        {"Label": BITS, "Left": X, "Right": Y},
        {},
        {"Out": np.log1p(np.exp(X - Y)) - BITS * (X - Y)},
    ),
    "margin_rank_loss": Case(
        {"Label": SIGNS, "X1": X, "X2": Y},
        {"margin": 0.1},
        {"Out": np.maximum(0, 0.1 - SIGNS * (X - Y))},
        ("X1", "X2"),
    ),
    "kldiv_loss": Case(
        {"X": np.log(PROBABILITIES), "Target": PROBABILITIES[::-1]},
        {"reduction": "sum"},
        {"Loss": np.sum(sp.rel_entr(PROBABILITIES[::-1], PROBABILITIES))},
    ),
    "label_smooth": Case({"X": BITS}, {"epsilon": 0.2}, {"Out": 0.8 * BITS + 0.05}),
    "accuracy": Case(
        {"Out": X[:, :2], "Indices": np.array([[1, 2], [0, 1], [0, 3]]), "Label": LABELS},
        {},
        {"Accuracy": np.array([2 / 3]), "Correct": np.array([2]), "Total": np.array([3])},
    ),
    "squared_l2_distance": Case(
        {"X": X, "Y": Y}, {}, {"Out": ((X - Y) ** 2).sum(1, keepdims=True)}
    ),
    "cos_sim": Case(
        {"X": X, "Y": Y},
        {},
        {"Out": ((X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1))[:, None]},
    ),
    "norm": Case({"X": X}, {"axis": 1}, {"Out": X / np.linalg.norm(X, axis=1, keepdims=True)}),
}

# Movement, products and sources -------------------------------------------------------------------

SQUARE = numbers(2, 3, 3) + 3 * np.eye(3)
DEFINITE = SQUARE @ SQUARE.transpose(0, 2, 1)
CUT = numbers(3, 4, 2)
FLAT = numbers(6, 2)
PARTS: dict[str, Case] = {
    "pow": of(lambda x: x**1.5, POSITIVE, factor=1.5),
    "polygamma": of(lambda x: sp.polygamma(1, x), POSITIVE, n=1),
    "logit": of(sp.logit, SHARES),
    "where": Case({"Condition": X > 0, "X": X, "Y": Y}, {}, {"Out": np.where(X > 0, X, Y)}),
    "betainc": Case(
        {"A": POSITIVE, "B": ABOVE_ONE, "X": SHARES},
        {},
        {"Out": sp.betainc(POSITIVE, ABOVE_ONE, SHARES)},
        ("X",),
    ),
    "heaviside": of(np.heaviside, X, Y),
    "trunc_divide": of(lambda x, y: np.trunc(x / y), X, Y),
    "zeta": Case({"X": ABOVE_ONE, "Y": POSITIVE}, {}, {"Out": sp.zeta(ABOVE_ONE, POSITIVE)}, ()),
    "nextafter": Case({"X": X, "Y": Y}),
    "float_power": of(np.float_power, POSITIVE, Y),
    "cast": Case({"X": X}, {"dtype": "int32"}, {"Out": X.astype(np.int32)}, ()),
    "reduce_all": Case({"X": X > 0}, {"dim": [0]}, {"Out": (X > 0).all(0)}),
    "reduce_any": Case({"X": X > 0}, {"reduce_all": True}, {"Out": (X > 0).any()}),
    "reduce_median": Case({"X": X[:, :3]}, {"dim": [1]}, {"Out": np.median(X[:, :3], 1)}),
    "argsort": Case({"X": X}, {"axis": 0}, {"Out": np.sort(X, 0), "Indices": np.argsort(X, 0)}),
    "top_k": Case(
        {"X": X}, {"k": 2}, {"Out": -np.sort(-X, 1)[:, :2], "Indices": np.argsort(-X, 1)[:, :2]}
    ),
    "sum": Case({"X": [X, Y, X]}, {}, {"Out": 2 * X + Y}),
    "assign": of(lambda x: x, X),
    "concat": Case({"X": [X, Y[:, :2]]}, {"axis": 1}, {"Out": np.concatenate([X, Y[:, :2]], 1)}),
    "split": Case({"X": X}, {"sections": [1, 3], "axis": 1}, {"Out": [X[:, :1], X[:, 1:]]}),
    "slice": Case(
        {"Input": X}, {"axes": [0, 1], "starts": [1, -3], "ends": [3, -1]}, {"Out": X[1:3, -3:-1]}
    ),
    "stack": Case({"X": [X, Y]}, {"axis": 1}, {"Y": np.stack([X, Y], 1)}),
    "unstack": Case({"X": X}, {"axis": 1}, {"Y": list(X.T)}),
    "squeeze": of(lambda x: x[:, 0], X[:, None], axes=[1]),
    "pad2d": of(
        lambda x: np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 1)), "reflect"),
        SMALL,
        paddings=[1, 0, 1, 1],
        mode="reflect",
    ),
    "gather": Case({"X": X, "Index": IDS}, {}, {"Out": X[IDS[:, 0]]}),
    "gather_nd": Case(
        {"X": X, "Index": np.array([[0, 1], [2, 3]])}, {}, {"Out": X[[0, 2], [1, 3]]}
    ),
    "scatter": Case(
        {"X": X, "Ids": np.array([2, 0]), "Updates": Y[:2]},
        {},
        {"Out": np.stack([Y[1], X[1], Y[0]])},
    ),
    "scatter_nd_add": Case(
        {"X": X, "Index": np.array([[1], [1]]), "Updates": Y[:2]},
        {},
        {"Out": np.stack([X[0], X[1] + Y[0] + Y[1], X[2]])},
    ),
    "one_hot": Case({"X": LABELS}, {"depth": 4}, {"Out": np.eye(4)[LABELS[:, 0]]}),
    "multiplex": Case(
        {"Ids": np.array([[1], [0], [1]]), "X": [X, Y]}, {}, {"Out": np.stack([Y[0], X[1], Y[2]])}
    ),
    "shape": Case({"Input": CUT}, {}, {"Out": np.array(CUT.shape)}),
    "size": Case({"Input": CUT}, {}, {"Out": np.array([24])}),
    "mul": Case(
        {"X": CUT, "Y": numbers(4, 2, 3)},
        {"y_num_col_dims": 2},
        {"Out": np.tensordot(CUT, numbers(4, 2, 3), 2)},
    ),
    "matmul": Case(
        {"X": CUT, "Y": numbers(3, 5, 2)},
        {"transpose_Y": True, "alpha": 0.5},
        {"Out": 0.5 * CUT @ numbers(3, 5, 2).transpose(0, 2, 1)},
    ),
    "dot": Case({"X": X, "Y": Y}, {}, {"Out": (X * Y).sum(1, keepdims=True)}),
    "addmm": Case(
        {"Input": numbers(3, 3), "X": X, "Y": Y.T},
        {"alpha": 2.0, "beta": 0.5},
        {"Out": 0.5 * numbers(3, 3) + 2 * X @ Y.T},
    ),
    "bilinear_tensor_product": Case(
        {"X": X, "Y": H[[0, 1, 0]], "Weight": numbers(2, 4, 3)},
        {},
        {"Out": np.einsum("bm,kmn,bn->bk", X, numbers(2, 4, 3), H[[0, 1, 0]])},
    ),
    "cholesky": Case({"X": DEFINITE}, {}, {"Out": np.linalg.cholesky(DEFINITE)}, ()),
    "inverse": of(np.linalg.inv, SQUARE),
    "determinant": of(np.linalg.det, SQUARE),
    "solve": of(np.linalg.solve, SQUARE, numbers(2, 3, 2)),
    "kron": of(np.kron, X, Y[:2]),
    "cross": of(np.cross, X[:, :3], Y[:, :3]),
    "pinverse": of(np.linalg.pinv, SQUARE[:, :2]),
    "matrix_exp": of(scipy.linalg.expm, SQUARE),
    "matrix_power": of(lambda x: x @ x @ x, SQUARE, n=3),
    "matrix_norm": of(lambda x: np.linalg.norm(x, axis=(1, 2)), SQUARE),
    "matrix_rank": of(np.linalg.matrix_rank, np.stack([np.eye(3), np.ones((3, 3))])),
    "trace": of(lambda x: np.trace(x, axis1=1, axis2=2), SQUARE),
    "slogdet": Case(
        {"X": SQUARE},
        {},
        dict(zip(("Sign", "Out"), np.linalg.slogdet(SQUARE), strict=True)),
    ),
    "lstsq": of(
        lambda a, b: np.stack([np.linalg.lstsq(m, v, None)[0] for m, v in zip(a, b, strict=True)]),
        SQUARE[:, :, :2],
        numbers(2, 3, 2),
    ),
    "cholesky_solve": of(
        lambda f, b: np.linalg.solve(f @ f.swapaxes(1, 2), b),
        np.tril(SQUARE) + 3 * np.eye(3),
        numbers(2, 3, 2),
    ),
    "triangular_solve": of(
        lambda a, b: np.linalg.solve(np.triu(a), b),
        SQUARE + 3 * np.eye(3),
        numbers(2, 3, 2),
        lower=False,
    ),
    "repeat_interleave": of(lambda x: np.repeat(x, 3, 1), X, repeats=3, axis=1),
    "take_along_axis": Case(
        {"X": X, "Index": np.argsort(Y, 1)},
        {"axis": 1},
        {"Out": np.take_along_axis(X, np.argsort(Y, 1), 1)},
    ),
    "isclose": of(np.isclose, X, X * [1, 1 + 1e-7, 1.1, 1]),
    "ldexp": Case({"X": X, "N": np.array([0, 1, -2, 3])}, {}, {"Out": np.ldexp(X, [0, 1, -2, 3])}),
    "reduce_nanmedian": of(lambda x: np.nanmedian(x, 1), np.where(X > 1.5, np.nan, X), dim=[1]),
    "reduce_quantile": of(lambda x: np.quantile(x, 0.3, (0, 1)), X, q=0.3, dim=[0, 1]),
    "kthvalue": Case(
        {"X": X},
        {"k": 2, "axis": 0, "keep_dim": True},
        {"Out": np.sort(X, 0)[1:2], "Indices": np.argsort(X, 0)[1:2]},
    ),
    "mode": Case(
        {"X": np.array([[2.0, 1.0, 2.0], [3.0, 1.0, 1.0]])}, {}, {"Out": np.array([2.0, 1.0])}, ()
    ),
    "argcummax": of(lambda x: np.array([np.argmax(x[: k + 1], 0) for k in range(3)]), X, axis=0),
    "argcummin": of(lambda x: np.array([np.argmin(x[: k + 1], 0) for k in range(3)]), X, axis=0),
    "diff": of(lambda x: np.diff(x, 2), X, n=2),
    "cumulative_trapezoid": of(
        lambda x: scipy.integrate.cumulative_trapezoid(x, dx=0.5), X, dx=0.5
    ),
    "segment_pool": Case(
        {"X": FLAT, "SegmentIds": np.array([0, 0, 2, 2, 2, 1])},
        {"num_segments": 3, "pooltype": "AVERAGE"},
        {"Out": np.stack([FLAT[:2].mean(0), FLAT[5], FLAT[2:5].mean(0)])},
    ),
    "assign_value": Case(
        {}, {"shape": [2, 2], "values": [1.0, 2, 3, 4]}, {"Out": np.array([[1, 2], [3, 4]])}
    ),
    "fill_constant": Case({}, {"shape": [2, 1], "value": 3.0}, {"Out": np.full((2, 1), 3)}),
    "fill_any_like": Case({"X": X}, {"value": 2.0}, {"Out": np.full((3, 4), 2)}),
    "fill_constant_batch_size_like": Case(
        {"Input": X}, {"shape": [-1, 2], "value": 1.5}, {"Out": np.full((3, 2), 1.5)}
    ),
    "range": Case({}, {"start": 1, "end": 8, "step": 3}, {"Out": np.arange(1, 8, 3)}),
    "linspace": Case({}, {"start": 0.0, "stop": 1.0, "num": 5}, {"Out": np.linspace(0, 1, 5)}),
    "eye": Case({}, {"num_rows": 2, "num_columns": 3}, {"Out": np.eye(2, 3)}),
}

# Sequences ----------------------------------------------------------------------------------------

OFFSETS = np.array([0, 2, 3, 6])
PIECES = np.split(FLAT, OFFSETS[1:-1])
LINE = {"X": FLAT, "Offsets": OFFSETS}
AROUND = np.concatenate(
    [
        np.concatenate([np.pad(p, ((1, 1), (0, 0)))[k : k + len(p)] for k in range(3)], 1)
        for p in PIECES
    ]
)
STEPS = {"Offsets": OFFSETS, "Positions": np.arange(3)}
SUMS = {"Input": numbers(6, 8), "Weight": numbers(2, 8, seed=4), **STEPS}
H0, C0 = numbers(3, 2, seed=5), numbers(3, 2, seed=6)


def whole_lstm(x: Array, h0: Array, c0: Array) -> list[Array]:
    """The outputs and states of an LSTM with peepholes, by a loop over rows."""
    w, bias = SUMS["Weight"], numbers(1, 14)[0]
    wi, wf, wo = bias[8:].reshape(3, 2)
    found = []
    for begin, end, h, c in zip(OFFSETS[:-1], OFFSETS[1:], h0, c0, strict=True):
        for row in x[begin:end]:
            g, i, f, o = (row + h @ w + bias[:8]).reshape(4, 2)
            c = sp.expit(f + wf * c) * c + sp.expit(i + wi * c) * np.tanh(g)
            h = sp.expit(o + wo * c) * np.tanh(c)
            found.append((h, c))
    return [np.stack(each) for each in zip(*found, strict=True)]


def reversed_gru(x: Array) -> Array:
    """The states of a GRU that reads each sequence from its end, by a loop over rows."""
    w, found = SUMS["Weight"], np.zeros((6, 2))
    for begin, end in zip(OFFSETS[:-1], OFFSETS[1:], strict=True):
        h = np.zeros(2)
        for k in range(begin, end)[::-1]:
            u, r = sp.expit(x[k, :4] + h @ w[:, :4]).reshape(2, 2)
            h = found[k] = u * np.tanh(x[k, 4:] + (r * h) @ w[:, 4:6]) + (1 - u) * h
    return found


SEQUENCES: dict[str, Case] = {
    "sequence_pool": Case(
        LINE, {"pooltype": "SQRT"}, {"Out": np.stack([p.sum(0) / len(p) ** 0.5 for p in PIECES])}
    ),
    "sequence_softmax": Case(LINE, {}, {"Out": np.concatenate([softmax(p, 0) for p in PIECES])}),
    "sequence_expand": Case(
        {"X": X, "Y": FLAT, "Offsets": OFFSETS},
        {},
        {"Out": np.repeat(X, np.diff(OFFSETS), 0)},
        ("X",),
    ),
    "sequence_reverse": Case(LINE, {}, {"Y": np.concatenate([p[::-1] for p in PIECES])}),
    "sequence_conv": Case({**LINE, "Filter": numbers(6, 3)}, {}, {"Out": AROUND @ numbers(6, 3)}),
    "sequence_mask": Case(
        {"X": np.array([1, 3])}, {"maxlen": 3}, {"Y": np.array([[1, 0, 0], [1, 1, 1]])}
    ),
    "sequence_pad": Case(
        LINE,
        {"padded_length": 3, "pad_value": -1.0},
        {
            "Out": np.stack(
                [np.pad(p, ((0, 3 - len(p)), (0, 0)), constant_values=-1) for p in PIECES]
            ),
            "Length": np.diff(OFFSETS),
        },
    ),
    "sequence_unpad": Case(
        {"X": numbers(3, 3, 2), "Y": FLAT, "Offsets": OFFSETS},
        {},
        {"Out": np.concatenate([numbers(3, 3, 2)[k, : len(p)] for k, p in enumerate(PIECES)])},
        ("X",),
    ),
    "row_conv": Case(
        {**LINE, "Filter": numbers(2, 2)},
        {},
        {
            "Out": np.concatenate(
                [
                    p * numbers(2, 2)[0] + np.pad(p, ((0, 1), (0, 0)))[1:] * numbers(2, 2)[1]
                    for p in PIECES
                ]
            )
        },
    ),
    "lstm": Case(
        {**SUMS, "H0": H0, "C0": C0, "Bias": numbers(1, 14)},
        {},
        dict(zip(("Hidden", "Cell"), whole_lstm(SUMS["Input"], H0, C0), strict=True)),
    ),
    "gru": Case(
        {**SUMS, "Input": SUMS["Input"][:, :6], "Weight": SUMS["Weight"][:, :6]},
        {"is_reverse": True},
        {"Hidden": reversed_gru(SUMS["Input"][:, :6])},
    ),
    "sequence_lengths": Case({"Offsets": OFFSETS}, {}, {"Out": np.diff(OFFSETS)}),
    "sequence_offsets": Case({"X": np.diff(OFFSETS)}, {}, {"Offsets": OFFSETS}),
}

# Updates ------------------------------------------------------------------------------------------

G, M, V = numbers(3, 4, seed=2), numbers(3, 4, seed=3), POSITIVE
RATE, STEP = np.array([0.1]), np.array([2.0])
BASE = {"Param": X, "Grad": G, "LearningRate": RATE}
MEAN, SQUARES = 0.9 * M + 0.1 * G, 0.99 * V + 0.01 * G**2
ADAM = 0.1 * (MEAN / (1 - 0.9**3)) / (np.sqrt(SQUARES / (1 - 0.99**3)) + 1e-8)
CHANGE = np.sqrt((V + 1e-6) / (0.9 * V + 0.1 * G**2 + 1e-6)) * G
UPDATES: dict[str, Case] = {
    "sgd": Case(BASE, {}, {"ParamOut": X - 0.1 * G}),
    "momentum": Case(
        {**BASE, "Velocity": M},
        {"use_nesterov": True},
        {"ParamOut": X - 0.1 * (G + 0.9 * (0.9 * M + G)), "VelocityOut": 0.9 * M + G},
    ),
    "adagrad": Case(
        {**BASE, "Moment": V},
        {},
        {"ParamOut": X - 0.1 * G / (np.sqrt(V + G**2) + 1e-6), "MomentOut": V + G**2},
    ),
    "adam": Case(
        {**BASE, "Moment1": M, "Moment2": V, "Step": STEP},
        {"beta2": 0.99},
        {"ParamOut": X - ADAM, "Moment1Out": MEAN, "Moment2Out": SQUARES, "StepOut": STEP + 1},
    ),
    "adamw": Case(
        {**BASE, "Moment1": M, "Moment2": V, "Step": STEP},
        {"beta2": 0.99, "coeff": 0.5},
        {"ParamOut": X - ADAM - 0.05 * X},
    ),
    "adadelta": Case(
        {**BASE, "AvgSquaredGrad": V, "AvgSquaredUpdate": V},
        {"rho": 0.9},
        {"ParamOut": X - 0.1 * CHANGE, "AvgSquaredUpdateOut": 0.9 * V + 0.1 * CHANGE**2},
    ),
    "rmsprop": Case(
        {**BASE, "MeanSquare": V, "Moment": M},
        {"rho": 0.9, "momentum": 0.5},
        {"ParamOut": X - 0.1 * (0.5 * M + G / (np.sqrt(0.9 * V + 0.1 * G**2) + 1e-6))},
    ),
    "lion": Case(
        {**BASE, "Moment": M},
        {},
        {"ParamOut": X - 0.1 * np.sign(MEAN), "MomentOut": 0.99 * M + 0.01 * G},
    ),
    "weight_decay": Case(
        {"Param": X, "Grad": G}, {"l1": 0.1, "l2": 0.2}, {"Out": G + 0.2 * X + 0.1 * np.sign(X)}
    ),
    "clip_by_global_norm": Case(
        {"X": [G, M]},
        {"max_norm": 1.0},
        {"Out": [each / np.sqrt((G**2).sum() + (M**2).sum()) for each in (G, M)]},
    ),
    "exponential_decay": Case(
        {"Step": STEP},
        {"learning_rate": 0.5, "decay_steps": 4, "decay_rate": 0.1},
        {"Out": np.array([0.5 * 0.1**0.5]), "StepOut": STEP + 1},
    ),
    "natural_exp_decay": Case(
        {"Step": STEP},
        {"learning_rate": 0.5, "decay_steps": 4, "decay_rate": 0.1},
        {"Out": np.array([0.5 * np.exp(-0.05)])},
    ),
    "inverse_time_decay": Case(
        {"Step": STEP + 3},
        {"learning_rate": 0.5, "decay_steps": 4, "decay_rate": 0.1, "staircase": True},
        {"Out": np.array([0.5 / 1.1])},
    ),
    "polynomial_decay": Case(
        {"Step": STEP},
        {"learning_rate": 0.5, "decay_steps": 4, "end_learning_rate": 0.1, "power": 2.0},
        {"Out": np.array([0.2])},
    ),
    "cosine_decay": Case(
        {"Step": STEP}, {"learning_rate": 0.5, "decay_steps": 4}, {"Out": np.array([0.25])}
    ),
    "noam_decay": Case(
        {"Step": STEP}, {"d_model": 4, "warmup_steps": 4}, {"Out": np.array([0.5 * 3 / 8])}
    ),
    "piecewise_decay": Case(
        {"Step": STEP},
        {"boundaries": [2.0, 5.0], "values": [0.3, 0.2, 0.1]},
        {"Out": np.array([0.2])},
    ),
}
SYMMETRIC = SQUARE + SQUARE.transpose(0, 2, 1) + np.diag([1.0, 5, 9])
Z = X + 1j * numbers(3, 4, seed=5)

ANALYSIS: dict[str, Case] = {
    "eigh": Case(
        {"X": SYMMETRIC},
        {},
        dict(zip(("Eigenvalues", "Eigenvectors"), np.linalg.eigh(SYMMETRIC), strict=True)),
        slots=(),
    ),
    "eigvalsh": Case({"X": SYMMETRIC}, {}, {"Eigenvalues": np.linalg.eigvalsh(SYMMETRIC)}, ()),
    "qr": Case(
        {"X": numbers(2, 4, 3)},
        {},
        dict(zip("QR", np.linalg.qr(numbers(2, 4, 3)), strict=True)),
        tolerance=1e-5,
    ),
    "svd": Case(
        {"X": numbers(2, 3, 2)},
        {},
        dict(zip(("U", "S", "VH"), np.linalg.svd(numbers(2, 3, 2), False), strict=True)),
        tolerance=1e-5,
    ),
    "matrix_cond": of(np.linalg.cond, SQUARE),
    "outer": of(np.outer, X[0], Y[:, 0]),
    "diagonal": of(lambda x: np.diagonal(x, axis1=1, axis2=2), SQUARE),
    "diag_embed": of(lambda x: x[..., None] * np.eye(4), X),
    "fft_c2c": of(lambda x, **_: np.fft.fftn(x, axes=(0, 1), norm="ortho"), Z, axes=[0, 1],
                  normalization="ortho"),
    "fft_r2c": of(lambda x, **_: np.fft.rfftn(x, axes=(0, 1)), X, axes=[0, 1]),
    "fft_c2r": of(lambda x, **_: np.fft.irfft(x, 7, 1), Z, axes=[1], last_dim_size=7),
    "hann_window": Case({}, {"window_length": 7},
                        {"Out": scipy.signal.get_window("hann", 7)}),
    "hamming_window": Case({}, {"window_length": 7},
                           {"Out": scipy.signal.get_window("hamming", 7)}),
    "blackman_window": Case({}, {"window_length": 7, "periodic": False},
                            {"Out": np.blackman(7)}),
    "complex": of(lambda x, y: x + 1j * y, X, Y),
    "real": of(np.real, Z),
    "imag": of(np.imag, Z),
    "angle": of(np.angle, Z),
    "conj": of(np.conj, Z),
    "cov": of(lambda x, **_: np.cov(x, ddof=0), X, correction=0),
    "corrcoef": of(np.corrcoef, X),
    "cdist": of(
        lambda x, y, **_: np.sum(np.abs(x[:, :, None] - y[:, None]) ** 3, -1) ** (1 / 3),
        numbers(2, 3, 2),
        numbers(2, 4, 2, seed=1),
        p=3.0,
    ),
    "interp": Case(
        {"X": X, "Points": np.array([-1.0, 0, 1]), "Values": np.array([2.0, -1, 3])},
        {},
        {"Out": np.interp(X, [-1.0, 0, 1], [2.0, -1, 3])},
    ),
    "searchsorted": of(lambda x, s, **_: np.searchsorted(s, x, "right"), np.round(X),
                       np.array([-1.0, 0, 0, 1]), names="X SortedSequence", side="right"),
    "isin": of(np.isin, np.round(X), np.array([1.0, 2]), names="X Values"),
    "histogram": of(lambda x, **_: np.histogram(x, 5, (-1, 2))[0], X, bins=5, min=-1.0, max=2.0),
    "bincount": of(lambda x, **_: np.bincount(x, minlength=6), np.array([3, 0, 3, 5]), bins=6),
    "unique": Case(
        {"X": np.array([[4.0, 2], [2, 7]])},
        {},
        {"Out": np.array([2.0, 4, 7, 0]), "Index": np.array([1, 0, 0, 2]),
         "Counts": np.array([2, 1, 1, 0]), "Count": np.array(3)},
    ),
    "masked_select": Case(
        {"X": X, "Mask": X > 1},
        {"fill": -1.0},
        {"Y": np.concatenate([X[X > 1], np.full((X <= 1).sum(), -1.0)]),
         "Count": np.array((X > 1).sum())},
    ),
    "masked_scatter": Case(
        {"X": X, "Mask": X > 1, "Source": Y},
        {},
        {"Out": np.where(X > 1, Y.ravel()[np.maximum(np.cumsum(X > 1) - 1, 0)].reshape(3, 4), X)},
    ),
    "vander": of(lambda x, **_: x[..., None] ** np.arange(4)[::-1], X, num=4, increasing=False),
    "renorm": of(
        lambda x, **_: x * np.minimum(1, 2 / np.abs(x).sum(0)), X, axis=1, max_norm=2.0, p=1.0
    ),
    "trapezoid": of(lambda x, **_: scipy.integrate.trapezoid(x, dx=0.5, axis=0), X, axis=0, dx=0.5),
    "logspace": Case({}, {"start": 0.0, "stop": 2.0, "num": 5, "base": 2.0},
                     {"Out": np.logspace(0, 2, 5, base=2).astype(np.float32)}),
    "frexp": Case({"X": X}, {}, dict(zip(("Mantissa", "Exponent"), np.frexp(X), strict=True))),
    "lerp": of(lambda x, y, w: (1 - w) * x + w * y, X, Y, SHARES, names="X Y Weight"),
    "orthogonal_polynomial": of(lambda x, **_: sp.eval_legendre(3, x), UNIT, family="legendre",
                                n=3),
    "reduce_nanquantile": of(lambda x, **_: np.nanquantile(x, 0.3, 1), X, dim=[1], q=0.3),
}  # fmt: skip
CASES |= {**NETWORKS, **LOSSES, **PARTS, **SEQUENCES, **UPDATES, **ANALYSIS}
