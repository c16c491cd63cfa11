"""Sums, counts and totals of halves, the user's and geon's own, are held in float32.

Each case is made for a half and for float64, of the same data, which a half holds. Their values are
such that a total in the half stops growing, overflows or cancels: both must agree to its rounding.
"""

import ml_dtypes
import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import costs

L, S, T, H = geon.Axis("L", 70_000), geon.Axis("S", 4096), geon.Axis("T", 2), geon.Axis("H", 3)
K = geon.Axis("K", 41)
PARTS = np.r_[np.ones(40), 2048.0]  # from the end on, a half adds none of the ones
CASES = {}


class Given:
    """Makes placeholders of one dtype, and notes their data."""

    def __init__(self, dtype):
        self.dtype, self.feeds = dtype, {}

    def __call__(self, axes, data):
        axes = geon.Axes(axes)
        x = geon.placeholder(axes, self.dtype)
        self.feeds[x] = np.broadcast_to(np.asarray(data, np.float64), axes.lengths)
        return x


def case(function):
    CASES[function.__name__] = function
    return function


def zeros(axis):
    return geon.constant(np.zeros(axis.length, np.int64), axes=[axis])


# Indices ----------------------------------------------------------------------------------------


@case
def slope_of_gather(given):
    t = given([T, H], 1)
    return geon.deriv(geon.sum(geon.gather(t, zeros(S), T)), t)


@case
def slope_of_take_along_shared_axes(given):
    t = given([H, T], 1)
    index = geon.constant(np.zeros((3, 4096), np.int64), axes=[H, S])
    return geon.deriv(geon.sum(geon.take_along(t, index, T)), t)


@case
def slope_of_a_cast_table(given):
    t = given([T], 1)
    return geon.deriv(geon.sum(geon.gather(geon.cast(t, "bfloat16"), zeros(S), T)), t)


@case
def scatter_adds(given):
    x, value = given([T], [2048, 0]), given([S], 1)
    return geon.scatter(x, zeros(S), value, T, mode="add")


@case
def scatter_adds_along_shared_axes(given):
    x, value = given([H, T], 0), given([H, S], 1)
    index = geon.constant(np.zeros((3, 4096), np.int64), axes=[H, S])
    return geon.scatter(x, index, value, T, mode="add")


@case
def slope_of_an_embedding(given):
    layer = neon.LookupTable(geon.Axis("words", 2), [H], neon.Constant(0.5), dtype=given.dtype)
    cost = geon.sum(layer(zeros(S)))
    return geon.deriv(cost, layer.variables["w"])


@case
def resize_to_a_long_axis(given):
    return geon.resize(given([T], [0, 1]), {T: 40_000})


@case
def slope_of_resize(given):
    x = given([T], [0, 1])
    return [
        geon.deriv(geon.sum(geon.resize(x, {T: 4096}, mode)), x) for mode in ("linear", "nearest")
    ]


# Uses -------------------------------------------------------------------------------------------


def many_uses(w, xs):
    return geon.sum(geon.concat([w * xs[{K: k}] for k in range(41)], T))


@case
def slope_of_what_is_used_often(given):
    w, xs = given([T], 1), given([K], PARTS)
    total = geon.cast(0, "float32")
    for k in range(41):
        total = total + geon.cast(geon.sum(w * xs[{K: k}]), "float32")
    return geon.deriv(total, w)


@case
def slope_of_concat_of_uses(given):
    w, xs = given([T], 1), given([K], PARTS)
    return geon.deriv(many_uses(w, xs), w)


@case
def slope_of_slices(given):
    x, xs = given([S], 1), given([K], PARTS)
    parts = [geon.sum(x[{S: slice(k % 2, 4096)}] * xs[{K: k}]) / 4096 for k in range(41)]
    return geon.deriv(geon.sum(geon.stack(parts, K)), x)


@case
def slope_of_uses_in_a_branch(given):
    w, xs = given([T], 1), given([K], PARTS)
    return geon.deriv(geon.cond(xs[{K: 0}] > 0, lambda: many_uses(w, xs), lambda: geon.sum(w)), w)


