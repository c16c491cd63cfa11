"""CNNP models: derivatives of each, parameters, training, sharing, copies, files, errors."""

import threading

import numpy as np
import pytest

import geon
from geon.eager import evaluation
from geon.frontends import neon
from geon.frontends.nnc import cmd, cmd_exec, cnnp
from geon.frontends.nnc.dataframe import DataFrame
from geon.frontends.nnc.dynamic import DynamicGraph
from geon.frontends.nnc.tensors import Tensor, TensorParam
from geon.frontends.positional.values import as_array
from geon.op_graph.op_graph import post_order
from geon.testing.cases import for_each

from .model_cases import CASES, data, signed


def test_each_model_has_a_case():
    assert CASES.keys() == cnnp.MODELS.keys()
    assert not [name for name in cnnp.MODELS if not hasattr(cnnp, name)]


@for_each("name", sorted(CASES))
def test_derivatives_of_each_model(name):
    """By inputs and parameters, against central differences; outputs have the shapes of calls."""
    case = CASES[name]
    model = case.make()
    model.compile(*case.inputs)
    leaves, outputs, _ = model.trace(case.inputs, case.trains)
    found = model.evaluate(*case.inputs, is_test=not case.trains)
    found = found if isinstance(found, tuple) else (found,)
    assert [y.shape for y in found] == [tuple(y.shape) for y in outputs]
    total = 0.0
    for y in map(as_array, outputs):
        if y.dtype.kind == "f":
            total = total + geon.sum(geon.sin(geon.cast(y.tensor, "float64")))
    at = {leaf.tensor: np.squeeze(x) for leaf, x in zip(leaves, case.inputs, strict=True)}
    at |= {p.leaf: np.squeeze(p.numpy()) for p in model.parameters()}
    reached = {id(op) for op in post_order([total] if isinstance(total, geon.Tensor) else [])}
    at = {leaf: value for leaf, value in at.items() if id(leaf) in reached}
    if any(leaf.dtype.kind == "f" for leaf in at):
        geon.check_gradients(total, at, tolerance=2e-5)


