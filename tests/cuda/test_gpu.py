"""What geon asks of PyCUDA and cuda-bindings, with fakes of both in their places."""

import gc
import threading

import numpy as np
import pytest

import geon
from geon.errors import DeviceError, DeviceMemoryError
from geon.transformers.pycuda.launches.device import PipelineStages
from geon.transformers.pycuda.products import large_products, product_forms, product_tiles
from geon.transformers.pycuda.runtime import gpu, host, nvrtc
from geon.transformers.pycuda.runtime.primary_context import Spares

from . import fake_cuda
from .devices import transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
N, C = geon.Axis("N"), geon.Axis("C", 3)
STAGE_BYTES = large_products.stages_of(product_tiles.large_tiles("float16")).bytes
x = geon.placeholder([N, C], name="x")


@pytest.fixture(params=["short", "long"])
def driver(request, monkeypatch):
    made = fake_cuda.Driver().install(monkeypatch, short=request.param == "short")
    yield made
    assert not made.wrong


@pytest.fixture
def transformer(driver):
    with transformer_on(gpu.GpuDevice(0)) as made:
        yield made


def step(transformer):
    w = geon.Variable([C], initial_value=1, name="w")
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    loss = geon.sum(geon.softmax(x * w, normalization_axes=C))
    results = [geon.gather(w, at, C), geon.sort(x, C), geon.assign(w, w + loss)]
    return transformer.computation(results, x, at), w


def test_steps_run_and_are_captured(driver, transformer, tmp_path):
    f, w = step(transformer)
    for n in (2, 2, 2, 5, 5, 2, 0):
        given = np.random.default_rng(n).random((n, 3), np.float32)
        before = transformer.get(w)
        taken, ordered, _ = f.start(given, [0, -1]).result()
        np.testing.assert_array_equal(taken, before[[0, 2]])
        np.testing.assert_array_equal(ordered, np.sort(given, 1))
        np.testing.assert_allclose(transformer.get(w), before + n, rtol=1e-5)
    assert driver.captured_graphs == 2
    transformer.save(tmp_path / "state.safetensors")
    with pytest.raises(geon.IndexRangeError, match="3 where the axis has length 3"):
        f(np.ones((2, 3)), [3])
    transformer.set(w, np.zeros(3))
    transformer.restore(tmp_path / "state.safetensors")
    np.testing.assert_allclose(transformer.get(w), np.full(3, 19), rtol=1e-5)


def test_all_is_given_back(driver):
    with transformer_on(gpu.GpuDevice(0)) as transformer:
        f, w = step(transformer)
        for n in (2, 3, 2, 3, 2):
            f(np.ones((n, 3)), [1])
        device = transformer.device
        assert driver.captured_graphs == 2
    del f, w, transformer
    gc.collect()
    assert driver.captured_graphs == 0
    assert not device.memory.used and not device.pinned.used
    assert device.room() == driver.total
    del device
    gc.collect()


