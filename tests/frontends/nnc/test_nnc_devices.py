"""Tensors that stay on a GPU, here a simulated one that counts copies from and to the host."""

import numpy as np
import pytest

from geon.frontends import nnc
from geon.frontends.nnc import Tensor, cmd, cnnp
from geon.frontends.nnc.commands import execution
from geon.transformers.pycuda.runtime import host
from tests.cuda.devices import CountingDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")


@pytest.fixture
def gpu(monkeypatch):
    device = CountingDevice()
    with transformer_on(device) as made:
        known = execution.transformer_of
        monkeypatch.setattr(
            execution,
            "transformer_of",
            lambda name, lane=None: made if name[:3] == "gpu" else known(name),
        )
        monkeypatch.setattr("geon.frontends.nnc.concrete.transformer_of", execution.transformer_of)
        monkeypatch.setattr(execution, "_programs", {})
        yield device


def test_results_of_commands_stay_on_the_device_until_they_are_read(gpu):
    a = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    on_host = Tensor(a)
    x = Tensor(shape=(64, 64), device="gpu")
    nnc.cmd_exec(cmd.data_transfer(), [on_host], [x])
    assert gpu.moved == a.nbytes
    y = x
    for _ in range(3):
        (y,) = nnc.cmd_exec(cmd.tanh(), [y])
    assert y.device == "gpu" and gpu.moved == a.nbytes
    expected = np.tanh(np.tanh(np.tanh(a)))
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
    assert gpu.moved == 2 * a.nbytes
    y.numpy()[...] = 1  # the host's memory is the newest now
    np.testing.assert_allclose(nnc.cmd_exec(cmd.tanh(), [y])[0].numpy(), np.tanh(1), rtol=1e-5)
    assert gpu.moved == 4 * a.nbytes


def test_views_and_sizes_of_what_is_on_the_device(gpu):
    x = Tensor(shape=(4, 6), device="gpu")
    part = x.view((2, 6), (1, 0))
    nnc.cmd_exec(cmd.set(value=3.0), [], [x])
    moved = gpu.moved
    assert (part.shape, x.dtype) == ((2, 6), np.float32)  # facts, for which nothing is copied
    assert gpu.moved == moved
    nnc.cmd_exec(cmd.set(value=5.0), [], [part])
    (total,) = nnc.cmd_exec(cmd.reduce_sum(axes=0), [x])
    assert total.numpy().tolist() == [[16.0] * 6]
    assert part.equals(np.full((2, 6), 5, "float32"))
    nnc.cmd_exec(cmd.set(value=2.0), [], [x])
    assert part.equals(np.full((2, 6), 2, "float32"))
    x.resize((2, 3))
    nnc.cmd_exec(cmd.set(value=7.0), [], [x])
    assert x.equals(np.full((2, 3), 7, "float32"))


def test_tensors_over_one_memory_see_what_the_device_writes(gpu):
    x = Tensor(shape=(4, 6), device="gpu")
    nnc.cmd_exec(cmd.set(value=1.0), [], [x])
    seen, same = x.numpy(), Tensor(x, device="gpu")
    part = Tensor(x.view((2, 6), (1, 0)), device="gpu")
    nnc.cmd_exec(cmd.set(value=2.0), [], [same])
    assert (x.numpy() == 2).all() and (seen == 2).all() and (part.numpy() == 2).all()
    nnc.cmd_exec(cmd.set(value=3.0), [], [part])
    assert x.numpy().sum(1).tolist() == [12, 18, 18, 12]


def test_bound_tensors_of_the_device_stay_there(gpu):
    g = nnc.SymbolicGraph()
    (x,) = (g.tensor((64,), device="gpu"),)
    (y,) = g.exec(cmd.scalar_mul(a=2.0), [x])
    first, second = (Tensor(shape=(64,), device="gpu") for _ in range(2))
    for tensor, value in ((first, 1.0), (second, 5.0)):
        nnc.cmd_exec(cmd.set(value=value), [], [tensor])
    compiled, arena, _ = g.compile([y], {x: first})
    before = gpu.moved
    compiled.run()
    assert gpu.moved == before
    assert arena.tensor(y).equals(np.full(64, 2, "float32"))
    arena.bind(x, second)
    compiled.run()
    assert arena.tensor(y).equals(np.full(64, 10, "float32"))


def test_arrays_of_the_caller_are_written(gpu):
    memory = np.zeros((8, 8), "float32")
    nnc.cmd_exec(cmd.set(value=3.0), [], [Tensor(memory, device="gpu")])
    assert (memory == 3).all()


