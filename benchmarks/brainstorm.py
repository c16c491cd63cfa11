"""Training steps of networks in ``geon.frontends.brainstorm``, beside the same in ``neon``.

``python -m benchmarks.brainstorm`` prints the time of an inspectable and of a compiled step over
that of neon's, on two threads, for a 784-1000-10 perceptron and a convolutional network on images
of 32 x 32. Steps are interleaved in one run; each figure is the best of its rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import geon
from geon.frontends import neon
from geon.frontends.brainstorm import Network, initializers, layers
from geon.frontends.brainstorm.handlers import NativeHandler
from geon.frontends.brainstorm.training import SgdStepper
from geon.frontends.neon.axis import H, N, W

BATCH, CLASSES, RATE, THREADS = 100, 10, 0.01, 2
LIMITS = {"inspectable": 2.0, "compiled": 1.05}
FILTERS = (32, 32, 64)


def brainstorm_steps(end: Callable[[Any], Any], shape: tuple[int, ...], x: Any, t: Any) -> Any:
    """Return a function to a network's step for each way to run it."""
    found = {}
    for way in LIMITS:
        entry = layers.Input({"default": ("T", "B", *shape), "targets": ("T", "B", 1)})
        cost = end(entry) >> layers.FullyConnected(CLASSES, "linear") >> layers.SoftmaxCE()
        _ = entry - "targets" >> "targets" - cost
        net = Network.from_layer(cost - "loss" >> layers.Loss())
        transformer = geon.make_transformer("native", threads=THREADS)
        net.set_handler(NativeHandler(transformer=transformer))
        net.initialize({"default": initializers.DenseSqrtFanIn(), "fallback": 0}, seed=0)
        stepper = SgdStepper(RATE)
        stepper.start(net)
        data = {"default": x[None], "targets": t[None, :, None]}
        if way == "compiled":
            found[way] = partial(net.compile(stepper), data=data)
            continue

        def step(net: Any = net, stepper: Any = stepper, data: Any = data) -> None:
            net.provide_external_data(data)
            stepper.run()

        found[way] = step
    return found


def neon_step(layer: Any, axes: list[Any], x: Any, t: Any) -> Callable[[], Any]:
    """Return a function to the step of neon's network."""
    inputs = geon.placeholder([N, *axes], name="x")
    target = geon.placeholder([N], "int64", name="target")
    transformer = geon.make_transformer("native", threads=THREADS)
    model = neon.Model(
        layer, inputs, target, neon.costs.cross_entropy, neon.SGD(RATE), transformer=transformer
    )
    step = model.step()
    return lambda: step(x, t)


def perceptron() -> tuple[Any, Any]:
    """Return the steps of both for the perceptron."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(BATCH, 784)).astype(np.float32)
    t = draw.integers(0, CLASSES, BATCH)
    random = geon.Random(0, name="random")
    layer = neon.Sequential(
        [
            neon.Affine(geon.Axis("D", 1000), neon.Kaiming(random), activation=geon.relu),
            neon.Affine(geon.Axis("K", CLASSES), neon.Kaiming(random)),
        ]
    )
    steps = brainstorm_steps(lambda entry: entry >> layers.FullyConnected(1000), (784,), x, t)
    return neon_step(layer, [geon.Axis("C", 784)], x, t), steps


def images() -> tuple[Any, Any]:
    """Return the steps of both for the convolutional network."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(BATCH, 32, 32, 3)).astype(np.float32)
    t = draw.integers(0, CLASSES, BATCH)
    random = geon.Random(0, name="random")
    parts: list[Any] = []
    for count in FILTERS:
        window = geon.Window(5, pad=2)
        parts += [
            neon.Convolution(
                {H: window, W: window},
                geon.Axis("C", count),
                neon.Kaiming(random),
                0.0,
                geon.relu,
            ),
            neon.Pooling({H: geon.Window(3, stride=2), W: geon.Window(3, stride=2)}),
        ]
    parts += [
        neon.Affine(geon.Axis("D", 64), neon.Kaiming(random), activation=geon.relu),
        neon.Affine(geon.Axis("K", CLASSES), neon.Kaiming(random)),
    ]

    def end(current: Any) -> Any:
        for count in FILTERS:
            current = current >> layers.Convolution2D(count, (5, 5), padding=2)
            current = current >> layers.Pooling2D((3, 3), stride=(2, 2))
        return current >> layers.FullyConnected(64)

    steps = brainstorm_steps(end, (32, 32, 3), x, t)
    axes = [geon.Axis("H", 32), geon.Axis("W", 32), geon.Axis("C", 3)]
    return neon_step(neon.Sequential(parts), axes, x, t), steps


def best(steps: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least seconds of each step, in interleaved rounds."""
    found = dict.fromkeys(steps, float("inf"))
    for number in range(rounds + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if number > 1:
                found[name] = min(found[name], time.perf_counter() - start)
    return found


def main() -> None:
    """Print the table."""
    print(f"{'network':12}{'neon ms':>9}" + "".join(f"{way:>14}{'limit':>7}" for way in LIMITS))
    for name, make, rounds in (("perceptron", perceptron, 600), ("images", images, 60)):
        neon_way, ways = make()
        times = best({"neon": neon_way, **ways}, rounds)
        row = f"{name:12}{times['neon'] * 1e3:9.2f}"
        for way, limit in LIMITS.items():
            row += f"{times[way] / times['neon']:14.2f}{limit:7.2f}"
        print(row)


if __name__ == "__main__":
    main()