@case
def slope_of_uses_in_a_checkpoint(given):
    w, xs = given([T], 1), given([K], PARTS)
    return geon.deriv(geon.checkpoint(many_uses)(w, xs), w)


@case
def slope_of_a_border(given):
    x, border = given([T], 1), given([], 1)
    return geon.deriv(geon.sum(geon.pad(x, {T: (4096, 0)}, value=border)), border)


@case
def slope_of_repeats(given):
    w = given([T], 1)
    return geon.deriv(geon.sum(geon.broadcast(w, [S, T])), w)


# Loops ------------------------------------------------------------------------------------------


@case
def slope_of_a_weight_of_a_scan(given):
    w, xs = given([T], 1), given([K], PARTS)
    _, ys = geon.scan(lambda c, x: (c, w * x), given([], 0), xs, over=K)
    return geon.deriv(geon.sum(ys), w)


@case
def slope_of_a_weight_that_a_scan_hands_on(given):
    w, xs = given([T], 1), given([K], PARTS)
    _, ys = geon.scan(lambda c, x: (c, c * x), w, xs, over=K)
    return geon.deriv(geon.sum(ys), w)


@case
def slope_of_a_table_in_a_scan(given):
    t, xs = given([T], 1), given([K], PARTS)
    index = geon.constant(0)
    _, ys = geon.scan(lambda c, x: (c, geon.gather(t, index, T) * x), given([], 0), xs, over=K)
    return geon.deriv(geon.sum(ys), t)


@case
def slope_of_an_associative_scan(given):
    x = given([K], 1)
    ys = geon.associative_scan(lambda a, b: a + b, x, over=K)
    return geon.deriv(geon.sum(ys * given([K], PARTS)), x)


def weights_of_a_while_loop(given, most):
    w = given([], 1)

    def step(state):
        k, total = state
        part = geon.where(k == 40, 2048, 1)
        return k + 1, total + geon.cast(w * geon.cast(part, w.dtype), "float32")

    begin = geon.constant(0), geon.cast(geon.constant(0), "float32")
    _, total = geon.while_loop(lambda s: s[0] < 41, step, begin, most)
    return geon.deriv(total, w)


@case
def slope_of_a_weight_of_a_while_loop(given):
    return weights_of_a_while_loop(given, 100)


@case
def slope_of_a_weight_of_a_while_loop_in_segments(given):
    return weights_of_a_while_loop(given, 1000)


@case
def slope_of_a_weight_of_a_while_loop_without_limit(given):
    return weights_of_a_while_loop(given, None)


@case
def slope_of_a_fixed_point(given):
    w, xs = given([T], 1), given([K], PARTS)
    found = geon.fixed_point(lambda x: x * 0.5 + many_uses(w, xs) * 0.0625, geon.sum(w))
    return geon.deriv(found, w)


# Reductions -------------------------------------------------------------------------------------


@case
def slope_of_extremes_that_tie(given):
    x = given([L], 1)
    return [geon.deriv(made, x) for made in (geon.max(x), geon.min(x))]


@case
def tangent_of_extremes_that_tie(given):
    x = given([L], 1)
    return geon.jvp(geon.max(x), x, geon.constant(np.ones(70_000), axes=[L]))


@case
def slope_of_products_out_of_range(given):
    x = given([geon.Axis("P", 4)], [1024, 1024, 2.0**-10, 2.0**-10])
    return [geon.deriv(geon.prod(x), x), geon.deriv(geon.sum(geon.cumprod(x)[{"P": 3}]), x)]


@case
def sums_along_an_axis(given):
    x = given([S], 1)
    sums = geon.cumsum(x)
    return [sums, geon.deriv(geon.sum(sums), x), geon.sum(x)]


