"""Commands of NNC: every row forward and backward, against finite differences and NumPy."""

import numpy as np
import pytest

import geon
from geon.frontends import nnc
from geon.frontends.nnc import cmd
from geon.frontends.nnc.commands import execution

RANDOM = np.random.default_rng(3)


def normal(*shape):
    return RANDOM.normal(size=shape)


def positive(*shape):
    return RANDOM.uniform(0.2, 0.8, size=shape)


IMAGE, LABELS = normal(2, 5, 4, 3), np.array([0, 2, 1], "int32")
ROIS = np.array([[0.1, 0.2, 0.5, 0.6], [0.3, 0.1, 0.6, 0.5]])
BOXES = np.array([[0.9, 0, 0, 2, 2], [0.3, 5, 5, 1, 1], [0.8, 0.1, 0, 2, 2]])
LSTM_SIZE = sum(np.prod(s) for s in nnc.lstm_shapes(2, 1, 2, True, True))
PROJECTED_SIZE = sum(np.prod(s) for s in nnc.lstm_shapes(2, 2, 1, True, True, 1))
# Inputs of each command that has a derivative, with attributes; several for one in a list.
CASES = {
    "add": [((normal(2, 3), normal(1, 3)), {"p": 2.0, "q": -0.5}), ((normal(2),), {"p": 3.0})],
    "mul": [((normal(2, 3), normal(3)), {"p": 2.0})],
    "cmul": [((normal(2, 4), normal(2, 4)), {})],
    "scalar_mul": [((normal(3),), {"a": 2.5})],
    "gemm": [
        ((normal(2, 3), normal(3, 4), normal(4)), {}),
        ((normal(3, 2), normal(4, 3)), {"transpose_a": True, "transpose_b": True}),
        ((normal(5, 2, 3), normal(5, 3, 1)), {}),
    ],
    "ewsum": [((normal(2, 3), normal(2, 3), normal(2, 3)), {})],
    "ewprod": [((normal(2, 3), normal(2, 3), normal(2, 3)), {})],
    "ewdiv": [((normal(3), positive(3)), {}), ((None, positive(3)), {})],
    "ewexp": [((normal(3),), {})],
    "ewlog": [((positive(3),), {})],
    "ewsqrt": [((positive(3),), {})],
    "clamp": [((normal(9),), {"min": -0.5, "max": 0.5})],
    "relu": [((normal(5),), {})],
    "leaky_relu": [((normal(5),), {"slope": 0.2})],
    "sigmoid": [((normal(5),), {})],
    "tanh": [((normal(5),), {})],
    "swish": [((normal(5),), {})],
    "gelu": [((normal(5),), {}), ((normal(5),), {"tanh": True})],
    "softmax": [((normal(2, 3),), {}), ((normal(2, 3),), {"axis": 0})],
    "max": [((normal(4), normal(4)), {})],
    "min": [((normal(4), normal(4)), {})],
    "convolution": [
        ((IMAGE, normal(4, 3, 2, 3), normal(4)), {"border": (1, 0), "stride": (1, 2)}),
        ((IMAGE, normal(3, 2, 2, 1)), {"groups": 3, "size": 2, "count": 3}),
    ],
    "convolution_transpose": [
        ((normal(1, 3, 3, 2), normal(2, 2, 2, 3), normal(3)), {"stride": 2, "output_padding": 1})
    ],
    "average_pool": [((IMAGE,), {"size": 2, "stride": 1, "border": 1})],
    "max_pool": [((IMAGE,), {"size": (3, 2)})],
    "upsample": [
        ((normal(1, 2, 3, 2),), {"type": "nearest", "scale": (2, 3)}),
        ((normal(1, 2, 3, 2),), {"type": "bilinear"}),
        ((normal(2, 3, 2),), {"type": "bilinear", "align_corners": True}),
    ],
    "pad": [
        ((normal(2, 3),), {"begin": (1, 2), "end": (0, 1)}),
        ((normal(2, 3),), {"begin": (1, 1), "type": "replicate"}),
    ],
    "batch_norm": [
        ((IMAGE, normal(3), normal(3), normal(3), positive(3)), {}),
        ((IMAGE, normal(3), normal(3), normal(3), positive(3)), {"is_test": True}),
        ((normal(4, 3),), {"axes": (0,)}),
    ],
    "layer_norm": [
        ((normal(4, 3), normal(3), normal(3)), {}),
        ((normal(2, 3, 2),), {"axes": (1, 2)}),
    ],
    "group_norm": [((normal(2, 3, 2, 4), normal(4), normal(4)), {"groups": 2})],
    "rmsnorm": [((normal(4, 3), normal(3)), {})],
    **{
        f"reduce_{name}": [((normal(2, 3, 4),), {"axes": (0, 2)}), ((normal(3),), {})]
        for name in ("sum", "mean", "max", "min", "norm2")
    },
    "binary_crossentropy": [((positive(3, 2), positive(3, 2)), {"pos_weight": 2.0})],
    "categorical_crossentropy": [
        ((positive(3, 4), LABELS), {"trim0": 0.05, "trim1": 0.85}),
        ((positive(3, 4), positive(3, 4)), {}),
    ],
    "sigmoid_binary_crossentropy": [((normal(3, 2), positive(3, 2)), {"pos_weight": 2.0})],
    "softmax_crossentropy": [((normal(3, 4), LABELS), {})],
    "mse": [((normal(3, 4), normal(3, 4)), {}), ((normal(3, 4), normal(3, 4)), {"reduce": "sum"})],
    "smooth_l1": [((normal(3, 4), normal(3, 4)), {"beta": 0.7})],
    "index_select": [((normal(4, 3), np.array([2, 0, 2])), {})],
    "masked_fill": [((normal(2, 3), np.array([0, 1, 0])), {"eq": 1, "fill": -9.0})],
    "transpose": [((normal(2, 3, 4),), {"axes": (0, 2)})],
    "format_transform": [((IMAGE,), {"to": "NCHW"}), ((normal(5, 4, 3),), {"to": "CHWN"})],
    "datatype_conversion": [((normal(3),), {"dtype": "float64"})],
    "data_transfer": [((normal(3), normal(2)), {})],
    "comm_allreduce": [((normal(3), normal(3)), {})],
    "comm_broadcast": [((normal(3),), {"count": 3})],
    "comm_reduce": [((normal(3), normal(3), normal(3)), {})],
    "lstm": [
        ((normal(3, 1, 2), None, None, None, 0.3 * normal(LSTM_SIZE)),
         {"hidden": 1, "layers": 2, "bidirectional": True}),
        ((normal(2, 3, 2), np.array([3, 1]), normal(1, 2, 1), normal(1, 2, 1), normal(12)),
         {"hidden": 1, "bias": False, "batch_first": True}),
        ((normal(2, 2, 2), np.array([2, 1]), normal(2, 2, 1), normal(2, 2, 2),
          0.3 * normal(PROJECTED_SIZE)), {"hidden": 2, "projection": 1, "bidirectional": True}),
    ],
    "scaled_dot_product_attention": [
        ((normal(2, 3, 2, 4), normal(2, 5, 2, 4), normal(2, 5, 2, 4)), {}),
        ((normal(1, 3, 4), normal(1, 3, 4), normal(1, 3, 4)), {"is_causal": True, "scale": 0.3}),
        ((normal(1, 3, 2, 2), normal(1, 3, 2, 2), normal(1, 3, 2, 2), normal(3, 3), normal(3, 4),
          normal(3)), {}),
    ],
    "nms": [((BOXES,), {"iou_threshold": 0.99})],
    "roi_align": [((normal(6, 5, 2), ROIS), {"size": (2, 3)})],
    "sgd": [((normal(3), normal(3), normal(3)), {"decay": 0.1, "nesterov": True})],
    **{
        name: [((normal(3), normal(3), normal(3), positive(3)), {"decay": 0.1, "rate": 0.1})]
        for name in ("adam", "adamw", "lamb", "rmsprop")
    },
    "custom": [((normal(3), normal(3)), {"function": nnc.cmd.mul().row.build})],
}  # fmt: skip
WITHOUT = {  # commands that have no derivative, or random results: see their own tests
    "argmax", "argmin", "reduce_isnan", "dropout", "set", "random_normal", "random_uniform",
    "histogram", "compression_lssc",
}  # fmt: skip


