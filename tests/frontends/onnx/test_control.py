"""Loops and branches of models against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import geon
from geon.frontends import onnx as frontend
from tests.frontends.onnx.test_models import NODE, model, numbers, tensor

INT, BOOL = TensorProto.INT64, TensorProto.BOOL


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


def compare(proto, fed, values=None):
    """The loaded model, after its results agree with those of ONNX Runtime."""
    proto.ir_version = 10
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    loaded = frontend.load(proto, values=values)
    f = loaded.computation(geon.NumPyTransformer())
    for each in fed:
        found = f(*[each[name] for name in loaded.inputs])
        for key, wanted in zip(loaded.outputs, session.run(None, each), strict=True):
            np.testing.assert_allclose(found[key], wanted, rtol=1e-5, atol=1e-5, err_msg=key)
    return loaded


def powers(condition, trips="trips", stacked=True):
    """A loop that multiplies by a stored factor and, on request, stacks its carries."""
    body = graph(
        [*condition, NODE("Mul", ["h", "factor"], ["g"]), NODE("Identity", ["g"], ["row"])],
        [tensor("i", [], INT), tensor("goes", [], BOOL), tensor("h", ["N"])],
        [tensor("goes_on", [], BOOL), tensor("g", ["N"]), *([tensor("row", ["N"])] * stacked)],
    )
    results = ["last", "rows"][: 1 + stacked]
    return NODE("Loop", [trips, "", "x"], results, body=body)


FOREVER = [NODE("Identity", ["goes"], ["goes_on"])]
SMALL = [
    NODE("ReduceSum", ["h"], ["total"], keepdims=0),
    NODE("Less", ["total", "bound"], ["goes_on"]),
]
STORED = {"factor": np.array(1.5, np.float32), "bound": np.array(20.0, np.float32)}


def test_an_open_length_is_a_number_of_steps():
    nodes = [
        NODE("Shape", ["other"], ["shape"]),
        NODE("Gather", ["shape", "zero"], ["trips"]),
        powers(FOREVER),
    ]
    proto = model(
        nodes,
        [tensor("x", ["N"]), tensor("other", ["T", 2])],
        [tensor("last", ["N"]), tensor("rows", ["T", "N"])],
        {"factor": STORED["factor"], "zero": np.array(0)},
    )
    loaded = compare(proto, [{"x": numbers(3), "other": numbers(n, 2)} for n in (4, 1)])
    empty = loaded.computation(geon.NumPyTransformer())(numbers(3), numbers(0, 2))
    assert empty["rows"].shape == (0, 3)
    slope = geon.deriv(geon.sum(loaded.outputs["last"]), loaded.variables["factor"])
    f = geon.NumPyTransformer().computation(slope, *loaded.inputs.values())
    assert f(np.ones(2), np.ones((3, 2))) == pytest.approx(2 * 3 * 1.5**2)


def test_conditions_of_the_data_end_loops():
    proto = model(
        [powers(SMALL, "", stacked=False)],
        [tensor("x", ["N"])],
        [tensor("last", ["N"])],
        STORED,
    )
    compare(proto, [{"x": np.full(n, 1.0, np.float32)} for n in (1, 3)])
    limited = model(
        [powers(SMALL, "trips", stacked=False)],
        [tensor("x", ["N"]), tensor("trips", [], INT)],
        [tensor("last", ["N"])],
        STORED,
    )
    fed = [{"x": np.ones(2, np.float32), "trips": np.array(n)} for n in (2, 100)]
    compare(limited, fed)


def test_stacked_results_of_an_unknown_number_are_refused():
    outputs = [tensor("last", ["N"]), tensor("rows", ["T", "N"])]
    ends = model([powers(SMALL)], [tensor("x", ["N"])], outputs, STORED | {"trips": np.array(9)})
    with pytest.raises(frontend.ModelError, match="number of steps depends on values of a call"):
        frontend.load(ends)
    inputs = [tensor("x", ["N"]), tensor("trips", [], INT)]
    proto = model([powers(FOREVER)], inputs, outputs, STORED)
    with pytest.raises(frontend.UnknownValueError, match="number of steps of a loop .* on trips"):
        frontend.load(proto)
    x = numbers(2)
    compare(proto, [{"x": x, "trips": np.array(3)}], {"trips": np.array(3)})


def test_loops_that_change_shapes_are_built_step_by_step():
    body = graph(
        [NODE("Identity", ["goes"], ["goes_on"]), NODE("Concat", ["h", "x"], ["g"], axis=0)],
        [tensor("i", [], INT), tensor("goes", [], BOOL), tensor("h", None)],
        [tensor("goes_on", [], BOOL), tensor("g", None)],
    )
    proto = model(
        [NODE("Loop", ["trips", "", "x"], ["y"], body=body)],
        [tensor("x", [2, 3])],
        [tensor("y", None)],
        {"trips": np.array(3)},
    )
    loaded = compare(proto, [{"x": numbers(2, 3)}])
    assert loaded.outputs["y"].axes.lengths == (8, 3)


def test_scans_slice_any_position_and_read_tensors_with_their_axis():
    body = graph(
        [
            NODE("Add", ["h", "part"], ["g"]),
            NODE("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=0),
            NODE("MatMul", ["mean", "w"], ["mixed"]),
            NODE("Mul", ["g", "mixed"], ["row"]),
        ],
        [tensor("h", ["N"]), tensor("part", ["N"])],
        [tensor("g", ["N"]), tensor("row", ["N"])],
    )
    options = {
        "scan_input_axes": [1],
        "scan_input_directions": [1],
        "scan_output_axes": [-1],
        "scan_output_directions": [1],
    }
    proto = model(
        [NODE("Scan", ["h0", "x"], ["last", "rows"], body=body, num_scan_inputs=1, **options)],
        [tensor("h0", ["N"]), tensor("x", ["N", "T"])],
        [tensor("last", ["N"]), tensor("rows", ["N", "T"])],
        {"w": numbers(5, 1)},
    )
    proto.opset_import[0].version = 17
    fed = [{"h0": numbers(n), "x": numbers(n, 5)} for n in (3, 1)]
    loaded = compare(proto, fed)
    assert loaded.outputs["rows"].axes.names == ("N", "T")


def test_loops_are_nested_and_branches_are_taken_in_a_call():
    inner = graph(
        [NODE("Identity", ["go"], ["go_on"]), NODE("Mul", ["k", "factor"], ["m"])],
        [tensor("j", [], INT), tensor("go", [], BOOL), tensor("k", ["N"])],
        [tensor("go_on", [], BOOL), tensor("m", ["N"])],
    )
    inner.output.append(tensor("m", ["N"]))
    then = graph([NODE("Neg", ["q"], ["a"])], [], [tensor("a", ["N"])])
    other = graph([NODE("Add", ["q", "factor"], ["b"])], [], [tensor("b", ["N"])])
    outer = graph(
        [
            NODE("Identity", ["goes"], ["goes_on"]),
            NODE("Loop", ["two", "", "h"], ["q", "rows"], body=inner),
            NODE("ReduceSum", ["q"], ["total"], keepdims=0),
            NODE("Less", ["total", "bound"], ["small"]),
            NODE("If", ["small"], ["g"], then_branch=then, else_branch=other),
        ],
        [tensor("i", [], INT), tensor("goes", [], BOOL), tensor("h", ["N"])],
        [tensor("goes_on", [], BOOL), tensor("g", ["N"]), tensor("rows", [2, "N"])],
    )
    proto = model(
        [NODE("Loop", ["three", "", "x"], ["last", "rows"], body=outer)],
        [tensor("x", ["N"])],
        [tensor("last", ["N"]), tensor("rows", [3, 2, "N"])],
        STORED | {"two": np.array(2), "three": np.array(3)},
    )
    compare(proto, [{"x": np.array(v, np.float32)} for v in ([3.0, 4.0], [30.0], [-2.0, 1.0])])