@pytest.mark.parametrize("on_streams", [False, True])
def test_weights_and_states_stay_on_the_device_between_runs(gpu, on_streams):
    """A step moves the data that it is given and the loss; weights move when they are read."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(32, 64)).astype("float32")
    target = (data @ rng.normal(size=(64, 64))).astype("float32")
    losses = {}
    for device in ("cpu", "gpu"):
        g = nnc.SymbolicGraph()
        x, t, w = (g.tensor(s, device=device) for s in ((32, 64), (32, 64), (64, 64)))
        (y,) = g.exec(cmd.gemm(), [x, w])
        (loss,) = g.exec(cmd.mse(), [y, t])
        step = g.minimize(cmd.adam(rate=0.05, scale=1 / 32), [loss], [w])
        compiled, arena, _ = g.compile(
            [loss, step.updated[0]],
            {x: Tensor(data, device=device), t: Tensor(target, device=device)},
        )
        losses[device] = []
        for k in range(4):
            before = gpu.moved
            if on_streams:
                compiled.run_with_schedule(compiled.static_schedule())
            else:
                compiled.run()
            losses[device].append(arena.tensor(loss).numpy().sum())
            if device == "gpu" and k and not on_streams:
                assert 0 <= gpu.moved - before - (2 * data.nbytes + 32 * 4) <= 64
        found = arena.tensor(step.updated[0]).numpy()
        losses[device].append(found.sum())
        assert arena.tensor(step.updated[0]).address == arena.tensor(w).address
    np.testing.assert_allclose(losses["gpu"], losses["cpu"], rtol=2e-3)
    assert losses["gpu"][3] < losses["gpu"][0]


def test_a_model_moves_the_batch_and_the_losses(gpu):
    """Parameters and states of minimisers stay on the device from the first step on."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 64)).astype("float32")
    labels = rng.integers(0, 64, 32).astype("int32")
    model = cnnp.Sequential([cnnp.dense(64), cnnp.relu(), cnnp.dense(64)])
    model.compile(
        x,
        minimizer=cmd.adam(rate=0.02),
        loss=cmd.softmax_crossentropy(),
        transformer=execution.transformer_of("gpu"),
    )
    losses, slack = [], 4096  # bytes of scalars and biases
    for k in range(4):
        before = gpu.moved
        losses.append(model.fit(x, labels).mean())
        held = 2 * 64 * 64 * 4 * 3  # weights and both moments come once
        assert gpu.moved - before <= x.nbytes + (held if k == 0 else 0) + slack
    assert losses[3] < 0.8 * losses[0]
    before = gpu.moved
    for _ in range(3):
        model(x)
    assert gpu.moved - before <= 3 * (x.nbytes + 32 * 64 * 4) + slack
    before = gpu.moved
    weights = model.parameters("weight").numpy()
    assert gpu.moved - before == sum(w.nbytes for w in weights)
    outputs = model.evaluate(x, requires_grad=True)
    before = gpu.moved
    model.backward(np.ones_like(outputs))
    model.apply_gradients()
    assert gpu.moved - before <= 2 * x.nbytes + outputs.nbytes + slack
    changed = model.parameters("weight").numpy()
    assert not any(np.array_equal(a, b) for a, b in zip(weights, changed, strict=True))
    model.parameters().map(np.zeros_like)
    assert not model(x).any()


def test_a_device_without_the_tensor_reads_it_from_the_host(gpu):
    x = Tensor(shape=(3,), device="gpu")
    nnc.cmd_exec(cmd.set(value=2.0), [], [x])
    (y,) = nnc.cmd_exec(cmd.mul(p=2.0).on("numpy"), [x, x])
    assert y.numpy().tolist() == [8.0] * 3


def test_autotune_tries_the_gpu_that_has_the_tensors(monkeypatch):
    asked = []
    known = execution.transformer_of
    monkeypatch.setattr(execution, "available_backends", lambda: ["pycuda", "numpy"])
    monkeypatch.setattr(
        execution, "transformer_of", lambda name, lane=None: asked.append(name) or known("numpy")
    )
    monkeypatch.setattr(execution, "_programs", {})
    tuned = nnc.autotune(cmd.ewexp(), [Tensor(np.ones(4, "float32"), device="gpu:1")])
    assert asked == ["pycuda:1", "numpy"] and tuned.backend in asked
