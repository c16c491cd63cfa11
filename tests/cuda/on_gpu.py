"""What ``scripts/gpu_check.sh`` runs on a device beside the suite.

``kernels``: kernels of every kind once, for compute-sanitizer. ``figures``: bandwidths of chains,
reductions, softmax and layer norm beside that of a copy, and rates of products.
"""

import sys
import time

import numpy as np

import geon
from geon.transformers.pycuda import gpu, teams
from tests.cuda.test_lengths import GRAPHS, data, v, x


def kernels():
    with geon.make_transformer("pycuda") as transformer:
        for name, graph in GRAPHS.items():
            inputs = [x, v] if name in ("elements", "vector") else [x]
            f = transformer.computation(graph, *inputs)
            for n, c in ((3, 33), (65, 31), (2, teams.SHORT + 3)):
                f(*data(n, c)[: len(inputs)])


def seconds(device, call, repeats=20):
    """The least time of a call whose inputs stay on the device."""
    call()
    best = float("inf")
    for _ in range(repeats):
        device.synchronise()
        start = time.perf_counter()
        call()
        device.synchronise()
        best = min(best, time.perf_counter() - start)
    return best


def figures():
    device = gpu.device(0)
    print(device.gpu.name(), device.architecture)
    size = 1 << 28
    source, target = device.allocate(size), device.allocate(size)
    copy = 2 * size / seconds(device, lambda: device.copy(target, source, size))
    print(f"copy of {size >> 20} MiB: {copy / 1e9:.0f} GB/s")
    device.free(source)
    device.free(target)
    with geon.make_transformer("pycuda") as transformer:
        n = geon.Axis("N", size // 4)
        a = geon.Variable([n], initial_value=1, name="a")
        step = geon.assign(a, geon.tanh(a * 0.5 + 1) * 0.25)
        shown("chain in place", transformer, step, device, 2 * size, copy)
        total = geon.Variable([], initial_value=0, name="total")
        shown("sum", transformer, geon.assign(total, geon.sum(a)), device, size, copy)
        for width in (1024, 8192):
            rows = geon.Axis("R", 32768), geon.Axis("C", width)
            b = geon.Variable(rows, initial_value=geon.Random(0).normal(rows), name=f"b{width}")
            bytes = 2 * 4 * 32768 * width
            softmax = geon.assign(b, geon.softmax(b, normalization_axes=rows[1]))
            shown(f"softmax of {width}", transformer, softmax, device, bytes, copy)
            mean, off = geon.mean(b, rows[1]), geon.variance(b, rows[1])
            norm = geon.assign(b, (b - mean) * geon.rsqrt(off + 1e-5))
            shown(f"layer norm of {width}", transformer, norm, device, bytes, copy)
        for side in (512, 2048, 4096):
            m, k, q = geon.Axis("M", side), geon.Axis("K", side), geon.Axis("Q", side)
            left = geon.Variable([m, k], initial_value=1, name=f"left{side}")
            right = geon.Variable([k, q], initial_value=1, name=f"right{side}")
            made = geon.Variable([m, q], initial_value=0, name=f"made{side}")
            f = transformer.computation(geon.assign(made, geon.dot(left, right)))
            took = seconds(device, f)
            print(f"product of {side}: {2 * side**3 / took / 1e12:.2f} TFLOP/s")


def shown(name, transformer, effect, device, bytes, copy):
    """Print the bandwidth of a step whose values stay on the device."""
    f = transformer.computation(effect)
    rate = bytes / seconds(device, f)
    print(f"{name}: {rate / 1e9:.0f} GB/s, {rate / copy:.0%} of the copy")


if __name__ == "__main__":
    np.seterr(all="ignore")
    {"kernels": kernels, "figures": figures}[sys.argv[1]]()
