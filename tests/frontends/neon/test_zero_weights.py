"""Terms of weight 0 add 0, also where they are infinite, and a cost of nothing is +0.0."""

import numpy as np

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

INF = np.inf
N, Y, L = ax.N, geon.Axis("Y", 3), geon.Axis("L", 1)
scores = geon.placeholder([N, Y], name="scores")
shares = geon.placeholder([N, Y], name="shares")
classes = geon.placeholder([N], "int64", name="classes")
logit = geon.placeholder([N], name="logit")
truth = geon.placeholder([N], name="truth")
spoken = geon.placeholder([N, ax.T, Y], name="spoken")
labels = geon.placeholder([N, L], "int64", name="labels")

# Scores, the right class, the entropy and its slope.
ROWS = [
    ([0, -INF, 0], 0, np.log(2), [-0.5, 0, 0.5]),
    ([5, -INF, -INF], 0, 0, [0, 0, 0]),
    ([0, -INF, 0], 1, INF, [0.5, -1, 0.5]),
    ([200, 0, -200], 0, 0, [0, 0, 0]),
]
# A score, the truth, the binary entropy and its slope.
BINARY = [
    (INF, 1, 0, 0),
    (-INF, 0, 0, 0),
    (INF, 0, INF, 1),
    (-INF, 1, INF, -1),
    (20, 1, np.log1p(np.exp(-20.0)), -1 / (1 + np.exp(20.0))),
    (-20, 0, np.log1p(np.exp(-20.0)), 1 / (1 + np.exp(20.0))),
    (1000, 1, 0, 0),
]
OF_ROWS = {
    "of classes": lambda: neon.costs.cross_entropy(scores, classes),
    "of shares": lambda: neon.costs.cross_entropy(scores, shares),
    "of a softmax": lambda: geon.cross_entropy_multi(
        geon.softmax(scores, Y), geon.onehot(classes, Y), out_axes=[N]
    ),
    "of a softmax, in order": lambda: geon.cross_entropy_multi(
        geon.softmax(scores, Y), shares, out_axes=[N]
    ),
    "focal": lambda: neon.costs.focal(scores, classes, gamma=0.0),
}
OF_TRUTHS = {
    "of scores": lambda: neon.costs.binary_cross_entropy(logit, truth),
    "of a sigmoid": lambda: geon.cross_entropy_binary(geon.sigmoid(logit), truth, out_axes=[N]),
}


def test_a_class_of_weight_0_adds_nothing(transformer):
    rows = [each() for each in OF_ROWS.values()]
    truths = [each() for each in OF_TRUTHS.values()]
    slopes = [geon.deriv(geon.sum(y), scores) for y in rows]
    slopes += [geon.deriv(geon.sum(y), logit) for y in truths]
    f = transformer.computation([rows, truths, slopes], scores, shares, classes, logit, truth)
    given, right, costs, gradients = (np.array(part, float) for part in zip(*ROWS, strict=True))
    x, t, binary, slope = (np.array(part, float) for part in zip(*BINARY, strict=True))
    size = len(x)
    given, gradients = (np.resize(part, (size, 3)) for part in (given, gradients))
    right, costs = (np.resize(part, size) for part in (right, costs))
    right = right.astype(int)
    found = f(given, np.eye(3)[right], right, x, t)
    wrong = []
    wanted = [costs] * len(rows) + [binary] * len(truths)
    wanted += [gradients] * len(rows) + [slope] * len(truths)
    names = [*OF_ROWS, *OF_TRUTHS]
    for name, got, exact in zip(
        [*names, *[f"slope {name}" for name in names]],
        [*found[0], *found[1], *found[2]],
        wanted,
        strict=True,
    ):
        if not np.allclose(got, exact, rtol=2e-6, atol=0 if "slope" not in name else 1e-12):
            wrong.append((name, got, exact))
        if "slope" not in name and np.signbit(got).any():
            wrong.append((name, "has -0.0", got))
    assert not wrong


