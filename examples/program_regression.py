"""Fit a line to noisy points with a program of operators, save it, and predict with it.

python examples/program_regression.py
"""

import argparse
import tempfile

import numpy as np

from geon.frontends import program as fluid
from geon.frontends.program import layers, optimizers

SLOPES, OFFSET = np.array([[2.0], [-3.0]]), 0.5


def points(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points with two coordinates, and the noisy values of a linear function there."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 2))
    return x, x @ SLOPES + OFFSET + 0.01 * random.normal(size=(count, 1))


def build() -> tuple[fluid.Program, fluid.Program, fluid.Var, fluid.Var]:
    """The program of a step, the start-up program, the loss and the prediction."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, y = layers.data("x", [2]), layers.data("y", [1])
        prediction = layers.fc(x, size=1)
        loss = layers.mean(layers.square_error_cost(prediction, y))
        rate = optimizers.exponential_decay(learning_rate=0.2, decay_steps=50, decay_rate=0.5)
        optimizers.SGD(rate).minimize(loss, startup)
    return main, startup, loss, prediction


def train(executor: fluid.Executor, steps: int = 200) -> tuple[list[float], float]:
    """The losses of all steps, and the largest error of the saved program for new points."""
    main, startup, loss, prediction = build()
    scope = fluid.Scope()
    executor.run(startup, scope=scope)
    losses = []
    for step in range(steps):
        x, y = points(step, 32)
        losses.append(executor.run(main, {"x": x, "y": y}, [loss], scope)[0].item())
    with tempfile.TemporaryDirectory() as folder:
        fluid.save_inference_model(folder, ["x"], [prediction], main, scope)
        fresh = fluid.Scope()
        saved, _, targets = fluid.load_inference_model(folder, fresh)
    x, y = points(steps, 100)
    return losses, float(np.abs(executor.run(saved, {"x": x}, targets, fresh)[0] - y).max())


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    losses, error = train(fluid.Executor())
    print(f"loss {losses[0]:.4f} at first, {losses[-1]:.6f} at last; largest error {error:.4f}")


if __name__ == "__main__":
    main()
