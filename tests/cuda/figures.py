"""Figures of a device: shares of the bandwidth of a copy, products, what a call adds, compiling.

Where PyTorch or JAX are installed with CUDA, training steps of both stand beside geon's.
"""

import dataclasses
import os
import tempfile
import time

import numpy as np

import geon

LAYERS = (784, 512, 512, 10)


def measure(name, small):
    """Print all figures; ``small`` makes them mean nothing, and quick."""
    with geon.make_transformer(name) as transformer:
        device = transformer.device
        gpu = getattr(device, "gpu", None)
        print(device.name if gpu is None else f"{gpu.name()} {device.architecture}")
        bandwidths(transformer, device, small)
        rates(name, small)
        attention(transformer, small)
        positions(transformer, small)
        overhead(transformer, small)
        steps(transformer, small)
    if not small:
        compiling(name)


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


def bandwidths(transformer, device, small):
    """Chains, reductions, softmax and layer norm beside a copy of as many bytes."""
    size = 1 << (16 if small else 28)
    source, target = device.allocate(size), device.allocate(size)
    copy = 2 * size / seconds(device, lambda: device.copy(target, source, size))
    print(f"copy of {size >> 20} MiB: {copy / 1e9:.0f} GB/s")
    device.free(source)
    device.free(target)

    def shown(name, effect, moved):
        rate = moved / seconds(device, transformer.computation(effect), 3 if small else 20)
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
    """Products by generated kernels, by ones that round to tf32, and by cuBLASLt if it is there."""
    ways = {"generated": {}, "tf32": {"tf32": True}, "cublaslt": {"products": "cublaslt"}}
    for by, options in ways.items():
        try:
            transformer = geon.make_transformer(name, **options)
        except geon.DeviceError as error:
            print(f"products by {by}: {error}")
            continue
        with transformer:
            for dtype in ("float32", "bfloat16"):
                for side in (16,) if small else (512, 2048, 4096):
                    m, k, q = (geon.Axis(each, side) for each in "MKQ")
                    left, right, made = (
                        geon.Variable(axes, initial_value=1, dtype=dtype)
                        for axes in ([m, k], [k, q], [m, q])
                    )
                    f = transformer.computation(geon.assign(made, geon.dot(left, right)))
                    rate = 2 * side**3 / seconds(transformer.device, f, 3 if small else 20)
                    print(f"{dtype} product of {side} by {by}: {rate / 1e12:.2f} TFLOP/s")


def filled(axes, dtype, name):
    """A variable of random numbers on the device."""
    value = geon.cast(geon.Random(0).normal(axes), dtype)
    return geon.Variable(axes, dtype, initial_value=value, name=name)


def attention(transformer, small):
    """Attention of 16 times 12 heads over 2048 positions of 64."""
    sizes = (1, 2, 33, 35, 16) if small else (16, 12, 2048, 2048, 64)
    b, h, t, s, d = (geon.Axis(name, size) for name, size in zip("BHTSD", sizes, strict=True))
    operations = 4 * np.prod([float(size) for size in sizes])
    for dtype in ("float32", "bfloat16"):
        q, k, v = (
            filled([b, h, n, d], dtype, f"{w}_{dtype}")
            for w, n in zip("qkv", (t, s, s), strict=True)
        )
        weights = geon.softmax(geon.dot(q, k, over=[d]) * 0.125, normalization_axes=s)
        made = geon.Variable([b, h, t, d], dtype, initial_value=0, name=f"attended_{dtype}")
        step = geon.assign(made, geon.dot(weights, v, over=[s]))
        took = seconds(transformer.device, transformer.computation(step), 3 if small else 20)
        print(f"{dtype} attention: {operations / took / 1e12:.2f} TFLOP/s, {1e3 * took:.2f} ms")


