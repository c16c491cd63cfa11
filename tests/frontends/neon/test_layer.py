"""What every layer does: variables at the first call, sharing, names, training as an argument."""

import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.op_graph.axes.length_defaults import default_lengths
from tests.places import here

N, T, H, W = ax.N, ax.T, ax.H, ax.W
C, K, E = geon.Axis("C", 3), geon.Axis("K", 4), geon.Axis("E", 2)


def rows(*axes):
    return geon.placeholder([N, *axes], name="x")


def stream(seed=0):
    return geon.Random(seed)


def test_variables_are_made_at_the_first_call_from_the_axes_of_what_it_is_given():
    layer = neon.Linear(K, 0.0)
    assert layer.all_variables() == []
    assert layer(geon.placeholder([N, T, C, E])).axes.names == ("N", "T", "K")
    (w,) = layer.all_variables()
    assert w.axes is geon.Axes(C, E, K)


def test_a_layer_called_twice_shares_its_weights(transformer):
    layer = neon.Affine(C, neon.Glorot(stream()), neon.Gaussian(stream(1)))
    x = rows(C)
    once, twice = layer(x), layer(layer(x))
    assert len(layer.all_variables()) == 2
    w, b = (transformer.get(layer.variables[place]) for place in "wb")
    data = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    found = transformer.computation([once, twice], x)(data)
    np.testing.assert_allclose(found[0], data @ w + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], (data @ w + b) @ w + b, rtol=1e-5, atol=1e-6)


def test_a_layer_called_on_other_axes_is_refused():
    layer = neon.Linear(K, 0.0, name="first")
    layer(rows(C))
    first = here(-1)
    with pytest.raises(geon.AxisError) as caught:
        layer(rows(geon.Axis("C", 5)))
    text = str(caught.value)
    for part in ("first", "C:5", "C:3", first, here(-2), "make another layer"):
        assert part in text


def test_a_name_of_both_sides_gets_a_prime_on_the_side_that_is_summed():
    layer = neon.Linear(K, 0.0)
    assert layer(rows(geon.Axis("K", 7))).axes is geon.Axes(N, K)
    assert str(layer.variables["w"].axes) == "(K':7, K:4)"
    square = neon.Linear([K.prime, K], 0.0)
    y = square(geon.placeholder([N, K, K.prime.prime]))
    assert y.axes.names == ("N", "K'", "K")
    assert square.variables["w"].axes.names == ("K'''", "K''", "K'", "K")


def test_an_axis_that_is_made_and_kept_is_refused():
    with pytest.raises(geon.AxisError, match="has and keeps; name another"):
        neon.Linear(N, 0.0)(rows(C))
    with pytest.raises(geon.AxisError, match="no axis that is one of features"):
        neon.Linear(K, 0.0)(rows(T))
    with pytest.raises(geon.AxisError, match="Z"):
        neon.Linear(K, 0.0, over="Z")(rows(C))


def test_over_says_what_is_summed():
    y = neon.Linear(K, 0.0, over=[E])(rows(C, E))
    assert y.axes is geon.Axes(N, C, K)
    assert neon.Linear(K, 0.0, over="N")(rows(C)).axes is geon.Axes(C, K)


def test_names_are_the_places_below_the_name_of_the_outermost_layer():
    inner = neon.Residual(neon.Affine(K, 0.0), neon.Linear(K, 0.0, name="own"))
    net = neon.Sequential([inner, geon.tanh, neon.Bias()], name="net")
    net(rows(C))
    names = [leaf.name for leaf in net.all_variables()]
    assert names == ["net.0.layer.w", "net.0.layer.b", "own.w", "net.2.b"]
    nameless = neon.Affine(K, 0.0)
    nameless(rows(C))
    assert [leaf.name for leaf in nameless.all_variables()] == [None, None]
    assert [leaf.tags for leaf in nameless.all_variables()] == [{"w"}, {"b"}]


def test_layers_in_lists_of_a_layer_of_ones_own():
    class Net(neon.Layer):
        def __init__(self, name=None):
            super().__init__(name)
            self.steps = [neon.Linear(C, 0.0), neon.Linear(C, 0.0)]
            self.last = neon.Bias()

        def forward(self, x, training=None):
            for step in self.steps:
                x = step(x, training=training)
            return self.last(x, training=training)

    net = Net("own")
    net(rows(C))
    assert [leaf.name for leaf in net.all_variables()] == [
        "own.steps.0.w",
        "own.steps.1.w",
        "own.last.b",
    ]


