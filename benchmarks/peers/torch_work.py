# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""The workloads in PyTorch: eager, or with ``torch.compile`` around what is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from .data import WEIGHTS
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
from .torch_loops import LOOPS
from .torch_moves import MOVES
from .torch_nets import STEPS, Sampler
from .torch_windows import WINDOWS, network
from .workloads import Sizes

Data = dict[str, Any]
notes: list[str] = []
compiling = False  # set once, before anything is built, by the contender that compiles


def version() -> str:
    """Of PyTorch."""
    return str(torch.__version__)


def start(threads: int) -> None:
    """Set the number of threads."""
    torch.set_num_threads(threads)


def made(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, or what torch.compile makes of it."""
    if not compiling:
        return function
    return torch.compile(function, fullgraph=True)  # type: ignore[no-any-return]


def tensor(value: Any, gradient: bool = False) -> torch.Tensor:
    """A copy of an array."""
    return torch.tensor(value).requires_grad_(gradient)


def computed(function: Callable[..., Any], *inputs: Any) -> Prepared:
    """A function of tensors that needs no derivative."""
    f, args = made(function), [tensor(value) for value in inputs]

    def call() -> Any:
        with torch.inference_mode():
            return f(*args)

    return plain(call)


def differentiated(function: Callable[..., Any], *inputs: Any, seed: Any = None) -> Prepared:
    """The derivatives of a function with respect to all its inputs."""
    f, args = made(function), [tensor(value, True) for value in inputs]
    given = None if seed is None else tensor(seed)
    return plain(lambda: torch.autograd.grad(f(*args), args, given))


def trained(
    loss_of: Callable[..., Any], parameters: Sequence[Any], momentum: float, *inputs: Any
) -> Prepared:
    """A step of stochastic gradient descent with PyTorch's own optimizer."""
    held = [tensor(value, True) for value in parameters]
    args = [tensor(value) for value in inputs]
    optimizer = torch.optim.SGD(held, lr=RATE, momentum=momentum, fused=True)
    loss_function = made(loss_of)

    def call() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(*args, *held)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return stepping(call, lambda: [p.detach() for p in held])


# Training steps ---------------------------------------------------------------------------------


def mlp_loss(x: Any, y: Any, w0: Any, w1: Any, w2: Any, b0: Any, b1: Any, b2: Any) -> Any:
    """Two relu layers, softmax cross entropy averaged over the batch."""
    h = F.relu(torch.addmm(b0, x, w0))
    h = F.relu(torch.addmm(b1, h, w1))
    return F.cross_entropy(torch.addmm(b2, h, w2), y)


def mlp_step(sizes: Sizes, data: Data) -> Prepared:
    """Momentum SGD."""
    return trained(mlp_loss, [*data["w"], *data["b"]], MOMENTUM, data["x"], data["y"])


def deep_mlp(sizes: Sizes, data: Data) -> Prepared:
    """Many tanh layers, SGD."""

    def loss(x: Any, y: Any, *parameters: Any) -> Any:
        count = len(parameters) // 2
        h = x
        for w, b in zip(parameters[:count], parameters[count:], strict=True):
            h = torch.tanh(torch.addmm(b, h, w))
        return F.mse_loss(h, y)

    return trained(loss, [*data["w"], *data["b"]], 0.0, data["x"], data["y"])


def logistic(sizes: Sizes, data: Data) -> Prepared:
    """One weight for each feature, SGD."""

    def loss(x: Any, y: Any, w: Any) -> Any:
        return F.binary_cross_entropy_with_logits(x @ w, y)

    return trained(loss, [data["w"]], 0.0, data["x"], data["y"])


def adam(sizes: Sizes, data: Data) -> Prepared:
    """PyTorch's own fused optimizer."""
    p = tensor(data["p"], True)
    p.grad = tensor(data["g"])
    optimizer = torch.optim.Adam(
        [p], lr=ADAM_RATE, betas=(BETA1, BETA2), eps=ADAM_EPSILON, fused=True
    )
    count = [0]

    def call() -> Any:
        optimizer.step()
        count[0] += 1
        return count[0]

    return stepping(call, lambda: [p.detach()])


# A transformer block ----------------------------------------------------------------------------


def block(heads: int, x: Any, *weights: Any) -> Any:
    """Attention and a perceptron, each after a layer norm and beside a residual."""
    scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = weights
    batch, tokens, width = x.shape
    normal = F.layer_norm(x, (width,), scale1, shift1, NORM_EPSILON)
    parts = F.linear(normal, qkv).view(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
    h = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
    h = x + F.linear(h.transpose(1, 2).reshape(batch, tokens, width), out)
    normal = F.layer_norm(h, (width,), scale2, shift2, NORM_EPSILON)
    risen = F.gelu(F.linear(normal, up, up_bias), approximate="tanh")
    return h + F.linear(risen, down, down_bias)


def block_inputs(data: Data) -> list[Any]:
    """Tokens and weights, matrices as PyTorch keeps them: outputs first."""
    turned = {name: data[name].T.copy() for name in ("qkv", "out", "up", "down")}
    return [data["x"], *({**data, **turned}[name] for name in WEIGHTS)]


def block_forward(sizes: Sizes, data: Data) -> Prepared:
    """The block's result."""
    return computed(partial(block, sizes["heads"]), *block_inputs(data))


def block_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives of its sum of squares."""

    def loss(*args: Any) -> Any:
        return block(sizes["heads"], *args).square().sum()

    found = differentiated(loss, *block_inputs(data))

    def results() -> list[Any]:
        slopes = [slope.numpy() for slope in found.call()]
        return [s.T if s.ndim == 2 else s for s in slopes]

    return Prepared(found.call, results)


# Others -----------------------------------------------------------------------------------------


def product(sizes: Sizes, data: Data) -> Prepared:
    """Of matrices, stacks of them, or a matrix and a vector."""
    return computed(torch.matmul, data["a"], data["b"])


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """The form with tanh."""
    return computed(partial(F.gelu, approximate="tanh"), data["x"])


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """A scalar tensor in, another out."""
    x = tensor(data["x"])
    f = made(lambda x: x + 1)
    return plain(partial(f, x))


def stencil(u: Any) -> tuple[Any, ...]:
    """Four reductions over the Laplacian by seven points."""
    inner = u[1:-1, 1:-1, 1:-1]
    around = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1]
              + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2])  # fmt: skip
    bent = around - 6 * inner
    return bent.square().sum(), u.abs().sum(), u.amax(), (inner * bent).mean()


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """The four numbers."""
    return computed(stencil, data["u"])


def stencil_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivative of their weighted sum."""

    def loss(u: Any) -> Any:
        squares, size, largest, product = stencil(u)
        return squares + 0.5 * size + largest + product

    return differentiated(loss, data["u"])


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(partial(F.softmax, dim=1), data["x"])


def softmax_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivative with a seed."""
    return differentiated(partial(F.softmax, dim=1), data["x"], seed=data["g"])


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    """Over the last axis."""
    return F.layer_norm(x, x.shape[-1:], scale, shift, NORM_EPSILON)


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(layer_norm, data["x"], data["scale"], data["shift"])


def layernorm_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives with a seed."""
    return differentiated(layer_norm, data["x"], data["scale"], data["shift"], seed=data["g"])


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    return computed(partial(torch.logsumexp, dim=0), data["x"])


def chained(length: int, x: Any, w: Any) -> Any:
    """The end of a chain of five ops in turn."""
    steps = (torch.tanh, torch.sin, lambda v: v * w, lambda v: v + x, torch.sigmoid)
    y = x
    for k in range(length):
        y = steps[k % 5](y)
    return y


def chain(sizes: Sizes, data: Data) -> Prepared:
    """The chain alone."""
    return computed(partial(chained, data["length"]), data["x"], data["w"])


def chain_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives of its sum with respect to both vectors."""
    loss = lambda x, w: chained(data["length"], x, w).sum()  # noqa: E731
    return differentiated(loss, data["x"], data["w"])


def convolution_step(sizes: Sizes, data: Data) -> Prepared:
    """A small network for images, SGD."""
    return trained(network, data["parameters"], 0.0, data["x"], data["y"])


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        mlp_step, deep_mlp, logistic, adam, block_forward, block_gradient, gelu, plus_one,
        stencil_forward, stencil_gradient, softmax_forward, softmax_backward, layernorm_forward,
        layernorm_backward, logsumexp, chain, chain_gradient, convolution_step,
    )
}  # fmt: skip
BUILDERS |= dict.fromkeys(("matmul", "matvec", "batch_matmul"), product)


def prepared_move(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``torch_moves``."""
    function, names = MOVES[kind](sizes)
    return computed(function, *(data[name] for name in names))


BUILDERS |= {kind: partial(prepared_move, kind) for kind in MOVES}


def prepared_loop(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``torch_loops``."""
    return plain(LOOPS[kind](sizes, data))


BUILDERS |= {kind: partial(prepared_loop, kind) for kind in LOOPS}


def prepared_window(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``torch_windows``."""
    function, names, slopes = WINDOWS[kind](sizes)
    if not slopes:
        return computed(function, *(data[name] for name in names))
    f, args, seed = made(function), [tensor(data[name], True) for name in names], tensor(data["g"])

    def call() -> Any:
        y = f(*args)
        return [y.detach(), *torch.autograd.grad(y, args, seed)]

    return plain(call)


BUILDERS |= {kind: partial(prepared_window, kind) for kind in WINDOWS}


def prepared_step(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A training step of ``torch_nets``."""
    step = STEPS[kind](sizes, data["values"])
    x, t, names = tensor(data["x"]), tensor(data["t"]), sorted(data["values"])
    loss_of = made(step.loss)

    def call() -> Any:
        step.optimiser.zero_grad(set_to_none=True)
        loss = loss_of(x, t, step.trained, step.kept)
        loss.backward()
        step.optimiser.step()
        return loss.detach()

    def state() -> list[Any]:
        return [step.shown(name).reshape(data["values"][name].shape) for name in names]

    return stepping(call, state)


BUILDERS |= {kind: partial(prepared_step, kind) for kind in STEPS}
BUILDERS["sampling"] = lambda sizes, data: plain(
    partial(Sampler(sizes, data["values"]).run, data["first"])
)
