"""Options of layers, costs and metrics, each where it makes a difference; and what they refuse."""

import itertools

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from tests.places import placed

missing = geon.NativeTransformer.unavailable()
N, T, H = ax.N, ax.T, ax.H
C, E, K, Y = geon.Axis("C", 4), geon.Axis("E", 3), geon.Axis("K", 2), geon.Axis("Y", 3)
x = geon.placeholder([N, C], name="x")
lines = geon.placeholder([N, T, C], name="lines")
rows = geon.placeholder([N, H], name="rows")
SAID = geon.placeholder([N, geon.Axis("label")], "int64", name="said")
RANDOM = np.random.default_rng(0)


def test_pools_that_count_padding_and_norms_of_any_power(transformer):
    window = {H: geon.Window(3, stride=2, pad=1)}
    values = RANDOM.normal(size=(2, 7)).astype("float32")
    padded = np.pad(values, ((0, 0), (1, 1)))
    cut = np.stack([padded[:, k : k + 3] for k in range(0, 7, 2)], 1)
    there = np.stack([np.pad(np.ones(7), 1)[k : k + 3].sum() for k in range(0, 7, 2)])
    layers = [
        neon.Pooling(window, "average"),
        neon.Pooling(window, "average", count_pad=True),
        neon.Pooling(window, "norm", p=3),
    ]
    found = transformer.computation([layer(rows) for layer in layers], rows)(values)
    np.testing.assert_allclose(found[0], cut.sum(2) / there, rtol=1e-5)
    np.testing.assert_allclose(found[1], cut.mean(2), rtol=1e-5)
    np.testing.assert_allclose(found[2], (abs(cut) ** 3).sum(2) ** (1 / 3), rtol=1e-4)


def test_what_norms_add_to_a_variance(transformer):
    values = RANDOM.normal(size=(5, 4)).astype("float32")
    epsilon = 0.5

    def normed(axis):
        spread = values.var(axis, keepdims=True) + epsilon
        return (values - values.mean(axis, keepdims=True)) / np.sqrt(spread)

    groups = values.reshape(5, 2, 2)
    spread = groups.var(2, keepdims=True) + epsilon
    halves = ((groups - groups.mean(2, keepdims=True)) / np.sqrt(spread)).reshape(5, 4)
    wanted = {
        neon.LayerNorm: normed(1),
        neon.BatchNorm: normed(0),
        neon.RMSNorm: values / np.sqrt((values**2).mean(1, keepdims=True) + epsilon),
    }
    layers = {kind: kind(epsilon=epsilon) for kind in wanted}
    results = [layer(x, training=neon.Training()) for layer in layers.values()]
    results.append(neon.GroupNorm(2, epsilon=epsilon)(x))
    found = transformer.computation(results, x)(values)
    for one, right in zip(found, [*wanted.values(), halves], strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)


def test_margins_of_hinges(transformer):
    scores = RANDOM.normal(size=(6, 4)).astype("float32")
    labels = np.arange(6) % 4
    t = geon.placeholder([N], "int64", name="t")
    signs, s = geon.placeholder([N, C], name="signs"), np.sign(RANDOM.normal(size=(6, 4)))
    costs = [neon.costs.hinge(x, t, margin=0.25), neon.costs.binary_hinge(x, signs, margin=0.25)]
    several, two = transformer.computation(costs, x, t, signs)(scores, labels, s)
    right = scores[np.arange(6), labels][:, None]
    each = np.maximum(scores - right + 0.25, 0) * (np.arange(4) != labels[:, None])
    np.testing.assert_allclose(several, each.sum(1), rtol=1e-5)
    both = np.maximum(0.25 - scores * s, 0)
    np.testing.assert_allclose(two, both.mean(1), rtol=1e-5)


def test_an_activation_of_experts(transformer):
    experts = geon.Axis("expert", 1)
    layer = neon.MixtureOfExperts(experts, E, K, 0.5, activation=geon.square, k=1)
    values = RANDOM.normal(size=(3, 4)).astype("float32")
    found = transformer.computation(layer(x), x)(values)
    inner = (0.5 * values.sum(1)) ** 2
    np.testing.assert_allclose(found, np.repeat(0.5 * 3 * inner[:, None], 2, 1), rtol=1e-4)


@pytest.mark.parametrize("capacity", [1e-9, 4e-4, 1e-2, 0.5])
def test_an_expert_takes_a_row_however_small_its_capacity(transformer, capacity):
    layer = neon.MixtureOfExperts(geon.Axis("expert", 2), E, K, 0.5, k=2, capacity=capacity)
    found = transformer.computation(layer(x), x)(np.ones((6, 4), "float32"))
    assert (found[0] != 0).all()