def tensors(inputs):
    return [None if x is None else nnc.Tensor(np.array(x), device="numpy") for x in inputs]


def run(command, inputs, outputs=None):
    found = nnc.cmd_exec(command, tensors(inputs), outputs)
    return [None if t is None else t.array for t in found]


def floats(arrays):
    return [k for k, a in enumerate(arrays) if a is not None and a.dtype.kind == "f"]


def check_derivative(command, inputs, seeds=None):
    """Compare each gradient of a weighted sum of the outputs with finite differences."""
    inputs = [None if x is None else np.array(x) for x in inputs]
    outputs = run(command, inputs)
    random = np.random.default_rng(0)
    seeds = [
        None if y is None or y.dtype.kind != "f" else random.normal(size=y.shape) for y in outputs
    ]
    gradients = run(command.backward, [*seeds, *inputs, *outputs])
    assert len(gradients) == len(inputs)
    for k in floats(inputs):
        flat, step = inputs[k].reshape(-1), 1e-6
        numeric = np.zeros_like(flat)
        for i in range(flat.size):
            kept, totals = flat[i], []
            for moved in (kept + step, kept - step):
                flat[i] = moved
                ys = run(command, inputs)
                totals.append(
                    sum(np.sum(s * y) for s, y in zip(seeds, ys, strict=True) if s is not None)
                )
            flat[i] = kept
            numeric[i] = (totals[0] - totals[1]) / (2 * step)
        np.testing.assert_allclose(gradients[k].reshape(-1), numeric, rtol=2e-5, atol=2e-6)
    return [*seeds, *inputs, *outputs]


