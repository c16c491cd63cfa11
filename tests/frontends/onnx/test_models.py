"""Whole models: open lengths, names, variables, derivatives, functions, and damaged files."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import geon
from geon.frontends import onnx as frontend
from geon.frontends.positional.elementwise import elementwise
from geon.op_graph.building.constants import constant_value

NODE = helper.make_node
VALUES = np.random.default_rng(0)
WIDTH = 64


def numbers(*shape):
    return VALUES.normal(size=shape).astype("float32")


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, stored=None, functions=(), **domains):
    initializers = [numpy_helper.from_array(a, name) for name, a in (stored or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 21)]
    opsets += [helper.make_opsetid(name.replace("_", "."), v) for name, v in domains.items()]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def attention():
    """Self-attention of 8 heads, with its shapes computed in the graph."""
    whole = np.int64
    nodes = [
        NODE("MatMul", ["x", "w"], ["q"]),
        NODE("Shape", ["q"], ["shape"]),
        NODE("Gather", ["shape", "zero"], ["batch"]),
        NODE("Gather", ["shape", "one"], ["time"]),
        NODE("Unsqueeze", ["batch", "axis"], ["batches"]),
        NODE("Unsqueeze", ["time", "axis"], ["times"]),
        NODE("Concat", ["batches", "times", "heads", "rest"], ["split"], axis=0),
        NODE("Reshape", ["q", "split"], ["each"]),
        NODE("Transpose", ["each"], ["rows"], perm=[0, 2, 1, 3]),
        NODE("Transpose", ["each"], ["columns"], perm=[0, 2, 3, 1]),
        NODE("MatMul", ["rows", "columns"], ["scores"]),
        NODE("Softmax", ["scores"], ["weights"]),
        NODE("MatMul", ["weights", "rows"], ["mixed"]),
        NODE("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        NODE("Reshape", ["back", "joined"], ["flat"]),
        NODE("Add", ["flat", "bias"], ["y"]),
    ]
    stored = {
        "w": numbers(WIDTH, WIDTH) / 8,
        "bias": numbers(WIDTH),
        "zero": np.array(0),
        "one": np.array(1),
        "axis": np.array([0]),
        "heads": np.array([8], whole),
        "rest": np.array([-1], whole),
        "joined": np.array([0, 0, -1], whole),
    }
    shape = ["batch", "seq", WIDTH]
    return model(nodes, [tensor("x", shape)], [tensor("y", shape)], stored)


def test_one_program_serves_all_lengths():
    proto = attention()
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    loaded = frontend.load(proto)
    assert str(loaded.inputs["x"].axes) == "(batch, seq, x_2:64)"
    f = loaded.computation(geon.NumPyTransformer())
    for batch, time in ((2, 5), (1, 1), (3, 16)):
        x = numbers(batch, time, WIDTH)
        np.testing.assert_allclose(f(x)["y"], session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)


def test_the_operator_of_attention_takes_open_lengths():
    axes = {
        "q": ["batch", 2, "time", 4],
        "k": ["batch", 2, "past", 4],
        "v": ["batch", 2, "past", 4],
    }
    inputs = [tensor(name, shape) for name, shape in axes.items()]
    proto = model([NODE("Attention", ["q", "k", "v"], ["y"])], inputs, [tensor("y", axes["q"])])
    proto.opset_import[0].version, proto.ir_version = 23, 10
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    f = frontend.load(proto).computation(geon.NumPyTransformer())
    for batch, time, past in ((2, 5, 3), (1, 1, 7)):
        lengths = {"batch": batch, "time": time, "past": past}
        given = {k: numbers(*[lengths.get(n, n) for n in shape]) for k, shape in axes.items()}
        expected = session.run(None, given)[0]
        np.testing.assert_allclose(f(*given.values())["y"], expected, rtol=1e-4, atol=1e-5)


def test_the_users_names_of_axes_win():
    loaded = frontend.load(attention(), axes={"x": ["N", geon.Axis("T"), "C"]})
    assert str(loaded.inputs["x"].axes) == "(N, T, C:64)"
    assert str(loaded.variables["w"].axes) == "(C:64, w_1:64)"
    assert loaded.outputs["y"].axes.names[:2] == ("N", "T")
    with pytest.raises(geon.ArgumentError, match="2 names for 3 dimensions"):
        frontend.load(attention(), axes={"x": ["N", "T"]})
    with pytest.raises(geon.ArgumentError, match="has no input 'z'; it has x"):
        frontend.load(attention(), axes={"z": ["N", "T"]})


def test_initializers_are_variables_that_train():
    loaded = frontend.load(attention(), frozen="b*")
    w, bias = loaded.variables["w"], loaded.variables["bias"]
    assert loaded.outputs["y"].variables() == [w]
    loss = geon.mean(geon.square(loaded.graph()["y"]))
    transformer = geon.NumPyTransformer()
    step = transformer.computation(
        [loss, geon.assign(w, w - 0.1 * geon.deriv(loss, w))], loaded.inputs["x"]
    )
    x = numbers(2, 3, WIDTH)
    losses = [step(x)[0] for _ in range(5)]
    assert losses[-1] < losses[0]
    assert transformer.get(bias).shape == (WIDTH,)
    assert not frontend.load(attention(), frozen=True).outputs["y"].variables()


def test_values_that_shapes_need_are_given_when_loading():
    proto = model(
        [NODE("Reshape", ["x", "shape"], ["y"])],
        [tensor("x", ["N", 6]), tensor("shape", [2], TensorProto.INT64)],
        [tensor("y", None)],
    )
    with pytest.raises(frontend.UnknownValueError, match=r"node 0 Reshape .* depends on shape"):
        frontend.load(proto)
    loaded = frontend.load(proto, values={"shape": np.array([-1, 3])})
    assert list(loaded.inputs) == ["x"]
    assert loaded.computation(geon.NumPyTransformer())(numbers(4, 6))["y"].shape == (8, 3)


def test_functions_of_the_model_and_registered_operators():
    body = [NODE("Scale", ["a"], ["b"], domain="com.example")]
    reference = onnx.AttributeProto(
        name="factor", ref_attr_name="by", type=onnx.AttributeProto.FLOAT
    )
    body[0].attribute.append(reference)
    opsets = [helper.make_opsetid("com.example", 3)]
    function = helper.make_function("local", "Twice", ["a"], ["b"], body, opsets, ["by"])
    nodes = [NODE("Twice", ["x"], ["y"], domain="local", by=2.0)]
    proto = model(nodes, [tensor("x", [3])], [tensor("y", [3])], None, [function], local=1)
    with pytest.raises(frontend.UnsupportedError, match=r"com.example.Scale \(version 3\): 1"):
        frontend.load(proto)

    @frontend.register("com.example", "Scale", versions=(1, 3))
    def scale(x, /, *, factor):
        return elementwise(lambda t: t * factor, x)

    f = frontend.load(proto).computation(geon.NumPyTransformer())
    np.testing.assert_array_equal(f([1, 2, 3])["y"], [2, 4, 6])


@pytest.mark.parametrize("count", [5000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_deep_model_loads(count):
    nodes = [NODE("Add", [f"v{k}", "v0"], [f"v{k + 1}"]) for k in range(count)]
    last = f"v{count}"
    loaded = frontend.load(model(nodes, [tensor("v0", ["N"])], [tensor(last, ["N"])]))
    assert loaded.outputs[last].axes.names == ("N",)


def test_a_function_that_calls_itself_is_refused():
    again = NODE("F", ["u"], ["v"], domain="own")
    function = helper.make_function(
        "own", "F", ["u"], ["v"], [again], [helper.make_opsetid("own", 1)]
    )
    given = [NODE("F", ["a"], ["b"], domain="own")], [tensor("a", ["N"])], [tensor("b", ["N"])]
    with pytest.raises(frontend.ModelError, match=r"calls itself \(own\.F calls own\.F\)"):
        frontend.load(model(*given, functions=[function], own=1))


def test_functions_whose_calls_multiply_are_refused_at_once():
    levels, domains = 40, [helper.make_opsetid("own", 1), helper.make_opsetid("", 21)]
    functions = []
    for k in range(levels):
        operator, domain = (f"F{k + 1}", "own") if k + 1 < levels else ("Neg", "")
        calls = [NODE(operator, [a], [b], domain=domain) for a, b in ("um", "mv")]
        functions.append(helper.make_function("own", f"F{k}", ["u"], ["v"], calls, domains))
    given = [NODE("F0", ["a"], ["b"], domain="own")], [tensor("a", ["N"])], [tensor("b", ["N"])]
    with pytest.raises(frontend.ModelError, match="counted at each call; at most 262,144"):
        frontend.load(model(*given, functions=functions, own=1))
    short = [NODE(f"F{levels - 5}", ["a"], ["b"], domain="own")]
    few = frontend.load(model(short, *given[1:], functions=functions, own=1))
    np.testing.assert_array_equal(few.computation()([1, 2])["b"], [1, 2])
    deep = [functions[-1]]
    for k in range(60):
        inner = NODE(deep[-1].name, ["u"], ["v"], domain="own")
        deep.append(helper.make_function("own", f"D{k}", ["u"], ["v"], [inner], domains))
    called = [NODE("D59", ["a"], ["b"], domain="own")]
    with pytest.raises(frontend.ModelError, match="more than 50 graphs and functions inside"):
        frontend.load(model(called, *given[1:], functions=deep, own=1))


def refused(nodes, match, error=frontend.ModelError, stored=None):
    stored = stored or {"k": np.ones((2, 7), "float32")}
    proto = model(nodes, [tensor("a", ["N", 3])], [tensor("b", None)], stored)
    with pytest.raises(error, match=match):
        frontend.load(proto)


def test_bad_graphs_name_the_node_and_the_reason():
    cycle = [NODE("Add", ["a", "c"], ["b"]), NODE("Relu", ["b"], ["c"], name="late")]
    refused(cycle, r"node 0 Add of model reads 'c', which node 1 Relu 'late' makes later")
    refused([NODE("Relu", ["z"], ["b"])], "node 0 Relu of model reads 'z', which nothing makes")
    refused([NODE("Relu", ["a"], ["a"])], "node 0 Relu of model makes 'a' again")
    refused([NODE("Relu", ["a"], ["c"])], "no node makes the output 'b'")
    refused([NODE("Softmax", ["a"], ["b"], axis=7)], "position 7 is out of range")
    refused([NODE("Softmax", ["a"], ["b"], axs=7)], "has no attribute 'axs'")
    refused([NODE("Softmax", ["a"], ["b"], axis=1.5)], "attribute 'axis' is FLOAT, not INT")
    refused([NODE("Concat", ["a", "k"], ["b"])], "the attribute 'axis' is missing")
    refused([NODE("Relu", ["a", "k"], ["b"])], "it has 2 inputs; the operator has 1 to 1")
    refused([NODE("MatMul", ["a", "k"], ["b"])], "the summed lengths are 3 and 2")
    refused([NODE("Add", ["a", ""], ["b"])], r"input 1 \(B\), which the operator needs, is missing")
    wide = {"shape": np.array([2**36]), "scales": np.array([1, 1e9], "float32")}
    made = NODE("ConstantOfShape", ["shape"], ["c"])
    refused([made, NODE("NonZero", ["c"], ["b"])], r"node 1 NonZero .* 68,719,476,736", stored=wide)
    resized = NODE("Resize", ["a", "", "scales"], ["b"])
    refused([resized], "a resize of 3 elements to 3,000,000,000; at most", stored=wide)
    missing = [NODE("Foo", ["a"], ["c"]), NODE("Foo", ["c"], ["d"]), NODE("Bar", ["d"], ["b"])]
    refused(missing, r"Bar \(version 21\): 1, Foo \(version 21\): 2", frontend.UnsupportedError)


def test_damaged_files(tmp_path):
    data = attention().SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    assert frontend.load(path).name == "model.onnx"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(frontend.ModelError, match=r"model\.onnx is no ONNX model, or is damaged"):
        frontend.load(path)
    with pytest.raises(frontend.ModelError, match="cannot be read: No such file"):
        frontend.load(tmp_path / "nothing.onnx")
    with pytest.raises(frontend.ModelError, match="no graph"):
        frontend.load(b"")
    later = attention()  # its operators are taken to be those of the newest version
    later.opset_import[0].version = 2**40
    assert set(frontend.load(later).outputs) == {"y"}
    later.opset_import[0].version = -(2**40)
    with pytest.raises(frontend.UnsupportedError, match="version -1099511627776"):
        frontend.load(later)
    lacking = model([NODE("Relu", ["x"], [])], [tensor("x", ["N", 2])], [])
    with pytest.raises(frontend.ModelError, match="node 0 Relu of model: it has 0 outputs"):
        frontend.load(lacking)
    huge = attention()
    huge.graph.initializer[0].dims[0] = 2**50
    with pytest.raises(frontend.ModelError, match=r"'w' of model has 16384 bytes, and its shape"):
        frontend.load(huge)


def test_external_data_are_mapped_and_stay_in_the_folder(tmp_path):
    path = tmp_path / "inside" / "model.onnx"
    path.parent.mkdir()
    proto = attention()
    onnx.save(proto, path, save_as_external_data=True, location="data", size_threshold=0)
    x = numbers(1, 2, WIDTH)
    f, g = (frontend.load(m).computation(geon.NumPyTransformer()) for m in (path, attention()))
    assert f(x)["y"].shape == g(x)["y"].shape
    outside = onnx.load(path, load_external_data=False)
    outside.graph.initializer[0].external_data[0].value = "../secret"
    (tmp_path / "secret").write_bytes(bytes(4 * WIDTH**2))
    path.write_bytes(outside.SerializeToString())
    with pytest.raises(frontend.ModelError, match="outside of the model's folder"):
        frontend.load(path)
    for place in ("", ".", "missing", "no\0file", "x" * 5000):
        outside.graph.initializer[0].external_data[0].value = place
        path.write_bytes(outside.SerializeToString())
        with pytest.raises(frontend.ModelError, match="the initializer 'w' of model.onnx is in"):
            frontend.load(path)
    with pytest.raises(frontend.ModelError, match="a model in memory has no folder"):
        frontend.load(outside)
    inside = onnx.load(path, load_external_data=False)
    inside.graph.initializer[0].external_data[0].value = "data"
    (path.parent / "data").write_bytes(bytes(10))
    path.write_bytes(inside.SerializeToString())
    with pytest.raises(frontend.ModelError, match="needs 16384 bytes from byte 0 of 'data'"):
        frontend.load(path)


def test_axes_without_names_are_named_by_their_operators():
    nodes = [
        NODE("Sub", ["image", "mean"], ["centred"]),
        NODE("Conv", ["centred", "w"], ["features"]),
        NODE("GlobalAveragePool", ["features"], ["pooled"]),
        NODE("Flatten", ["pooled"], ["flat"]),
        NODE("Add", ["flat", "other"], ["y"]),
        NODE("LSTM", ["sound", "v", "r"], ["z"], hidden_size=2),
    ]
    stored = {
        "mean": numbers(3, 1, 1),
        "w": numbers(6, 3, 3, 3),
        "v": numbers(1, 8, 5),
        "r": numbers(1, 8, 2),
    }
    inputs = [
        tensor("image", [None, 3, "height", None]),
        tensor("other", [None, 6]),
        tensor("sound", [7, None, 5]),
        tensor("scale", [4]),
    ]
    results = [tensor("y", None), tensor("z", None)]
    loaded = frontend.load(model(nodes, inputs, results, stored))
    assert {name: str(leaf.axes) for name, leaf in loaded.inputs.items()} == {
        "image": "(N, C:3, height, W)",
        "other": "(N_2, other_1:6)",
        "sound": "(T:7, N_3, C_2:5)",
        "scale": "(scale_0:4)",
    }
    assert loaded.outputs["y"].axes.names[0] == "N"
    assert str(loaded.variables["w"].axes) == "(K:6, C:3, R:3, S:3)"
    named = frontend.load(model(nodes, inputs, results, stored), axes={"other": ["N", "F"]})
    assert str(named.inputs["image"].axes) == "(N_2, C:3, height, W)"


def test_weights_are_copied_when_they_are_stored_not_when_they_are_loaded():
    """Constants keep arrays that lie in ``bytes``, and copies of others, which may change."""
    stored = {"w": numbers(WIDTH, WIDTH)}
    proto = model(
        [NODE("MatMul", ["x", "w"], ["y"])],
        [tensor("x", ["N", WIDTH])],
        [tensor("y", ["N", WIDTH])],
        stored,
    )
    loaded = frontend.load(proto)
    held = constant_value(loaded.variables["w"].initial_value)
    np.testing.assert_array_equal(held, stored["w"])
    base = held
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, bytes)
    mutable = numbers(WIDTH, WIDTH)
    kept = constant_value(geon.constant(mutable, [geon.Axis("a"), geon.Axis("b")]))
    assert not np.shares_memory(kept, mutable)
    data = numbers(2, WIDTH)
    found = loaded.computation(geon.NumPyTransformer())(data)["y"]
    np.testing.assert_allclose(found, data @ stored["w"], rtol=1e-4, atol=1e-4)
