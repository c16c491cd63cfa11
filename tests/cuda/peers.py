"""Training steps of peers on a GPU, beside which ``figures`` puts geon's.

Each gives a call that ends when its loss is on the host, and what says how much memory the device
had in use at most. ``ImportError`` where a peer, or its CUDA, is not there.
"""

import numpy as np


def torch_step(layers, images, labels):
    """A step of momentum SGD on a perceptron by PyTorch, compiled."""
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch has no CUDA")
    torch.cuda.reset_peak_memory_stats()
    parts = []
    for inner, outer in zip(layers, layers[1:], strict=False):
        parts += [torch.nn.Linear(inner, outer), torch.nn.ReLU()]
    model = torch.nn.Sequential(*parts[:-1]).cuda()
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

    return step, torch.cuda.max_memory_allocated


def jax_step(layers, images, labels):
    """The same step by JAX."""
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu":
        raise ImportError("JAX has no CUDA")
    random = np.random.default_rng(0)
    weights = [
        (jnp.asarray(random.normal(size=pair, scale=0.05), jnp.float32), jnp.zeros(pair[1]))
        for pair in zip(layers, layers[1:], strict=False)
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

    return step, lambda: jax.devices()[0].memory_stats()["peak_bytes_in_use"]


def block_sizes(width):
    """The sizes of a block's weights before the last bias, and its four scales and shifts."""
    up = 4 * width
    return [(width, 3 * width), (width, width), (width, up), (up,), (up, width)]


def torch_block(tokens):
    """A step of SGD on a transformer block by PyTorch, compiled."""
    import torch
    from torch.nn import functional

    if not torch.cuda.is_available():
        raise ImportError("PyTorch has no CUDA")
    torch.cuda.reset_peak_memory_stats()
    batch, length, width = tokens.shape
    sizes = [
        (width, 3 * width),
        (width, width),
        (width, 4 * width),
        (4 * width,),
        (4 * width, width),
    ]
    w = [torch.randn(*size, device="cuda") * 0.02 for size in [*sizes, (width,)]]
    w += [torch.full((width,), float(k % 2 == 0), device="cuda") for k in range(4)]
    w = [each.requires_grad_() for each in w]
    x = torch.from_numpy(tokens).cuda()

    @torch.compile(mode="reduce-overhead")
    def loss_of(x):
        qkv, out, up, up_bias, down, down_bias, scale1, shift1, scale2, shift2 = w
        found = functional.layer_norm(x, (width,), scale1, shift1) @ qkv
        parts = found.view(batch, length, 3, 8, width // 8).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts)
        h = x + mixed.transpose(1, 2).reshape(batch, length, width) @ out
        risen = functional.layer_norm(h, (width,), scale2, shift2) @ up + up_bias
        return (h + functional.gelu(risen, approximate="tanh") @ down + down_bias).square().mean()

    def step():
        loss = loss_of(x)
        slopes = torch.autograd.grad(loss, w)
        with torch.no_grad():
            torch._foreach_add_(w, slopes, alpha=-0.01)
        return loss.item()

    return step, torch.cuda.max_memory_allocated


def jax_block(tokens):
    """The same step by JAX."""
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu":
        raise ImportError("JAX has no CUDA")
    batch, length, width = tokens.shape
    random = np.random.default_rng(0)
    sizes = [
        (width, 3 * width),
        (width, width),
        (width, 4 * width),
        (4 * width,),
        (4 * width, width),
    ]
    w = [jnp.asarray(random.normal(size=n, scale=0.02), jnp.float32) for n in [*sizes, (width,)]]
    w += [jnp.full((width,), float(k % 2 == 0)) for k in range(4)]
    state = [w]
    x = jax.device_put(tokens)

    def normalized(x, scale, shift):
        off = x - x.mean(-1, keepdims=True)
        return off * jax.lax.rsqrt((off * off).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def loss_of(w, x):
        qkv, out, up, up_bias, down, down_bias, scale1, shift1, scale2, shift2 = w
        found = (normalized(x, scale1, shift1) @ qkv).reshape(batch, length, 3, 8, width // 8)
        mixed = jax.nn.dot_product_attention(*(found[:, :, k] for k in range(3)))
        h = x + mixed.reshape(batch, length, width) @ out
        risen = normalized(h, scale2, shift2) @ up + up_bias
        return jnp.square(h + jax.nn.gelu(risen) @ down + down_bias).mean()

    @jax.jit
    def updated(w, x):
        loss, slopes = jax.value_and_grad(loss_of)(w, x)
        return jax.tree.map(lambda a, g: a - 0.01 * g, w, slopes), loss

    def step():
        state[0], loss = updated(state[0], x)
        return float(loss)

    return step, lambda: jax.devices()[0].memory_stats()["peak_bytes_in_use"]
