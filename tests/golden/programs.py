"""The programs whose kernels, plans and text are golden, as users would write them.

Sizes are those of the benchmarks: what is emitted depends on lengths that are known (products, rows
that fit a cache), so small ones would show other kernels than people run. Batches and tokens are
open. Each function returns the results of a computation and its placeholders, and its docstring is
what reviewers read of it. One has golden C and CUDA text alone, three small ones NumPy programs.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import geon
from geon import Axis, Variable, assign, dot, placeholder

Made = tuple[Any, Sequence[Any]]

N = Axis("N")  # open: a batch, or rows
ROW = Axis("C", 1024)


# Training steps -----------------------------------------------------------------------------------


def mlp_step() -> Made:
    """A step of 784-512-512-10: relu, softmax cross entropy averaged over the batch, momentum."""
    widths = Axis("I", 784), Axis("H1", 512), Axis("H2", 512), Axis("Y", 10)
    x, target = placeholder([N, widths[0]], name="x"), placeholder([N, widths[3]], name="target")
    w = [Variable([a, b], name=f"w{k}") for k, (a, b) in enumerate(pairwise(widths))]
    b = [Variable([a], name=f"b{k}") for k, a in enumerate(widths[1:])]
    h = geon.relu(dot(x, w[0]) + b[0])
    h = geon.relu(dot(h, w[1]) + b[1])
    guess = geon.softmax(dot(h, w[2]) + b[2], normalization_axes=widths[3])
    loss = geon.mean(geon.cross_entropy_multi(guess, target, out_axes=N))
    updates = []
    parameters = [*w, *b]
    for v, slope in zip(parameters, geon.deriv(loss, parameters), strict=True):
        speed = geon.persistent_tensor(v.axes, initial_value=0, name=f"{v.name} speed")
        faster = 0.9 * speed + slope
        updates += [assign(speed, faster), assign(v, v - 0.1 * faster)]
    return [loss, geon.doall(updates)], [x, target]


def adam() -> Made:
    """D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015."""
    count = Axis("P", 10_000_000)
    p, g = Variable([count], name="p"), placeholder([count], name="g")
    mean = Variable([count], initial_value=0, name="mean")
    square = Variable([count], initial_value=0, name="square")
    step = Variable([], initial_value=0, name="step")
    now = step + 1
    new_mean = 0.9 * mean + (1 - 0.9) * g
    new_square = 0.999 * square + (1 - 0.999) * geon.square(g)
    size = geon.sqrt(new_square / (1 - geon.power(0.999, now))) + 1e-8
    moved = p - 0.1 * (new_mean / (1 - geon.power(0.9, now))) / size
    updates = [assign(step, now), assign(mean, new_mean), assign(square, new_square)]
    return [now, geon.doall([*updates, assign(p, moved)])], [g]


def embedding_step() -> Made:
    """Rows gathered from a table and averaged, a line fitted to them, and the table updated.

    The derivative of the gather is a scatter that adds.
    """
    word, width, place = Axis("V", 30_000), Axis("D", 64), Axis("T")
    words, target = placeholder([N, place], "int64", name="words"), placeholder([N], name="target")
    table, line = Variable([word, width], name="table"), Variable([width], name="line")
    meaning = geon.mean(geon.gather(table, words, word), place)
    loss = geon.mean(geon.square(dot(meaning, line) - target))
    slopes = geon.deriv(loss, [table, line])
    updates = [assign(v, v - 0.1 * s) for v, s in zip([table, line], slopes, strict=True)]
    return [loss, geon.doall(updates)], [words, target]


def digits_step() -> Made:
    """The training step of ``examples/digits.py``."""
    from digits import build

    step = build().step
    return step.results, step.placeholders


def digits_predict() -> Made:
    """What the same example asks its network: the likeliest digit of each image."""
    from digits import build

    predict = build().predict
    return predict.results, predict.placeholders


# Rows ---------------------------------------------------------------------------------------------


def softmax() -> Made:
    """Over rows."""
    x = placeholder([N, ROW], name="x")
    return geon.softmax(x, normalization_axes=ROW), [x]


def softmax_gradient() -> Made:
    """The derivative of a softmax with a seed."""
    x, g = placeholder([N, ROW], name="x"), placeholder([N, ROW], name="g")
    return geon.deriv(geon.softmax(x, normalization_axes=ROW), x, seed=g), [x, g]


def normalized(x: Any, axis: Axis, scale: Any, shift: Any) -> Any:
    """J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", 2016."""
    centred = x - geon.mean(x, axis)
    spread = geon.mean(geon.square(centred), axis)
    return centred * geon.rsqrt(spread + 1e-5) * scale + shift