@pytest.mark.parametrize("over", list(itertools.permutations("TYN")))
def test_ctc_along_any_axes(transformer, over):
    """The time and the classes under other names, in every order."""
    names = {"T": "D", "Y": "H", "N": "N"}
    labels = geon.placeholder([N, geon.Axis("label")], "int64", name="labels")
    usual = geon.placeholder([N, T, Y], name="usual")
    axes = {"T": ax.D, "Y": geon.Axis("H", 3), "N": N}
    other = geon.placeholder([axes[name] for name in over], name="other")
    values = RANDOM.normal(size=(2, 5, 3)).astype("float32")
    said = np.array([[1, 2], [2, 2]])
    right = transformer.computation(neon.costs.ctc(usual, labels), usual, labels)(values, said)
    cost = neon.costs.ctc(other, labels, over=axes["Y"], along=names["T"])
    turned = values.transpose(["NTY".index(name) for name in over])
    found = transformer.computation(cost, other, labels)(turned, said)
    np.testing.assert_allclose(found, right, rtol=1e-5)


KINDS = {"Recurrent": neon.Recurrent, "LSTM": neon.LSTM, "GRU": neon.GRU}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_padding_may_be_nan(transformer, kind):
    """Values and slopes are those of the rows without padding, from both ends."""
    mask = geon.placeholder([N, T], "bool", name="mask")
    layer = neon.BiRNN(KINDS[kind](E, 0.3), KINDS[kind](E, 0.2, reverse=True))
    y = layer(lines, mask=mask)
    cost = geon.sum(geon.where(mask, geon.sum(geon.square(y), E), 0.0))
    step = transformer.computation([cost, *geon.deriv(cost, layer.parameters())], lines, mask)
    values = RANDOM.normal(size=(3, 5, 4)).astype("float32")
    lengths = np.array([5, 2, 3])
    counts = np.arange(5) < lengths[:, None]
    values[~counts] = np.nan
    found = step(values, counts)
    total = None
    for row, length in zip(values, lengths, strict=True):
        each = step(row[None, :length], np.ones((1, length), bool))
        total = each if total is None else [a + b for a, b in zip(total, each, strict=True)]
    for one, right in zip(found, total, strict=True):
        np.testing.assert_allclose(one, right, rtol=2e-4, atol=1e-5)


def test_a_metric_of_a_class_says_which_there_are(transformer):
    t = geon.placeholder([N], "int64", name="t")
    for metric in (neon.metrics.F1(positive=7), neon.metrics.RocArea(positive=-1)):
        with pytest.raises(geon.ArgumentError, match=r"positive=-?\d is no class of C:4"):
            metric.each(x, t)
    scores, labels = RANDOM.normal(size=(9, 4)), np.arange(9) % 4
    said, right = transformer.computation(neon.metrics.F1(positive=3).each(x, t), x, t)(
        scores, labels
    )
    assert neon.metrics.F1(positive=3).value(said, right) == neon.metrics.F1(positive=3).value(
        scores.argmax(1), labels
    )


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: neon.LayerNorm(epsilon=-1.0), "LayerNorm: epsilon=-1.0; give a finite number of"),
        (lambda: neon.BatchNorm(epsilon=float("nan")), "BatchNorm: epsilon=nan"),
        (lambda: neon.BatchNorm(momentum="a"), "BatchNorm: momentum='a'"),
        (lambda: neon.GroupNorm(0), "GroupNorm: groups=0; give an integer of at least 1"),
        (lambda: neon.Dropout("a", geon.Random(0)), "Dropout: rate='a'"),
        (lambda: neon.Glorot(geon.Random(0), float("nan")), "Glorot: gain=nan; give a finite"),
        (lambda: neon.Kaiming(geon.Random(0), "a"), "Kaiming: slope='a'"),
        (lambda: neon.MultiHeadAttention(E, C, K, 0.1, rotary=0), "rotary=0; give .* above 0"),
        (lambda: neon.MultiHeadAttention(E, C, K, 0.1, dropout=0.1), "dropout=0.1 is no layer"),
        (lambda: neon.MultiHeadAttention(E, C, K, 0.1, groups="a"), "cannot share a heads"),
        (lambda: neon.MixtureOfExperts(E, C, K, 0.1, capacity=float("inf")), "capacity=inf"),
        (lambda: neon.MixtureOfExperts(E, C, K, 0.1, k=1.5), "k=1.5 of E:3"),
        (lambda: neon.LookupTable(E, C, 0.1, pad=-1), "pad=-1 is no number of a row of E:3"),
        (lambda: neon.BiRNN(neon.Affine(E, 0.1), neon.Affine(E, 0.1)), "does not go along time"),
        (lambda: neon.Affine(E, 0.1, activation=3), "Affine: activation=3 is no function"),
        (lambda: neon.Convolution({H: 2}, E, 0.1, activation=3), "Convolution: activation=3"),
        (lambda: neon.Recurrent(E, 0.1, activation=3),
         "Recurrent: activation=3"),
        (lambda: neon.Affine(E, None)(x), "nothing says what w is to begin with; give a number"),
        (lambda: neon.LSTM(E, 0.1)(lines, cache=5), "cache=5 keeps nothing .*give cache=neon.Cac"),
        (lambda: neon.metrics.TopK(0), "TopK: k=0; give an integer of at least 1"),
        (lambda: neon.costs.cross_entropy(x, 0, smoothing="a"), "smoothing='a'"),
        (lambda: neon.costs.ctc(geon.placeholder([N, T, Y]), SAID, blank="a"),
         "blank=a is no class of Y:3"),
    ],
)  # fmt: skip
def test_what_would_be_no_number_is_refused(call, what):
    with pytest.raises(geon.GeonError, match=placed(what)):
        call()


