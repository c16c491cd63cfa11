"""What layers hand on to layers inside, where these are looked for, and what initialisers hear."""

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

N, T, H, W = ax.N, ax.T, ax.H, ax.W
C, E, K = geon.Axis("C", 6), geon.Axis("E", 4), geon.Axis("K", 5)
x = geon.placeholder([N, C], name="x")
lines = geon.placeholder([N, T, C], name="lines")


class Told(neon.Layer):
    """Says whether it trains: by what it adds."""

    def forward(self, x, training=None, cache=None):
        return x + (0.0 if training is None else 1.0) + (0.0 if cache is None else 2.0)

    remembers = True


HOLDERS = {
    "Sequential": lambda: neon.Sequential([Told()]),
    "Parallel": lambda: neon.Parallel([geon.relu, Told()], C),
    "Residual": lambda: neon.Residual(Told()),
    "Residual's shortcut": lambda: neon.Residual(geon.relu, Told()),
    "Highway": lambda: neon.Highway(Told(), lambda x: x * 0 + 30),
    "Highway's gate": lambda: neon.Highway(lambda x: x + 1, Told()),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_containers_hand_on_that_they_train_and_a_cache(transformer, holder):
    layer, cache = HOLDERS[holder](), neon.Cache(geon.Axis("place", 4))
    calls = [layer(x), layer(x, training=neon.Training()), layer(x, cache=cache)]
    points = np.ones((2, 6), "float32")
    plain, trained, cached = transformer.computation(calls, x)(points)
    if holder == "Highway's gate":
        sigmoid = 1 / (1 + np.exp(-np.array([1.0, 2.0, 3.0])))
        np.testing.assert_allclose([y[0, 0] for y in (plain, trained, cached)], 1 + sigmoid, 1e-5)
    else:
        np.testing.assert_allclose((trained - plain).max(), 1, rtol=1e-5)
        np.testing.assert_allclose((cached - plain).max(), 2, rtol=1e-5)


class Nested(neon.Layer):
    """Layers in lists of lists and in dictionaries."""

    def __init__(self, name=None):
        super().__init__(name)
        self.deep = [[neon.Affine(C, 0.5)], (geon.relu, neon.Affine(C, 0.25))]
        self.named = {"one": neon.Affine(C, 0.125), "more": [neon.Affine(C, 2.0)]}

    def forward(self, x, training=None):
        for layer in (self.deep[0][0], self.deep[1][1], self.named["one"], self.named["more"][0]):
            x = layer(x, training=training)
        return x


def test_layers_are_found_in_lists_of_lists_and_dictionaries(make, tmp_path):
    def model():
        t = geon.placeholder([N, C], name="t")
        cost, optimiser = neon.costs.squared_error, neon.SGD(1e-4)
        return neon.Model(Nested("net"), x, t, cost, optimiser, transformer=make())

    made = model()
    names = ["deep.0.0", "deep.1.1", "named.one", "named.more.0"]
    assert [w.name for w in made.layer.parameters()] == [
        f"net.{name}.{place}" for name in names for place in ("w", "b")
    ]
    points = np.random.default_rng(0).normal(size=(8, 6))
    made.fit([(points, points)], 3)
    made.save(tmp_path / "a.safetensors")
    other = model()
    assert abs(other.predict(points) - made.predict(points)).max() > 1e-4
    other.restore(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(other.predict(points), made.predict(points))


def heard(layer, *inputs):
    """The inputs and outputs that each variable's initialiser is told, by their number."""
    found = {}

    class Notes:
        def __init__(self, kind):
            self.kind = kind

        def __call__(self, axes, inputs, outputs):
            found[self.kind] = int(inputs.size), int(outputs.size)
            return 0.1

    layer(Notes)(*inputs)
    return found


images = geon.placeholder([N, H, W, C], name="images")
head, key = geon.Axis("head", 3), geon.Axis("key", 2)
experts, HIDDEN = geon.Axis("expert", 2), geon.Axis("hidden", 3)


@pytest.mark.parametrize(
    ("layer", "given", "told"),
    [
        (lambda of: neon.Linear(K, of("w")), x, {"w": (6, 5)}),
        (lambda of: neon.Affine(K, of("w"), of("b")), x, {"w": (6, 5), "b": (1, 5)}),
        (lambda of: neon.Convolution({H: 3, W: 2}, K, of("w")), images, {"w": (36, 30)}),
        (lambda of: neon.Convolution({H: 3}, [], of("w"), apart=C), images, {"w": (3, 3)}),
        (lambda of: neon.LSTM(E, of("w"), of("u")), lines, {"w": (6, 4), "u": (4, 4)}),
        (lambda of: neon.GRU(E, of("w"), of("u")), lines, {"w": (6, 4), "u": (4, 4)}),
        (lambda of: neon.MultiHeadAttention(head, key, K, of("last")), lines, {"last": (6, 5)}),
        (lambda of: neon.MixtureOfExperts(experts, E, K, of("last")), lines, {"last": (4, 5)}),
    ],
)
def test_initialisers_are_told_what_a_variable_sums_and_makes(layer, given, told):
    assert heard(layer, given) == told


def test_queries_keys_and_values_begin_by_what_they_sum():
    random = geon.Random(0, name="random")
    layer = neon.MultiHeadAttention(
        geon.Axis("head", 40), geon.Axis("key", 50), geon.Axis("out", 300), neon.Xavier(random)
    )
    wide = geon.placeholder([N, T, geon.Axis("wide", 1200)])
    layer(wide)
    transformer = geon.make_transformer("numpy")
    for place, inputs in (("query", 1200), ("key", 1200), ("value", 1200), ("out", 2000)):
        values = transformer.get(layer.variables[place])
        assert values.std() == pytest.approx(inputs**-0.5, rel=0.02), place


def without(kind, **options):
    """Features of two axes, of which the layer is told to take one."""
    return lambda over: kind(over=over, **options)


both = geon.placeholder([N, T, C, E], name="both")
OVER = {
    "LayerNorm": without(neon.LayerNorm),
    "RMSNorm": without(neon.RMSNorm),
    "GroupNorm": lambda over: neon.GroupNorm(2, over=over),
    "LSTM": lambda over: neon.LSTM(K, 0.1, over=over),
    "GRU": lambda over: neon.GRU(K, 0.1, over=over),
    "Linear": lambda over: neon.Linear(K, 0.1, over=over),
    "attention": lambda over: neon.MultiHeadAttention(head, key, K, 0.1, over=over),
    "experts": lambda over: neon.MixtureOfExperts(experts, HIDDEN, K, 0.1, over=over),
    "Convolution": lambda over: neon.Convolution({T: 2}, K, 0.1, over=over),
}  # fmt: skip


@pytest.mark.parametrize("kind", OVER)
def test_over_says_which_axes_are_features(transformer, kind):
    """With one axis of several: as a layer of rows of this axis alone, for each of the other."""
    values = np.random.default_rng(0).normal(size=(2, 3, 6, 4)).astype("float32")
    one = transformer.computation(OVER[kind](C)(both), both)(values)
    alone = geon.placeholder([N, T, C], name="alone")
    each = transformer.computation(OVER[kind](C)(alone), alone)
    order = OVER[kind](C)(both).axes
    found = np.moveaxis(one, order.index(E), 0)
    if kind == "GroupNorm":  # statistics are over all but N and T, so over E too
        spread = values.reshape(2, 3, 2, 3, 4)
        middle = spread.mean((3, 4), keepdims=True)
        normed = (spread - middle) / np.sqrt(spread.var((3, 4), keepdims=True) + 1e-5)
        np.testing.assert_allclose(one, normed.reshape(values.shape), rtol=1e-4, atol=1e-5)
        return
    for number in range(4):
        np.testing.assert_allclose(
            found[number], each(values[..., number]), rtol=1e-4, atol=1e-5, err_msg=kind
        )


def test_an_affine_layer_without_a_bias_is_a_linear_one(transformer):
    affine, linear = neon.Affine(K, 0.3, bias=None), neon.Linear(K, 0.3)
    values = np.ones((2, 6))
    one, other = transformer.computation([affine(x), linear(x)], x)(values)
    np.testing.assert_array_equal(one, other)
    assert len(affine.parameters()) == 1
