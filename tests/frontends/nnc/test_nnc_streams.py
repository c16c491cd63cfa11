"""Streams and signals on a GPU: CUDA streams and events, here of a simulated one.

It does the work of streams late and in an order that it draws; see ``tests/cuda/test_streams.py``.
"""

import functools
import random
import threading

import numpy as np
import pytest

import geon
from geon.frontends import nnc
from geon.frontends.nnc import Tensor, cmd
from geon.frontends.nnc.commands import execution
from geon.frontends.nnc.streams import current_stream
from geon.transformers.pycuda.runtime import gpu, host
from tests.cuda import fake_cuda
from tests.cuda.devices import transformer_on
from tests.cuda.queues import Place

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")


class Lanes:
    """The simulated GPU, with the transformer of each of its streams."""

    def __init__(self, driver):
        self.driver, self.scheduler = driver, driver.device.scheduler
        self.first = gpu.GpuDevice(0)
        self.lock, self.made = threading.Lock(), {None: transformer_on(self.first)}

    def transformer(self, lane=None):
        with self.lock:
            if lane not in self.made:
                self.made[lane] = transformer_on(gpu.GpuDevice(0, self.first.owner))
            return self.made[lane]

    def queue(self, stream):
        return self.transformer(stream.lane).device.stream.queue

    def block(self, stream):
        """Let the work of a stream on the GPU wait for the call of what this returns."""
        gate = self.scheduler.queue()
        self.queue(stream).follow(Place(gate, 1, {}))
        return lambda: gate.add(lambda: None)


@pytest.fixture
def lanes(monkeypatch):
    driver = fake_cuda.Driver().install(monkeypatch)
    found, known = Lanes(driver), execution.transformer_of

    def transformer_of(backend, lane=None):
        return found.transformer(lane) if backend[:3] == "gpu" else known(backend, lane)

    monkeypatch.setattr(execution, "transformer_of", transformer_of)
    monkeypatch.setattr("geon.frontends.nnc.concrete.transformer_of", transformer_of)
    monkeypatch.setattr(execution, "_programs", {})
    yield found
    driver.device.scheduler.run_all()
    assert not driver.wrong


@pytest.fixture
def streams():
    made = [nnc.Stream() for _ in range(3)]
    yield made
    for stream in made:
        stream.close()


def on_gpu(value, size=64):
    tensor = Tensor(shape=(size,), device="gpu")
    nnc.cmd_exec(cmd.set(value=value), [], [tensor])
    return tensor


def submitted(stream):
    """Wait until a stream has submitted its commands, which the GPU may not have done."""
    done = threading.Event()
    stream.submit(done.set)
    assert done.wait(20)


def test_commands_of_streams_are_on_cuda_streams_of_their_own(lanes, streams):
    x = on_gpu(2.0)
    lanes.first.synchronise()
    go_on = lanes.block(streams[0])
    outputs = [nnc.cmd_exec(cmd.scalar_mul(a=3.0), [x], stream=each)[0] for each in streams]
    for stream in streams:
        submitted(stream)
    for k in (1, 2):  # the first one is blocked
        streams[k].wait()
        assert outputs[k].equals(np.full(64, 6, "float32"))
    assert lanes.queue(streams[0]).waiting
    go_on()
    streams[0].wait()
    assert outputs[0].equals(np.full(64, 6, "float32"))
    queues = [lanes.queue(stream) for stream in streams]
    assert len({*queues}) == 3 and {*queues} <= {*lanes.scheduler.order}


def test_a_signal_is_an_event_that_another_stream_waits_for_on_the_device(lanes, streams):
    x, signal = on_gpu(2.0), nnc.Signal()
    go_on = lanes.block(streams[0])
    nnc.cmd_exec(cmd.ewexp(), [x], stream=streams[0])
    streams[0].emit(signal)
    streams[1].wait_for(signal)
    (after,) = nnc.cmd_exec(cmd.scalar_mul(a=3.0), [x], stream=streams[1])
    (beside,) = nnc.cmd_exec(cmd.scalar_mul(a=5.0), [x], stream=streams[2])
    submitted(streams[1])  # the host does not wait for the GPU
    ran = []
    streams[1].add_callback(lambda: ran.append(after.numpy()[0]))
    streams[2].wait()
    assert beside.equals(np.full(64, 10, "float32"))
    lanes.scheduler.run_what_can_be_run()
    assert lanes.queue(streams[1]).waiting and not signal.is_set() and not ran
    assert not signal.wait(0.01)
    place = lanes.queue(streams[0]).place()
    assert lanes.queue(streams[1]).follows(place)
    assert not lanes.queue(streams[2]).follows(place)
    go_on()
    assert signal.wait() and signal.wait(20) and signal.is_set()
    streams[1].wait()
    assert ran == [6.0]