def test_every_command_has_a_case_and_all_ids_are_known():
    assert CASES.keys() | WITHOUT == nnc.command_table().keys()
    assert len(nnc.command_table()) == 70  # with GRAPH, which loops and branches make, 71
    for name in nnc.command_table():
        forward = cmd(f"CCV_NNC_{name.upper()}_FORWARD")
        assert forward.is_forward and forward.id == f"CCV_NNC_{name.upper()}_FORWARD"
        assert cmd(f"CCV_NNC_{name.upper()}_BACKWARD").id == f"CCV_NNC_{name.upper()}_BACKWARD"


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_finite_differences(name):
    for inputs, attributes in CASES[name]:
        check_derivative(cmd(name, **attributes), inputs)


@pytest.mark.parametrize(
    "name",
    [
        *("mul", "gemm", "tanh", "softmax", "layer_norm", "softmax_crossentropy"),
        pytest.param("convolution", marks=pytest.mark.slow),
    ],
)
def test_backward_commands_have_derivatives_too(name):
    inputs, attributes = CASES[name][0]
    command = cmd(name, **attributes)
    outputs = run(command, inputs)
    seeds = [RANDOM.normal(size=y.shape) for y in outputs]
    check_derivative(command.backward, [*seeds, *inputs, *outputs])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"custom", "lstm"}))
def test_every_command_computes_the_same_on_native_code(name):
    for inputs, attributes in CASES[name]:
        command = cmd(name, **attributes)
        for mine, native in zip(
            run(command, inputs), run(command.on("native"), inputs), strict=True
        ):
            if mine is not None:
                np.testing.assert_allclose(mine, native, rtol=1e-9, atol=1e-12)


def test_the_inputs_that_a_backward_command_reads_follow_from_its_graph():
    p = nnc.TensorParam((2, 3))
    needs = {
        name: nnc.needed_inputs(cmd(name).backward, [p] * count)
        for name, count in (("tanh", 3), ("sigmoid", 3), ("ewexp", 3), ("mul", 4), ("add", 4))
    }
    assert needs == {
        "tanh": {0, 2},
        "sigmoid": {0, 2},
        "ewexp": {0, 2},
        "mul": {0, 1, 2},
        "add": {0},
    }
    g, y = positive(2, 3), positive(2, 3)
    (found,) = nnc.cmd_exec(cmd.tanh().backward, [g, nnc.TensorParam((2, 3), "float64"), y])
    np.testing.assert_allclose(found.array, g * (1 - y**2))


