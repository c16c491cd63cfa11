"""The workloads in geon: batch and time axes open, weights and moments as variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import geon
from geon import Axis, Variable, assign, dot, placeholder

from .data import WEIGHTS
from .geon_loops import LOOPS
from .geon_moves import MOVES
from .geon_nets import STEPS, going_on
from .geon_windows import WINDOWS, network
from .prepared import (
    ADAM_EPSILON,
    ADAM_RATE,
    BETA1,
    BETA2,
    MOMENTUM,
    NORM_EPSILON,
    RATE,
    Builder,
    Prepared,
    plain,
    stepping,
)
from .workloads import Sizes

Data = dict[str, Any]
notes: list[str] = []


def version() -> str:
    """Of geon, with the transformer that is measured."""
    return f"{geon.__version__} ({transformer().target.name})"


def start(threads: int) -> None:
    """Nothing is to be set: the number of threads is in the environment."""
    transformer()


def transformer() -> geon.Transformer:
    """That of GEON_TRANSFORMER, or the native one; NumPy's, with a note, where it is missing."""
    wanted = os.environ.get("GEON_TRANSFORMER", "native")
    try:
        return geon.make_transformer(wanted)
    except geon.UnavailableError as error:
        note = f"geon ran on the transformer 'numpy': {str(error).splitlines()[0]}"
        if note not in notes:
            notes.append(note)
        return geon.make_transformer("numpy")


def computed(results: Any, inputs: dict[Any, Any], lengths: dict[Axis, int]) -> Prepared:
    """A computation of placeholders, given as keys with their values, that has no state."""
    f = transformer().computation(results, *inputs)
    return plain(partial(f, *inputs.values()), partial(f.peak_bytes, lengths))


def trained(
    loss: Any,
    updates: Sequence[Any],
    inputs: dict[Any, Any],
    values: dict[Any, Any],
    lengths: dict[Axis, int],
) -> Prepared:
    """A step that returns a loss and updates variables, whose first values are given."""
    runner = transformer()
    f = runner.computation([loss, geon.doall(list(updates))], *inputs)
    for variable, value in values.items():
        runner.set(variable, value)
    data = tuple(inputs.values())

    def call() -> Any:
        return f(*data)[0]

    return stepping(call, lambda: [runner.get(v) for v in values], partial(f.peak_bytes, lengths))


# Training steps ---------------------------------------------------------------------------------


def layers(axes: Sequence[Axis]) -> tuple[list[Any], list[Any]]:
    """Weights and biases between neighbouring axes."""
    weights = [Variable([a, b], name=f"w{k}") for k, (a, b) in enumerate(pairwise(axes))]
    return weights, [Variable([a], name=f"b{k}") for k, a in enumerate(axes[1:])]


def mlp_step(sizes: Sizes, data: Data) -> Prepared:
    """Two relu layers, softmax cross entropy averaged over the batch, momentum SGD."""
    batch, inputs = Axis("N"), Axis("inputs", sizes["inputs"])
    hidden1, hidden2 = Axis("hidden1", sizes["hidden"]), Axis("hidden2", sizes["hidden"])
    classes = Axis("classes", sizes["classes"])
    x, y = placeholder([batch, inputs]), placeholder([batch, classes])
    w, b = layers([inputs, hidden1, hidden2, classes])
    h = geon.relu(dot(x, w[0]) + b[0])
    h = geon.relu(dot(h, w[1]) + b[1])
    y_hat = geon.softmax(dot(h, w[2]) + b[2], normalization_axes=classes)
    loss = geon.mean(geon.cross_entropy_multi(y_hat, y, out_axes=batch))
    updates = []
    parameters = [*w, *b]
    for v, slope in zip(parameters, geon.deriv(loss, parameters), strict=True):
        speed = geon.persistent_tensor(v.axes, initial_value=0, name=f"{v.name} speed")
        faster = MOMENTUM * speed + slope
        updates += [assign(speed, faster), assign(v, v - RATE * faster)]
    values = dict(zip(parameters, [*data["w"], *data["b"]], strict=True))
    return trained(loss, updates, {x: data["x"], y: data["y"]}, values, {batch: sizes["batch"]})