def test_probabilities_of_0_that_do_not_count(transformer):
    """Of probabilities that are given, a term whose weight is 0 has value and slope 0."""
    p, t = geon.placeholder([Y], name="p"), geon.placeholder([Y], name="t")
    y, w = geon.placeholder([Y], name="y"), geon.placeholder([Y], name="w")
    results = [
        geon.cross_entropy_multi(p, t, out_axes=[Y]),
        geon.cross_entropy_binary(p, t, out_axes=[Y]),
        geon.interpolation(y, y[{Y: slice(None, None, -1)}], w),
        geon.resize(y, {Y: 3}),
        geon.resize(y, {Y: 5}, align="corners"),
        neon.costs.huber(y, t),
    ]
    slopes = [geon.deriv(geon.sum(results[k]), p) for k in (0, 1)]
    slopes += [geon.deriv(geon.sum(results[k]), y) for k in (2, 3, 4)]
    slopes.append(geon.deriv(results[5], y))
    f = transformer.computation([results, slopes], p, t, y, w)
    values, found = f([0, 1, 0.5], [0, 1, 0], [1, 2, INF], [0, 0, 0])
    half = np.log(2)
    wanted = [[0, 0, 0], [0, 0, half], [1, 2, INF], [1, 2, INF], [1, 1.5, 2, INF, INF], INF]
    wanted_slopes = [[0, -1, 0], [1, -1, 2], [1, 1, 1], [1, 1, 1], [1.5, 2, 1.5], [1 / 3] * 3]
    for got, exact in zip([*values, *found], [*wanted, *wanted_slopes], strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-6)
    assert not np.signbit(values[0]).any() and not np.signbit(values[1]).any()


def test_costs_of_nothing_are_plus_0(transformer):
    """Each cost where the result is right."""
    costs = {
        "focal": neon.costs.focal(scores, classes),
        "smoothed by nothing": neon.costs.cross_entropy(scores, classes, smoothing=0.0),
        "hinge": neon.costs.hinge(scores, classes),
        "binary_hinge": neon.costs.binary_hinge(logit, truth),
        "binary_hinge without margin": neon.costs.binary_hinge(logit, truth, margin=0),
        "squared_error": neon.costs.squared_error(truth, truth),
        "absolute_error": neon.costs.absolute_error(truth, truth),
        "huber": neon.costs.huber(truth, truth),
        "ctc": neon.costs.ctc(spoken, labels),
        "multi": geon.cross_entropy_multi(geon.softmax(scores, Y), shares),
        "binary": geon.cross_entropy_binary(geon.sigmoid(logit), truth, usebits=True),
    }
    slopes = [
        geon.deriv(geon.sum(y), x)
        for name, x in (("hinge", scores), ("focal", scores), ("ctc", spoken))
        for y in [costs[name]]
    ]
    given = [scores, shares, classes, logit, truth, spoken, labels]
    f = transformer.computation([list(costs.values()), slopes], *given)
    far = np.array([[300, 0, -INF]] * 2)
    values, found = f(
        far, np.eye(3)[[0, 0]], [0, 0], [INF, 1000], [1, 1],
        [[[-INF, 300, 0]] * 2] * 2, [[1], [1]],
    )  # fmt: skip
    wrong = [
        (name, value)
        for name, value in zip(costs, values, strict=True)
        if np.any(value) or np.signbit(value).any()
    ]
    assert not wrong
    assert not any(np.any(slope) for slope in found)


def test_a_row_of_minus_infinity_has_a_sum_whose_slope_is_0(transformer):
    y = geon.logsumexp(scores, Y)
    slope = geon.deriv(geon.sum(geon.where(y > -INF, y, 0)), scores)
    bare = geon.deriv(geon.sum(y), scores)
    second = geon.deriv(geon.sum(geon.square(bare)), scores)
    f = transformer.computation([y, slope, bare, second], scores)
    found = f([[-INF] * 3, [0, -INF, 0], [-INF, -INF, 3]])
    np.testing.assert_allclose(found[0], [-INF, np.log(2), 3], rtol=1e-6)
    for each in found[1:3]:
        np.testing.assert_array_equal(each, [[0, 0, 0], [0.5, 0, 0.5], [0, 0, 1]])
    np.testing.assert_array_equal(found[3], np.zeros((3, 3)))


def test_padding_of_max_pool_takes_no_part_in_ties(transformer):
    """Where a window shows -inf alone, its first element inside has the derivative."""
    H, W = geon.Axis("H"), geon.Axis("W", 3)
    x = geon.placeholder([H, W])
    windows = [
        {H: geon.Window(3, pad=1, stride=2)},
        {H: geon.Window(2, pad=1, stride=2), W: geon.Window(2, pad=1, dilation=2)},
        {H: geon.Window(2, stride=2, ceil=True)},
    ]
    ys = [geon.max_pool(x, each) for each in windows]
    slopes = [geon.deriv(geon.sum(y), x) for y in ys]
    f = transformer.computation([ys, slopes], x)
    values, found = f(np.full((5, 3), -INF))
    for y, slope in zip(values, found, strict=True):
        assert slope.sum() == y.size and (y == -INF).all()
    np.testing.assert_array_equal(found[0], np.outer([1, 1, 0, 1, 0], [1, 1, 1]))
    np.testing.assert_array_equal(found[2], np.outer([1, 0, 1, 0, 1], [1, 1, 1]))
    data = np.arange(15.0).reshape(5, 3)
    data[2] = np.nan
    np.testing.assert_array_equal(f(data)[1][0], np.outer([0, 1, 1, 0, 1], [1, 1, 1]))