def positions(transformer, small):
    """A step of an embedding, and a sort."""
    rows, count, length = (30, 64, 100) if small else (30000, 1 << 16, 1 << 24)
    v, d, t = geon.Axis("V", rows), geon.Axis("D", 64), geon.Axis("T", count)
    table = geon.Variable([v, d], initial_value=0, name="table")
    at = geon.Variable([t], "int64", initial_value=geon.iota(t) % rows, name="at")
    loss = geon.sum(geon.square(geon.gather(table, at, v) - 1))
    step = geon.assign(table, table - 0.1 * geon.deriv(loss, table))
    took = seconds(transformer.device, transformer.computation(step), 3 if small else 20)
    print(f"step of an embedding of {rows} by {count} positions: {1e6 * took:.0f} µs")
    n = geon.Axis("N", length)
    x = filled([n], "float32", "unsorted")
    made = geon.Variable([n], initial_value=0, name="sorted")
    f = transformer.computation(geon.assign(made, geon.sort(x, n)))
    took = seconds(transformer.device, f, 3 if small else 20)
    print(f"sort of {length} float32: {length / took / 1e9:.2f} G/s")


def overhead(transformer, small):
    """What a call adds to so many kernels that do nothing to speak of."""
    n = geon.Axis("N", 33)
    y = geon.placeholder([n], name="y")
    for count in (1, 4) if small else (1, 10, 100):
        value = y
        for _ in range(count):
            value = geon.cumsum(value, n)  # one kernel each
        f = transformer.computation(value, y)
        given = np.ones(33, np.float32)
        took = seconds(transformer.device, lambda f=f, given=given: f(given), 3 if small else 200)
        print(f"a call of {count} kernels from the host and back: {took * 1e6:.1f} µs")


def steps(transformer, small):
    """Training steps of a perceptron, of batches that are small and large, and of peers."""
    for batch in (4,) if small else (32, 128, 4096):
        random = np.random.default_rng(0)
        images = random.random((batch, LAYERS[0]), np.float32)
        labels = random.integers(0, LAYERS[-1], batch)
        f = perceptron(transformer, batch)
        took = seconds(
            transformer.device, lambda f=f, a=images, b=labels: f(a, b), 3 if small else 50
        )
        print(f"MLP step of batch {batch}, geon: {took * 1e6:.0f} µs")
        for peer in (torch_step, jax_step):
            try:
                call = peer(images, labels)
            except ImportError as error:
                print(f"MLP step of batch {batch}, {peer.__name__}: {error}")
                continue
            for _ in range(5):
                call()
            times = []
            for _ in range(50):
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            print(f"MLP step of batch {batch}, {peer.__name__}: {min(times) * 1e6:.0f} µs")


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


def torch_step(images, labels):
    """The same step of PyTorch, compiled."""
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch has no CUDA")
    layers = []
    for inner, outer in zip(LAYERS, LAYERS[1:], strict=False):
        layers += [torch.nn.Linear(inner, outer), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)
    on_device = torch.from_numpy(images).cuda(), torch.from_numpy(labels).cuda()

    @torch.compile(mode="reduce-overhead")
    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x), y)

    def step():
        optimizer.zero_grad()
        loss = loss_of(*on_device)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def jax_step(images, labels):
    """The same step of JAX."""
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu":
        raise ImportError("JAX has no CUDA")
    random = np.random.default_rng(0)
    weights = [
        (jnp.asarray(random.normal(size=pair, scale=0.05), jnp.float32), jnp.zeros(pair[1]))
        for pair in zip(LAYERS, LAYERS[1:], strict=False)
    ]
    state = [weights, jax.tree.map(jnp.zeros_like, weights)]

    def loss_of(weights, x, y):
        for w, b in weights[:-1]:
            x = jax.nn.relu(x @ w + b)
        scores = jax.nn.log_softmax(x @ weights[-1][0] + weights[-1][1])
        return -jnp.mean(jnp.take_along_axis(scores, y[:, None], 1))

    @jax.jit
    def updated(weights, speeds, x, y):
        loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
        speeds = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, speeds, slopes)
        return jax.tree.map(jnp.add, weights, speeds), speeds, loss

    on_device = jax.device_put(images), jax.device_put(labels)

    def step():
        state[0], state[1], loss = updated(state[0], state[1], *on_device)
        return float(loss)

    return step


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
