"""Sequences, optionals, texts and optimisers that are built when a model is loaded."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import geon
from geon.frontends import onnx as frontend
from tests.frontends.onnx.test_models import NODE, model, numbers, tensor

INT = TensorProto.INT64
TRAINING = "ai.onnx.preview.training"


def test_sequences_are_lists_of_tensors():
    body = helper.make_graph(
        [NODE("Mul", ["part", "scale"], ["scaled"])],
        "body",
        [tensor("part", None), tensor("scale", [])],
        [tensor("scaled", None)],
    )
    nodes = [
        NODE("SplitToSequence", ["x", "two"], ["parts"], axis=1),
        NODE("SequenceErase", ["parts", "one"], ["fewer"]),
        NODE("SequenceInsert", ["fewer", "x", "zero"], ["more"]),
        NODE("SequenceMap", ["more", "scale"], ["mapped"], body=body),
        NODE("ConcatFromSequence", ["mapped"], ["y"], axis=1),
        NODE("SequenceLength", ["mapped"], ["count"]),
        NODE("SequenceAt", ["mapped", "last"], ["end"]),
        NODE("Optional", ["end"], ["some"]),
        NODE("OptionalHasElement", ["some"], ["there"]),
        NODE("OptionalGetElement", ["some"], ["z"]),
    ]
    outputs = [tensor("y", None), tensor("count", [], INT), tensor("z", None)]
    outputs.append(tensor("there", [], TensorProto.BOOL))
    stored = {"two": np.array(2), "one": np.array(1), "zero": np.array(0), "last": np.array(-1)}
    proto = model(nodes, [tensor("x", ["N", 5]), tensor("scale", [])], outputs, stored)
    loaded = frontend.load(proto)
    f = loaded.computation(geon.NumPyTransformer())
    x = numbers(3, 5)
    found = f(x, 2.0)
    parts = [x, x[:, :2], x[:, 4:]]
    np.testing.assert_allclose(found["y"], 2 * np.concatenate(parts, 1))
    np.testing.assert_allclose(found["z"], 2 * x[:, 4:])
    assert (found["count"], found["there"]) == (3, True)
    proto.graph.initializer[3].CopyFrom(helper.make_tensor("last", INT, [], [3]))
    with pytest.raises(frontend.ModelError, match="SequenceAt.*position 3 in a sequence with 3"):
        frontend.load(proto)


def test_texts_are_split_matched_and_counted():
    nodes = [
        NODE("StringSplit", ["lines"], ["words", "counts"], delimiter=" "),
        NODE("RegexFullMatch", ["lines"], ["match"], pattern="[a-z ]+"),
        NODE(
            "TfIdfVectorizer",
            ["words"],
            ["found"],
            mode="TFIDF",
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=1,
            ngram_counts=[0, 2],
            ngram_indexes=[0, 3, 1],
            pool_strings=["a", "b", "a", "b"],
            weights=[1.0, 2.0, 0.5],
        ),
    ]
    outputs = [tensor("words", None, TensorProto.STRING), tensor("counts", [2], INT)]
    outputs += [tensor("match", [2], TensorProto.BOOL), tensor("found", [2, 4])]
    inputs = [tensor("lines", [2], TensorProto.STRING)]
    lines = np.array(["a c b", "B b a b"], object)
    loaded = frontend.load(model(nodes, inputs, outputs), values={"lines": lines})
    assert loaded.texts["words"].tolist() == [["a", "c", "b", ""], ["B", "b", "a", "b"]]
    result = loaded.computation(geon.NumPyTransformer())()
    assert result["counts"].tolist() == [3, 4]
    assert result["match"].tolist() == [True, False]
    # The words a and b, and the pair "a b", next to each other or with one word between them.
    np.testing.assert_allclose(result["found"], [[1, 0.5, 0, 2], [1, 0.5, 0, 4]])


def test_numbers_are_counted_in_a_call():
    node = NODE(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        mode="TF",
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=0,
        ngram_counts=[0, 1],
        ngram_indexes=[1, 0],
        pool_int64s=[7, 7, 8],
    )
    loaded = frontend.load(model([node], [tensor("x", ["N", "T"], INT)], [tensor("y", ["N", 2])]))
    f = loaded.computation(geon.NumPyTransformer())
    assert f(np.array([[7, 8, 7, 8], [7, 7, 7, 7]]))["y"].tolist() == [[2, 2], [0, 4]]


def test_gradients_of_a_model_train_it():
    nodes = [
        NODE("Mul", ["w", "w"], ["square"]),
        NODE("ReduceSum", ["square"], ["loss"], keepdims=0),
        NODE("Gradient", ["w"], ["slope"], domain=TRAINING, xs=["w"], y="loss"),
        NODE("Gradient", ["w"], ["second"], domain=TRAINING, xs=["w"], y="slope"),
        NODE("Adagrad", ["rate", "step", "w", "slope", "h"], ["v", "g"], domain=TRAINING),
    ]
    inputs = [tensor("w", [3]), tensor("rate", []), tensor("step", [], INT), tensor("h", [3])]
    outputs = [tensor("slope", [3]), tensor("second", [3]), tensor("v", [3])]
    proto = model(nodes, inputs, outputs, **{TRAINING.replace(".", "_"): 1})
    f = frontend.load(proto).computation(geon.NumPyTransformer())
    w = np.array([1.0, -2.0, 3.0], np.float32)
    found = f(w, 0.1, 0, np.zeros(3))
    np.testing.assert_allclose(found["slope"], 2 * w)
    np.testing.assert_allclose(found["second"], [2, 2, 2])
    np.testing.assert_allclose(found["v"], w - 0.1 * np.sign(w), rtol=1e-5)
    proto.graph.node[2].input[0] = "h"
    with pytest.raises(frontend.ModelError, match="at another value of 'w' than its own"):
        frontend.load(proto)