def test_inplace_follows_from_graph_and_names():
    p, row = nnc.TensorParam((2, 3)), nnc.TensorParam((1, 3))
    assert nnc.allows_inplace(cmd.add(), [p, row]) == {(0, 0)}
    assert nnc.allows_inplace(cmd.mul(), [p, p]) == {(0, 0), (1, 0)}
    assert nnc.allows_inplace(cmd.softmax(), [p]) == set()
    assert nnc.enforces_inplace(cmd.batch_norm()) == {(3, 1), (4, 2)}
    assert nnc.enforces_inplace(cmd.sgd()) == {(1, 0), (2, 1)}
    assert nnc.enforces_inplace(cmd.add()) == set()


def test_outputs_may_be_inputs():
    x = nnc.Tensor(np.arange(3.0), device="numpy")
    nnc.cmd_exec(cmd.add(q=2.0), [x, x], [x])
    assert x.numpy().tolist() == [0, 3, 6]
    array = np.zeros(3)
    nnc.cmd_exec(cmd.ewexp(), [np.zeros(3)], [array])
    assert array.tolist() == [1, 1, 1]


def test_dropout_keeps_what_its_mask_says_and_so_does_its_backward():
    x = np.ones((40, 50), "float32")
    y, mask = run(cmd.dropout(p=0.25, seed=5), [x])
    assert 0.7 < mask.mean() < 0.8
    np.testing.assert_allclose(y, mask / 0.75, rtol=1e-6)
    (dx,) = run(cmd.dropout(p=0.25).backward, [x, None, x, None, mask])
    np.testing.assert_array_equal(dx, y)
    y, mask = run(cmd.dropout(entirety=True), [x])
    assert mask.size == 1 and len(np.unique(y)) == 1
    with pytest.raises(geon.GeonError, match="dropout_backward.*random output.*is None; give it"):
        run(cmd.dropout().backward, [x, None, x, None, None])


def test_commands_without_inputs_take_the_shape_of_their_output():
    y = nnc.Tensor(shape=(300, 200), device="numpy")
    nnc.cmd_exec(cmd.random_normal(mean=2.0, std=3.0), [], [y])
    assert abs(y.array.mean() - 2) < 0.05 and abs(y.array.std() - 3) < 0.05
    nnc.cmd_exec(cmd.random_uniform(low=-1.0, high=3.0), [], [y])
    assert -1 <= y.array.min() < -0.99 and 2.99 < y.array.max() < 3
    nnc.cmd_exec(cmd.set(value=7), [], [y])
    assert (y.array == 7).all()
    with pytest.raises(geon.GeonError, match="random_normal.*give shape=, or an output"):
        nnc.cmd_exec(cmd.random_normal(), [])
    half = nnc.Tensor(shape=(2,), dtype="float16")
    nnc.cmd_exec(cmd.datatype_conversion(), [np.array([1.5, 2.5])], [half])
    assert half.array.tolist() == [1.5, 2.5]


def test_positions_nan_and_histograms():
    x = np.array([[0.5, np.nan, 2.0], [0.1, 0.9, -1.0]])
    assert run(cmd.reduce_isnan(axes=1), [x])[0].tolist() == [[1], [0]]
    assert run(cmd.argmax(axis=1), [x[1:]])[0].tolist() == [[1]]
    assert run(cmd.argmin(axis=1), [x[1:]])[0].tolist() == [[2]]
    counts, statistics = run(cmd.histogram(bins=2, min=0.0, max=1.0), [x[1]])
    assert counts.tolist() == [1, 1, 1, 0]
    np.testing.assert_allclose(statistics, [-1, 0.9, 0, 0.01 + 0.81 + 1], atol=1e-6)
    counts, _ = run(cmd.histogram(edges=(0.0, 0.5, 0.9)), [x[1]])
    assert counts.tolist() == [1, 1, 0, 1]


def test_boxes_that_overlap_better_ones_are_last():
    boxes, index = run(cmd.nms(iou_threshold=0.5), [BOXES])
    assert index.tolist() == [0, 1, -1]
    np.testing.assert_array_equal(boxes[:2], BOXES[:2])
    assert boxes[2, 0] < -1e38 and boxes[2, 1:].tolist() == BOXES[2, 1:].tolist()


