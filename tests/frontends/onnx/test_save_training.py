"""Training steps in ONNX Runtime: the state goes in and comes out, as geon has it."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

import geon
from geon.frontends import neon
from geon.frontends.onnx import save_training
from tests.frontends.onnx.runtime import session

N, C, K = geon.Axis("N"), geon.Axis("C", 4), geon.Axis("K", 3)


def classifier(drop):
    """A classifier with a step of Adam; with ``drop``, some scores are set to 0 at random."""
    x, t = geon.placeholder([N, C], name="x"), geon.placeholder([N], "int64", name="t")
    first = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    w = geon.Variable([C, K], initial_value=first, name="w")
    b = geon.Variable([K], initial_value=0, name="b")
    scores = geon.dot(x, w) + b
    if drop:
        scores = scores * geon.Random(3, name="drop").bernoulli(scores.axes, 0.8)
    each = geon.cross_entropy_multi(geon.softmax(scores, K), geon.onehot(t, K), out_axes=[N])
    loss = geon.mean(each)
    return x, t, {"loss": loss, "step": neon.Adam(0.1)(loss)}


@pytest.mark.parametrize("drop", [False, True])
def test_twenty_steps_of_adam(tmp_path, drop):
    x, t, results = classifier(drop)
    transformer, path = geon.NumPyTransformer(), tmp_path / "step.onnx"
    save_training(path, results, [x, t], transformer=transformer)
    model = onnx.load(path)
    (metadata,) = model.metadata_props
    entries = json.loads(metadata.value)
    assert metadata.key == "geon.state"
    found = {entry["input"]: entry for entry in entries}
    assert found["w"] == {"input": "w", "output": "w_new", "trainable": True, "persistent": True}
    assert ("drop.calls" in found) == drop
    assert {each.name for each in model.graph.input} == {"x", "t", *found}
    outputs = [each.name for each in model.graph.output]
    assert outputs == ["loss", *[entry["output"] for entry in entries]]
    runtime, f = session(path), transformer.computation(results, x, t)
    random, state = np.random.default_rng(1), {}  # the first call takes the state of the file
    for count in range(20):
        data = random.normal(size=(5 + count, 4)).astype(np.float32)
        classes = random.integers(0, 3, 5 + count)
        values = dict(
            zip(outputs, runtime.run(None, {"x": data, "t": classes, **state}), strict=True)
        )
        state = {entry["input"]: values[entry["output"]] for entry in entries}
        np.testing.assert_allclose(values["loss"], f(data, classes)["loss"], rtol=1e-5)
    for name, value in state.items():
        np.testing.assert_allclose(value, transformer.get(name), rtol=1e-4, atol=1e-6)


def test_state_of_one_variable_and_its_parts(tmp_path):
    x = geon.placeholder([C], name="x")
    v = geon.Variable([C], dtype="float32", initial_value=[0, 1, 2, 3], name="v")
    scale = geon.Variable([], initial_value=2.0, name="scale")
    path = tmp_path / "parts.onnx"
    effects = [geon.assign(v[1], 10), geon.assign(v[{C: slice(2, 4)}], scale * x[:2])]
    save_training(path, [v, *effects], x)
    graph = onnx.load(path).graph
    assert [each.name for each in graph.input] == ["x", "v"]
    assert [each.name for each in graph.output] == ["v_1", "v_new"]
    assert {each.name for each in graph.initializer} >= {"v", "scale"}
    old, new = session(path).run(None, {"x": np.array([5, 6, 7, 8], np.float32)})
    assert old.tolist() == [0, 1, 2, 3] and new.tolist() == [0, 10, 10, 12]


def test_without_state_it_is_refused(tmp_path):
    x = geon.placeholder([N], name="x")
    with pytest.raises(geon.ArgumentError, match="assign to no variable.*save"):
        save_training(tmp_path / "none.onnx", x + 1, [x])
    with pytest.raises(geon.ArgumentError, match="no operator that prints"):
        save_training(tmp_path / "none.onnx", geon.print(x), [x])
    assert not list(tmp_path.iterdir())
