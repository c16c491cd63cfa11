"""Figures of a device: shares of the bandwidth of a copy, products, what a call adds, compiling.

Where PyTorch or JAX are installed with CUDA, training steps of both stand beside geon's.
"""

import dataclasses
import functools
import os
import tempfile
import time
import traceback

import numpy as np

import geon
from geon.transformers.pycuda.launches.library_requests import WORKSPACE_BYTES, ProductCall

from . import peers, test_beside

PEAKS = {"H100": 989, "H200": 989, "A100": 312}  # TFLOP/s of bfloat16, as NVIDIA gives them
AT_ONCE = 10  # products of the library that are begun at once
LAYERS = (784, 512, 512, 10)


def measure(name, small):
    """Print all figures; ``small`` makes them mean nothing, and quick."""
    with geon.make_transformer(name) as transformer:
        device = transformer.device
        gpu = getattr(device, "gpu", None)
        known = device.name if gpu is None else gpu.name()
        print(known if gpu is None else f"{known} {device.architecture}")
        each_of(
            functools.partial(bandwidths, transformer, device, small),
            functools.partial(rates, name, small),
            functools.partial(attention, transformer, known, small),
            functools.partial(positions, transformer, small),
            functools.partial(overhead, transformer, small),
            functools.partial(loops, transformer, small),
            functools.partial(updates, transformer, small),
            *([] if small else [functools.partial(compiling, name)]),
        )


def beside_peers(name, small):
    """Print the time and memory of training steps, and of the same by peers."""
    with geon.make_transformer(name) as transformer:
        each_of(
            functools.partial(steps, transformer, small),
            functools.partial(blocks, transformer, small),
        )


def each_of(*measured):
    """Measure each, also where one before it failed, and raise what failed in the end."""
    failed = []
    for each in measured:
        try:
            each()
        except Exception as error:
            traceback.print_exc(limit=-4)
            failed.append(error)
    if failed:
        raise ExceptionGroup("figures that failed", failed)


def seconds(device, call, repeats=20):
    """The least time of a call whose inputs stay on the device."""
    call()
    call()
    best = float("inf")
    for _ in range(repeats):
        device.synchronise()
        start = time.perf_counter()
        call()
        device.synchronise()
        best = min(best, time.perf_counter() - start)
    return best


def own_seconds(call, repeats):
    """The least time of a call that waits for what it began, and has its results in the end."""
    call()
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def device_seconds(device, begin, repeats=20):
    """The time of what is begun, by the clock of the device: of many one after another, each begun
    while the one before runs. The least of some rounds.
    """
    for _ in range(3):
        begin()
    best = float("inf")
    for _ in range(3):
        device.synchronise()
        first = device.clock()
        begun = [begin() for _ in range(repeats)]
        last = device.clock()
        device.synchronise()
        best = min(best, device.seconds(first, last) / repeats)
        del begun
    return best