def test_training_is_none_or_a_training():
    for wrong in (True, False, 1):
        with pytest.raises(geon.ArgumentError, match="neon.Training"):
            neon.Sequential([neon.BatchNorm()])(rows(C), training=wrong)


def test_running_statistics_are_persistent_and_no_optimiser_sees_them(transformer):
    layer, training = neon.BatchNorm(name="norm"), neon.Training()
    y = layer(rows(C), training=training)
    assert [leaf.name for leaf in layer.all_variables()] == [
        "norm.mean", "norm.variance", "norm.scale", "norm.shift",
    ]  # fmt: skip
    assert [leaf.name for leaf in layer.parameters()] == ["norm.scale", "norm.shift"]
    assert [leaf.name for leaf in y.variables()] == ["norm.scale", "norm.shift"]
    transformer.computation([y, *training.updates], *y.placeholders())
    assert {"norm.mean", "norm.variance"} <= transformer.values().keys()


def test_a_batch_norm_called_twice_in_a_step_moves_its_statistics_twice(transformer):
    layer, training = neon.BatchNorm(momentum=0.5), neon.Training()
    x, z = rows(C), geon.placeholder([N, C], name="z")
    y = geon.sum(layer(x, training=training) + layer(z, training=training))
    f = transformer.computation([y, *training.updates], x, z)
    f(np.full((2, 3), 8.0), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(transformer.get(layer.variables["mean"]), [3, 3, 3])
    assert len(training.updates) == 2


def test_a_batch_of_one_leaves_the_variance_as_it_is(transformer):
    """One element has a mean, and no variance of a sample."""
    layer, training = neon.BatchNorm(momentum=0.0), neon.Training()
    x = rows(C)
    f = transformer.computation([layer(x, training=training), *training.updates], x)
    np.testing.assert_array_equal(f([[1, 2, 3]])[0], [[0, 0, 0]])
    np.testing.assert_array_equal(transformer.get(layer.variables["mean"]), [1, 2, 3])
    np.testing.assert_array_equal(transformer.get(layer.variables["variance"]), [1, 1, 1])
    f([[1, 2, 3], [3, 2, 7]])
    np.testing.assert_array_equal(transformer.get(layer.variables["variance"]), [2, 0, 8])
    f([[1, 2, 3]])
    np.testing.assert_array_equal(transformer.get(layer.variables["variance"]), [2, 0, 8])


@pytest.mark.parametrize("wrong", [-1, -4, 5])
def test_rows_of_a_table_count_from_the_first(transformer, wrong):
    """A number below 0 is a mistake, as one beyond the last row is, and trains none."""
    n, words, e = geon.Axis("N"), geon.Axis("W", 5), geon.Axis("E", 2)
    x = geon.placeholder([n], "int64", name="x")
    table = neon.LookupTable(words, e, np.arange(10.0).reshape(5, 2), pad=0)
    y = table(x)
    f = transformer.computation([y, geon.deriv(geon.sum(y), table.parameters()[0])], x)
    np.testing.assert_array_equal(f([0, 4])[0], [[0, 0], [8, 9]])
    with pytest.raises(geon.IndexRangeError, match="positions must lie in 0 to 4"):
        f([1, wrong])


def test_norms_that_do_not_fit_are_refused():
    with pytest.raises(geon.AxisError, match="no axis beside the channels"):
        neon.BatchNorm(over=[N, C])(rows(C), training=neon.Training())
    with pytest.raises(geon.ArgumentError, match="momentum=2"):
        neon.BatchNorm(momentum=2)
    with pytest.raises(geon.AxisError, match="not divided by 2 groups"):
        neon.GroupNorm(2)(rows(C))
    with pytest.raises(geon.AxisError, match="say which with over="):
        neon.GroupNorm(1)(rows(C, K))


def test_half_formats_are_normed_in_float32(transformer):
    x = geon.placeholder([N, C], "float16", name="x")
    training = neon.Training()
    layer = neon.BatchNorm()
    made = [layer(x, training=training), neon.LayerNorm()(x), neon.RMSNorm()(x)]
    assert {y.dtype.name for y in made} == {"float16"}
    assert layer.variables["mean"].dtype.name == "float32"
    assert layer.variables["scale"].dtype.name == "float16"
    found = transformer.computation([*made, *training.updates], x)(
        1000 * np.arange(6).reshape(2, 3)
    )
    np.testing.assert_allclose(found[1], [[-1.225, 0, 1.225]] * 2, atol=1e-3)
    np.testing.assert_allclose(found[0], [[-1, -1, -1], [1, 1, 1]], atol=1e-3)


def test_integers_meet_float32_weights(transformer):
    x = geon.placeholder([N, C], "int64", name="x")
    net = neon.Sequential([neon.Preprocess(lambda x: x / 4), neon.LayerNorm(), neon.Linear(K, 1.0)])
    y = net(x)
    assert y.dtype.name == "float32"
    assert neon.LayerNorm()(x).dtype.name == "float32"
    np.testing.assert_allclose(
        transformer.computation(y, x)([[1, 2, 4]]), np.zeros((1, 4)), atol=1e-6
    )


def test_a_lookup_takes_integers(transformer):
    table = neon.LookupTable(geon.Axis("V", 4), E, np.arange(8.0).reshape(4, 2))
    with pytest.raises(geon.DTypeError, match="geon.cast it"):
        table(rows())
    x = geon.placeholder([N], "int64", name="x")
    f = transformer.computation(table(x), x)
    np.testing.assert_array_equal(f([3, 0]), [[6, 7], [0, 1]])
    with pytest.raises(geon.IndexRangeError):
        f([4])


# Dropout ------------------------------------------------------------------------------------------


def test_dropout_keeps_its_share_and_is_scaled_while_training(transformer):
    layer, x = neon.Dropout(0.25, stream()), rows(C)
    f = transformer.computation(layer(x, training=neon.Training()), x)
    found = f(np.ones((4000, 3)))
    assert set(np.unique(found)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((found == 0).mean() - 0.25) < 0.02
    assert not np.array_equal(found, f(np.ones((4000, 3))))
    assert len({row.tobytes() for row in found != 0}) == 8  # each example has elements of its own


def test_dropout_otherwise_leaves_the_tensor_as_it_is():
    x = rows(C)
    assert neon.Dropout(0.25, stream())(x) is x
    assert neon.Dropout(0, stream())(x, training=neon.Training()) is x


def test_dropout_of_what_is_infinite_is_0_or_infinite(transformer):
    x = rows(C)
    y = neon.Dropout(0.5, stream())(x, training=neon.Training())
    found = transformer.computation(y, x)(np.full((50, 3), np.inf))
    assert set(np.unique(found)) == {0, np.inf}


def test_dropout_together(transformer):
    x = rows(C)
    y = neon.Dropout(0.5, stream(), axes=N)(x, training=neon.Training())
    found = transformer.computation(y, x)(np.ones((100, 3)))
    assert len(np.unique(found, axis=0)) == 2


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(geon.ArgumentError, match="less than 1"):
        neon.Dropout(rate, stream())


# Layers of layers ---------------------------------------------------------------------------------


def test_parallel_joins_results_along_an_axis(transformer):
    x = rows(C)
    net = neon.Parallel(
        [neon.Linear(geon.Axis("K", 2), 1.0), neon.Linear(geon.Axis("K", 1), 2.0)], "K"
    )
    found = transformer.computation(net(x), x)([[1, 2, 3]])
    np.testing.assert_array_equal(found, [[6, 6, 12]])


def test_residual_adds_a_layer_to_what_it_is_given(transformer):
    x = rows(C)
    f = transformer.computation(
        [neon.Residual(neon.Linear(C, 1.0))(x), neon.Residual(geon.tanh, neon.Bias(1.0))(x)], x
    )
    same, other = f([[1, 2, 3]])
    np.testing.assert_array_equal(same, [[7, 8, 9]])
    np.testing.assert_allclose(other, [np.tanh([1, 2, 3]) + [2, 3, 4]], rtol=1e-6)
    with pytest.raises(geon.AxisError, match="give shortcut="):
        neon.Residual(neon.Linear(K, 1.0))(x)


def test_highway_goes_from_one_to_the_other(transformer):
    x = rows(C)
    gate = geon.Variable([C], initial_value=[-100, 0, 100], name="gate")
    way = neon.Highway(lambda x: 10 * x, lambda x: gate + 0 * x)
    np.testing.assert_allclose(transformer.computation(way(x), x)([[1, 2, 3]]), [[1, 11, 30]])
    with pytest.raises(geon.AxisError, match="another gate"):
        neon.Highway(neon.Linear(C, 0.0), neon.Linear(K, 0.0))(x)
    with pytest.raises(geon.AxisError, match="another layer"):
        neon.Highway(neon.Linear(K, 0.0), neon.Linear(C, 0.0))(x)


def test_what_is_no_layer_is_refused():
    with pytest.raises(geon.ArgumentError, match="neither a layer nor a function"):
        neon.Sequential([3])
    with pytest.raises(geon.ArgumentError, match="takes a function"):
        neon.Activation("relu")
    with pytest.raises(geon.ArgumentError, match="'max', 'average' or 'norm'"):
        neon.Pooling({H: 2}, "median")


# Lengths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2, 7, 33])
def test_one_network_serves_all_lengths_of_open_axes(transformer, length):
    window = geon.Window(3, pad=1)
    net = neon.Sequential(
        [
            neon.Convolution({H: window, W: window}, K, neon.Kaiming(stream()), bias=0.5),
            neon.BatchNorm(),
            geon.relu,
            neon.Pooling({W: geon.Window(2, stride=2, pad="same")}),
            neon.GroupNorm(2),
            lambda x: geon.mean(x, [H, W]),
            neon.Affine(E, neon.Glorot(stream(1))),
        ]
    )
    x = geon.placeholder([N, H, W, C], name="x")
    training = neon.Training()
    infer = transformer.computation(net(x), x)
    train = transformer.computation([net(x, training=training), *training.updates], x)
    data = np.random.default_rng(length).normal(size=(length, 5, 7, 3))
    trained = train(data)[0]
    whole = infer(data)
    assert trained.shape == whole.shape == (length, 2)
    assert np.isfinite(trained).all() and np.isfinite(whole).all()
    np.testing.assert_allclose(infer(data[:1]), whole[:1], rtol=1e-4, atol=1e-5)
    assert all(np.isfinite(value).all() for value in transformer.values().values())


def test_a_variable_may_have_open_axes(transformer):
    x = geon.placeholder([N, ax.C], name="x")
    layer = neon.Affine(K, neon.Glorot(stream()))
    transformer.computation(layer(x), x)(np.ones((2, 50)))
    w = transformer.get(layer.variables["w"])
    assert w.shape == (50, 4)
    assert 0.9 * (6 / 54) ** 0.5 < np.abs(w).max() <= (6 / 54) ** 0.5


def test_the_axes_are_open_and_no_length_is_set():
    """No length at all, in a process of its own: other tests set some."""
    for name in "NTCDHWY":
        assert getattr(ax, name) == geon.Axis(name)
        assert name not in default_lengths()
    program = (
        "import geon, geon.frontends.neon as neon\n"
        "from geon.op_graph.axes.length_defaults import default_lengths\n"
        "from geon.frontends.neon.axis import C, N\n"
        "H = geon.Axis('H', 4)\n"
        "neon.Linear([H], neon.Glorot(geon.Random(0)))(geon.placeholder([N, C.with_length(3)]))\n"
        "print(default_lengths())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "{}\n", ran.stderr
    assert ax.channel_axes(geon.Axes(N, T, ax.D, H, W, K, E)) is geon.Axes(K, E)
    assert ax.feature_axes(geon.Axes(N, T, H, K)) is geon.Axes(H, K)


# Layers of one's own ------------------------------------------------------------------------------


def of_own(forward, inner=None):
    """A layer whose class has this ``forward``, and maybe a layer inside."""
    members = {} if forward is None else {"forward": forward}
    layer = type("Own", (neon.Layer,), members)()
    if inner is not None:
        layer.inner = inner
    return layer


@pytest.mark.parametrize(
    ("forward", "what"),
    [
        (None, r"Own at .*test_layer.py.*: has no forward; .*def forward\(self, x, training=None"),
        (lambda self, x, training=None: None, "its forward gave None; let it return one tensor"),
        (lambda self, x, training=None: (x, x), "its forward gave a tuple of 2; let it return one"),
        (lambda self, x, training=None: 3.0, "its forward gave 3.0, which is float"),
    ],
)
def test_a_forward_that_gives_no_tensor_is_refused(forward, what):
    with pytest.raises(geon.ArgumentError, match=what):
        of_own(forward)(rows(C))


def test_a_layer_whose_subclass_begins_by_itself_is_a_layer():
    class Own(neon.Layer):
        def __init__(self):
            self.inner = neon.Affine(K, 0.0)

        def forward(self, x, training=None):
            return self.inner(x, training=training)

    layer = Own()
    assert layer(rows(C)).axes is geon.Axes(N, K)
    assert len(layer.parameters()) == 2 and layer.name is None


def test_a_forward_without_training_is_that_of_a_layer_that_does_not_train():
    x = rows(C)
    alone = of_own(lambda self, x: geon.relu(x))
    assert alone(x) is alone(x, training=neon.Training()) is geon.relu(x)
    above = of_own(lambda self, x: self.inner(x), neon.Dropout(0.5, geon.Random(0)))
    assert above(x) is x
    with pytest.raises(geon.ArgumentError, match="layers inside of it are to train, and its forw"):
        above(x, training=neon.Training())
