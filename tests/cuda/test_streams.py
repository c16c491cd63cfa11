"""Streams of one GPU: what runs side by side, what waits, and who gets memory when.

The simulated GPU does the work of streams late and in an order that it draws. A wait that is
missing, or memory that is given away early, gives wrong values for some seed.
"""

import ctypes
import random
import threading

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.launches.memory import DeviceArray, DeviceMemory
from geon.transformers.pycuda.products import library_dispatch
from geon.transformers.pycuda.runtime import calls, gpu, host, primary_context
from geon.transformers.pycuda.transformer import PyCudaTransformer

from . import fake_cuda, fake_cudnn
from .devices import transformer_on
from .queues import Place

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
C = geon.Axis("C", 40)
x, y = geon.placeholder([C], name="x"), geon.placeholder([C], name="y")


@pytest.fixture
def driver(monkeypatch):
    made = fake_cuda.Driver().install(monkeypatch)
    yield made
    made.device.scheduler.run_all()
    assert not made.wrong


class Programs:
    """Computations of transformers, each of another stream of one GPU."""

    def __init__(self, transformers):
        self.transformers = transformers
        self.memories = [each.memory for each in transformers]
        results = {"mean": (x + y) * 0.5, "half": x * 0.5}
        args = {"mean": (x, y), "half": (x,)}
        self.f = [
            {name: each.computation(results[name], *args[name], on_device=True) for name in results}
            for each in self.transformers
        ]
        self.on_host = [each.computation(x * 0.5, x) for each in self.transformers]

    def begin(self, seed):
        """Prepare a random program."""


class Streams(Programs):
    """Those of three streams of the simulated GPU."""

    def __init__(self, driver):
        devices = [gpu.GpuDevice(0)]
        devices += [gpu.GpuDevice(0, devices[0].owner) for _ in range(2)]
        super().__init__([transformer_on(device) for device in devices])
        self.driver, self.scheduler = driver, driver.device.scheduler
        self.queues = [device.stream.queue for device in devices]

    def begin(self, seed):
        """Draw another order of work, and give spare memory back to the driver."""
        self.scheduler.run_all()
        self.scheduler.random.seed(seed)
        self.transformers[0].device.memory.spare.clear()

    def block(self, number):
        """Let a stream wait for the call of what this returns."""
        gate = self.scheduler.queue()
        self.queues[number].follow(Place(gate, 1, {}))
        return lambda: gate.add(lambda: None)


@pytest.fixture
def streams(driver, monkeypatch):
    monkeypatch.setattr(calls, "MAX_CALLS_IN_FLIGHT", 8)  # more work that is not done yet
    return Streams(driver)


def numbers(seed):
    return np.random.default_rng(seed).normal(size=40).astype(np.float32)


WEIGHTS = {"in": 3, "half": 4, "mean": 12, "drop": 15, "read": 1, "call": 1}


def random_program(streams, seed, steps=60):
    """Compute, read and drop arrays on streams in turn; compare with NumPy."""
    choose, k = random.Random(seed), 0
    streams.begin(seed)
    arrays, started = [], []  # (array on the device, its elements), and (call, the elements)
    for step in range(steps):
        if choose.random() < 0.3:
            k = choose.randrange(len(streams.f))
        what = choose.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        if what == "in" or not arrays:
            elements = numbers(1000 * seed + step)
            arrays.append((streams.memories[k].copy_in(elements), elements))
        elif what in ("half", "mean"):
            given = [choose.choice(arrays) for _ in range(2 if what == "mean" else 1)]
            call = streams.f[k][what].start(*[array for array, _ in given])
            expected = sum(elements for _, elements in given) * np.float32(0.5)
            arrays.append((call.on_device(), expected))
            started = [*started[-3:], (call, expected)]
        elif what == "drop":
            arrays.pop(choose.randrange(len(arrays)))
        elif what == "read":
            array, elements = choose.choice(arrays)
            np.testing.assert_array_equal(np.asarray(array), elements)
        elif what == "call":
            elements = numbers(1000 * seed + step)
            found = streams.on_host[k](elements)
            np.testing.assert_array_equal(found, elements * np.float32(0.5))
        if started and choose.random() < 0.05:
            call, elements = choose.choice(started)
            np.testing.assert_array_equal(np.asarray(call.result()), elements)
    for array, elements in arrays:
        np.testing.assert_array_equal(np.asarray(array), elements)


