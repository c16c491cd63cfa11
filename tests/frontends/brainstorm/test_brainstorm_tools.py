"""Tools: networks from a line of text, extraction, information, pictures, data."""

import sys

import h5py
import numpy as np
import pytest

import geon
from geon.frontends.brainstorm import layers, tools
from geon.frontends.brainstorm.data_iterators import Minibatches
from geon.frontends.brainstorm.structure.network import Network
from geon.frontends.brainstorm.utils import (
    IteratorValidationError,
    PathError,
    StructureValidationError,
    ValidationError,
    convert_to_nested_indices,
    flatten,
    flatten_features,
    flatten_keys,
    flatten_time,
    flatten_time_and_features,
    get_by_path,
    get_inheritors,
    get_normalized_path,
    is_valid_layer_name,
    sort_by_index_key,
)
from tests.frontends.brainstorm.small_network import XOR, xor_batches, xor_network


def described(spec):
    """The type and arguments of each layer of a line."""
    found = []
    for layer in tools.layers_of_spec(spec):
        details = layer.layer
        found.append((details.layer_type, details.layer_kwargs))
    return found


def convolution(filters, length, activation, padding, stride):
    """The arguments of a convolution."""
    return {
        "num_filters": filters,
        "kernel_size": (length, length),
        "activation": activation,
        "padding": padding,
        "stride": (stride, stride),
    }


def pooling(length, kind, stride):
    """The arguments of a pooling layer."""
    return {"kernel_size": (length, length), "type": kind, "padding": 0, "stride": (stride, stride)}


SPECS = {
    "F50": [("FullyConnected", {"size": 50, "activation": "rel"})],
    "Fs50 Ft 20 Fl3Fr4": [
        ("FullyConnected", {"size": n, "activation": a})
        for n, a in [(50, "sigmoid"), (20, "tanh"), (3, "linear"), (4, "rel")]
    ],
    "R5Rs6": [
        ("Recurrent", {"size": 5, "activation": "tanh"}),
        ("Recurrent", {"size": 6, "activation": "sigmoid"}),
    ],
    "L5": [("Lstm", {"size": 5, "activation": "tanh"})],
    "D D.2 B": [
        ("Dropout", {"drop_prob": 0.5}),
        ("Dropout", {"drop_prob": 0.2}),
        ("BatchNorm", {}),
    ],
    "C32:5p2": [("Convolution2D", convolution(32, 5, "rel", 2, 1))],
    " Cs 16 : 3 s2 p1 Pa2s2 P3": [
        ("Convolution2D", convolution(16, 3, "sigmoid", 1, 2)),
        ("Pooling2D", pooling(2, "avg", 2)),
        ("Pooling2D", pooling(3, "max", 1)),
    ],
}


@pytest.mark.parametrize("spec", SPECS)
def test_a_line_describes_layers(spec):
    found = described(spec)
    assert [kind for kind, _ in found] == [kind for kind, _ in SPECS[spec]]
    for (_, arguments), (_, expected) in zip(found, SPECS[spec], strict=True):
        assert {k: v for k, v in arguments.items() if k in expected} == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("X3", "'X3' is no layer: 'X' is none of F, R, L"),
        ("F", "'F' lacks size=, int"),
        ("F5.5", "'F5.5' lacks size="),
        ("F5 C3", "'C3' lacks kernel_size="),
        ("F5q", r"'F5q' has \['q'\] too many"),
        ("D2", "'D2' lacks drop_prob=, float"),
        ("C3:3p", "'C3:3p' lacks a number for padding="),
        ("F5 $", r"not understood at '\$'"),
        ("5 F5", "not understood at '5 F5'"),
    ],
)
def test_a_wrong_line_is_refused(spec, message):
    with pytest.raises(ValidationError, match=message):
        list(tools.layers_of_spec(spec))


