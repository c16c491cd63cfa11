"""Programs on a device: what they take of its memory, and what a second call does."""

import gc

import numpy as np
import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.pycuda.launches.device import CudaSource, Signature
from geon.transformers.pycuda.launches.dialect import cuda_text
from geon.transformers.pycuda.runtime import host
from geon.transformers.pycuda.runtime.pinned_buffers import laid_out

from .devices import transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
A, B = geon.Axis("A"), geon.Axis("B")
x = geon.placeholder([A, B], name="x")


class CountingDevice(host.HostDevice):
    """The host device, which notes the most bytes that were taken at a time."""

    def __init__(self):
        super().__init__()
        self.sizes, self.most, self.launches, self.grids = {}, 0, 0, []

    def allocate(self, size):
        address = super().allocate(size)
        self.sizes[address] = size
        self.most = max(self.most, sum(self.sizes.values()))
        return address

    def free(self, address, readers=()):
        super().free(address, readers)
        del self.sizes[address]

    def launch(self, kernel, blocks, threads, words):
        self.launches += 1
        self.grids.append((blocks, threads))
        super().launch(kernel, blocks, threads, words)


@pytest.fixture
def counting():
    with transformer_on(CountingDevice()) as made:
        yield made


MEASURED = {
    "elements": geon.exp(x) + 1,
    "softmax": geon.softmax(x, normalization_axes=B),
    "sort": geon.sort(x, B),
    "everything": geon.sum(x),
    "columns": [geon.sum(x, reduction_axes=A), geon.max(x, reduction_axes=A)],
    "slope": geon.deriv(geon.sum(geon.square(geon.softmax(x, normalization_axes=B))), x),
    "long sums": geon.dot(x, geon.rename(x, {"B": "C"})),
    "products": geon.dot(geon.tanh(geon.dot(x, geon.rename(x, {"A": "C"}))), x),
}


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("shape", [(90, 70), (700, 30), (3, 2100)])
def test_peak_bytes_is_what_a_call_takes_of_the_device(counting, name, shape):
    f = counting.computation(MEASURED[name], x)
    values = np.random.default_rng(0).random(shape, np.float32)
    f(values)
    peak = f.peak_bytes(dict(zip((A, B), shape, strict=True)))
    assert counting.device.most == peak + values.nbytes


@pytest.mark.parametrize("name", MEASURED)
def test_peak_with_open_lengths_is_an_upper_bound(counting, name):
    f = counting.computation(MEASURED[name], x)
    bound = f.peak_bytes()
    for a, b in ((1, 1), (255, 3), (256, 3), (257, 3), (700, 1), (1, 700), (9000, 90)):
        most = bound if isinstance(bound, int) else bound.evaluate({"A": a, "B": b})
        assert f.peak_bytes({A: a, B: b}) <= most + 8 * 256


def test_a_peak_whose_scratch_alone_is_open_has_a_bound(counting):
    """Of a long sum of few results, parts are found side by side: how many is open."""
    m = geon.Axis("M")
    y = geon.placeholder([geon.Axis("A", 4), m], name="y")
    w = geon.placeholder([m, geon.Axis("K", 4)], name="w")
    f = counting.computation(geon.dot(y, w), y, w)
    bound = f.peak_bytes()
    assert isinstance(bound, int) and f"peak bytes: {bound}" in f.explain("plan")
    exact = [f.peak_bytes({m: length}) for length in (1, 300, 1 << 20)]
    assert exact[0] < exact[1] < exact[2] <= bound


def test_a_report_of_what_failed_comes_to_the_peak(counting):
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    f = counting.computation(geon.gather(x, at, A), x, at)
    given = np.ones((40, 30), np.float32), np.arange(7)
    f(*given)
    peak = f.peak_bytes({A: 40, B: 30, geon.Axis("T"): 7})
    _, inputs = laid_out([each.nbytes for each in given])
    assert counting.device.most == peak + inputs + 64
    taken = counting.device.most
    started = [f.start(*given) for _ in range(6)]
    assert counting.device.most == 2 * taken
    for each in started:
        np.testing.assert_array_equal(each.result(), np.ones((7, 30)))


@pytest.mark.parametrize("rows", [2, 64, 65])
def test_what_stays_on_the_device_takes_its_own_bytes(counting, rows):
    """Where it is brought to the host, each small one takes a multiple of 256."""
    f = counting.computation([x * 2, x * 3], x, on_device=True)
    values = np.ones((rows, 1), np.float32)
    f(values)
    counting.device.most = 0
    f(values)
    unused = -values.nbytes % 256
    assert counting.device.most == f.peak_bytes({A: rows, B: 1}) + values.nbytes - 2 * unused