def deep_mlp(sizes: Sizes, data: Data) -> Prepared:
    """Many tanh layers, the mean of squared errors, SGD."""
    batch, width = Axis("N"), Axis("H", sizes["width"])
    x, y = placeholder([batch, width]), placeholder([batch, width])
    w = [Variable([width, width.prime], name=f"w{k}") for k in range(sizes["layers"])]
    b = [Variable([width], name=f"b{k}") for k in range(sizes["layers"])]
    h: Any = x
    for weight, bias in zip(w, b, strict=True):
        h = geon.tanh(geon.rename(dot(h, weight), {width.prime: width}) + bias)
    loss = geon.mean(geon.square(h - y))
    parameters = [*w, *b]
    slopes = geon.deriv(loss, parameters)
    updates = [assign(v, v - RATE * s) for v, s in zip(parameters, slopes, strict=True)]
    values = dict(zip(parameters, [*data["w"], *data["b"]], strict=True))
    return trained(loss, updates, {x: data["x"], y: data["y"]}, values, {batch: sizes["batch"]})


def logistic(sizes: Sizes, data: Data) -> Prepared:
    """One weight for each feature, SGD."""
    batch, features = Axis("N"), Axis("C", sizes["features"])
    x, y, w = placeholder([batch, features]), placeholder([batch]), Variable([features])
    inside = geon.sigmoid(dot(x, w))
    loss = geon.mean(geon.cross_entropy_binary(inside, y, out_axes=batch))
    update = assign(w, w - RATE * geon.deriv(loss, w))
    inputs = {x: data["x"], y: data["y"]}
    return trained(loss, [update], inputs, {w: data["w"]}, {batch: sizes["batch"]})


def adam(sizes: Sizes, data: Data) -> Prepared:
    """D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015."""
    count = Axis("P", sizes["count"])
    p, g = Variable([count]), placeholder([count])
    mean, square, step = (Variable(a, initial_value=0) for a in ([count], [count], []))
    now = step + 1
    new_mean = BETA1 * mean + (1 - BETA1) * g
    new_square = BETA2 * square + (1 - BETA2) * geon.square(g)
    size = geon.sqrt(new_square / (1 - geon.power(BETA2, now))) + ADAM_EPSILON
    moved = p - ADAM_RATE * (new_mean / (1 - geon.power(BETA1, now))) / size
    updates = [assign(step, now), assign(mean, new_mean), assign(square, new_square)]
    return trained(now, [*updates, assign(p, moved)], {g: data["g"]}, {p: data["p"]}, {})


# A transformer block ----------------------------------------------------------------------------


def normalized(x: Any, axis: Axis, scale: Any, shift: Any) -> Any:
    """J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", 2016."""
    centred = x - geon.mean(x, axis)
    spread = geon.mean(geon.square(centred), axis)
    return centred * geon.rsqrt(spread + NORM_EPSILON) * scale + shift


def prepared_block(sizes: Sizes, data: Data, gradient: bool) -> Prepared:
    """The block forward, or the derivatives of its sum of squares."""
    batch, time, width = Axis("B"), Axis("T"), Axis("C", sizes["width"])
    x = placeholder([batch, time, width], name="x")
    weights = block_weights(sizes, width)
    result = block(x, time, width, *weights)
    wanted = geon.deriv(geon.sum(geon.square(result)), [x, *weights]) if gradient else result
    runner = transformer()
    f = runner.computation(wanted, x)
    for variable, name in zip(weights, WEIGHTS, strict=True):
        runner.set(variable, data[name].reshape([axis.expression for axis in variable.axes]))
    lengths = {batch: sizes["batch"], time: sizes["tokens"]}
    return plain(partial(f, data["x"]), partial(f.peak_bytes, lengths))


