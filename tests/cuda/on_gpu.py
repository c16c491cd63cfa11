"""What ``scripts/gpu_check.sh`` runs on a device beside the suite.

``kernels``: kernels of every kind once, for compute-sanitizer. ``figures``: bandwidths of chains,
reductions, softmax and layer norm beside that of a copy, rates of products and of attention, and
times of a sort and of an embedding's gradient.
"""

import sys
import time

import numpy as np

import geon
from geon.transformers.pycuda import gpu, teams
from tests.cuda import test_attention, test_products
from tests.cuda.test_lengths import GRAPHS, data, v, x


def kernels():
    with geon.make_transformer("pycuda") as transformer:
        for name, graph in GRAPHS.items():
            inputs = [x, v] if name in ("elements", "vector") else [x]
            f = transformer.computation(graph, *inputs)
            for n, c in ((3, 33), (65, 31), (2, teams.SHORT + 3)):
                f(*data(n, c)[: len(inputs)])
        for dtype in ("float32", "bfloat16"):
            inputs = test_attention.operands(dtype)
            f = transformer.computation(test_attention.attended(*inputs, True), *inputs)
            f(*test_attention.numbers(inputs, (1, 130, 70)))
            pair = test_products.operands(dtype, "NC", "CM")
            f = transformer.computation(test_products.made(*pair), *pair)
            for lengths in test_products.LENGTHS[5:11]:
                f(*[test_products.numbers(each, lengths, 0) for each in pair])


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
        for dtype in ("float32", "bfloat16"):
            for side in (512, 2048, 4096):
                product(transformer, device, dtype, side)
            attention(transformer, device, dtype)
        embedding(transformer, device)
    with geon.make_transformer("pycuda", tf32=True) as transformer:
        print("with tf32:")
        product(transformer, device, "float32", 4096)


def filled(axes, dtype, name):
    """A variable of random numbers on the device."""
    value = geon.cast(geon.Random(0).normal(axes), dtype)
    return geon.Variable(axes, dtype, initial_value=value, name=name)


def product(transformer, device, dtype, side):
    """Print the rate of a square product."""
    m, k, q = geon.Axis("M", side), geon.Axis("K", side), geon.Axis("Q", side)
    left = filled([m, k], dtype, f"left{side}{dtype}")
    right = filled([k, q], dtype, f"right{side}{dtype}")
    made = geon.Variable([m, q], dtype, initial_value=0, name=f"made{side}{dtype}")
    f = transformer.computation(geon.assign(made, geon.dot(left, right)))
    took = seconds(device, f)
    print(f"product of {side} in {dtype}: {2 * side**3 / took / 1e12:.2f} TFLOP/s")


def attention(transformer, device, dtype):
    """Print the rate of attention of 16 x 12 heads over 2048 positions of 64."""
    b, h, t, s, d = (
        geon.Axis(*each) for each in (("B", 16), ("H", 12), ("T", 2048), ("S", 2048), ("D", 64))
    )
    q, k, v = (
        filled([b, h, n, d], dtype, f"{w}{dtype}") for w, n in (("q", t), ("k", s), ("v", s))
    )
    weights = geon.softmax(geon.dot(q, k, over=[d]) * 0.125, normalization_axes=s)
    made = geon.Variable([b, h, t, d], dtype, initial_value=0, name=f"attended{dtype}")
    step = geon.assign(made, geon.dot(weights, v, over=[s]))
    took = seconds(device, transformer.computation(step))
    rate = 4 * 16 * 12 * 2048 * 2048 * 64 / took
    print(f"attention in {dtype}: {rate / 1e12:.2f} TFLOP/s, {1e3 * took:.2f} ms")


def embedding(transformer, device):
    """Print the times of an embedding's gradient, and of a sort."""
    v, d, t = geon.Axis("V", 30000), geon.Axis("D", 64), geon.Axis("T", 1 << 16)
    table = geon.Variable([v, d], initial_value=0, name="table")
    at = geon.Variable([t], "int64", initial_value=geon.iota(t) % 30000, name="at")
    loss = geon.sum(geon.square(geon.gather(table, at, v) - 1))
    step = geon.assign(table, table - 0.1 * geon.deriv(loss, table))
    took = seconds(device, transformer.computation(step))
    print(f"step of an embedding, 65536 of 64: {1e6 * took:.0f} us")
    n = geon.Axis("N", 1 << 24)
    x = filled([n], "float32", "unsorted")
    made = geon.Variable([n], initial_value=0, name="sorted")
    took = seconds(device, transformer.computation(geon.assign(made, geon.sort(x, n))))
    print(f"sort of 2^24 floats: {2**24 / took / 1e9:.2f} G/s")


def shown(name, transformer, effect, device, bytes, copy):
    """Print the bandwidth of a step whose values stay on the device."""
    f = transformer.computation(effect)
    rate = bytes / seconds(device, f)
    print(f"{name}: {rate / 1e9:.0f} GB/s, {rate / copy:.0%} of the copy")


if __name__ == "__main__":
    np.seterr(all="ignore")
    {"kernels": kernels, "figures": figures}[sys.argv[1]]()