def test_another_sequence_may_be_given_by_name():
    seen = geon.Axis("S", 2)
    layer = neon.MultiHeadAttention(geon.Axis("head", 2), geon.Axis("key", 2), K, 0.1, seen=seen)
    memory = geon.constant(np.ones((2, 4), "float32"), [seen, C])
    assert layer(lines, memory=memory) is layer(lines, memory)
    with pytest.raises(geon.GeonError, match="axes"):
        layer(lines, memory=np.ones((2, 4)))


OPTIMISERS = {
    "SGD": lambda: neon.SGD(0.1, momentum=0.9),
    "Adam": lambda: neon.Adam(),
    "AdamW": lambda: neon.AdamW(decay=0.01),
    "Lion": lambda: neon.Lion(),
    "clipped Adam": lambda: neon.Adam(clip=neon.ByGlobalNorm(1.0)),
}


@pytest.mark.skipif(missing is not None, reason=str(missing))
@pytest.mark.parametrize("kind", OPTIMISERS)
def test_updates_are_few_kernels_in_place(kind):
    """Beside those of the slopes at most one for each weight, and no room for any of them."""
    wide = [geon.Axis(name, 200) for name in "HIJK"]
    net = neon.Sequential([neon.Affine(axis, 0.01, activation=geon.tanh) for axis in wide])
    cost = geon.mean(geon.square(net(x)))
    weights = net.parameters()
    transformer = geon.make_transformer("native")
    slopes = transformer.computation([cost, *geon.deriv(cost, weights)], x)
    step = transformer.computation([cost, OPTIMISERS[kind]()(cost)], x)
    points = np.ones((32, 4), "float32")
    slopes(points), step(points)
    kernels = [len(f.profile(points, repeats=1)) for f in (slopes, step)]
    more = kernels[1] - kernels[0]
    assert more <= (1 if "clipped" not in kind else len(weights)), kernels
    of_slopes = 4 * sum(int(w.axes.size) for w in weights)
    assert step.peak_bytes({"N": 32}) <= slopes.peak_bytes({"N": 32}) - of_slopes


@pytest.mark.parametrize("wrong", [-1, 4, 7])
@pytest.mark.parametrize(
    "metric",
    [
        neon.metrics.Accuracy(),
        neon.metrics.TopK(2),
        neon.metrics.F1(),
        neon.metrics.Perplexity(),
        neon.metrics.RocArea(positive=1),
    ],
    ids=lambda metric: metric.name,
)
def test_metrics_of_a_class_that_there_is_not(transformer, metric, wrong):
    t = geon.placeholder([N], "int64", name="t")
    each = transformer.computation(metric.each(x, t), x, t)
    scores = RANDOM.normal(size=(3, 4))
    metric.value(*each(scores, [0, 3, 1]))
    with pytest.raises(
        geon.IndexRangeError, match=rf"t\(N\) .*{wrong}.* where the axis has length 4"
    ):
        each(scores, [0, wrong, 1])