@case
def statistics(given):
    x = given([L], np.arange(70_000) % 2 * 2)
    made = [geon.mean(x), geon.variance(x), geon.std(x), geon.L2_norm(x)]
    return [*made, *(geon.deriv(each, x) * 1000 for each in made)]


@case
def softmax_over_a_long_axis(given):
    x = given([L], 0)
    made = [geon.softmax(x), geon.log_softmax(x), geon.logsumexp(x), geon.log(geon.softmax(x))]
    return [*made, geon.deriv(made[2], x), geon.deriv(geon.sum(made[3][{L: slice(0, 2)}]), x)]


@case
def cross_entropies_over_a_long_axis(given):
    x, t = given([L], 0), given([L], np.arange(70_000) == 5)
    made = geon.cross_entropy_multi(geon.softmax(x), t)
    return [made, geon.deriv(made, x)]


@case
def costs_of_layers(given):
    x, place = given([L], 0), geon.constant(5)
    made = [costs.cross_entropy(x, place, L), costs.cross_entropy(x, place, L, smoothing=0.5)]
    return [*made, costs.focal(x, place, L), *(geon.deriv(each, x) for each in made)]


@case
def statistics_of_layers(given):
    x = given([geon.Axis("N", 4096), H], np.arange(4096)[:, None] % 2 * 200)
    return [layer(x) for layer in (neon.LayerNorm(over="N"), neon.RMSNorm(over="N"))]


@case
def pools_and_windows(given):
    x = given([S], 100)
    windows = {S: geon.Window(geon.Axis("R", 2048))}
    pools = [geon.average_pool(x, windows), geon.lp_pool(x, windows) / 64]
    shown = geon.sum(geon.window(x, windows) / 256)
    return [*pools, geon.deriv(shown, x), geon.deriv(geon.sum(pools[0]), x)]


@case
def products(given):
    x, w = given([S, H], 1), given([H, T], 1)
    y = geon.dot(x, w)
    return [*geon.deriv(geon.sum(y), [x, w]), geon.contract([x, w], out_axes=[T])]


@case
def balance_of_experts(given):
    row, expert = geon.Axis("N", 70_000), geon.Axis("E", 2)
    x, layer = (
        given([row, H], 0),
        neon.MixtureOfExperts(expert, geon.Axis("F", 1), T, 0.0, balance=1.0),
    )
    training = neon.Training()
    layer(x, training=training)
    return [geon.cast(cost, given.dtype) for cost in training.costs]


# Norms ------------------------------------------------------------------------------------------


@case
def clipped_by_norms(given):
    slopes = given([L], 300), given([S], np.arange(4096) % 2 * 512)
    return [*neon.ByGlobalNorm(1000.0)(slopes), *neon.ByNorm(1000.0)(slopes)]


# All ---------------------------------------------------------------------------------------------


def results(transformer, dtype):
    """The values of all cases, by name."""
    given, made = Given(dtype), {}
    for name, function in CASES.items():
        found = function(given)
        made[name] = list(found) if isinstance(found, (list, tuple)) else [found]
    every = [op for each in made.values() for op in each]
    values = iter(transformer.computation(every, *given.feeds)(*given.feeds.values()))
    return {
        name: [(op.dtype.name, np.asarray(next(values), np.float64)) for op in each]
        for name, each in made.items()
    }


@pytest.fixture(scope="module")
def exact():
    return results(geon.make_transformer("numpy"), "float64")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_totals_of_halves_are_those_of_float64(transformer, dtype, exact):
    near = 1.5 * float(ml_dtypes.finfo(dtype).eps)
    wrong = []
    for name, parts in results(transformer, dtype).items():
        for number, ((kind, found), (_, wanted)) in enumerate(zip(parts, exact[name], strict=True)):
            if kind != dtype:
                wrong.append(f"{name}[{number}] is {kind}")
            error = np.max(np.abs(found - wanted)) / np.max(np.abs(wanted))
            if not error <= near:
                wrong.append(f"{name}[{number}]: error {error:.2g} of the largest, {near:.2g} near")
    assert not wrong, "\n".join(wrong)
