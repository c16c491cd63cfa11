"""The emitted source of three examples: a change to it is seen in review.

``python -m tests.test_golden_source --update`` writes ``tests/golden/*.py.txt`` anew.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geon

GOLDEN = Path(__file__).parent / "golden"

C, N, H, Y = (geon.Axis(name) for name in "CNHY")


def chain():
    """x1 = x + x; y = x1 * x1 - x: one buffer."""
    x = geon.placeholder(axes=N, name="x")
    x1 = x + x
    return [x1 * x1 - x], [x]


def logistic_regression():
    """One step of gradient descent, the new values in place."""
    X = geon.placeholder(axes=[C, N], name="X")
    T = geon.placeholder(axes=N, name="T")
    alpha = geon.placeholder(name="alpha")
    W = geon.Variable(axes=C, initial_value=0, name="W")
    b = geon.Variable(initial_value=0, name="b")
    Y_hat = geon.sigmoid(geon.dot(W, X) + b)
    L = geon.cross_entropy_binary(Y_hat, T, out_axes=geon.Axes())
    size = geon.tensor_size(Y_hat)
    updates = [geon.assign(v, v - alpha * geon.deriv(L, v) / size) for v in L.variables()]
    return [L, geon.doall(updates)], [alpha, X, T]


def perceptron():
    """One step with momentum of a network with a hidden layer and softmax."""
    x = geon.placeholder(axes=[N, C], name="x")
    t = geon.placeholder(axes=N, dtype="int64", name="t")
    layers = []
    for before, after, name in ((C, H, "hidden"), (H, Y, "output")):
        w = geon.Variable(axes=[before, after], initial_value=0.01, name=f"{name}/w")
        layers.append((w, geon.Variable(axes=after, initial_value=0, name=f"{name}/b")))
    (w1, b1), (w2, b2) = layers
    hidden = geon.relu(x @ w1 + b1)
    guess = geon.softmax(hidden @ w2 + b2, normalization_axes=Y)
    loss = geon.cross_entropy_multi(guess, geon.onehot(t, Y)) / geon.tensor_size(t)
    updates = []
    parameters = loss.variables()
    for v, slope in zip(parameters, geon.deriv(loss, parameters), strict=True):
        m = geon.temporary_tensor(axes=v.axes, initial_value=0, name=f"{v.name}/momentum")
        new = 0.9 * m - 0.1 * slope
        updates += [geon.assign(m, new), geon.assign(v, v + new)]
    return [loss, geon.doall(updates)], [x, t]


EXAMPLES = {"chain": chain, "logistic_regression": logistic_regression, "perceptron": perceptron}


def source(name):
    """The emitted module of an example, with comments but without the lines of this file."""
    results, placeholders = EXAMPLES[name]()
    with geon.NumPyTransformer() as transformer:
        text = transformer.computation(results, *placeholders).source
    here = f"{Path(__file__).parent.name}/{Path(__file__).name}:"
    lines = []
    for line in text.splitlines():
        code, found, place = line.replace(str(Path(__file__).parents[1]) + "/", "").partition(here)
        lines.append(code + found.rstrip(":") + place.lstrip("0123456789"))
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_emitted_source_is_the_golden_one(name):
    golden = (GOLDEN / f"{name}.py.txt").read_text()
    # In a process of its own: an op that another test made first would show that test's line.
    run = [sys.executable, "-m", "tests.test_golden_source", name]
    emitted = subprocess.run(run, cwd=GOLDEN.parents[1], capture_output=True, text=True, check=True)
    assert emitted.stdout.splitlines() == golden.splitlines(), (
        "run `python -m tests.test_golden_source --update` and read the difference"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_emitted_source_is_python_and_deterministic(name):
    text = source(name)
    compile(text, name, "exec")
    assert source(name) == text


def test_the_examples_run():
    random = np.random.default_rng(0)
    xs, ts = random.normal(size=(20, 5)), random.integers(0, 3, size=20)
    results, placeholders = perceptron()
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(results, *placeholders, lengths={H: 7, Y: 3})
        losses = [float(f(xs, ts)[0]) for _ in range(20)]
    assert losses[-1] < losses[0]


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        for example in EXAMPLES:
            (GOLDEN / f"{example}.py.txt").write_text(source(example))
    elif len(sys.argv) == 2 and sys.argv[1] in EXAMPLES:
        sys.stdout.write(source(sys.argv[1]))
    else:
        sys.exit(f"usage: python -m tests.test_golden_source --update | {' | '.join(EXAMPLES)}")