def classifier(seed=0, **options):
    """A small network, compiled, and data that it can learn."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(96, 8)).astype("float32")
    labels = (x @ random.normal(size=(8, 3))).argmax(1).astype("int32")
    model = cnnp.Sequential(
        [cnnp.dense(16, name="hidden"), cnnp.batch_norm(), cnnp.relu(), cnnp.dense(3, name="out")]
    )
    settings = {"minimizer": cmd.adam(rate=0.05), "loss": cmd.softmax_crossentropy()}
    model.compile((96, 8), **settings | options)
    return model, x, labels


def test_fit_trains_to_a_figure(transformer):
    model, x, labels = classifier(transformer=transformer)
    losses = [model.fit(x, labels).mean() for _ in range(40)]
    assert losses[0] > 0.8 and losses[-1] < 0.05
    assert (model(x).argmax(1) == labels).mean() > 0.98
    running = model.parameters("state").numpy()
    assert np.abs(running[0]).max() > 0.1


def test_fit_data_trains_on_a_frame_and_hooks_may_cancel():
    model, x, labels = classifier()
    frame = DataFrame.from_array({"x": x, "label": labels}).shuffle(1)
    rows = frame.combine(size=32).iterate("x", "label", prefetch=2)
    means = model.fit_data(rows, epochs=12)
    assert len(means) == 12 and means[-1] < 0.2 < means[0]
    seen = []

    def hook(source, tag, loss):
        seen.append((source, tag, loss))
        if len(seen) == 4:
            model.cancel()

    model.notify_hook(hook)
    assert len(model.fit_data(rows, epochs=5)) == 2
    assert [tag for _, tag, _ in seen] == ["step"] * 4 and seen[0][0] is model
    threading.Timer(0.2, model.cancel).start()
    assert len(model.fit_data(rows, epochs=10_000)) < 10_000


def test_hooks_of_inner_models_are_notified():
    inner, seen = cnnp.relu(), []
    inner.notify_hook(lambda *given: seen.append(given))
    cnnp.Sequential([cnnp.Sequential([inner])]).notify("mode", 3)
    assert seen == [(inner, "mode", 3)]


def test_a_step_is_evaluate_backward_and_apply_gradients():
    model, x, labels = classifier(minimizer=neon.SGD(0.1))
    other = model.copy()
    other.compile(x, minimizer=neon.SGD(0.1))
    for left, right in zip(model.parameters().numpy(), other.parameters().numpy(), strict=True):
        assert np.array_equal(left, right)
    model.fit(x, labels)
    outputs = other.evaluate(x, requires_grad=True)
    chances = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    (by_x,) = other.backward(chances - np.eye(3)[labels])
    assert by_x.shape == x.shape
    other.apply_gradients()
    for left, right in zip(model.parameters().numpy(), other.parameters().numpy(), strict=True):
        assert np.allclose(left, right, rtol=1e-4, atol=1e-5)
    assert set(other.parameters().gradients) == {None}


def test_gradients_accumulate_are_clipped_and_mapped():
    model, x, _ = classifier()
    model.evaluate(x, requires_grad=True)
    model.backward()
    once = model.parameters().gradients
    model.evaluate(x, requires_grad=True)
    model.backward()
    chosen = model.parameters()
    for twice, one in zip(chosen.gradients, once, strict=True):
        assert np.allclose(twice, 2 * one, rtol=1e-3, atol=1e-3)
    chosen.clip_grad_norm(0.5)
    norm = np.sqrt(sum(np.square(g).sum() for g in chosen.gradients))
    assert np.isclose(norm, 0.5, rtol=1e-5)
    assert not chosen.gradients_isnan()
    chosen[:1].map_gradients(lambda g: g * np.nan)
    assert chosen.gradients_isnan() and not chosen[1:].gradients_isnan()


def test_frozen_parameters_stay_and_subsets_have_minimizers_of_their_own():
    model, x, labels = classifier(minimizer=cmd.sgd(rate=0.01))
    model.parameters("hidden.*").freeze()
    model.set_minimizer(neon.SGD(0.0), model.parameters("bias"))
    before = dict(zip(model.parameters().names, model.parameters().numpy(), strict=True))
    model.fit(x, labels)
    moved = {
        name
        for name, value in zip(model.parameters().names, model.parameters().numpy(), strict=True)
        if not np.array_equal(value, before[name])
    }
    assert moved == {"1.weight", "out.weight"}
    model.parameters().freeze()
    known = model.parameters().numpy()
    model.fit(x, labels)
    assert all(map(np.array_equal, known, model.parameters().numpy()))
    model.parameters("hidden.*").freeze(False)
    model.fit(x, labels)
    assert not np.array_equal(model.parameters("hidden.weight")[0].numpy(), before["hidden.weight"])


def test_a_model_that_is_called_twice_shares_its_parameters():
    shared, x, y = cnnp.dense(4, name="shared"), cnnp.input(), cnnp.input()
    model = cnnp.Model([x, y], [cnnp.mul()(shared(x), shared(y))])
    a, b = signed(3, 4).astype("float32"), signed(3, 4, seed=1).astype("float32")
    model.compile(a, b)
    assert model.parameters().names == ["shared.weight", "shared.bias"]
    weight, bias = model.parameters().numpy()
    assert np.allclose(model(a, b), (a @ weight.T + bias) * (b @ weight.T + bias), atol=1e-6)
    other = model.copy()
    other.compile(a, b)
    assert other.parameters().names == model.parameters().names
    assert np.array_equal(other(a, b), model(a, b))
    other.parameters("*").map(np.zeros_like)
    assert not other(a, b).any() and model(a, b).any()


def test_sharing_copying_and_mapping_between_models():
    one, x, labels = classifier()
    two = one.copy()
    two.compile(x, seed=3, minimizer=cmd.sgd(), loss=cmd.softmax_crossentropy())
    assert not np.allclose(one(x), two(x), atol=1e-2)
    average = two.parameters().numpy()
    two.parameters().zip_map(lambda mine, theirs: 0.9 * mine + 0.1 * theirs, one.parameters())
    for mean, mine, theirs in zip(two.parameters().numpy(), average, one.parameters().numpy(),
                                  strict=True):  # fmt: skip
        assert np.allclose(mean, 0.9 * mine + 0.1 * theirs, atol=1e-6)
    two.parameters().copy_from(one.parameters())
    assert np.array_equal(one(x), two(x))
    one.fit(x, labels)
    assert not np.array_equal(one.parameters()[0].numpy(), two.parameters()[0].numpy())
    two.parameters().share(one.parameters())
    two.fit(x, labels)
    assert np.array_equal(one.parameters()[0].numpy(), two.parameters()[0].numpy())
    one.parameters("bias").map(np.zeros_like)
    assert not two.parameters("bias", 1)[0].numpy().any()


def test_a_graph_of_models_with_several_outputs():
    x = cnnp.input()
    parts = cnnp.chunk(2, axis=1)(cnnp.dense(6)(x))
    left, right = (cnnp.extract(k)(parts) for k in range(2))
    model = cnnp.Model([x], [cnnp.add()(left, right), left])
    both, first = model(np.ones((2, 3), "float32"))
    assert both.shape == first.shape == (2, 3)


def test_a_dynamic_model_keeps_its_parameters_for_other_shapes():
    made = []

    def build(x):
        made.append(x.shape)
        return cnnp.Sequential([cnnp.dense(4), cnnp.reshape((x.shape[0] * 4,))])

    model = cnnp.dynamic(build)
    x = signed(3, 5).astype("float32")
    whole = model(x)
    assert np.allclose(model(x[:2]), whole[:8]) and made == [(3, 5), (2, 5)]
    assert model.parameters().names == ["0.weight", "0.bias"]


def test_absorb_takes_another_structure_and_keeps_the_parameters():
    old = cnnp.Sequential([cnnp.reshape((2, 6)), cnnp.dense(3)])
    x = signed(2, 2, 3).astype("float32")
    known = old(x)
    old.absorb(cnnp.Sequential([cnnp.reshape((4, 6)), cnnp.dense(3)]), (4, 2, 3))
    assert np.allclose(old(np.concatenate([x, x])), np.concatenate([known, known]))
    with pytest.raises(geon.AxisError, match="choose as many of equal shapes"):
        old.absorb(cnnp.Sequential([cnnp.dense(4)]), (4, 6))


def test_checkpointing_gives_the_same_gradients_in_less_memory():
    def network():
        parts = [cnnp.Sequential([cnnp.dense(64), cnnp.batch_norm(), cnnp.tanh(), cnnp.dense(64),
                                  cnnp.tanh()]) for _ in range(6)]  # fmt: skip
        return cnnp.Sequential(parts)

    x = signed(64, 64).astype("float32")
    plain, segmented = network(), network()
    for model in (plain, segmented):
        model.compile(x, minimizer=neon.SGD(0.1), loss=cmd.mse(), transformer="numpy")
    for part in segmented.parts:
        part.set_gradient_checkpointing()
    sizes = [model.memory_size(x) for model in (plain, segmented)]
    assert sizes[1] < 0.8 * sizes[0]
    for model in (plain, segmented):
        model.fit(x, np.zeros((64, 64), "float32"))
    for left, right in zip(plain.places(), segmented.places(), strict=True):
        pair = [owner.own[name].numpy() for _, owner, name in (left, right)]
        assert np.allclose(*pair, atol=1e-5), left[0]


def test_dropout_is_drawn_anew_in_training_alone():
    model = cnnp.dropout(0.5)
    x = np.ones((4, 50), "float32")
    assert np.array_equal(model(x), x)
    first, second = (model.evaluate(x, is_test=False) for _ in range(2))
    assert set(np.unique(first)) == {0.0, 2.0} and not np.array_equal(first, second)
    assert not cnnp.dropout(1.0).evaluate(x, is_test=False).any()
    whole = [cnnp.dropout(0.5, entirety=True).evaluate(x, is_test=False) for _ in range(2)]
    assert all(len(np.unique(y)) == 1 for y in whole)


def test_files_have_parameters_and_states_by_name(tmp_path):
    model, x, labels = classifier()
    model.fit(x, labels)
    file = tmp_path / "model.safetensors"
    model.write(file)
    other, _, _ = classifier(seed=0)
    assert not np.array_equal(model(x), other(x))
    other.read(file)
    assert np.array_equal(model(x), other(x))
    narrow = model.copy()
    narrow.compile((96, 7))
    before = narrow.parameters().numpy()
    with pytest.raises(geon.CheckpointError, match="hidden.weight"):
        narrow.read(file)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(geon.CheckpointError, match="cut off or damaged"):
        other.read(file)
    assert np.array_equal(before[0], narrow.parameters().numpy()[0])


def test_the_format_lists_parameters():
    model, _, _ = classifier()
    model.parameters("out.*").freeze()
    text = model.format()
    assert "hidden.weight            weight  float32(16, 8)" in text
    assert "out.bias                 bias    float32(3,) frozen" in text


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (
            lambda m, x, y: m.compile((96, 9)),
            geon.AxisError,
            r"model hidden of .*need weight of shape \(16, 9\), and it has \(16, 8\)",
        ),
        (
            lambda m, x, y: cnnp.matmul().compile((2, 3), (4, 5)),
            geon.AxisError,
            r"model matmul.*command gemm of .*the summed lengths are 3 and 4",
        ),
        (lambda m, x, y: m.parameters("w"), geon.ArgumentError, "'w' chooses no.*hidden.weight"),
        (lambda m, x, y: m.parameters("bias", 7), geon.ArgumentError, "number 7"),
        (lambda m, x, y: cnnp.dense(3).parameters("*"), geon.ArgumentError, "compile the model"),
        (lambda m, x, y: cnnp.relu(slope=1), geon.ArgumentError, "cnnp.relu.*'slope'.*it takes"),
        (lambda m, x, y: cnnp.dens, AttributeError, "no model 'dens'; the models are add"),
        (lambda m, x, y: m.backward(), geon.ArgumentError, "requires_grad=True.*before each"),
        (
            lambda m, x, y: m.evaluate(x, requires_grad=True) is m.backward(x),
            geon.AxisError,
            "gradient of output 0 is .* and must have the shape of",
        ),
        (lambda m, x, y: cnnp.relu().fit(x, y), geon.ArgumentError, "no loss; give compile"),
        (
            lambda m, x, y: m.compile(x, loss=cmd.mse()) or m.fit(x, x[:, :3]),
            geon.ArgumentError,
            "has no minimizer; give compile",
        ),
        (lambda m, x, y: m.set_minimizer(0.1), geon.ArgumentError, "0.1 moves no parameters"),
        (
            lambda m, x, y: m.parameters("out.bias")[0].set([1, 2]),
            geon.AxisError,
            r"shape \(2,\) for the parameter",
        ),
        (
            lambda m, x, y: m.parameters("weight").copy_from(m.parameters("bias")),
            geon.AxisError,
            "choose as many of equal shapes",
        ),
        (lambda m, x, y: cnnp.Sequential([geon.relu]), geon.ArgumentError, "parts=.*each a model"),
        (
            lambda m, x, y: cnnp.Model([], [cnnp.relu()(cnnp.input())]),
            geon.ArgumentError,
            "not among the 0 inputs",
        ),
        (
            lambda m, x, y: cnnp.add()(cnnp.input(), x),
            geon.ArgumentError,
            "tensors and results of models are mixed",
        ),
        (lambda m, x, y: cnnp.dynamic(lambda x: 3)(x), geon.ArgumentError, "returned 3; let it"),
        (lambda m, x, y: m([[1, 2], [3]]), geon.ArgumentError, "rows of different shapes"),
        (lambda m, x, y: m.fit_data([]), geon.ArgumentError, "an epoch of the data has no batch"),
        (
            lambda m, x, y: cnnp.convolution(4, 3).compile((2, 3)),
            geon.ArgumentError,
            "model convolution .* no batch of images: give 3 or 4 dimensions, NHWC",
        ),
        (
            lambda m, x, y: cnnp.convolution(6, 3, groups=4).compile((2, 5, 5, 4)),
            geon.ArgumentError,
            "groups=4 does not divide .* 4 and 6; give a number that does",
        ),
        (
            lambda m, x, y: cnnp.group_norm(3).compile((2, 4)),
            geon.ArgumentError,
            "groups=3 does not divide the channels.* 4; give",
        ),
        (
            lambda m, x, y: cnnp.embedding(5, 2).compile((2, 4)),
            geon.DTypeError,
            "model embedding of .*rows have integers for numbers",
        ),
        (lambda m, x, y: cnnp.dense(3).write("x"), geon.ArgumentError, "no parameters yet"),
    ],
)
def test_errors_say_what_is_wrong(make, error, match):
    with pytest.raises(error, match=match):
        make(*classifier())


# Devices, and steps that do not run ---------------------------------------------------------------


@pytest.mark.parametrize("devices", [["cpu", "cpu"], ["native", "numpy", "cpu"]])
def test_a_model_on_several_devices_takes_the_step_of_one(devices):
    """Without means over the batch in layers, replicas take the same steps as one device."""
    found = []
    for chosen in ([], devices):
        model, x, labels = classifier()
        model = cnnp.Sequential([cnnp.dense(16), cnnp.relu(), cnnp.dense(3)])
        loss = cmd.softmax_crossentropy()
        model.compile(minimizer=cmd.adam(rate=0.05, scale=1 / 94), loss=loss)
        model.set_data_parallel(chosen)
        losses = [model.fit(x[:94], labels[:94]) for _ in range(5)]
        assert losses[0].shape == (94,) + losses[0].shape[1:]
        found.append([*losses, model(x), *model.parameters().numpy()])
    for mine, reference in zip(*found, strict=True):
        np.testing.assert_allclose(mine, reference, rtol=2e-3, atol=1e-4)


def test_replicas_have_statistics_draws_and_frozen_parameters_of_their_own():
    model, x, labels = classifier(loss=cmd.softmax_crossentropy())
    model.parameters("out.*").freeze()
    before = model.parameters("out.*").numpy()
    model.set_data_parallel(["cpu", "cpu"])
    losses = [model.fit(x, labels).mean() for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]
    for mine, old in zip(model.parameters("out.*").numpy(), before, strict=True):
        assert np.array_equal(mine, old)
    state = model.parameters("state").numpy()[0]
    hidden = x @ model.parameters("hidden.weight")[0].numpy().T
    assert np.abs(state).max() > 0.1 and hidden.shape[1] == len(state)
    model.set_data_parallel([])
    assert (model(x).argmax(1) == labels).mean() > 0.9
    drop = cnnp.dropout(0.5)
    drop.set_data_parallel(["cpu", "cpu"])
    masks = drop.evaluate(np.ones((2, 64), "float32"), is_test=False)
    assert not np.array_equal(masks[0], masks[1])
    again = drop.evaluate(np.ones((2, 64), "float32"), is_test=False)
    assert not np.array_equal(masks[0], again[0])
    with pytest.raises(geon.ArgumentError, match=r"1 rows of data .* 2 devices cpu, cpu; give a"):
        drop(np.ones((1, 64), "float32"))
    with pytest.raises(geon.ArgumentError, match="give a list"):
        drop.set_data_parallel("cpu")


def test_replicas_run_side_by_side():
    """Each of two replicas waits until the other one has begun."""
    barrier = threading.Barrier(2)
    model = cnnp.dense(2)
    model.compile((4, 3), minimizer=cmd.sgd(), loss=cmd.mse())
    model.set_data_parallel(["cpu", "cpu"])
    x = np.ones((4, 3), "float32")
    model(x)
    for stream in model.replicas.streams:
        stream.submit(lambda: barrier.wait(20))
    model(x)
    assert not barrier.broken


def test_a_dry_run_leaves_parameters_and_states_as_they_were():
    found = []
    for is_dry in (False, True):
        model, x, labels = classifier()
        if is_dry:
            for is_test in (True, False):
                (param,) = model.dry_run(TensorParam((96, 8)), is_test=is_test)
                assert param == TensorParam((96, 3))
            states = model.parameters("state").numpy()
            assert [state.tolist() for state in states] == [[0.0] * 16, [1.0] * 16]
        losses = [model.fit(x, labels) for _ in range(3)]
        found.append([*losses, model.evaluate(x, is_test=False), model(x)])
    for mine, reference in zip(*found, strict=True):
        assert np.array_equal(mine, reference)
    model = cnnp.dense(3)
    assert model.dry_run((2, 4)) == [TensorParam((2, 3))] and len(model.parameters()) == 2
    with pytest.raises(geon.GeonError, match="model reshape"):
        cnnp.Sequential([cnnp.reshape((3, 3)), cnnp.dense(2)]).dry_run((2, 4))


def test_evaluate_runs_the_program_of_a_dry_run(monkeypatch):
    made = []
    model, x, _ = classifier()
    kept = evaluation._program
    monkeypatch.setattr(evaluation, "_program", lambda *a: made.append(1) or kept(*a))
    model.dry_run(x)
    assert len(made) == 1
    model.evaluate(x)
    assert len(made) == 1
    graph = DynamicGraph()
    (param,) = graph.dry_run(model, [graph.constant(x)], is_test=True)
    assert param.shape == (96, 3) and len(made) == 1


def test_an_lstm_with_projections_is_that_of_the_command():
    x = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32")
    model = cnnp.lstm(4, layers=2, bidirectional=True, projection=2, states=True)
    outputs = model(x)
    assert [y.shape for y in outputs] == [(5, 2, 4), (4, 2, 2), (4, 2, 4)]
    command = cmd.lstm(hidden=4, layers=2, bidirectional=True, projection=2)
    given = [x, None, None, None, model.parameters("weight")[0].numpy()]
    for mine, reference in zip(outputs, cmd_exec(command, given), strict=True):
        np.testing.assert_allclose(mine, reference.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(geon.ArgumentError, match="projection=4 of hidden=4; give 1 to 3"):
        cnnp.lstm(4, projection=4)(x)


LAYERS_AND_COMMANDS = {
    "convolution": (
        cnnp.convolution(6, (3, 2), stride=2, border=((1, 0), (0, 1)), groups=2),
        cmd.convolution(stride=2, border=((1, 0), (0, 1)), groups=2),
    ),
    "convolution_transpose": (
        cnnp.convolution_transpose(6, 3, stride=2, border=1, groups=2, output_padding=1),
        cmd.convolution_transpose(stride=2, border=1, groups=2, output_padding=1),
    ),
    "max_pool": (cnnp.max_pool(2, 1), cmd.max_pool(size=2, stride=1)),
    "average_pool": (cnnp.average_pool(3, 2, 1), cmd.average_pool(size=3, stride=2, border=1)),
    "batch_norm": (cnnp.batch_norm(), cmd.batch_norm(is_test=True)),
    "layer_norm": (cnnp.layer_norm(axes=(0, 2)), cmd.layer_norm(axes=(0, 2))),
    "rmsnorm": (cnnp.rmsnorm(axes=-2), cmd.rmsnorm(axes=-2)),
    "group_norm": (cnnp.group_norm(2, axis=1, axes=-1), cmd.group_norm(groups=2, axis=1, axes=-1)),
}


@for_each("name", sorted(LAYERS_AND_COMMANDS))
def test_layers_are_those_of_the_commands_in_each_layout(name):
    model, command = LAYERS_AND_COMMANDS[name]
    images = {"NHWC": (2, 5, 1, 4), "NCHW": (2, 4, 5, 3), "CHWN": (4, 5, 3, 1)}
    if name in ("convolution", "convolution_transpose", "average_pool"):
        images["NHWC"] = (5, 3, 4)  # a single image
    if name == "max_pool":
        images["NHWC"] = (2, 5, 2, 4)
    if name == "group_norm":
        images |= {"NHWC": (2, 4, 3, 3), "CHWN": (4, 4, 3, 2)}
    for layout, shape in images.items():
        made, x = model.copy(), signed(*shape).astype("float32")
        made.compile(x, format=layout, seed=1)
        for parameter in made.held():
            parameter.set(parameter.numpy() + data(*parameter.shape).astype("float32"))
        own = [parameter.numpy() for parameter in made.held()]
        tensors = [Tensor(each, format=layout) for each in (x, *own)]
        (wanted, *_) = cmd_exec(command, tensors)
        np.testing.assert_allclose(made(x), wanted.numpy(), rtol=2e-5, atol=2e-6)


def test_running_statistics_are_those_of_neon_in_half_precision_too():
    x = (10 * signed(6, 3)).astype("float16")
    model = cnnp.batch_norm(momentum=0.5)
    model.compile(x)
    model.evaluate(x, is_test=False)
    mean, var = model.parameters("state").numpy()
    assert mean.dtype == var.dtype == np.float32
    wide = x.astype("float32")
    np.testing.assert_allclose(mean, 0.5 * wide.mean(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(var, 0.5 + 0.5 * wide.var(0, ddof=1), rtol=1e-5)
    assert model.parameters().numpy()[0].dtype == np.float16
