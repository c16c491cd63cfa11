"""No two threads use one place without a barrier between them: kernels of every kind, looked at."""

import threading
import time

import numpy as np
import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.pycuda.kernels import cooperative_threads, split_reductions
from geon.transformers.pycuda.launches.device import CudaSource, Signature
from geon.transformers.pycuda.launches.dialect import cuda_text
from geon.transformers.pycuda.runtime import host

from .test_lengths import GRAPHS, data, v, x

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
FINE = """
    __shared__ float held[64];
    held[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = held[63 - threadIdx.x];
"""
MEETINGS = {
    "shared": (FINE.replace("    __syncthreads();\n", ""), "shared memory"),
    "a warp is not the block": (FINE.replace("__syncthreads()", "__syncwarp(~0u)"), "shared"),
    "global": ("__syncwarp(~0u); x[threadIdx.x % 32] = threadIdx.x;", "writes global memory"),
    "read": ("__syncwarp(~0u); if (threadIdx.x) x[threadIdx.x] = x[0]; else x[0] = 1;", "global"),
    "blocks": ("__syncwarp(~0u); if (threadIdx.x == 0) x[0] = 1;", "of block 0"),
}


@pytest.fixture(scope="module")
def device():
    return host.device("races")


def run(device, body):
    """A block of 64 threads, or two, that run these statements."""
    text = f'extern "C" __global__ void tried(float *x)\n{{\n{body}\n}}\n'
    kernels = device.load(
        CudaSource(cuda_text("prelude.cuh") + text), [Signature("tried", ("float *",), True)]
    )
    address = device.allocate(4 * 64)
    try:
        device.launch(kernels["tried"], 2 if "x[0] = 1;" in body else 1, 64, [address])
    finally:
        device.free(address)


@pytest.mark.parametrize("name", MEETINGS)
def test_a_race_is_an_error(device, name):
    body, message = MEETINGS[name]
    with pytest.raises(DeviceError, match=message):
        run(device, body)


def test_what_meets_is_none(device):
    run(device, FINE)
    run(device, "__syncwarp(~0u); atomicAdd(x, 1.0f);")


def test_devices_launch_one_after_another(monkeypatch):
    """Two threads with a device each: the library that runs kernels has one launch at a time."""
    real, running, overlaps = host.runtime(), threading.Lock(), []

    class Slow:
        def geon_host_launch(self, *arguments):
            overlaps.append(not running.acquire(blocking=False))
            time.sleep(0.02)
            if not overlaps[-1]:
                running.release()
            return real.geon_host_launch(*arguments)

    monkeypatch.setattr(host, "runtime", Slow)
    monkeypatch.setattr(Slow, "geon_host_nowhere", real.geon_host_nowhere, raising=False)
    monkeypatch.setattr(Slow, "geon_host_look", real.geon_host_look, raising=False)
    devices = [host.HostDevice(), host.HostDevice("races")]
    threads = [threading.Thread(target=run, args=(each, FINE)) for each in devices for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [False] * 4


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_have_none(name):
    inputs = [x, v] if name in ("elements", "vector") else [x]
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        f = transformer.computation(GRAPHS[name], *inputs)
        for n, c in ((3, 40), (70, 33), (2, cooperative_threads.MAX_WARP_ROW_ELEMENTS + 3)):
            f(*data(n, c)[: len(inputs)])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, split_reductions.ELEMENTS_PER_BLOCK + 3), (3, 3000)])
def test_long_ones_have_none(shape):
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        for name in ("everything", "softmax", "derivative_of_softmax", "prefixes"):
            f = transformer.computation(GRAPHS[name], x)
            f(*data(*shape)[:1])


def test_steps_that_write_variables_have_none():
    with geon.make_transformer("cuda-on-host", checks="races") as transformer:
        C = geon.Axis("C", 12)
        w = geon.Variable([C], initial_value=1, name="w")
        y = geon.placeholder([geon.Axis("N"), C], name="y")
        loss = geon.mean(geon.square(geon.softmax(y * w, normalization_axes=C)))
        step = geon.assign(w, w - 0.1 * geon.deriv(loss, w))
        table = geon.Variable([geon.Axis("V", 9), C], initial_value=0, name="table")
        at = geon.placeholder([geon.Axis("T")], "int64", name="at")
        rows = geon.gather(table, at, table.axes[0])
        more = geon.assign(table, table - geon.deriv(geon.sum(geon.square(rows - 1)), table))
        f = transformer.computation([loss, step], y)
        g = transformer.computation(more, at)
        for n in (1, 5, 40):
            f(np.random.default_rng(n).normal(size=(n, 12)).astype(np.float32))
            g(np.arange(n) % 7)