def test_compression_keeps_four_levels_of_each_tile():
    x = (np.arange(2 * 6 * 8) % 7).reshape(2, 6, 8).astype("float16")
    (packed,) = run(cmd.compression_lssc(), [x])
    assert packed.nbytes == 2 * 2 * 2 * 8
    back = nnc.Tensor(shape=x.shape, dtype="float16", device="numpy")
    nnc.cmd_exec(cmd.compression_lssc().backward, [packed, None, None], [back])
    assert np.abs(back.array - x).max() <= 1.0  # a sixth of the range of 6
    (packed,) = run(cmd.compression_lssc(), [np.tile(np.arange(4, dtype="float16"), (4, 1))])
    (exact,) = run(cmd.compression_lssc(shape=(4, 4)).backward, [packed, None, None])
    assert exact.tolist() == [[0, 1, 2, 3]] * 4


def test_adam_counts_its_steps():
    step = nnc.Tensor(np.array(1), device="numpy")
    g, a, m, v = (nnc.Tensor(np.full(3, x), device="numpy") for x in (0.5, 1.0, 0.0, 0.0))
    for _ in range(3):
        nnc.cmd_exec(cmd.adam(rate=0.1), [g, a, m, v, None, step], [a, m, v, None, step])
    assert step.array == 4
    np.testing.assert_allclose(a.array, 1 - 0.3, rtol=1e-6)  # equal gradients: steps of the rate


def test_hints_give_the_wanted_shape():
    given, wanted = nnc.TensorParam((1, 15, 16, 3)), nnc.TensorParam((1, 8, 8, 4))
    command = nnc.hint_auto(cmd.convolution(size=3), given, wanted)
    (found,) = nnc.infer_params(command, [given, nnc.TensorParam((4, 3, 3, 3))])
    assert found.shape == wanted.shape


def test_autotune_chooses_a_backend_that_can_run_the_command():
    x = normal(4, 4)
    tuned = nnc.autotune(cmd.ewexp(), [x])
    assert tuned.backend in execution.available_backends()
    assert {"numpy", "native", "native-serial"} <= {*execution.available_backends()}
    for backend in (tuned.backend, "native-serial"):
        (y,) = nnc.cmd_exec(tuned.on(backend), [x])
        np.testing.assert_allclose(y.array, np.exp(x), rtol=1e-12)
    image = nnc.Tensor(normal(1, 3, 5, 4), format="NCHW")  # its copies have the layout, too
    assert nnc.autotune(cmd.convolution(), [image, normal(2, 3, 2, 2)]).backend is not None


def test_autotune_leaves_out_backends_that_cannot_run_the_command(monkeypatch):
    def fails_on_native(name, lane=None):
        if name == "native":
            raise geon.UnavailableError("no compiler")
        return transformer_of(name, lane)

    transformer_of = execution.transformer_of
    monkeypatch.setattr(execution, "available_backends", lambda: ["native", "numpy"])
    monkeypatch.setattr(execution, "transformer_of", fails_on_native)
    x = normal(3, 5)  # a shape for which no program is kept
    assert nnc.autotune(cmd.clamp(min=0.25), [x]).backend == "numpy"
    monkeypatch.setattr(execution, "available_backends", lambda: ["native"])
    with pytest.raises(geon.UnavailableError, match="no compiler"):
        nnc.autotune(cmd.clamp(min=0.25), [x])