def test_all_memory_is_given_back():
    device = CountingDevice()
    with transformer_on(device) as transformer:
        w = geon.Variable([B], initial_value=1, name="w")
        f = transformer.computation([x * w, geon.assign(w, w * 2)], x, lengths={B: 5})
        for _ in range(3):
            f(np.ones((2, 5), np.float32))
        assert device.sizes
    del f, transformer, w
    gc.collect()
    assert not device.sizes


def test_a_steady_call_allocates_nothing(counting):
    f = counting.computation(geon.exp(x), x)
    values = np.ones((3, 4), np.float32)
    f(values)
    kept = dict(counting.device.sizes)
    first, second = f(values), f(values * 2)
    assert counting.device.sizes == kept
    assert np.array_equal(first, np.full((3, 4), f(values)[0, 0]))  # the user's own
    assert second[0, 0] > first[0, 0]


def test_nothing_is_launched_for_nothing(counting):
    f = counting.computation(geon.exp(x), x)
    assert f(np.ones((0, 4), np.float32)).shape == (0, 4)
    assert counting.device.launches == 0


def test_values_are_aligned(counting):
    memory = counting.memory
    values = [memory.allocate((n,), np.uint8) for n in (1, 7, 255, 256, 257)]
    assert all(value.address and value.address % 256 == 0 for value in values)


def test_a_module_is_compiled_once(monkeypatch):
    text = 'extern "C" int geon_compiled_once() { return 1; }\n'
    path = host.shared_object(text)

    def refused(*args, **options):
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(host, "run_program", refused)
    assert host.shared_object(text) == path


def test_launches_follow_from_lengths(counting):
    """Blocks are as many as lengths say, and the same call gives the same bits."""
    f = counting.computation([geon.sum(geon.exp(x)), geon.softmax(x, normalization_axes=B)], x)
    values = np.random.default_rng(0).normal(size=(40, 3000)).astype(np.float32)
    seen = []
    for _ in range(2):
        counting.device.grids.clear()
        results = f(values)
        seen.append((list(counting.device.grids), [r.tobytes() for r in results]))
    assert seen[0] == seen[1]
    assert max(blocks for blocks, _ in seen[0][0]) <= 512


def test_nothing_is_done_after_a_check_that_fails(counting):
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    table = geon.Variable([geon.Axis("V", 9)], initial_value=1, name="table")
    step = geon.assign(table, table * 2)
    f = counting.computation([geon.gather(table, at, table.axes[0]), step], at)
    f([0, 8])
    with pytest.raises(geon.IndexRangeError):
        f([0, 1 << 40])  # it would be read far away
    assert np.array_equal(counting.get(table), np.full(9, 2))
    f([0])
    assert np.array_equal(counting.get(table), np.full(9, 4))


def test_more_than_is_free_is_refused_before_anything_is_allocated(counting, monkeypatch):
    f = counting.computation(geon.sort(x, B), x)
    values = np.ones((30, 40), np.float32)
    needed = f.peak_bytes({A: 30, B: 40}) + values.nbytes
    monkeypatch.setattr(counting.device, "room", lambda: needed - 1)
    message = rf"needs {needed:,} bytes and the device 'host' has {needed - 1:,} free; nothing was"
    with pytest.raises(geon.DeviceMemoryError, match=message):
        f(values)
    assert counting.device.most == 0
    monkeypatch.setattr(counting.device, "room", lambda: needed)
    f(values)


KERNEL = """
extern "C" __global__ void some_wait(float *x)
{
    if (threadIdx.x % 2 == 0) __syncthreads();
    else if (threadIdx.x % 32 == 1) __syncwarp(0xffffffffu);
    x[threadIdx.x] = 1;
}
"""


def test_threads_that_wait_for_one_another_are_an_error():
    device = host.HostDevice()
    signature = Signature("some_wait", ("float *",), True)
    kernels = device.load(CudaSource(cuda_text("prelude.cuh") + KERNEL), [signature])
    address = device.allocate(4 * 64)
    with pytest.raises(
        DeviceError, match=r"thread \d+ of block 0 waits at a barrier of its (warp|b)"
    ):
        device.launch(kernels["some_wait"], 1, 64, [address])
    device.free(address)


def test_text_that_does_not_compile_is_an_error():
    with pytest.raises(DeviceError, match="does not compile"):
        host.HostDevice().load(CudaSource("void f( {"), [])


@pytest.mark.parametrize("length", [1, 33, 1 << 12, (1 << 20) + 7])
def test_sums_keep_their_digits(length):
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation([geon.sum(x), geon.sum(x, reduction_axes=A)], x)
        whole, lines = f(np.full((length, 1), 0.1, np.float32))
        expected = float(np.float32(0.1)) * length
        assert abs(whole / expected - 1) < 1e-6
        assert abs(lines[0] / expected - 1) < 1e-6