@pytest.mark.parametrize(
    ("task", "out_shape", "targets", "output"),
    [
        ("classification", 4, (1,), "SoftmaxCE"),
        ("multi-label", 4, (4,), "SigmoidCE"),
        ("regression", (4,), (4,), "SquaredError"),
        ("classification", (2, 3, 4), (2, 3, 1), "SoftmaxCE"),
    ],
)
@pytest.mark.parametrize("mask", [None, "mask"])
def test_a_network_for_a_task(task, out_shape, targets, output, mask):
    in_shape = 6 if isinstance(out_shape, int) or len(out_shape) == 1 else (2, 3, 5)
    spec = "F5" if in_shape == 6 else ""
    net = tools.create_net_from_spec(task, in_shape, out_shape, spec, mask_name=mask)
    assert net.architecture["Output"]["@type"] == output
    assert net.layers["Input"].out_shapes["targets"].feature_shape == targets
    steps, batch = 2, 3
    data = {
        name: np.random.default_rng(0).integers(0, 2, (steps, batch, *shape.feature_shape))
        for name, shape in net.layers["Input"].out_shapes.items()
    }
    net.provide_external_data(data)
    net.forward_pass()
    assert net.get(net.output_name).shape[:2] == (steps, batch)
    loss = net.get_loss_values()["total_loss"]
    if mask:
        net.provide_external_data({**data, "mask": 0 * data["mask"]})
        net.forward_pass()
        assert net.get_loss_values()["total_loss"] == 0
    assert np.isfinite(loss) and loss > 0 or mask
    limit = np.sqrt(12 / 11)
    if spec:
        W = net.get("FullyConnected.parameters.W")
        assert 0.5 * limit < abs(W).max() <= limit
        assert np.ptp(net.get("FullyConnected.parameters.bias")) > 0


def test_a_projection_without_convolution_has_the_shape_of_the_output():
    net = tools.create_net_from_spec("regression", (2, 3), (3, 4), "", use_conv=False)
    assert net.get("Output_projection.parameters.W").shape == (12, 6)
    data = {"default": np.ones((1, 2, 2, 3)), "targets": np.ones((1, 2, 3, 4))}
    net.provide_external_data(data)
    net.forward_pass()
    W, bias = (net.get(f"Output_projection.parameters.{name}") for name in ("W", "bias"))
    expected = (W.sum(1) + bias).reshape(3, 4)
    assert np.allclose(net.get(net.output_name), expected, atol=1e-6)


def test_names_of_data():
    inputs, projection = tools.get_in_out_layers(
        "regression", 3, 2, "x", "y", outlayer_name="Last", mask_name="m"
    )
    net = Network.from_layer(inputs - "x" >> layers.FullyConnected(4) >> projection)
    assert sorted(net.layers["Input"].out_shapes) == ["m", "x", "y"]
    assert {"Last", "Last_projection", "Mask"} <= set(net.layers)
    for wrong, message in [(("sorting", 3, 2), "'sorting'"), (("regression", 3, (2, 2)), "2 leng")]:
        with pytest.raises(ValidationError, match=message):
            tools.get_in_out_layers(*wrong)


def test_buffers_are_extracted(tmp_path):
    net, name = xor_network(), "OutLayer.outputs.default"
    net.provide_external_data(XOR)
    net.forward_pass()
    expected = net.get(name)
    only_inputs = Minibatches(3, shuffle=False, default=XOR["default"])
    found = tools.extract(net, only_inputs, [name, "Input.outputs.default"])
    assert np.allclose(found[name], expected)
    assert np.array_equal(found["Input.outputs.default"], XOR["default"])
    file = str(tmp_path / "out.h5")
    tools.extract_and_save(net, only_inputs, name, file)
    with h5py.File(file) as saved:
        assert np.allclose(saved[name][:], expected) and list(saved) == [name]


def test_batches_of_several_lengths_are_extracted(tmp_path):
    inputs = layers.Input(out_shapes={"default": ("T", "B", 1), "mask": ("T", "B", 1)})
    net = Network.from_layer(inputs >> layers.NoOp(name="Out"))
    mask = (np.arange(4)[:, None] < [1, 2, 4, 3]).astype(float)[:, :, None]
    data = np.arange(1.0, 17).reshape(4, 4, 1)
    iterator = Minibatches(1, shuffle=False, default=data, mask=mask)
    expected = data * mask
    found = tools.extract(net, iterator, "Out.outputs.default")["Out.outputs.default"]
    assert np.array_equal(found, expected)
    tools.extract_and_save(net, iterator, "Out.outputs.default", str(tmp_path / "out.h5"))
    with h5py.File(tmp_path / "out.h5") as saved:
        assert np.array_equal(saved["Out.outputs.default"][:], expected)
    with pytest.raises(IteratorValidationError, match="no batch"):
        tools.extract(net, lambda handler: iter(()), "Out.outputs.default")