def block_weights(sizes: Sizes, width: Axis) -> list[Any]:
    """Variables; a projection's outputs are over parts, heads and their depth."""
    part, head = Axis("part", 3), Axis("head", sizes["heads"])
    depth, up = Axis("D", sizes["width"] // sizes["heads"]), Axis("F", 4 * sizes["width"])
    axes = ([width], [width], [width, part, head, depth], [head, depth, width],
            [width], [width], [width, up], [up], [up, width], [width])  # fmt: skip
    return [Variable(a, name=name) for a, name in zip(axes, WEIGHTS, strict=True)]


def block(x: Any, time: Axis, width: Axis, *weights: Any) -> Any:
    """Attention and a perceptron, each after a layer norm and beside a residual."""
    scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = weights
    _, part, head, depth = qkv.axes
    parts = dot(normalized(x, width, scale1, shift1), qkv)  # (B, T, part, head, D)
    query = parts[{part: 0}] * float(depth.expression**-0.5)
    key, value = (geon.rename(parts[{part: k}], {time: "S"}) for k in (1, 2))
    scores = dot(query, key, over=depth)  # (B, T, head, S)
    earlier = scores.axes["S"]
    attention = geon.softmax(scores, normalization_axes=earlier)
    h = x + dot(dot(attention, value, over=earlier), out, over=[head, depth])
    risen = dot(normalized(h, width, scale2, shift2), up) + up_bias
    return h + dot(geon.gelu(risen, approximate="tanh"), down) + down_bias


# Others -----------------------------------------------------------------------------------------


def matmul(sizes: Sizes, data: Data) -> Prepared:
    """(M, K) by (K, N)."""
    m, k, n = Axis("M", sizes["m"]), Axis("K", sizes["k"]), Axis("N", sizes["n"])
    a, b = placeholder([m, k]), placeholder([k, n])
    return computed(dot(a, b), {a: data["a"], b: data["b"]}, {})


def matvec(sizes: Sizes, data: Data) -> Prepared:
    """(M, K) by (K)."""
    m, k = Axis("M", sizes["m"]), Axis("K", sizes["k"])
    a, b = placeholder([m, k]), placeholder([k])
    return computed(dot(a, b), {a: data["a"], b: data["b"]}, {})


def batch_matmul(sizes: Sizes, data: Data) -> Prepared:
    """(B, M, K) by (B, K, N)."""
    batch, m, k, n = Axis("B"), *(Axis(name, sizes["n"]) for name in "MKN")
    a, b = placeholder([batch, m, k]), placeholder([batch, k, n])
    inputs = {a: data["a"], b: data["b"]}
    return computed(dot(a, b, over=k), inputs, {batch: sizes["batch"]})


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """The form with tanh."""
    n = Axis("N")
    x = placeholder([n])
    return computed(geon.gelu(x, approximate="tanh"), {x: data["x"]}, {n: sizes["count"]})


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """A scalar array in, another out."""
    x = placeholder()
    return computed(x + 1, {x: np.asarray(data["x"])}, {})


def stencil(sizes: Sizes) -> tuple[Any, list[Any]]:
    """The grid, and four reductions over its Laplacian by seven points."""
    x, y, z = (Axis(name, sizes["side"]) for name in "XYZ")
    u = placeholder([x, y, z])
    inner = u[1:-1, 1:-1, 1:-1]
    around = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1]
              + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2])  # fmt: skip
    bent = around - 6 * inner
    return u, [
        geon.sum(geon.square(bent)),
        geon.sum(geon.absolute(u)),
        geon.max(u),
        geon.mean(inner * bent),
    ]


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """The four numbers."""
    u, reduced = stencil(sizes)
    return computed(reduced, {u: data["u"]}, {})


def stencil_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivative of their weighted sum."""
    u, (squares, size, largest, product) = stencil(sizes)
    return computed(geon.deriv(squares + 0.5 * size + largest + product, u), {u: data["u"]}, {})


def table(sizes: Sizes) -> tuple[Axis, Axis, Any, Any]:
    """Open rows, columns, and two placeholders over them."""
    rows, columns = Axis("N"), Axis("C", sizes["columns"])
    return rows, columns, placeholder([rows, columns]), placeholder([rows, columns])


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    rows, columns, x, _ = table(sizes)
    y = geon.softmax(x, normalization_axes=columns)
    return computed(y, {x: data["x"]}, {rows: sizes["rows"]})


def softmax_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivative with a seed."""
    rows, columns, x, g = table(sizes)
    slope = geon.deriv(geon.softmax(x, normalization_axes=columns), x, seed=g)
    return computed(slope, {x: data["x"], g: data["g"]}, {rows: sizes["rows"]})


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    rows, columns, x, _ = table(sizes)
    scale, shift = placeholder([columns]), placeholder([columns])
    inputs = {x: data["x"], scale: data["scale"], shift: data["shift"]}
    return computed(normalized(x, columns, scale, shift), inputs, {rows: sizes["rows"]})