def bandwidths(transformer, device, small):
    """Chains, reductions, softmax and layer norm beside a copy of as many bytes."""
    size = 1 << (16 if small else 28)
    source, target = device.allocate(size), device.allocate(size)
    copy = 2 * size / device_seconds(device, lambda: device.copy(target, source, size))
    print(f"copy of {size >> 20} MiB: {copy / 1e9:.0f} GB/s")
    device.free(source)
    device.free(target)

    def shown(name, effect, moved):
        f = transformer.computation(effect)
        rate = moved / device_seconds(device, f.start, 3 if small else 20)
        print(f"{name}: {rate / 1e9:.0f} GB/s, {rate / copy:.0%} of the copy")

    n = geon.Axis("N", size // 4)
    a = geon.Variable([n], initial_value=1, name="a")
    shown("chain in place", geon.assign(a, geon.tanh(a * 0.5 + 1) * 0.25), 2 * size)
    total = geon.Variable([], initial_value=0, name="total")
    shown("sum", geon.assign(total, geon.sum(a)), size)
    for width in (64,) if small else (1024, 2048, 4096, 8192):
        rows = geon.Axis("R", 4 if small else 32768), geon.Axis("C", width)
        b = geon.Variable(rows, initial_value=geon.Random(0).normal(rows), name=f"b{width}")
        moved = 2 * 4 * rows[0].length * width
        softmax = geon.softmax(b, normalization_axes=rows[1])
        shown(f"softmax of {width}", geon.assign(b, softmax), moved)
        mean, off = geon.mean(b, rows[1]), geon.variance(b, rows[1])
        norm = (b - mean) * geon.rsqrt(off + 1e-5)
        shown(f"layer norm of {width}", geon.assign(b, norm), moved)


def rates(name, small):
    """Products by generated kernels, by ones that round to tf32, and by cuBLASLt if it is there,
    beside the library alone.
    """
    sides = (16,) if small else (512, 2048, 4096)
    alone = {}
    for dtype in ("float32", "bfloat16", "float16"):
        for side in sides:
            try:
                alone[dtype, side] = rate_alone(name, dtype, side, small)
            except geon.DeviceError as error:
                print(f"products by cuBLASLt alone: {error}")
                break
            rate = alone[dtype, side] / 1e12
            print(f"{dtype} product of {side} by cuBLASLt alone: {rate:.2f} TFLOP/s")
    ways = {by: {"products": by} for by in ("generated", "cublaslt")} | {"tf32": {"tf32": True}}
    for by, options in ways.items():
        try:
            transformer = geon.make_transformer(name, **options)
        except geon.DeviceError as error:
            print(f"products by {by}: {error}")
            continue
        with transformer:
            for dtype in ("float32",) if by == "tf32" else ("float32", "bfloat16", "float16"):
                for side in sides:
                    m, k, q = (geon.Axis(each, side) for each in "MKQ")
                    left, right = filled([m, k], dtype, None), filled([k, q], dtype, None)
                    made = geon.Variable([m, q], initial_value=0, dtype=dtype)
                    f = transformer.computation(geon.assign(made, geon.dot(left, right)))
                    took = device_seconds(transformer.device, f.start, 3 if small else 20)
                    rate = 2 * side**3 / took
                    best = alone.get((dtype, side))
                    share = "" if best is None else f", {rate / best:.0%} of cuBLASLt alone"
                    print(f"{dtype} product of {side} by {by}: {rate / 1e12:.2f} TFLOP/s{share}")


def rate_alone(name, dtype, side, small):
    """The operations per second of a product that the library computes, with nothing around it."""
    with geon.make_transformer(name, products="cublaslt") as transformer:
        device, named = transformer.device, geon.Variable([], dtype).dtype
        size = np.dtype(named).itemsize
        places = [device.allocate(size * side * side) for _ in range(3)]
        works = device.allocate(WORKSPACE_BYTES)
        steps = [(side * side, side, 1)] * 3
        sizes, operands = (1, side, side, side), (0, 1, 2, None)
        product = ProductCall(*sizes, *operands, *steps, dtype, dtype, True, False)
        random = np.random.default_rng(0)
        for place in places:
            device.copy_in(place, random.normal(size=(side, side)).astype(np.dtype(named)))
        # Zeros are multiplied faster than numbers, and a call from Python takes longer than some.
        again = device.capture(
            lambda: [device.call(product, (*places, 0), works) for _ in range(AT_ONCE)]
        )
        took = device_seconds(device, again, 3 if small else 20) / AT_ONCE
        for place in (*places, works):
            device.free(place)
    return 2 * side**3 / took


def filled(axes, dtype, name):
    """A variable of random numbers on the device."""
    value = geon.cast(geon.Random(0).normal(axes), dtype)
    return geon.Variable(axes, dtype, initial_value=value, name=name)


def attention(transformer, known, small):
    """Attention of 16 times 12 heads over 2048 positions of 64; the device is ``known`` so."""
    peak = next((each for part, each in PEAKS.items() if part in known), None)
    sizes = (1, 2, 33, 35, 16) if small else (16, 12, 2048, 2048, 64)
    b, h, t, s, d = (geon.Axis(name, size) for name, size in zip("BHTSD", sizes, strict=True))
    operations = 4 * np.prod([float(size) for size in sizes])
    for dtype in ("float32", "bfloat16"):
        q, k, v = (
            filled([b, h, n, d], dtype, f"{w}_{dtype}")
            for w, n in zip("qkv", (t, s, s), strict=True)
        )
        weights = geon.softmax(geon.dot(q, k, over=[d]) * 0.125, normalization_axes=s)
        # As a result: what is put into a variable is no chain.
        f = transformer.computation(geon.dot(weights, v, over=[s]), on_device=True)
        took = device_seconds(transformer.device, f.start, 3 if small else 20)
        rate = operations / took / 1e12
        print(f"{dtype} attention: {rate:.2f} TFLOP/s, {1e3 * took:.2f} ms")
        beside_result = f.peak_bytes() - int(np.prod(sizes[:3]) * sizes[4]) * q.dtype.itemsize
        print(f"{dtype} attention: {beside_result:,} bytes beside inputs and result")
        if peak is not None and dtype == "bfloat16":
            print(f"{dtype} attention: {rate / peak:.0%} of the {peak} TFLOP/s of tensor cores")


def positions(transformer, small):
    """A step of an embedding, and a sort."""
    rows, count, length = (30, 64, 100) if small else (30000, 1 << 16, 1 << 24)
    v, d, t = geon.Axis("V", rows), geon.Axis("D", 64), geon.Axis("T", count)
    table = geon.Variable([v, d], initial_value=0, name="table")
    at = geon.Variable([t], "int64", initial_value=geon.iota(t) % rows, name="at")
    loss = geon.sum(geon.square(geon.gather(table, at, v) - 1))
    step = transformer.computation(geon.assign(table, table - 0.1 * geon.deriv(loss, table)))
    took = device_seconds(transformer.device, step.start, 3 if small else 20)
    print(f"step of an embedding of {rows} by {count} positions: {1e6 * took:.0f} µs")
    n = geon.Axis("N", length)
    x = filled([n], "float32", "unsorted")
    made = geon.Variable([n], initial_value=0, name="sorted")
    f = transformer.computation(geon.assign(made, geon.sort(x, n)))
    took = device_seconds(transformer.device, f.start, 3 if small else 20)
    print(f"sort of {length} float32: {length / took / 1e9:.2f} G/s")


def overhead(transformer, small):
    """What a call adds to so many kernels that do nothing to speak of."""
    n = geon.Axis("N", 33)
    y = geon.placeholder([n], name="y")
    waited, begun = [], []
    for count in (1, 4) if small else (1, 10, 100):
        value = y
        for _ in range(count):
            value = geon.cumsum(value, n)  # one kernel each
        f = transformer.computation(value, y)
        given = np.ones(33, np.float32)
        took = own_seconds(lambda f=f, given=given: f(given), 3 if small else 2000)
        print(f"a call of {count} kernels from the host and back: {took * 1e6:.1f} µs")
        waited.append((count, took * 1e6))
        start = functools.partial(f.start, given)
        took = device_seconds(transformer.device, start, 3 if small else 200)
        begun.append((count, took * 1e6))
    for what, found in (("from the host and back", waited), ("begun one after another", begun)):
        (few, short), (many, long) = found[0], found[-1]
        each = (long - short) / (many - few)
        print(f"calls {what} take {short - few * each:.1f} µs, and {each:.2f} µs for each kernel")


def loops(transformer, small):
    """Turns of loops that are one launch: of scalars, of a small body, and with a condition."""
    t, k = geon.Axis("T"), geon.Axis("K", 24)
    w = filled([k.prime, k], "float32", "turning")
    start = geon.constant(0.1, [k])
    seen = geon.placeholder([t], name="seen")

    def turned(h):
        return geon.softmax(geon.cast_axes(geon.dot(w, h), [k]), normalization_axes=k)

    def scalar(c, x):
        return c * 0.5 + geon.sin(x), c

    def body(h, x):
        return turned(h) * x, geon.sum(h)

    wanted = geon.placeholder([], "int64", name="wanted")
    init = {"h": start, "n": geon.constant(0)}
    made = {
        "scalars": (geon.scan(scalar, geon.constant(0.0), seen, over=t)[0], 1 << 20, seen),
        "a small body": (geon.scan(body, start, seen, over=t)[0], 1 << 14, seen),
        "a condition": (
            geon.while_loop(
                lambda c: c["n"] < wanted, lambda c: {"h": turned(c["h"]), "n": c["n"] + 1}, init
            )["h"],
            1 << 14,
            wanted,
        ),
    }
    for name, (result, turns, given) in made.items():
        turns = 5 if small else turns
        f = transformer.computation(result, given)
        fed = np.ones(turns, np.float32) if given is seen else np.asarray(turns)
        took = seconds(transformer.device, lambda f=f, fed=fed: f(fed), 3 if small else 10)
        print(f"{turns} turns of {name}: {1e9 * took / turns:.0f} ns for each")


def updates(transformer, small):
    """Momentum steps of 200 unrelated variables."""
    slopes, update = test_beside.many(10 if small else 200)
    f = transformer.computation(update, *slopes)
    given = [np.ones(each.axes.lengths, np.float32) for each in slopes]
    took = seconds(transformer.device, lambda: f(*given), 3 if small else 50)
    launches = len(f.stages().compiled.module.steps)
    print(f"{len(slopes)} updates by {launches} launches: {1e6 * took:.0f} µs")


def steps(transformer, small):
    """Training steps of a perceptron, of batches that are small and large, and of peers."""
    for batch in (4,) if small else (32, 128, 4096):
        random = np.random.default_rng(0)
        images = random.random((batch, LAYERS[0]), np.float32)
        labels = random.integers(0, LAYERS[-1], batch)
        f = perceptron(transformer, batch)
        given = LAYERS, images, labels
        made = [functools.partial(each, *given) for each in (peers.torch_step, peers.jax_step)]
        beside(
            f"MLP step of batch {batch}",
            transformer,
            f,
            [images, labels],
            {"N": batch},
            made,
            small,
        )


def blocks(transformer, small):
    """Training steps of a transformer block."""
    for batch, length in ((1, 5),) if small else ((1, 128), (8, 128), (8, 1024)):
        width = 16 if small else 512
        given = np.random.default_rng(0).normal(size=(batch, length, width)).astype(np.float32)
        f = block(transformer, f"{batch}x{length}", width)
        lengths = {"B": batch, "T": length}
        made = [functools.partial(each, given) for each in (peers.torch_block, peers.jax_block)]
        beside(f"block step of {batch} by {length}", transformer, f, [given], lengths, made, small)


def on_device(transformer, array):
    """An array on the device, as a computation leaves it there."""
    x = geon.placeholder([geon.Axis(f"D{k}") for k in range(array.ndim)], array.dtype)
    return transformer.computation(x + 0, x, on_device=True)(array)


def beside(what, transformer, f, given, lengths, made, small):
    """The time and memory of geon's step, and of peers', whose inputs are on the device."""
    given = [on_device(transformer, each) for each in given]
    took = seconds(transformer.device, lambda: f(*given), 3 if small else 50)
    variables = [leaf for leaf, _ in f.plan.schedule.program.updates]
    held = sum(transformer.get(w).nbytes for w in variables) + sum(x.nbytes for x in given)
    peak = f.peak_bytes(lengths) + held
    print(f"{what}, geon: {took * 1e6:.0f} µs, {peak / 2**20:.1f} MiB at its peak")
    for make in made:
        try:
            call, bytes_of = make()
        except ImportError as error:
            print(f"{what}: {error}")
            continue
        for _ in range(5):
            call()
        times = []
        for _ in range(50):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        best = f"{min(times) * 1e6:.0f} µs, {bytes_of() / 2**20:.1f} MiB at its peak"
        print(f"{what}, {call.__module__.rpartition('.')[2]}.{call.__qualname__}: {best}")


def perceptron(transformer, batch):
    """Momentum SGD on images of so many pixels; a call takes images and labels."""
    n, c = geon.Axis("N"), geon.Axis("class", LAYERS[-1])
    sizes = [geon.Axis(f"layer{k}", size) for k, size in enumerate(LAYERS[:-1])] + [c]
    images = geon.placeholder([n, sizes[0]], name="images")
    labels = geon.placeholder([n], "int64", name="labels")
    value, weights = images, []
    random = geon.Random(batch)
    for k, (inner, outer) in enumerate(zip(sizes, sizes[1:], strict=False)):
        first = random.normal([inner, outer]) * (2 / inner.length) ** 0.5
        w = geon.Variable([inner, outer], initial_value=first, name=f"w{k}_{batch}")
        b = geon.Variable([outer], initial_value=0, name=f"b{k}_{batch}")
        value = geon.dot(value, w) + b
        weights += [w, b]
        if outer is not c:
            value = geon.relu(value)
    shares = geon.softmax(value, normalization_axes=c)
    loss = geon.mean(geon.cross_entropy_multi(shares, geon.onehot(labels, c), out_axes=[n]))
    updates = []
    for w in weights:
        v = geon.Variable(w.axes, initial_value=0, name=f"v_{w.name}")
        new = 0.9 * v - 0.1 * geon.deriv(loss, w)
        updates += [geon.assign(v, new), geon.assign(w, w + new)]
    return transformer.computation([loss, geon.doall(updates)], images, labels)


def block(transformer, name, size):
    """SGD on the mean square of what a block of this width and eight heads makes of tokens."""
    batch, time_axis, width = geon.Axis("B"), geon.Axis("T"), geon.Axis("C", size)
    pairs = (("part", 3), ("head", 8), ("D", size // 8), ("F", 4 * size))
    part, head, depth, up = (geon.Axis(*pair) for pair in pairs)
    axes = {"qkv": [width, part, head, depth], "out": [head, depth, width], "up": [width, up],
            "up_bias": [up], "down": [up, width], "down_bias": [width], "scale1": [width],
            "shift1": [width], "scale2": [width], "shift2": [width]}  # fmt: skip
    x = geon.placeholder([batch, time_axis, width], name="x")
    draw = geon.Random(0)
    w = {
        each: geon.Variable(
            found, initial_value=draw.normal(found) * 0.02 + each.startswith("scale"),
            name=f"{each} {name}",
        )
        for each, found in axes.items()
    }  # fmt: skip

    def normalized(value, number):
        off = value - geon.mean(value, width)
        found = off * geon.rsqrt(geon.variance(value, width) + 1e-5)
        return found * w[f"scale{number}"] + w[f"shift{number}"]

    parts = geon.dot(normalized(x, 1), w["qkv"])
    query = parts[{part: 0}] * depth.length**-0.5
    key, value = (geon.rename(parts[{part: k}], {time_axis: "S"}) for k in (1, 2))
    scores = geon.dot(query, key, over=depth)
    shares = geon.softmax(scores, normalization_axes=scores.axes["S"])
    mixed = geon.dot(shares, value, over=scores.axes["S"])
    h = x + geon.dot(mixed, w["out"], over=[head, depth])
    risen = geon.dot(normalized(h, 2), w["up"]) + w["up_bias"]
    y = h + geon.dot(geon.gelu(risen, approximate="tanh"), w["down"]) + w["down_bias"]
    loss = geon.mean(geon.square(y))
    updates = [geon.assign(each, each - 0.01 * geon.deriv(loss, each)) for each in w.values()]
    return transformer.computation([loss, geon.doall(updates)], x)


def compiling(name):
    """The first call of a training step with an empty cache, and with what that left."""
    images = np.ones((8, LAYERS[0]), np.float32)
    labels = np.zeros(8, np.int64)
    before = os.environ.get("GEON_CACHE")
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GEON_CACHE"] = folder
            for what, batch in (("an empty cache", 1), ("what that left", 1)):
                with geon.make_transformer(name) as transformer:
                    transformer.target = named(transformer.target, f"{name} with {what}")
                    f = perceptron(transformer, batch)
                    transformer.initialize()
                    start = time.perf_counter()
                    f(images, labels)
                    took = time.perf_counter() - start
                print(f"first call of the MLP step with {what}: {took:.2f} s")
    finally:
        if before is None:
            del os.environ["GEON_CACHE"]
        else:
            os.environ["GEON_CACHE"] = before


def named(target, name):
    """A target whose programs are no other's, so that they are compiled, or found on disk."""
    return dataclasses.replace(target, name=name)