def layer_norm() -> Made:
    """Over rows."""
    x = placeholder([N, ROW], name="x")
    scale, shift = placeholder([ROW], name="scale"), placeholder([ROW], name="shift")
    return normalized(x, ROW, scale, shift), [x, scale, shift]


def layer_norm_gradient() -> Made:
    """The derivatives of a layer norm with a seed."""
    x, g = placeholder([N, ROW], name="x"), placeholder([N, ROW], name="g")
    scale, shift = placeholder([ROW], name="scale"), placeholder([ROW], name="shift")
    slopes = geon.deriv(normalized(x, ROW, scale, shift), [x, scale, shift], seed=g)
    return slopes, [x, scale, shift, g]


# A transformer block ------------------------------------------------------------------------------


def block_parts() -> tuple[Any, list[Any], Any]:
    """The tokens, the weights, and a block of them: attention and a perceptron beside residuals."""
    batch, time, width = Axis("B"), Axis("T"), Axis("C", 512)
    part, head, depth, up = Axis("part", 3), Axis("head", 8), Axis("D", 64), Axis("F", 2048)
    axes = {
        "scale1": [width], "shift1": [width], "qkv": [width, part, head, depth],
        "out": [head, depth, width], "scale2": [width], "shift2": [width], "up": [width, up],
        "up_bias": [up], "down": [up, width], "down_bias": [width],
    }  # fmt: skip
    x = placeholder([batch, time, width], name="x")
    w = {name: Variable(a, name=name) for name, a in axes.items()}
    parts = dot(normalized(x, width, w["scale1"], w["shift1"]), w["qkv"])
    query = parts[{part: 0}] * 64**-0.5
    key, value = (geon.rename(parts[{part: k}], {time: "S"}) for k in (1, 2))
    scores = dot(query, key, over=depth)
    earlier = scores.axes["S"]
    attention = geon.softmax(scores, normalization_axes=earlier)
    h = x + dot(dot(attention, value, over=earlier), w["out"], over=[head, depth])
    risen = dot(normalized(h, width, w["scale2"], w["shift2"]), w["up"]) + w["up_bias"]
    y = h + dot(geon.gelu(risen, approximate="tanh"), w["down"]) + w["down_bias"]
    return x, list(w.values()), y


def block() -> Made:
    """A transformer block of width 512 with eight heads."""
    x, _, y = block_parts()
    return y, [x]


def block_gradient() -> Made:
    """The derivatives of its sum of squares with respect to tokens and weights."""
    x, weights, y = block_parts()
    return geon.deriv(geon.sum(geon.square(y)), [x, *weights]), [x]


# Slices -------------------------------------------------------------------------------------------


def stencil_gradient() -> Made:
    """The derivative of two reductions over a Laplacian by five points in the planes of a grid."""
    x, y, z = (Axis(name, 256) for name in "XYZ")
    u = placeholder([x, y, z], name="u")
    inner = u[1:-1, 1:-1, 1:-1]
    around = (u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
              + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2])  # fmt: skip
    bent = around - 4 * inner
    return geon.deriv(geon.sum(geon.square(bent)) + geon.mean(inner * bent), u), [u]


def strided_slice_gradient() -> Made:
    """The derivative of every second column's sum of squares."""
    x = placeholder([N, ROW], name="x")
    return geon.deriv(geon.sum(geon.square(x[:, ::2])), x), [x]


def strided_convolution() -> Made:
    """A depthwise convolution by 3x3 in steps of two, a slice for each offset, and its derivatives.

    They are those of a sum of squares with respect to images and weights.
    """
    channel, height, width = Axis("K", 16), Axis("H", 65), Axis("W", 65)
    x = placeholder([N, channel, height, width], name="x")
    w = Variable([channel, Axis("R", 3), Axis("S", 3)], name="w")
    y: Any = 0.0
    for i in range(3):
        for j in range(3):
            y = y + x[:, :, i : i + 63 : 2, j : j + 63 : 2] * w[:, i, j]
    return [y, *geon.deriv(geon.sum(geon.square(y)), [x, w])], [x]