def layernorm_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives with a seed."""
    rows, columns, x, g = table(sizes)
    scale, shift = placeholder([columns]), placeholder([columns])
    slopes = geon.deriv(normalized(x, columns, scale, shift), [x, scale, shift], seed=g)
    inputs = {x: data["x"], scale: data["scale"], shift: data["shift"], g: data["g"]}
    return computed(slopes, inputs, {rows: sizes["rows"]})


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    rows, _, x, _ = table(sizes)
    return computed(geon.logsumexp(x, rows), {x: data["x"]}, {rows: sizes["rows"]})


def chained(data: Data) -> tuple[Any, Any, Any, Axis]:
    """The end of a chain of five ops in turn, and what it starts from."""
    n = Axis("N")
    x, w = placeholder([n]), placeholder([n])
    y: Any = x
    steps = (geon.tanh, geon.sin, lambda v: v * w, lambda v: v + x, geon.sigmoid)
    for k in range(data["length"]):
        y = steps[k % 5](y)
    return y, x, w, n


def chain(sizes: Sizes, data: Data) -> Prepared:
    """The chain alone."""
    y, x, w, n = chained(data)
    return computed(y, {x: data["x"], w: data["w"]}, {n: sizes["count"]})


def chain_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives of its sum with respect to both vectors."""
    y, x, w, n = chained(data)
    slopes = geon.deriv(geon.sum(y), [x, w])
    return computed(slopes, {x: data["x"], w: data["w"]}, {n: sizes["count"]})


def convolution_step(sizes: Sizes, data: Data) -> Prepared:
    """A small network for images, SGD."""
    loss, updates, inputs, parameters, batch = network(sizes, RATE)
    given = {leaf: data[name] for leaf, name in zip(inputs, "xy", strict=True)}
    values = dict(zip(parameters, data["parameters"], strict=True))
    return trained(loss, updates, given, values, {batch: sizes["batch"]})


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        mlp_step, deep_mlp, logistic, adam, matmul, matvec, batch_matmul, gelu, plus_one,
        stencil_forward, stencil_gradient, softmax_forward, softmax_backward, layernorm_forward,
        layernorm_backward, logsumexp, chain, chain_gradient, convolution_step,
    )
}  # fmt: skip
BUILDERS["block_forward"] = partial(prepared_block, gradient=False)
BUILDERS["block_gradient"] = partial(prepared_block, gradient=True)


def prepared_move(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``geon_moves``, ``geon_loops`` or ``geon_windows``."""
    results, inputs, lengths = (MOVES | LOOPS | WINDOWS)[kind](sizes)
    return computed(results, {leaf: data[name] for name, leaf in inputs.items()}, lengths)


BUILDERS |= {kind: partial(prepared_move, kind) for kind in MOVES | LOOPS | WINDOWS}


def prepared_step(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A training step of ``geon_nets``."""
    made = STEPS[kind](sizes)
    cost, effects, variables = made.step()
    values = {leaf: data["values"][leaf.name.removeprefix("net.")] for leaf in variables}
    assert len(values) == len(data["values"])
    values = dict(sorted(values.items(), key=lambda pair: str(pair[0].name)))
    return trained(cost, effects, {made.x: data["x"], made.t: data["t"]}, values, made.lengths)


BUILDERS |= {kind: partial(prepared_step, kind) for kind in STEPS}


def sampling(sizes: Sizes, data: Data) -> Prepared:
    """Token after token, each the likeliest: the tokens, and the last scores."""
    net, x, scores, cache = going_on(sizes)
    runner = transformer()
    f = runner.computation([scores, geon.argmax(scores), geon.doall(cache.updates)], x)
    for leaf in net.all_variables():
        runner.set(leaf, data["values"][leaf.name.removeprefix("net.")])

    def call() -> Any:
        runner.set(cache.position, 0)
        token, said = data["first"], []
        for _ in range(sizes["tokens"]):
            scores, token, _ = f([[token]])
            said.append(int(token))
        return np.array(said), scores

    return plain(call, f.peak_bytes)


BUILDERS["sampling"] = sampling