def test_signals_that_were_waited_for_are_part_of_later_ones(lanes, streams):
    x, signals = on_gpu(2.0), [nnc.Signal(), nnc.Signal()]
    go_on = lanes.block(streams[0])
    nnc.cmd_exec(cmd.ewexp(), [x], stream=streams[0])
    streams[0].emit(signals[0])
    streams[1].wait_for(signals[0])
    streams[1].emit(signals[1])  # without a command in between
    streams[2].wait_for(signals[1])
    nnc.cmd_exec(cmd.ewexp(), [x], stream=streams[2])
    submitted(streams[2])
    assert lanes.queue(streams[2]).follows(lanes.queue(streams[0]).place())
    go_on()


def random_commands(lanes, streams, seed, steps=25):
    """Compute with tensors on streams in any order; each is written again by any of them.

    A stream waits for a signal of those that wrote and read what it uses.
    """
    choose = random.Random(seed)
    lanes.scheduler.random.seed(seed)
    tensors = [on_gpu(float(k)) for k in range(4)]
    values = [float(k) for k in range(4)]
    touched = [{0, 1, 2} - {0, 1, 2} for _ in tensors]  # streams that used each
    lanes.first.synchronise()
    for _ in range(steps):
        k, (a, b, out) = choose.randrange(3), [choose.randrange(4) for _ in range(3)]
        for other in {*touched[a], *touched[b], *touched[out]} - {k}:
            signal = nnc.Signal()
            streams[other].emit(signal)
            streams[k].wait_for(signal)
        nnc.cmd_exec(cmd.add(p=0.5, q=0.5), [tensors[a], tensors[b]], [tensors[out]], streams[k])
        values[out] = np.float32(np.float32(values[a] * 0.5) + np.float32(values[b] * 0.5))
        for used in (a, b, out):
            touched[used].add(k)
    for stream in streams:
        stream.wait()
    for tensor, value in zip(tensors, values, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), np.full(64, value, "float32"))


def test_random_commands_on_streams_compute_what_numpy_does(lanes, streams):
    for seed in range(6):
        random_commands(lanes, streams, seed)


@pytest.mark.parametrize("fault", ["follow", "wait"])
def test_a_missing_wait_gives_wrong_values(lanes, streams, monkeypatch, fault):
    monkeypatch.setattr(gpu.GpuDevice, fault, lambda self, mark: None)
    with pytest.raises(AssertionError):
        for seed in range(30):
            random_commands(lanes, streams, seed)
    for stream in streams:
        stream.submit(lanes.scheduler.run_all)


def test_a_schedule_runs_on_cuda_streams_which_later_runs_use_again(lanes):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(16, 16)).astype("float32")
    found = {}
    for device in ("cpu", "gpu"):
        g = nnc.SymbolicGraph()
        x = g.tensor((16, 16), device=device)
        (a,), (b,) = g.exec(cmd.tanh(), [x]), g.exec(cmd.ewexp(), [x])
        (c,) = g.exec(cmd.gemm(), [a, b])
        (d,) = g.exec(cmd.mul(), [c, b])
        compiled, arena, _ = g.compile([d], {x: Tensor(data, device=device)})
        schedule = compiled.static_schedule()
        assert schedule.streams == 2
        for _ in range(3):
            compiled.run_with_schedule(schedule)
        found[device] = arena.tensor(d).numpy().copy()
    np.testing.assert_allclose(found["gpu"], found["cpu"], rtol=1e-4)
    assert len(lanes.made) == 3  # that of the other commands, and two
    assert all(
        lanes.made[lane].device.stream.queue in lanes.scheduler.order
        for lane in lanes.made
        if lane is not None
    )