def test_information(capsys):
    net = xor_network()
    text = tools.get_network_info(net)
    assert text.startswith("total number of parameters: 9\nInput\n")
    assert "FullyConnected\n\tW(2, 2)\n\tbias(2,)\nnumber of parameters: 6\n" in text
    assert "input shapes:\n\tdefault(2,)\noutput shapes:\n\tdefault(1,)" in text
    tools.print_network_info(net)
    assert text in capsys.readouterr().out


def test_a_picture_has_all_layers(tmp_path):
    for name, start in (("net.png", b"\x89PNG"), ("net.svg", b"<?xml")):
        tools.draw_network(xor_network(), str(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(start)
    text = (tmp_path / "net.svg").read_text()
    assert all(f"<!-- {layer} -->" in text for layer in xor_network().layers)


def test_data_are_shuffled_and_split():
    x = np.arange(20.0).reshape(2, 10, 1)
    a, none, b = tools.shuffle_data(x, None, -x, seed=3)
    order = np.random.RandomState(3).permutation(10)
    assert none is None and np.array_equal(a, x[:, order]) and np.array_equal(b, -a)
    parts = tools.split(x, None, x + 1, ratios=(7, 2, 1))
    assert [part[0].shape[1] for part in parts] == [7, 2, 1]
    assert all(part[1] is None and np.array_equal(part[2], part[0] + 1) for part in parts)
    assert np.array_equal(np.concatenate([part[0] for part in parts], 1), x)
    assert [part[0].shape[1] for part in tools.split(x)] == [9, 1]
    for wrong in ([x, x[:, 1:]], [None]):
        with pytest.raises(IteratorValidationError, match="equal numbers of sequences"):
            tools.shuffle_data(*wrong)


def test_evaluation_has_no_training_pass():
    net, passes = xor_network(), []
    forward = net.forward_pass
    net.forward_pass = lambda *a, **o: (passes.append((a, o)), forward(*a, **o))
    found = tools.evaluate(net, xor_batches(2))
    assert passes == [((), {})] * 2 and list(found) == ["total_loss", "Loss"]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(geon.UnavailableError, match="pip install matplotlib"):
        tools.draw_network(xor_network())


# Helpers ------------------------------------------------------------------------------------------


def test_paths():
    nested = {"a": {"b": [1, 2]}, "c": 3}
    assert get_by_path(nested, "a.b") == [1, 2] and get_by_path(nested, "c") == 3
    with pytest.raises(PathError, match="^the path 'a.x' could not be resolved.*keys are: b$"):
        get_by_path(nested, "a.x")
    with pytest.raises(KeyError, match="no 'd'; it is empty or has no keys"):
        get_by_path(nested, "c.d")
    assert flatten_keys({"a": {"b": {"c": 1}, "d": 2}, "e": 3}) == ["a.b.c", "a.d", "e"]
    assert get_normalized_path("a.b", "..c", "d") == "a.c.d"
    assert get_normalized_path("a.b", "....c") == "c"
    for wrong in [("a", ""), ("a", "....c")]:
        with pytest.raises(PathError, match="is no path"):
            get_normalized_path(*wrong)


def test_nested_lists():
    nested = [1, [2, (3,)], [], 4]
    assert list(flatten(nested)) == [1, 2, 3, 4]
    assert list(convert_to_nested_indices(nested)) == [0, [1, [2]], [], 3]
    items = {"x": {"@index": 2}, "y": {"@index": 0}, "@type": "z"}.items()
    assert [key for key, _ in sorted(items, key=sort_by_index_key)] == ["@type", "y", "x"]


def test_shapes_and_names():
    x = np.arange(48.0).reshape(2, 3, 4, 2)
    assert flatten_time(x).shape == (6, 4, 2) and flatten_time_and_features(x).shape == (6, 8)
    assert flatten_features(x).shape == (2, 3, 8) and flatten_features(x, 1).shape == (2, 24)
    with pytest.raises(StructureValidationError, match=r"\(2, 3\)"):
        flatten_time(x[:, :, 0, 0])
    names = ["a", "_b1", "default", "fallback", "1a", "a.b", ""]
    assert [is_valid_layer_name(name) for name in names] == [True, True] + [False] * 5

    class A:
        pass

    B = type("B", (A,), {})
    assert get_inheritors(A) == {B, type("C", (B,), {})} or len(get_inheritors(A)) == 2
