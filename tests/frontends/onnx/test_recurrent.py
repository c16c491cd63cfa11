"""Recurrent layers with open lengths against ONNX Runtime, and their derivatives."""

import numpy as np
import onnxruntime
import pytest

import geon
from geon.frontends import onnx as frontend
from tests.frontends.onnx.test_models import NODE, model, numbers, tensor

FEATURES, HIDDEN = 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = ["Y", "Y_h", "Y_c"]
CASES = {
    "rnn": ("RNN", {"direction": "bidirectional", "clip": 0.7}, ("b", "lengths", "h0")),
    "rnn_activation": ("RNN", {"activations": ["LeakyRelu"], "activation_alpha": [0.2]}, ("b",)),
    "gru": ("GRU", {"direction": "bidirectional"}, ("b", "lengths", "h0")),
    "gru_reset_after": ("GRU", {"direction": "reverse", "linear_before_reset": 1}, ("b", "h0")),
    "gru_activations": (
        "GRU",
        {
            "direction": "bidirectional",
            "activations": ["HardSigmoid", "Affine", "Sigmoid", "ScaledTanh"],
            "activation_alpha": [0.3, 0.8, 1.5],
            "activation_beta": [0.4, 0.1, 0.6],
        },
        ("b",),
    ),
    "lstm": ("LSTM", {"direction": "bidirectional"}, ("b", "lengths", "h0", "c0", "p")),
    "lstm_reverse": ("LSTM", {"direction": "reverse", "clip": 0.5}, ("b", "lengths", "p")),
    "lstm_coupled": (
        "LSTM",
        {"input_forget": 1, "activations": ["Sigmoid", "Softsign", "Elu"]},
        (),
    ),
}


def layer(kind, attributes, given):
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    gates = GATES[kind]
    stored = {
        "w": numbers(ways, gates * HIDDEN, FEATURES),
        "r": numbers(ways, gates * HIDDEN, HIDDEN),
        "b": numbers(ways, 2 * gates * HIDDEN),
        "p": numbers(ways, 3 * HIDDEN),
    }
    names = ["x", "w", "r"]
    names += [n if n in given else "" for n in ("b", "lengths", "h0", "c0", "p")]
    while not names[-1]:
        names.pop()
    inputs = [tensor("x", ["T", "N", FEATURES])]
    inputs += [tensor("lengths", ["N"], 6)] if "lengths" in given else []
    inputs += [tensor(n, [ways, "N", HIDDEN]) for n in ("h0", "c0") if n in given]
    outputs = OUTPUTS if kind == "LSTM" else OUTPUTS[:2]
    node = NODE(kind, names, outputs, hidden_size=HIDDEN, **attributes)
    shapes = [["T", ways, "N", HIDDEN], [ways, "N", HIDDEN], [ways, "N", HIDDEN]]
    results = [tensor(n, s) for n, s in zip(outputs, shapes, strict=False)]
    kept = {name: value for name, value in stored.items() if name in names}
    return model([node], inputs, results, kept), ways


@pytest.mark.parametrize("name", CASES)
def test_layers_match_onnx_runtime_for_all_lengths(name):
    kind, attributes, given = CASES[name]
    proto, ways = layer(kind, attributes, given)
    proto.ir_version = 10
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    loaded = frontend.load(proto)
    f = loaded.computation(geon.NumPyTransformer())
    for time, batch in ((5, 3), (1, 1)):
        fed = {"x": numbers(time, batch, FEATURES)}
        if "lengths" in given:
            fed["lengths"] = np.array([time, 2, time - 1][:batch], np.int32)
        fed |= {n: numbers(ways, batch, HIDDEN) for n in ("h0", "c0") if n in given}
        found = f(*fed.values())
        expected = session.run(None, fed)
        for key, wanted in zip(loaded.outputs, expected, strict=True):
            np.testing.assert_allclose(found[key], wanted, rtol=1e-4, atol=1e-5, err_msg=key)


def test_states_have_gradients_and_names():
    proto, _ = layer("LSTM", {}, ("b",))
    loaded = frontend.load(proto)
    assert str(loaded.outputs["Y"].axes) == "(T, d1:1, N, hidden:4)"
    w = loaded.variables["w"]
    transformer = geon.NumPyTransformer()
    loss = geon.sum(geon.square(loaded.outputs["Y_h"]))
    f = transformer.computation([loss, geon.deriv(loss, w)], loaded.inputs["x"])
    x = numbers(4, 2, FEATURES).astype("float32")
    before, slope = f(x)
    at = np.unravel_index(np.argmax(np.abs(slope)), slope.shape)
    step = np.zeros_like(slope)
    step[at] = 1e-2
    old = transformer.get(w)
    transformer.set(w, old + step)
    after = f(x)[0]
    transformer.set(w, old - step)
    assert (after - f(x)[0]) / 2e-2 == pytest.approx(slope[at], rel=1e-2)
    assert before > 0


def test_weights_that_do_not_fit_are_refused():
    proto, _ = layer("LSTM", {}, ())
    proto.graph.node[0].attribute[0].i = 5
    with pytest.raises(frontend.ModelError, match=r"hidden_size 5, .* do not fit for 4 gates"):
        frontend.load(proto)
    proto, _ = layer("RNN", {"activations": ["Sine"]}, ())
    with pytest.raises(frontend.ModelError, match="'Sine' is no activation"):
        frontend.load(proto)