def test_layouts_are_those_of_the_first_input():
    x, w = normal(2, 5, 4, 3), normal(4, 2, 2, 3)
    (mine,) = run(cmd.convolution(), [x, w])
    first = nnc.Tensor(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), format="NCHW", device="numpy")
    filters = nnc.Tensor(w.transpose(0, 3, 1, 2), format="NCHW")
    (other,) = nnc.cmd_exec(cmd.convolution(), [first, filters])
    assert other.format == "NCHW"
    np.testing.assert_allclose(other.array.transpose(0, 2, 3, 1), mine)
    (turned,) = nnc.cmd_exec(cmd.format_transform(to="NHWC"), [other])
    assert turned.format == "NHWC" and turned.shape == mine.shape
    # The layout of a backward command is that of the forward one's input.
    seed = nnc.Tensor(normal(*mine.shape), format="NHWC", device="numpy")
    (back,) = nnc.cmd_exec(cmd.format_transform(to="NHWC").backward, [seed, other, None])
    np.testing.assert_array_equal(back.array, seed.array.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: run(cmd.gemm(), [normal(2, 3), normal(2, 3)]),
         r"command gemm of float64\(.*: the summed lengths are 3 and 2"),
        (lambda: run(cmd.add(), [normal(2, 3), normal(4)]), "command add .*dimension 1 is 3"),
        (lambda: run(cmd.mul(), []), r"command mul .*inputs \(a, b\).*was given 0"),
        (lambda: run(cmd.gemm(), [None, normal(3)]), "the input a is None; give a tensor"),
        (lambda: cmd.gemm(turn=True), "gemm has no attribute 'turn'; its .* are transpose_a"),
        (lambda: cmd("CCV_NNC_GEM_FORWARD"), "there is no command 'CCV_NNC_GEM_FORWARD'"),
        (lambda: run(cmd.tanh().backward, [normal(3)]), "takes the gradients of all outputs"),
        (lambda: nnc.cmd_exec(cmd.add(), [normal(3)], [nnc.Tensor(shape=(4,), dtype="float64")]),
         r"add: output 0 is float64\(4\).*give a tensor of shape \(3,\)"),
        (lambda: nnc.cmd_exec(
            cmd.mul().backward, [normal(3), nnc.TensorParam((3,)), normal(3), None]),
         "mul_backward reads input 1, which is"),
        (lambda: run(cmd.convolution(count=5), [IMAGE, normal(4, 2, 2, 3)]), "count=5.*have 4"),
        (lambda: run(cmd.lstm(hidden=2), [normal(4, 2, 3), None, None, None, normal(3)]),
         "the weights are .*have 56 numbers"),
        (lambda: nnc.Tensor(shape=(2,), format="NWHC"), "format='NWHC' is none of NHWC"),
        (lambda: nnc.Tensor(shape=(2, 3)).view((2, 2), (0, 2)), "is not inside of a tensor"),
    ],
)  # fmt: skip
def test_what_does_not_fit_raises_with_the_command_and_the_cure(call, message):
    with pytest.raises(geon.GeonError, match=message):
        call()


def test_tensors_share_memory_with_arrays_views_and_files(tmp_path):
    array = np.arange(12, dtype="float32").reshape(3, 4)
    x = nnc.Tensor(array)
    part = x.view((2, 2), (1, 0), (1, 2))
    part.zero()
    assert array.tolist() == [[0, 1, 2, 3], [0, 5, 0, 7], [0, 9, 0, 11]]
    assert x.view((4, 3)).address == x.address == array.ctypes.data
    assert nnc.Tensor(shape=(5,)).address % 64 == 0
    nnc.write_tensors(tmp_path / "a.safetensors", {"x": x})
    again = nnc.read_tensors(tmp_path / "a.safetensors")["x"]
    assert again.equals(x) and not again.equals(part)
    halves = nnc.Tensor(np.arange(3), dtype=geon.constant(1, dtype="bfloat16").dtype)
    nnc.write_tensors(tmp_path / "b.safetensors", {"h": halves, "array": array})
    assert nnc.read_tensors(tmp_path / "b.safetensors")["h"].equals(halves)
    (tmp_path / "a.safetensors").write_bytes(b"PK damaged")
    with pytest.raises(geon.CheckpointError, match="is no safetensors file, or"):
        nnc.read_tensors(tmp_path / "a.safetensors")
    array.tofile(tmp_path / "raw")
    assert nnc.map_tensor(tmp_path / "raw", nnc.TensorParam((2, 4)), 16).equals(array[1:])
    with pytest.raises(geon.CheckpointError, match="cannot be mapped"):
        nnc.map_tensor(tmp_path / "raw", nnc.TensorParam((9, 4)))
    x.resize((2, 3))
    assert x.address == array.ctypes.data and x.shape == (2, 3)
    x.resize((9, 9))
    assert x.shape == (9, 9)