def test_threads_begin_and_wait_side_by_side(transformer):
    f = transformer.computation(geon.softmax(x, normalization_axes=C), x)
    expected = {n: f(np.full((n, 3), n)) for n in range(1, 6)}
    wrong = []

    def calls(n):
        for _ in range(10):
            if not np.array_equal(f(np.full((n, 3), n)), expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=calls, args=(n,)) for n in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_binary_is_kept_for_its_architecture_and_compiler(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("GEON_CACHE", str(tmp_path))
    from cuda.bindings import nvrtc as compiling

    def compiled_for(capability):
        driver.capability = capability
        before = len(compiling.compiled)
        with transformer_on(gpu.GpuDevice(0)) as made:
            made.computation(geon.tanh(x) * 3.25, x)(np.ones((2, 3)))
        return compiling.compiled[before:]

    assert [flags[-1] for flags in compiled_for((9, 0))] == ["--gpu-architecture=sm_90a"]
    assert compiled_for((9, 0)) == []
    assert [flags[-1] for flags in compiled_for((8, 6))] == ["--gpu-architecture=sm_86"]
    nvrtc.compiler.cache_clear()
    nvrtc.find_nvrtc.cache_clear()
    monkeypatch.setattr(compiling, "nvrtcVersion", lambda: (0, 13, 1))
    assert len(compiled_for((8, 6))) == 1


# What fails ---------------------------------------------------------------------------------------


def test_a_device_that_is_not_there(driver):
    with pytest.raises(DeviceError, match="device=2: there are 2 devices, numbered from 0"):
        gpu.GpuDevice(2)


def test_an_architecture_that_is_too_old(driver):
    driver.capability = (6, 1)
    message = r"gpu 1 is of compute capability 6\.1, and kernels need 7\.0 or newer: choose another"
    with pytest.raises(DeviceError, match=message):
        gpu.GpuDevice(1)


def test_an_architecture_that_the_compiler_does_not_know(
    driver, transformer, tmp_path, monkeypatch
):
    monkeypatch.setenv("GEON_CACHE", str(tmp_path))  # nothing is compiled there
    driver.fails["nvrtcCompileProgram"] = 5
    f = transformer.computation(geon.tanh(x) * 7.125, x)
    with pytest.raises(
        DeviceError, match=r"NVRTC does not compile for sm_90a:\ngeon.cu\(1\): error"
    ):
        f(np.ones((2, 3)))
    f(np.ones((2, 3)))
    driver.capability = (12, 0)
    driver.fails["nvrtcCompileProgram"] = 5
    message = r"does not compile for sm_120, it knows sm_80, sm_86, sm_90: pip install -U 'geon"
    with transformer_on(gpu.GpuDevice(0)) as newer, pytest.raises(DeviceError, match=message):
        newer.computation(geon.tanh(x) * 7.25, x)(np.ones((2, 3)))


def test_what_fails_while_it_is_captured_leaves_the_stream(driver, transformer):
    f = transformer.computation(geon.tanh(x) * 9.5, x)
    f(np.ones((2, 3)))
    driver.fails["memcpy_htod_async"] = fake_cuda.LogicError("no")
    with pytest.raises(DeviceError, match="bytes are copied in: no"):
        f(np.ones((2, 3)))
    for _ in range(3):
        f(np.ones((2, 3)))
    assert driver.captured_graphs == 1


def test_no_room_says_what_is_asked_and_what_is_free(driver, transformer):
    device = transformer.device
    half = device.allocate(driver.total // 2)
    message = r"no room where 805,306,368 bytes are allocated.*536,870,912 of 1,073,741,824 bytes"
    with pytest.raises(DeviceMemoryError, match=message) as caught:
        device.allocate(driver.total // 4 * 3)
    assert not caught.value.lost
    device.free(half)
    assert device.room() == driver.total
    device.free(device.allocate(driver.total))  # what was kept for later makes room


def sticky(error):
    error.stays = True
    return error


FAILURES = {
    "prepared_async_call": "kernel_0 is launched",
    "query": "kernels run",
    "memcpy_dtoh_async": "bytes are copied out",
    "cuGraphLaunch": "",
}


@pytest.mark.parametrize("place", FAILURES)
def test_what_fails_in_a_kernel_loses_the_device(driver, transformer, place):
    f = transformer.computation(geon.tanh(x) * 5.5, x)
    if place != "prepared_async_call":
        for _ in range(3):
            f(np.ones((2, 3)))
    wrong = sticky(fake_cuda.LogicError("an illegal memory access was encountered"))
    if place == "cuGraphLaunch":
        driver.fails[place], driver.sticky = 700, wrong
    else:
        driver.fails["query" if place == "memcpy_dtoh_async" else place] = wrong
    with pytest.raises(DeviceError, match=r"made at .*test_gpu.py.*gpu 0 failed"):
        f(np.ones((2, 3)))
    assert transformer.device.lost
    with pytest.raises(geon.errors.ClosedError, match="start a new process"):
        f(np.ones((2, 3)))
    with pytest.raises(DeviceError, match="gpu 0 failed before, and does nothing any more"):
        transformer.device.allocate(8)


def test_a_launch_failure_loses_the_device(driver, transformer):
    f = transformer.computation(geon.tanh(x) * 6.5, x)
    driver.fails["prepared_async_call"] = fake_cuda.LaunchError("too many resources requested")
    with pytest.raises(DeviceError, match="kernel_0 is launched: too many resources") as caught:
        f(np.ones((2, 3)))
    assert caught.value.lost


def test_what_fails_once_loses_nothing(driver, transformer):
    f = transformer.computation(geon.tanh(x) * 8.5, x)
    driver.fails["memset_d8_async"] = driver.fails["module_from_buffer"] = fake_cuda.LogicError(
        "no"
    )
    with pytest.raises(DeviceError, match="a module is loaded: no"):
        f(np.ones((2, 3)))
    f(np.ones((2, 3)))


# Memory that is kept ------------------------------------------------------------------------------


def test_spare_memory_is_of_exact_sizes():
    made = []

    class Block:
        def __init__(self, size):
            made.append(size)
            self.number = len(made)

        def __int__(self):
            return self.number

    spares = Spares(Block, KeyError)
    first = spares.take(100)
    spares.give_back(first)
    assert spares.bytes == 100
    assert spares.take(99) != first
    assert spares.take(100) == first
    assert made == [100, 99] and spares.bytes == 0


def test_spare_memory_makes_room_where_there_is_none():
    full = [False]

    def make(size):
        if full[0]:
            full[0] = False
            raise KeyError(size)
        return size

    spares = Spares(make, KeyError)
    spares.give_back(spares.take(5))
    full[0] = True
    assert spares.take(7) == 7
    assert spares.bytes == 0 and not any(spares.spare.values())


def test_what_another_thread_drops_is_given_back_in_the_context(driver):
    """PyCUDA warns, and keeps, what a thread drops in which the context is not current."""
    with transformer_on(gpu.GpuDevice(0)) as transformer:
        held = [step(transformer)[0]]

        def calls():
            f = held.pop()
            for n in (2, 3, 2):
                f(np.ones((n, 3)), [1])
            f.profile(np.ones((2, 3)), [1])

        thread = threading.Thread(target=calls)
        thread.start()
        thread.join()
        transformer.device.mark()
    gc.collect()
    assert driver.stranded == 0


def product_of_halves(transformer, monkeypatch):
    """A small product that is computed as large ones are."""
    monkeypatch.setattr(product_forms, "MIN_LARGE_TILES", 1)
    monkeypatch.setattr(product_forms, "MIN_STAGED", product_forms.LargeBounds(1, 1, 1))
    left = geon.placeholder([N, C], "float16", name="left")
    right = geon.placeholder([C, geon.Axis("M", 8)], "float16", name="right")
    return transformer.computation(geon.dot(left, right), left, right)


def test_stages_take_the_room_that_a_device_has(driver, transformer, monkeypatch):
    """A block may share 99 KiB here: two stages of 48 KiB, and what aligns them."""
    f = product_of_halves(transformer, monkeypatch)
    np.testing.assert_array_equal(f(np.ones((2, 3)), np.ones((3, 8))), np.full((2, 8), 3))
    assert driver.allowed == 1024 + 2 * STAGE_BYTES


def test_too_little_room_for_stages_is_refused(driver, transformer, monkeypatch):
    f = product_of_halves(transformer, monkeypatch)
    size = STAGE_BYTES
    least = 2 * size + 1024 + 1024  # what aligns them, and what the kernel shares beside them
    driver.shared |= {"block": least - 1, "processor": 8 * size}
    needs = rf"has {least - 1:,} bytes for what a block shares, and \S+ needs {least:,}"
    with pytest.raises(geon.DeviceError, match=needs) as caught:
        f(np.ones((2, 3)), np.ones((3, 8)))
    assert "device=" in str(caught.value)


@pytest.mark.parametrize(
    ("of_block", "of_processor", "number"),
    [
        (99, 100, 4),  # as many as there are
        (44, 100, 4),
        (43, 100, 3),  # what a block may share
        (99, 87, 3),  # what two of them share
        (99, 20, 3),  # no room for two: one has the least
        (32, 100, 2),  # and no room for that
    ],
)
def test_how_many_stages_there_are(of_block, of_processor, number):
    assert PipelineStages(11, least=3, together=2).number(of_block, of_processor) == number


def test_more_stages_where_they_are_wanted():
    assert PipelineStages(11, least=3).number(990, 990) == 8
