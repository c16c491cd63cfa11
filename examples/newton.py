"""Newton's method where the Hessian is never made: products with it, and conjugate gradients.

    python examples/newton.py [--steps 10] [--seed 0] [--into newton.png]

A logistic regression tells malignant from benign tumours by 30 figures of 398 cell images that
scikit-learn ships; 171 others are held out. Weights are held small by a square. geon.hvp is the
product of the Hessian with a direction, an expression like any other, so the conjugate gradients
are a geon.while_loop around it, and a step of Newton's method is one compiled program. Beside it
goes gradient descent, with the largest rate that is safe: 1 over the largest eigenvalue that the
Hessian can have. It prints the size of the gradient after each of Newton's steps, and after how
many steps of gradient descent it is as small.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import geon

N, FIGURE = geon.Axis("N"), geon.Axis("figure", 31)  # the last figure is 1, for the bias
RIDGE, MOST = 1e-3, 100  # of the weights' square; the most steps of conjugate gradients

Examples = tuple[np.ndarray, np.ndarray]  # figures over (N, figure), and whether malignant


def load(seed: int) -> tuple[Examples, Examples]:
    """Examples to learn from and others, drawn by ``seed``; figures have mean 0 and variance 1."""
    data = load_breast_cancer()
    order = np.random.default_rng(seed).permutation(len(data.target))
    x, malignant = data.data[order], data.target[order] == 0
    x = (x - x[:398].mean(0)) / x[:398].std(0)
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    return (x[:398], malignant[:398]), (x[398:], malignant[398:])


def conjugate_gradients(
    cost: geon.Tensor, w: geon.Tensor, b: geon.Tensor
) -> tuple[geon.Tensor, geon.Tensor]:
    """The direction whose product with the cost's Hessian is b, and how many products it took.

    M. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
    """
    least = 1e-16 * geon.sum(geon.square(b))

    def step(carry: list[geon.Tensor]) -> list[geon.Tensor]:
        x, rest, direction, size = carry
        product = geon.hvp(cost, w, direction)
        far = size / geon.sum(direction * product)
        rest = rest - far * product
        left = geon.sum(geon.square(rest))
        return [x + far * direction, rest, rest + left / size * direction, left]

    begin = [0 * b, b, b, geon.sum(geon.square(b))]
    (x, *_), count = geon.while_loop(
        lambda carry: carry[3] > least, step, begin, max_steps=MOST, count=True
    )
    return x, count


class Regression:
    """A logistic regression, with a step of Newton's method and one of gradient descent."""

    def __init__(self, rate: float) -> None:
        x = geon.placeholder([N, FIGURE], "float64", name="x")
        malignant = geon.placeholder([N], "float64", name="malignant")
        w = geon.Variable([FIGURE], "float64", initial_value=0, name="w")
        scores = geon.dot(x, w)
        loss = geon.mean(geon.softplus(scores) - scores * malignant)
        cost = loss + RIDGE / 2 * geon.sum(geon.square(w))
        gradient = geon.deriv(cost, w)
        size = geon.sqrt(geon.sum(geon.square(gradient)))
        direction, products = conjugate_gradients(cost, w, gradient)

        self.transformer = geon.make_transformer()
        computation = self.transformer.computation
        self.newton = computation(
            [size, products, geon.assign(w, w - direction)], x, malignant, name="newton"
        )
        self.descent = computation([size, geon.assign(w, w - rate * gradient)], x, malignant)
        self.right = computation(geon.equal(scores > 0, malignant > 0), x, malignant)


def plot(sizes: Sequence[float], descent: Sequence[float], path: Path) -> None:
    """Draw the size of the gradient after each step of both."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(np.arange(1, len(sizes) + 1), sizes, "o-", label="Newton's method")
    axes.loglog(np.arange(1, len(descent) + 1), descent, label="gradient descent")
    axes.set(xlabel="steps", ylabel="size of the gradient")
    axes.legend()
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Newton's method with products.")
    parser.add_argument("--steps", type=int, default=10, help="of Newton's method")
    parser.add_argument("--descent", type=int, default=20_000, help="steps of gradient descent")
    parser.add_argument("--seed", type=int, default=0, help="of what is held out")
    parser.add_argument("--into", type=Path, default=Path("newton.png"), help="picture")
    options = parser.parse_args(argv)

    known, held_out = load(options.seed)
    largest = float(np.linalg.norm(known[0], 2)) ** 2 / 4 / len(known[0]) + RIDGE
    model = Regression(1 / largest)
    descent = [float(model.descent(*known)[0]) for _ in range(options.descent)]
    model.transformer.initialize(force=True)
    sizes = []
    for number in range(options.steps):
        size, products, _ = model.newton(*known)
        sizes.append(float(size))
        below = np.flatnonzero(np.array(descent) <= sizes[-1])
        after = f"after {below[0]}" if len(below) else f"not after {len(descent)}"
        print(f"Newton, after {number}: gradient {size:.1e}, {products} products;", end=" ")
        print(f"gradient descent: {after}")
    print(f"held out: {100 * np.mean(model.right(*held_out)):.1f} % right")
    plot(sizes, descent, options.into)


if __name__ == "__main__":
    main()