# Text alone ---------------------------------------------------------------------------------------


def embedding_gradient() -> Made:
    """The derivative of averages of gathered rows with respect to the table: a scatter that adds.

    These are the kernels of ``embedding_step`` whose text no other program shows.
    """
    word, width, place = Axis("V", 30_000), Axis("D", 64), Axis("T")
    words, seed = placeholder([N, place], "int64", name="words"), placeholder([N, width], name="g")
    table = Variable([word, width], name="table")
    meaning = geon.mean(geon.gather(table, words, word), place)
    return [meaning, geon.deriv(meaning, table, seed=seed)], [words, seed]


# NumPy alone --------------------------------------------------------------------------------------


def chain() -> Made:
    """x1 = x + x; y = x1 * x1 - x: one buffer."""
    x = placeholder(axes=N, name="x")
    x1 = x + x
    return [x1 * x1 - x], [x]


def logistic_regression() -> Made:
    """One step of gradient descent, the new values in place."""
    feature = Axis("C")
    X = placeholder(axes=[feature, N], name="X")
    T = placeholder(axes=N, name="T")
    alpha = placeholder(name="alpha")
    W = Variable(axes=feature, initial_value=0, name="W")
    b = Variable(initial_value=0, name="b")
    Y_hat = geon.sigmoid(dot(W, X) + b)
    L = geon.cross_entropy_binary(Y_hat, T, out_axes=geon.Axes())
    size = geon.tensor_size(Y_hat)
    updates = [assign(v, v - alpha * geon.deriv(L, v) / size) for v in L.variables()]
    return [L, geon.doall(updates)], [alpha, X, T]


HIDDEN, CLASS = Axis("H"), Axis("Y")  # open too: the lengths of weights


def perceptron() -> Made:
    """One step with momentum of a network with a hidden layer and softmax, every length open."""
    feature = Axis("C")
    x = placeholder(axes=[N, feature], name="x")
    t = placeholder(axes=N, dtype="int64", name="t")
    layers = []
    for before, after, name in ((feature, HIDDEN, "hidden"), (HIDDEN, CLASS, "output")):
        w = Variable(axes=[before, after], initial_value=0.01, name=f"{name}/w")
        layers.append((w, Variable(axes=after, initial_value=0, name=f"{name}/b")))
    (w1, b1), (w2, b2) = layers
    hidden = geon.relu(x @ w1 + b1)
    guess = geon.softmax(hidden @ w2 + b2, normalization_axes=CLASS)
    loss = geon.cross_entropy_multi(guess, geon.onehot(t, CLASS)) / geon.tensor_size(t)
    updates = []
    parameters = loss.variables()
    for v, slope in zip(parameters, geon.deriv(loss, parameters), strict=True):
        m = geon.temporary_tensor(axes=v.axes, initial_value=0, name=f"{v.name}/momentum")
        new = 0.9 * m - 0.1 * slope
        updates += [assign(m, new), assign(v, v + new)]
    return [loss, geon.doall(updates)], [x, t]


Programs = dict[str, Callable[[], Made]]

PROGRAMS: Programs = {
    made.__name__: made
    for made in (
        mlp_step, digits_step, digits_predict, adam, embedding_step, softmax, softmax_gradient,
        layer_norm, layer_norm_gradient, block, block_gradient, stencil_gradient,
        strided_slice_gradient, strided_convolution,
    )
}  # fmt: skip
TEXT_ONLY: Programs = {"embedding_gradient": embedding_gradient}
NUMPY_ONLY: Programs = {made.__name__: made for made in (chain, logistic_regression, perceptron)}
# Programs with golden text: two whole ones, and the shortest of each class of kernel (an update of
# many variables, rows in one pass, an update of a slice, library calls around nests).
WITH_TEXT = (
    "digits_predict", "layer_norm_gradient",
    "adam", "softmax", "strided_slice_gradient", "embedding_gradient",
)  # fmt: skip
WITH_NUMPY_TEXT = ("perceptron", "layer_norm_gradient", "strided_slice_gradient")
