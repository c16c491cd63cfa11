"""Files that ``save`` writes: networks and their derivatives, loops, names, refusals."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import onnx
import pytest

import geon
from geon.frontends.onnx import load, save
from geon.frontends.onnx.writing.graph import OPSET_VERSION
from tests.frontends.onnx.runtime import session
from tests.places import here

N, T, C, H, K = (
    geon.Axis("N"),
    geon.Axis("T"),
    geon.Axis("C", 4),
    geon.Axis("H", 6),
    geon.Axis("K", 3),
)


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def variable(axes, name):
    shape = [axis.length for axis in axes]
    return geon.Variable(axes, initial_value=random(*shape), name=name)


def agree(path, results, inputs, *calls):
    """Save, run every call, compare with geon within 1e-5 of the largest element; the model.

    Sums of float32 are taken in another order than geon's.
    """
    save(path, results, inputs)
    runtime = session(path)
    f = geon.NumPyTransformer().computation(results, *inputs)
    for call in calls:
        feeds = {leaf.name: value for leaf, value in zip(inputs, call, strict=True)}
        expected = f(*call)
        for name, found in zip(expected, runtime.run(list(expected), feeds), strict=True):
            wanted = expected[name]
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), name
            scale = 1e-5 * max(1.0, float(np.abs(wanted).max(initial=0)))
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=scale, err_msg=name)
    return onnx.load(path)


def operators(model):
    return Counter(node.op_type for node in model.graph.node)


def shapes(values):
    return {
        each.name: [d.dim_param or d.dim_value for d in each.type.tensor_type.shape.dim]
        for each in values
    }


def mlp():
    x, t = geon.placeholder([N, C], name="x"), geon.placeholder([N], "int64", name="t")
    w, b, u = variable([C, H], "w"), variable([H], "b"), variable([K, H], "u")
    y = geon.dot(geon.tanh(geon.dot(x, w) + b), u)
    p = geon.softmax(y, K)
    loss = geon.mean(geon.cross_entropy_multi(p, geon.onehot(t, K), out_axes=[N]))
    return x, t, (w, b, u), p, loss


def test_a_network_and_its_derivatives(tmp_path):
    x, t, weights, p, loss = mlp()
    slopes = geon.deriv(loss, [*weights, x])
    results = {"p": p, "loss": loss, "dw": slopes[0], "db": slopes[1], "du": slopes[2]}
    results["dx"] = slopes[3]
    calls = [(random(n, 4), np.arange(n) % 3) for n in (1, 5)]
    model = agree(tmp_path / "mlp.onnx", results, [x, t], *calls)
    assert shapes(model.graph.input) == {"x": ["N", 4], "t": ["N"]}
    assert shapes(model.graph.output)["p"] == ["N", 3]
    assert [each.name for each in model.graph.initializer][:3] == ["w", "b", "u"]
    assert model.opset_import[0].version == OPSET_VERSION
    assert (model.producer_name, model.producer_version) == ("geon", geon.__version__)
    axes = {v.name: {m.key: m.value for m in v.metadata_props} for v in model.graph.output}
    assert axes["p"] == {"geon.axes": "N,K"} and axes["loss"] == {}
    lines = {node.op_type: node.doc_string for node in model.graph.node}
    assert lines["Tanh"].startswith("tanh (N, H:6) ") and "test_save.py:" in lines["Tanh"]


def test_operators_are_chosen(tmp_path):
    """Weights are multiplied as they lie, softmax and its logarithm are operators."""
    x, _, _, p, _ = mlp()
    model = agree(tmp_path / "p.onnx", {"p": p, "l": geon.log_softmax(x, C)}, [x], [random(2, 4)])
    expected = {"MatMul": 1, "Add": 1, "Tanh": 1, "Gemm": 1, "Softmax": 1, "LogSoftmax": 1}
    assert operators(model) == Counter({**expected, "Identity": 2})


def test_a_convolution_net_and_its_derivatives(tmp_path):
    R, S, Y, X = geon.Axis("R", 3), geon.Axis("S", 3), geon.Axis("Y"), geon.Axis("X")
    images = geon.placeholder([N, C, Y, X], name="images")
    first, depth = variable([H, C, R, S], "first"), variable([R, S, H], "depth")
    last = variable([R, S, H, K], "last")
    same = {Y: geon.Window(R, pad="same"), X: geon.Window(S, pad="same")}
    halved = {Y: geon.Window(R, stride=2, pad=1), X: geon.Window(S, stride=2, pad=1)}
    y = geon.relu(geon.convolution(images, first, same))
    y = geon.relu(geon.convolution(y, depth, halved, over=[]))
    y = geon.max_pool(y, {"Y": geon.Window(2, stride=2), "X": geon.Window(2, stride=2)})
    wide = {"Y": geon.Window(3, pad=1), "X": geon.Window(3, pad=1)}
    y = geon.average_pool(y, wide, count_pad=True)
    y = geon.mean(geon.convolution(y, last, same), ["Y", "X"])
    calls = [[random(2, 4, 16, 16)], [random(1, 4, 9, 13)]]
    model = agree(tmp_path / "forward.onnx", {"y": y}, [images], *calls)
    found = operators(model)
    assert (found["Conv"], found["AveragePool"], found["Gather"]) == (3, 1, 0)
    assert {a.i for n in model.graph.node for a in n.attribute if a.name == "group"} == {1, 6}
    slopes = geon.deriv(geon.sum(geon.square(y)), [first, depth, last, images])
    names = ("first", "depth", "last", "images")
    results = {f"d{name}": slope for name, slope in zip(names, slopes, strict=True)}
    agree(tmp_path / "reverse.onnx", {"y": y, **results}, [images], *calls)


def test_attention_over_open_axes(tmp_path):
    heads, width = geon.Axis("heads", 2), geon.Axis("width", 3)
    x = geon.placeholder([N, T, C], name="x")
    weights = [variable([C, heads, width], name) for name in "qkv"]
    q, k, v = (geon.dot(x, w) for w in weights)
    k, v = (geon.rename(each, {T: "S"}) for each in (k, v))
    scores = geon.dot(q, k, over=width) / 3**0.5
    seen = geon.outer(geon.greater_equal, geon.iota(T), geon.rename(geon.iota(T), {T: "S"}))
    shares = geon.softmax(geon.where(seen, scores, -np.inf), "S")
    y = geon.dot(shares, v, over="S")
    results = {"y": y, "dq": geon.deriv(geon.sum(geon.square(y)), weights[0])}
    calls = [[random(2, 5, 4)], [random(1, 1, 4)], [random(3, 7, 4)]]
    model = agree(tmp_path / "attention.onnx", results, [x], *calls)
    assert shapes(model.graph.output) == {"y": ["T", "N", 2, 3], "dq": [4, 2, 3]}
    forward = agree(tmp_path / "forward.onnx", {"y": y}, [x], *calls)
    assert operators(forward)["Softmax"] == 1 and "Einsum" not in operators(forward)


def test_a_recurrent_network_and_its_derivative(tmp_path):
    x = geon.placeholder([N, T, C], name="x")
    w, u = variable([C, H], "w"), variable([H.prime, H], "u")

    def step(h, each):
        h = geon.tanh(geon.dot(each, w) + geon.dot(geon.cast_axes(h, [N, H.prime]), u))
        return h, geon.sum(h, H)

    last, sums = geon.scan(step, geon.broadcast(0.0, [N, H]), x, over=T)
    slopes = geon.deriv(geon.sum(geon.square(last)), [w, u])
    results = {"last": last, "sums": sums, "dw": slopes[0], "du": slopes[1]}
    calls = [[random(2, 5, 4)], [random(3, 1, 4)], [random(2, 0, 4)]]
    model = agree(tmp_path / "rnn.onnx", results, [x], *calls)
    assert operators(model)["Loop"] == 2
    fixed = geon.placeholder([K, C], name="fixed")
    last, each = geon.scan(lambda c, x: (c * 0.5 + x, c), fixed[0], fixed, over=K, reverse=True)
    known = agree(tmp_path / "known.onnx", {"a": last, "b": each}, [fixed], [random(3, 4)])
    assert operators(known)["Scan"] == 1


def test_a_loop_with_a_condition_and_branches(tmp_path):
    x, kind = geon.placeholder([N], name="x"), geon.placeholder([], "int64", name="kind")
    roots, count = geon.while_loop(
        lambda r: geon.any(abs(r * r - x) > 1e-5 * x),
        lambda r: (r + x / r) / 2,
        geon.broadcast(1.0, [N]),
        max_steps=50,
        count=True,
    )
    ways = [lambda: x, lambda: geon.exp(-x)]
    chosen = geon.case_of(kind, ways, default=lambda: geon.flip(x, N))
    slope = geon.deriv(geon.sum(roots), x)
    results = {"roots": roots, "count": count, "chosen": chosen, "slope": slope}
    calls = [(np.array([1, 2, 100], np.float32), k) for k in map(np.asarray, (-1, 0, 1, 7))]
    model = agree(tmp_path / "loops.onnx", results, [x, kind], *calls)
    assert operators(model)["Loop"] == 2 and operators(model)["If"] == 1


@pytest.mark.parametrize("limit", [4, 600])  # the derivative of the second keeps segments
def test_derivatives_of_loops_with_a_condition_can_be_read(tmp_path, limit):
    """Stacks of steps that a call counts: of carries, of values, and of a reversed loop."""
    x, end = geon.placeholder([N], name="x"), geon.placeholder([], "float32", name="end")
    last, rows = geon.while_loop(
        lambda h: geon.max(h, N) < end,
        lambda h: (h * h * 0.25 + x, geon.sin(h)),
        x,
        max_steps=limit,
        over=geon.Axis("steps", limit),
    )
    first = geon.deriv(geon.sum(last) + geon.sum(rows), x)
    second = geon.deriv(geon.sum(first * first), x)
    results = {"last": last, "rows": rows, "first": first, "second": second}
    save(tmp_path / "loop.onnx", results, [x, end])
    loaded = load(tmp_path / "loop.onnx")
    f, g = (
        geon.NumPyTransformer().computation(outputs, *inputs)
        for outputs, inputs in ((results, [x, end]), (loaded.outputs, loaded.inputs.values()))
    )
    for bound in (0.0, 2.5, 5.0):  # no step, some, and as many as the smaller limit
        data = np.array([0.5, 1.25, 0.75], np.float32), np.float32(bound)
        for name, wanted in f(*data).items():
            np.testing.assert_allclose(g(*data)[name], wanted, 1e-5, 1e-5, err_msg=name)
    again = geon.deriv(geon.sum(loaded.outputs["last"]), loaded.inputs["x"])
    assert again.axes.names == ("N",)


def test_lengths_come_from_inputs_values_or_specialize(tmp_path):
    x = geon.placeholder([N, T], name="x")
    table = geon.Variable([T], name="table")
    transformer = geon.NumPyTransformer()
    transformer.set(table, np.arange(3.0))
    path = tmp_path / "fixed.onnx"
    save(path, {"y": x + table}, [x], transformer=transformer)
    assert shapes(onnx.load(path).graph.input) == {"x": ["N", 3]}
    save(path, {"y": x * 2}, x, specialize={N: 2})
    assert shapes(onnx.load(path).graph.input) == {"x": [2, "T"]}
    half = x[:, ::2]
    agree(path, {"half": half, "n": geon.tensor_size(half)}, [x], [random(2, 5)], [random(1, 4)])
    with pytest.raises(geon.AxisError, match="nothing gives the open length U"):
        save(path, geon.broadcast(geon.sum(x), [geon.Axis("U")]), [x])
    save(path, geon.broadcast(geon.sum(x), [geon.Axis("U")]), [x], specialize={"U": 3})
    assert session(path).run(None, {"x": random(1, 1)})[0].shape == (3,)
    with geon.lengths({"U": 4}):
        save(path, geon.broadcast(geon.sum(x), [geon.Axis("U")]), [x])
    assert session(path).run(None, {"x": random(1, 1)})[0].shape == (4,)


def test_names_of_results(tmp_path):
    x = geon.placeholder([N], name="x")
    y = geon.exp(x, name="y")
    path = tmp_path / "names.onnx"
    save(path, [y, y, x, x * 2], [x])
    assert list(shapes(onnx.load(path).graph.output)) == ["y", "y_1", "x_1", "output"]
    save(path, {"a": [y, x], "b": {"c": y}}, [x])
    assert list(shapes(onnx.load(path).graph.output)) == ["a_0", "a_1", "b_c"]
    found = session(path).run(None, {"x": np.zeros(2, np.float32)})
    assert [each.tolist() for each in found] == [[1, 1], [0, 0], [1, 1]]
    save(path, {"": y, "a": {"": x * 3}}, [x])  # ONNX has no empty names
    assert list(shapes(onnx.load(path).graph.output)) == ["y", "a_"]
    save(path, geon.constant([1.0, 2.0], [K.with_length(2)]) * 1)
    assert session(path).run(None, {})[0].tolist() == [1, 2]


def test_external_data(tmp_path):
    x, wide = geon.placeholder([N, C], name="x"), geon.Axis("W", 500)
    w = variable([C, wide], "w")
    path = tmp_path / "large.onnx"
    save(path, {"y": geon.dot(x, w)}, [x], external_data=True)
    assert sorted(os.listdir(tmp_path)) == ["large.onnx", "large.onnx.data"]
    assert path.stat().st_size < 2000 and (tmp_path / "large.onnx.data").stat().st_size >= 8000
    found = session(path).run(None, {"x": random(2, 4)})[0]
    np.testing.assert_allclose(found, random(2, 4) @ random(4, 500), rtol=1e-5, atol=1e-5)


def test_what_is_refused_leaves_the_file(tmp_path):
    x, y = geon.placeholder([N], name="x"), geon.placeholder([N], name="y")
    v = geon.Variable([], initial_value=0.0, name="v")
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")
    stream = geon.Random(0, name="noise")
    assign, drawn = geon.assign(v, geon.sum(x)), x + stream.normal([N])
    place = here().rpartition(":")[0]
    refused = {
        r"the results run assign\(v\(\)\) \(made at .*an effect.*save_training": [assign],
        r"advances the counter noise.calls\(\) \(made at .*save_training": drawn,
        r"depend on the placeholder y\(N\) \(made at .*save\(path, results, \[..., y\]\)": x + y,
        r"cast\(N\) \(made at .*is float8_e5m2, and most operators": x.cast("float8_e5m2"),
        r"depend on print\(N\) \(made at .*no operator that prints": geon.print(x),
    }
    for message, results in refused.items():
        with pytest.raises(geon.ArgumentError, match=message) as caught:
            save(path, results, [x])
        assert place.rpartition("/")[2] in str(caught.value)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["model.onnx"]


def test_a_failed_check_leaves_the_file(tmp_path, monkeypatch):
    x = geon.placeholder([N], name="x")
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")

    def fails(*_, **__):
        raise RuntimeError("checked")

    monkeypatch.setattr(onnx.checker, "check_model", fails)
    with pytest.raises(RuntimeError, match="checked"):
        save(path, x + 1, [x])
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["model.onnx"]


def test_what_is_written_can_be_read(tmp_path):
    x, label, weights, p, loss = mlp()
    results = {"p": p, "loss": loss, "du": geon.deriv(loss, weights[2])}
    path = tmp_path / "mlp.onnx"
    save(path, results, [x, label])
    data = random(5, 4), np.arange(5) % 3
    found = load(path).computation(geon.NumPyTransformer())(*data)
    expected = geon.NumPyTransformer().computation(results, x, label)(*data)
    for value, wanted in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


def test_constants_are_no_weights_when_they_are_read_back(tmp_path):
    x = geon.placeholder([N, C], name="x")
    w = variable([C], "w")
    path = tmp_path / "constants.onnx"
    save(path, {"y": geon.tanh(x * w) * 3.5 + 0.25}, [x])
    model = load(path)
    assert list(model.variables) == ["w"]
    given = random(3, 4)
    found = model.computation(geon.NumPyTransformer())(given)["y"]
    np.testing.assert_allclose(found, session(path).run(None, {"x": given})[0], rtol=1e-6)


@pytest.mark.parametrize(
    "write, text",
    [
        (lambda path, x: save(path / "gone" / "x.onnx", x * 2, [x]), "No such file"),
        (lambda path, x: save(path, x * 2, [x]), "cannot be written"),
        (lambda path, x: save(path / "x.onnx", {}, [x]), "there is no result"),
        (lambda path, x: save(path / "x.onnx", x * 2, "x"), "give placeholders"),
        (lambda path, x: save(path / "x.onnx", x * 2, [3]), "give placeholders"),
        (lambda path, x: save(path / "x.onnx", x * 2, None), "give placeholders"),
        (lambda path, x: save(path / "x.onnx", x * 2, [x], transformer="numpy"), "no transformer"),
        (lambda path, x: save(path / "x.onnx", x * 2, [x], name=3), "name=3 is no text"),
        (
            lambda path, x: save(path / "x.onnx", x * 2, [x], specialize={N: 1 << 70}),
            "has lengths of at most",
        ),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, write, text):
    with pytest.raises(geon.GeonError, match=text):
        write(tmp_path, geon.placeholder([N], name="x"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "options, text",
    [
        ({"axes": 5}, "axes=5 is no dictionary"),
        ({"values": [1]}, "is no dictionary"),
        ({"axes": {"x": None}}, "axes of 'x': None; give a list"),
        ({"axes": {"x": "ab"}}, "axes of 'x': 'ab'; give a list"),
        ({"axes": {"x": [""]}}, "give a list of names"),
        ({"axes": {"x": ["a", "a"]}}, "has one name twice"),
        ({"frozen": 3}, "give True, or patterns"),
        ({"frozen": ["w", 3]}, "give True, or patterns"),
        ({"frozen": "v*"}, "matches no initializer of m.onnx; it has w"),
    ],
)
def test_wrong_arguments_of_load_are_refused(tmp_path, options, text):
    x = geon.placeholder([C], name="x")
    save(tmp_path / "m.onnx", {"y": x * variable([C], "w")}, [x])
    with pytest.raises(geon.ArgumentError, match=text):
        load(tmp_path / "m.onnx", **options)
    with pytest.raises(geon.ArgumentError, match="'numpy' is no transformer"):
        load(tmp_path / "m.onnx").computation("numpy")


def test_words_are_read_as_float32(tmp_path):
    words = geon.placeholder([N], "uint32", name="words")
    numbers = [0.0, -0.0, 1.5, -3e-45, 1e-40, np.inf, -np.inf, 3e38, np.nan]
    bits = np.array(numbers, np.float32).view(np.uint32)
    save(tmp_path / "bits.onnx", {"y": geon.bitcast(words, "float32")}, [words])
    (found,) = session(tmp_path / "bits.onnx").run(["y"], {"words": bits})
    # The runtime's Where returns 0 for -0.
    np.testing.assert_array_equal(found, np.array(numbers, np.float32))
    with pytest.raises(geon.IncompleteError, match="bits of elements other than words as float32"):
        save(tmp_path / "bits.onnx", geon.bitcast(geon.cast(words, "float32"), "int32"), [words])