SEEDS = range(12)


def test_random_programs_on_streams_compute_what_numpy_does(streams):
    for seed in SEEDS:
        random_program(streams, seed)
    assert len({*streams.scheduler.order} & {*streams.queues}) == 3


FAULTS = {
    "no stream waits for another": (gpu.GpuDevice, "follow", lambda self, mark: None),
    "blocks of other streams are taken at once": (
        primary_context.SpareBlock, "is_idle", lambda self: True,
    ),
    "readers on other streams are forgotten": (
        DeviceArray, "read_by", lambda self, device, mark: None,
    ),
    "results are taken for written": (
        DeviceArray, "end_of_writing", lambda self: self.before_all,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_wait_gives_wrong_values(streams, monkeypatch, fault):
    monkeypatch.setattr(DeviceArray, "before_all", streams.transformers[0].device.mark(), False)
    monkeypatch.setattr(*FAULTS[fault])
    assert any(is_wrong(streams, seed) for seed in range(60))


def is_wrong(streams, seed):
    try:
        random_program(streams, seed)
    except AssertionError:
        return True
    return False


def test_a_stream_computes_while_another_one_is_blocked(streams):
    """All that the host waits for is of one stream, and so is what it submits."""
    first, second = streams.transformers[:2]
    elements = numbers(0)
    for _ in range(3):  # graphs are captured
        streams.on_host[0](elements)
    go_on = streams.block(0)
    blocked = [streams.on_host[0].start(elements), streams.f[0]["half"].start(elements)]
    for k in range(4):
        np.testing.assert_array_equal(streams.on_host[1](elements * k), elements * k / 2)
        array = streams.f[1]["half"](elements * k)
        np.testing.assert_array_equal(np.asarray(array), elements * k / 2)
        del array
    w = geon.Variable([C], initial_value=1, name="w")
    step = second.computation(geon.assign(w, w + x), x)
    for _ in range(3):
        step(elements)
    np.testing.assert_array_equal(second.get(w).shape, (40,))
    second.device.synchronise()
    assert not any(each.done() for each in blocked)
    go_on()
    for each in blocked:
        np.testing.assert_array_equal(np.asarray(each.result()), elements / 2)


def test_a_reader_on_another_stream_waits_on_the_device(streams):
    elements = numbers(1)
    go_on = streams.block(0)
    value = streams.f[0]["half"].start(elements).on_device()
    reader = streams.f[1]["half"].start(value)  # the host goes on
    beside = streams.f[2]["half"].start(elements)
    np.testing.assert_array_equal(np.asarray(beside.result()), elements / 2)
    assert not reader.done()
    go_on()
    np.testing.assert_array_equal(np.asarray(reader.result()), elements / 4)


def test_a_reader_waits_for_what_it_reads_and_for_no_later_work(streams):
    elements = numbers(2)
    values = [streams.f[0]["half"].start(elements * k).on_device() for k in range(3)]
    go_on = streams.block(0)
    later = streams.f[0]["half"].start(values[0])
    found = streams.f[1]["mean"](values[1], values[2])
    np.testing.assert_array_equal(np.asarray(found), (elements / 2 + elements) / 2)
    assert not later.done()
    go_on()
    later.result()


def test_memory_of_a_blocked_stream_is_not_given_to_another(streams):
    elements = numbers(3)
    value = streams.memories[0].copy_in(elements)
    address = value.address
    go_on = streams.block(0)
    reader = streams.f[0]["half"].start(value)
    del value
    others = [streams.memories[1].copy_in(elements) for _ in range(3)]
    assert address not in [each.address for each in others]
    assert streams.memories[0].allocate((40,), np.float32).address == address  # in its order
    go_on()
    np.testing.assert_array_equal(np.asarray(reader.result()), elements / 2)
    streams.transformers[0].device.synchronise()
    others += [streams.memories[1].copy_in(elements) for _ in range(9)]
    assert address in [each.address for each in others]


def test_memory_that_another_stream_reads_is_used_after_that(streams):
    elements = numbers(7)
    value = streams.memories[0].copy_in(elements)
    address = value.address
    go_on = streams.block(1)
    reader = streams.f[1]["half"].start(value)
    del value
    again = streams.memories[0].copy_in(-elements)
    assert again.address == address
    streams.scheduler.run_what_can_be_run()
    assert streams.queues[0].waiting
    go_on()
    np.testing.assert_array_equal(np.asarray(reader.result()), elements / 2)
    np.testing.assert_array_equal(np.asarray(again), -elements)


def test_a_full_device_gives_memory_of_another_stream_behind_an_event(streams):
    size, driver = 4096, streams.driver
    elements = np.arange(size // 4, dtype=np.float32)
    value = streams.memories[0].copy_in(elements)
    address, copied = value.address, np.empty_like(elements)
    go_on = streams.block(0)
    streams.transformers[0].device.copy_out(copied, address)
    del value
    driver.total = sum(driver.taken.values())
    again = streams.memories[1].copy_in(-elements)  # the host does not wait
    assert again.address == address
    go_on()
    np.testing.assert_array_equal(np.asarray(again), -elements)
    streams.transformers[0].device.synchronise()
    np.testing.assert_array_equal(copied, elements)


def test_a_copy_of_another_streams_array_is_a_read_of_it(streams):
    w = geon.Variable([C], initial_value=0, name="w")
    elements = numbers(4)
    streams.transformers[1].set(w, elements)
    value = streams.memories[0].copy_in(elements + 1)
    address = value.address
    go_on = streams.block(1)
    streams.memories[1].copy_in(streams.memories[1].shown(value))
    del value
    again = streams.memories[0].copy_in(elements)
    assert again.address == address  # and its stream waits for the copy
    streams.scheduler.run_what_can_be_run()
    assert streams.queues[0].waiting
    go_on()
    np.testing.assert_array_equal(np.asarray(again), elements)


def test_other_libraries_get_what_is_written(streams):
    elements = numbers(5)
    for show in (DeviceArray.__dlpack__, lambda value: value.__cuda_array_interface__):
        value = streams.f[1]["half"].start(elements).on_device()
        show(value)
        held = (ctypes.c_float * 40).from_address(value.address)
        np.testing.assert_array_equal(np.array(held), elements / 2)


def test_threads_compute_on_streams_of_their_own(streams):
    wrong = []

    def calls(k):
        for n in range(12):
            value = streams.f[k]["half"](numbers(n))
            value = streams.f[k]["mean"](value, streams.on_host[k](numbers(n)))
            if not np.array_equal(np.asarray(value), numbers(n) / 2):
                wrong.append((k, n))

    threads = [threading.Thread(target=calls, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert streams.driver.captured_graphs


N, M = geon.Axis("N", 12), geon.Axis("M", 12)
a, b = geon.placeholder([N, M], name="a"), geon.placeholder([M, geon.Axis("K", 12)], name="b")
T, S = geon.Axis("T", 12), geon.Axis("S", 3)
image = geon.placeholder([N, T, M], name="image")
window = geon.placeholder([geon.Axis("K", 2), S, M], name="window")
LIBRARIES = {
    "products": ("cublaslt", lambda: geon.dot(a, b), [a, b]),
    "convolutions": (
        "cudnn",
        lambda: geon.convolution(image, window, {T: geon.Window(S, pad=1)}, [M]),
        [image, window],
    ),
    "matrices": ("cusolver", lambda: geon.linalg.cholesky(a, [N, M]), [a]),
    "transforms": ("cufft", lambda: geon.real(geon.fft.fft(a, axis=N)), [a]),
    "": ("", lambda: [geon.sum(a), geon.sort(a, N), geon.cumsum(a, M), geon.dot(a, b)], [a, b]),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_and_lanes_of_a_stream_work_in_its_order(driver, library, monkeypatch):
    """All begins after what was begun on the stream, while other streams are blocked."""
    monkeypatch.setattr(library_dispatch, "MIN_LIBRARY_MULADDS", 1)
    driver.cudnn = fake_cudnn.Fake(driver).install(monkeypatch)
    name, make, leaves = LIBRARIES[library]
    options = {library: name} if library else {}
    given = [np.full(leaf.axes.lengths, 0.5, np.float32) for leaf in leaves]
    if len(leaves[0].axes) == 2:
        given[0] += 5 * np.eye(12, dtype=np.float32)  # positive definite
    first = gpu.GpuDevice(0)
    with transformer_on(first, **options) as one:
        expected = one.computation(make(), *leaves)(*given)
    with transformer_on(gpu.GpuDevice(0, first.owner), **options) as transformer:
        f = transformer.computation(make(), *leaves)
        gate = driver.device.scheduler.queue()
        first.stream.queue.follow(Place(gate, 1, {}))
        for _ in range(3):
            found = f(*given)
        own = transformer.device.stream.queue
        own.follow(Place(gate, 1, {}))
        done = len(driver.device.scheduler.order)
        started = f.start(*given)
        driver.device.scheduler.run_what_can_be_run()
        assert len(driver.device.scheduler.order) == done
        gate.add(lambda: None)
        for values in (found, started.result()):
            for value, wanted in zip(as_list(values), as_list(expected), strict=True):
                np.testing.assert_array_equal(value, wanted)
    used = {
        "products": driver.multiplied,
        "convolutions": driver.cudnn.executed,
        "": driver.captured_graphs,
    }
    assert used.get(library, driver.called)


def as_list(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def test_streams_are_found_by_name_and_share_the_device(driver, monkeypatch):
    monkeypatch.setattr(gpu, "devices", {})
    monkeypatch.setattr(gpu, "missing", lambda: None)
    made = [
        PyCudaTransformer(number, stream=name)
        for number, name in ((0, None), (0, "a"), (0, "a"), (0, ("b", 1)), (1, "a"))
    ]
    default, first, same, second, other = [each.device for each in made]
    assert first is same and len({default, first, second, other}) == 4
    assert default.owner is first.owner is second.owner is not other.owner
    assert len({each.stream_number for each in (default, first, second)}) == 3
    assert made[0].target.name == made[1].target.name  # of one program on the disk
    with pytest.raises(geon.ArgumentError, match=r"stream=\[\] names no stream.*list.*hashable"):
        PyCudaTransformer(stream=[])
    assert DeviceMemory(first).holds(DeviceMemory(second).allocate((3,), np.float32))
    assert not DeviceMemory(first).holds(DeviceMemory(other).allocate((3,), np.float32))
    first.lost = "a kernel failed"
    with pytest.raises(geon.DeviceError, match="gpu 0 failed before"):
        second.allocate(8)
    other.allocate(8)


def test_streams_of_the_simulated_gpu_compute_as_one():
    with (
        geon.make_transformer("cuda-on-host", stream="a") as first,
        geon.make_transformer("cuda-on-host", stream="b") as second,
    ):
        assert first.device is not second.device
        value = first.computation(x * 0.5, x, on_device=True)(numbers(6))
        found = second.computation(x * 0.5, x)(value)
    np.testing.assert_array_equal(found, numbers(6) / 4)