def test_random_graphs_compute_the_same_on_cuda_streams(lanes):
    """Graphs of parts, whose memory is shared, run three times on streams."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        lanes.scheduler.random.seed(seed)
        g = nnc.SymbolicGraph()
        made = [g.tensor((4, 3), device="gpu") for _ in range(2)]
        values = [rng.uniform(0.1, 0.4, size=(4, 3)).astype("float32") for _ in made]
        binds = {s: Tensor(v, device="gpu") for s, v in zip(made, values, strict=True)}
        for _ in range(10):
            i, j = rng.integers(len(made), size=2)
            kind = rng.integers(3)
            if kind == 0:
                made += g.exec(cmd.mul(), [made[i], made[j]])
                values.append(values[i] * values[j])
            elif kind == 1:
                made += g.exec(cmd.tanh(), [made[i]])
                values.append(np.tanh(values[i]))
            else:
                whole = g.tensor((4, 3), device="gpu")
                parts = [made[i].alias((2, 3), (1, 0)), made[j].alias((2, 3), (0, 0))]
                g.exec(cmd.add(), parts, [whole.alias((2, 3), (2, 0))])
                value = np.zeros((4, 3), "float32")
                value[2:] = values[i][1:3] + values[j][:2]
                made.append(whole)
                values.append(value)
        kept = [int(k) for k in rng.choice(len(made), 4, replace=False)]
        compiled, arena, _ = g.compile([made[k] for k in kept], binds)
        for _ in range(3):
            compiled.run_with_schedule(compiled.static_schedule())
            for k in kept:
                np.testing.assert_allclose(arena.tensor(made[k]).numpy(), values[k], rtol=1e-5)


def test_a_lane_is_a_named_stream_of_the_gpu_with_the_number(monkeypatch):
    fake_cuda.Driver().install(monkeypatch)
    monkeypatch.setattr(gpu, "devices", {})
    monkeypatch.setattr(gpu, "missing", lambda: None)
    made = [execution.transformer_of.__wrapped__("gpu:1", lane) for lane in (None, 0, 2)]
    assert [each.device for each in made] == [
        gpu.device(1, name) for name in (None, "nnc 0", "nnc 2")
    ]
    assert len({each.device.stream_number for each in made}) == 3
    stream = nnc.Stream()
    lanes = [execution.lane_of(name, stream) for name in ("gpu:1", "pycuda-generated", "cpu")]
    assert lanes == [stream.lane, stream.lane, None]
    stream.close()


def test_lanes_are_given_back():
    streams = [nnc.Stream() for _ in range(2)]
    numbers = [stream.lane for stream in streams]
    streams[0].close()
    again = nnc.Stream()
    assert again.lane == numbers[0] != numbers[1]
    streams[1].close()
    again.close()


def test_an_error_of_a_kernel_is_raised_by_wait_and_by_a_read(lanes, streams):
    x = on_gpu(1.0, 4)
    at = Tensor(np.array([0, 9], "int32"), device="gpu")
    (y,) = nnc.cmd_exec(cmd.index_select(), [x, at], stream=streams[0])
    with pytest.raises(geon.IndexRangeError, match="index_select|9 where the axis has length 4"):
        streams[0].wait()
    with pytest.raises(geon.IndexRangeError):
        y.numpy()
    (y,) = nnc.cmd_exec(cmd.scalar_mul(a=2.0), [x], stream=streams[0])
    streams[0].wait()
    assert y.equals(np.full(4, 2, "float32"))


def test_a_thread_knows_the_stream_whose_commands_it_runs(streams):
    seen = []
    for stream in streams:
        stream.submit(functools.partial(lambda s: seen.append(current_stream() is s), stream))
        stream.wait()
    assert seen == [True] * 3 and current_stream() is None


def test_commands_on_the_simulated_gpu_have_lanes_too(streams):
    x = Tensor(np.ones(4, "float32"))
    (y,) = nnc.cmd_exec(cmd.scalar_mul(a=2.0).on("cuda-on-host"), [x], stream=streams[0])
    (z,) = nnc.cmd_exec(cmd.scalar_mul(a=2.0).on("cuda-on-host"), [x], stream=streams[1])
    for stream in streams:
        stream.wait()
    assert y.equals(z) and y.equals(np.full(4, 2, "float32"))
    first, second = [execution.transformer_of("cuda-on-host", each.lane) for each in streams[:2]]
    assert first.device is not second.device and first.device.owner is second.device.owner
