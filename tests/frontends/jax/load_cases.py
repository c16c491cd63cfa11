"""Small functions of arrays, one or more for each row of the primitives of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def floats(*shape: int) -> np.ndarray:
    """Return floats of both signs."""
    return np.random.default_rng(sum(shape) + len(shape)).normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """Return floats from 0.1 to 0.9."""
    return (0.8 / (1 + np.exp(-floats(*shape))) + 0.1).astype(np.float32)


def whole(*shape: int) -> np.ndarray:
    """Return integers from -5 to 5 without 0."""
    found = np.clip(np.round(floats(*shape) * 3), -5, 5).astype(np.int32)
    return np.where(found == 0, 1, found)


X, Y, P, Q, W = floats(3, 4), floats(3, 4) * 2, positive(3, 4), positive(4, 4)[:3], whole(3, 4)
Z = (X + 1j * Y).astype(np.complex64)
B, IMAGE = X > 0, floats(2, 6, 5, 3)
DNUMS = ("NHWC", "HWIO", "NHWC")

OF_ANY = """
    abs asinh atan cbrt ceil cos cosh erf erfc exp exp2 expm1 floor is_finite logistic neg sign sin
    sinh square stop_gradient tan tanh
"""
OF_POSITIVE = "acos asin atanh digamma erf_inv lgamma log log1p rsqrt sqrt"
OF_TWO = "add atan2 div eq ge gt le lt max min mul ne pow rem sub"


def pool(x, f, window=(1, 3, 2, 1), strides=(1, 2, 1, 1), padding="SAME"):
    """Return windows of an image reduced by a function of ``lax``."""
    start = {lax.add: 0.0, lax.max: -np.inf, lax.min: np.inf}[f]
    return lax.reduce_window(x, start, f, window, strides, padding)


def conv(x, w, **options):
    """Return a convolution of images with channels last."""
    given = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": DNUMS, **options}
    return lax.conv_general_dilated(x, w, **given)


def fold(x, start):
    """Return a loop that adds rows and keeps what it has."""
    return lax.scan(lambda c, r: (c * 0.5 + r, {"sum": c.sum(), "both": (c, r * 2)}), start, x)


@jax.custom_vjp
def doubled(x):
    """Return twice the argument."""
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))


def transformed(x, y):
    """Return the parts of the conjugate of a Fourier transform."""
    z = lax.conj(jnp.fft.fft(lax.complex(x, y)))
    return lax.real(z), lax.imag(z)


CASES: dict[str, Case] = {
    "complex numbers": (transformed, (X, Y)),
    **{name: (getattr(lax, name), (X,)) for name in OF_ANY.split()},
    **{name: (getattr(lax, name), (P,)) for name in OF_POSITIVE.split()},
    **{name: (getattr(lax, name), (P, Q)) for name in OF_TWO.split()},
    **{
        f"{name} of integers": (getattr(lax, name), (W, W.T.reshape(3, 4)))
        for name in "add div eq ge max min mul rem sub".split()
    },
    "acosh": (lax.acosh, (P + 1,)),
    "integer_pow": (lambda x: (lax.integer_pow(x, 3), lax.integer_pow(x, -2)), (X,)),
    "power of an integer": (lambda x, i: lax.pow(x, i), (P, W)),
    "select_n": (lambda x, y: jnp.where(x > y, x, y), (X, Y)),
    "select_n of several": (
        lambda i, x: lax.select_n(jnp.clip(i, 0, 2), x, x * 2, x * 3), (W, X)
    ),
    "clamp": (lambda x: jnp.clip(x, -0.5, 0.5), (X,)),
    "convert_element_type": (lambda x: (x * 3).astype(np.int32), (X,)),
    "half": (lambda x: x.astype(jnp.bfloat16) * 2, (X,)),
    "round": (lambda x: (jnp.round(x * 3), lax.round(x * 2)), (X,)),
    "shifts": (
        lambda i: (i << 2, i >> 1, lax.shift_right_logical(i, 3), lax.shift_left(i, i * 0 + 1)),
        (W,),
    ),
    "bits": (lambda i: (i & 3, i | 8, i ^ 5, ~i, lax.population_count(i)), (W,)),
    "logic": (lambda b: (b & ~b, b | b, b ^ True), (B,)),
    "bitcast_convert_type": (
        lambda u: (
            lax.bitcast_convert_type(u, jnp.float32),
            lax.bitcast_convert_type(u.astype(jnp.float32), jnp.int32),
        ),
        (np.array([1.5, -0.0, 3e-45, 1e-40, -np.inf, 3e38], np.float32).view(np.uint32),),
    ),
    "polygamma": (lambda x: jax.scipy.special.polygamma(1, x), (P,)),
    # Movement
    "reshape": (lambda x: x.reshape(2, 6).reshape(1, 12, 1), (X,)),
    "transpose": (lambda x: x.transpose(2, 0, 3, 1), (IMAGE,)),
    "broadcast_in_dim": (lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)), (X,)),
    "squeeze": (lambda x: x[:1].squeeze(0), (X,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x], 1), (X, Y)),
    "slice": (lambda x: lax.slice(x, (1, 0), (3, 4), (1, 3)), (X,)),
    "split": (lambda x: jnp.split(x, [1, 3], 1), (X,)),
    "rev": (lambda x: x[::-1, ::-1], (X,)),
    "tile": (lambda x: jnp.tile(x, (2, 3)), (X,)),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0), (X,)),
    "pad inside": (lambda x: lax.pad(x, 2.0, ((1, -1, 2), (-1, 0, 0))), (X,)),
    "iota": (lambda x: x + jnp.arange(4), (X,)),
    # Indexing
    "index": (lambda x, i: x[i], (X, np.array([2, 0, -1]))),
    "indices": (lambda x, i, j: x[i, j], (X, np.array([[2], [0]]), np.array([3, 1, -1]))),
    "indices apart": (
        lambda x, i, j: x[i, :, j], (IMAGE, np.array([1, 0, 1]), np.array([4, 1, 0]))
    ),
    "index out of range": (lambda x, i: x.at[i].get(mode="fill"), (X, np.array([2, 7, -1]))),
    "clipped index": (lambda x, i: x.at[i].get(mode="clip"), (X, np.array([2, 7, -9]))),
    "take_along_axis": (
        lambda x, i: jnp.take_along_axis(x, i, 1), (X, np.array([[3, 1], [0, 0], [2, -1]]))
    ),
    "batched gather": (jax.vmap(lambda x, i: x[i]), (X, np.array([1, 3, 0]))),
    "batched slices": (
        jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,))), (X, np.array([1, 3, 0]))
    ),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)), (X, 2)),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 4)), (i, 0)), (X, 1)
    ),
    "part in both": (lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i, i)), (X, 9)),
    **{
        f"scatter, {name}": (
            lambda x, i, n=name: getattr(x.at[i], n)(x[:3] * 2), (X, np.array([2, 0, 0]))
        )
        for name in "add multiply min max subtract".split()
    },
    "scatter": (lambda x, i: x.at[i].set(7.0), (X, np.array([2, 0, 9]))),
    "scatter of a column": (lambda x, i: x.at[:, i].add(x[:, :2]), (X, np.array([3, 1]))),
    "scatter of elements": (
        lambda x, i, j: x.at[i, j].add(1.0), (X, np.array([2, 0, 2]), np.array([3, 1, 3]))
    ),
    "batched scatter": (jax.vmap(lambda x, i: x.at[i].set(0.0)), (X, np.array([1, 3, 0]))),
    # Reductions
    **{
        name: (lambda x, n=name: (getattr(jnp, n)(x), getattr(jnp, n)(x, 1)), (X,))
        for name in "sum prod max min argmax argmin mean var any all".split()
    },
    "reduce_xor": (lambda b: lax.reduce_xor(b, (1,)), (B,)),
    "max of bool": (lambda b: jnp.max(b, 0), (B,)),
    **{
        name: (lambda x, n=name: (getattr(lax, n)(x, 1), getattr(lax, n)(x, 0, reverse=True)), (X,))
        for name in "cumsum cumprod cummax cummin cumlogsumexp".split()
    },
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1)), (X,)),
    "sort by two keys": (lambda i, x: lax.sort((i, x, -x), num_keys=2), (W // 3, X)),
    "top_k": (lambda x: lax.top_k(x, 2), (X,)),
    "pool, max": (lambda x: pool(x, lax.max), (IMAGE,)),
    "pool, min": (lambda x: pool(x, lax.min), (IMAGE,)),
    "pool, sum": (lambda x: pool(x, lax.add), (IMAGE,)),
    "derivative of a pool": (jax.grad(lambda x: (pool(x, lax.max) ** 2).sum()), (IMAGE,)),
    # Products
    "dot": (lambda x, y: x @ y.T, (X, Y)),
    "einsum": (
        lambda x, y: jnp.einsum("bij,bkj->kbi", x, y), (floats(2, 3, 4), floats(2, 5, 4))
    ),
    "dot of integers": (lambda i: i @ i.T, (W,)),
    "convolution": (conv, (IMAGE, floats(3, 2, 3, 4))),
    "convolution with all options": (
        lambda x, w: conv(
            x, w, window_strides=(2, 1), padding=((1, 2), (-1, 0)), lhs_dilation=(1, 2),
            rhs_dilation=(2, 1), feature_group_count=3,
        ),
        (IMAGE, floats(3, 2, 1, 6)),
    ),
    "derivatives of a convolution": (
        jax.grad(lambda x, w: (conv(x, w, window_strides=(2, 2), feature_group_count=3) ** 2).sum(),
                 (0, 1)),
        (IMAGE, floats(3, 2, 1, 6)),
    ),
    "conv_transpose": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=DNUMS),
        (IMAGE, floats(3, 2, 3, 4)),
    ),
    # Control
    "jit": (jax.jit(lambda x: x + 1), (X,)),
    "custom_jvp": (lambda x: (jax.nn.relu(x), jax.nn.silu(x), jax.nn.gelu(x)), (X,)),
    "custom_vjp": (jax.nn.relu6, (X * 5,)),
    "remat": (jax.checkpoint(lambda x: jnp.sin(x) * 2), (X,)),
    "scan": (fold, (X, floats(4))),
    "scan backwards": (
        lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(4), x, reverse=True), (X,)
    ),
    "derivative of scan": (
        jax.grad(lambda x, s: (fold(x, s)[0] ** 2).sum(), (0, 1)), (X, floats(4))
    ),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda k, c: c * 2 + k, x), (X,)),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * c + 1, x), (X,)),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v[::-1], x), (X,)),
    "switch": (lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, lambda v: v * 0], x), (9, X)),
    "vmap of a scan": (jax.vmap(lambda x: fold(x, jnp.float32(1.0))[0]), (X,)),
    # Derivatives
    "jvp": (lambda x, t: jax.jvp(lambda v: jnp.tanh(v) * v.sum(), (x,), (t,)), (X, Y)),
    "hessian": (jax.hessian(lambda v: (jnp.exp(v) * v[::-1]).sum()), (floats(3),)),
    "derivative of an index": (jax.grad(lambda x, i: (x[i] ** 2).sum()), (X, np.array([2, 0, 2]))),
    "derivative of a sort": (jax.grad(lambda x: (jnp.sort(x, 1) * jnp.arange(4)).sum()), (X,)),
    # Random bits
    "uniform": (lambda k: jax.random.uniform(k, (3, 2)), (np.array([1, 2], np.uint32),)),
    "normal": (lambda k: jax.random.normal(k, (5,)), (np.array([1, 2], np.uint32),)),
    "split keys": (
        lambda k: [jax.random.bits(each, (3,), dtype)
                   for each, dtype in zip(
                       jax.random.split(k, 3), ("uint32", "uint16", "uint8"), strict=True
                   )],
        (np.array([1, 2], np.uint32),),
    ),
    "fold_in": (
        lambda k, n: jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(k), n)),
        (np.array([1, 2], np.uint32), 7),
    ),
    "seed": (lambda n: jax.random.bernoulli(jax.random.key(n), 0.3, (7,)), (5,)),
    "vmap of draws": (
        lambda k: jax.vmap(lambda each: jax.random.uniform(each, (2,)))(jax.random.split(k, 3)),
        (np.array([1, 2], np.uint32),),
    ),
    "categorical": (lambda k, x: jax.random.categorical(k, x), (np.array([1, 2], np.uint32), X)),
    # Complex numbers
    "complex": (lambda x, y: lax.exp(lax.complex(x, y)) * 2j, (X, Y)),
    "real, imag and conj": (
        lambda z: (lax.real(z), lax.imag(z), lax.conj(z) * z, lax.abs(z)), (Z,)
    ),
    "quotient of complex numbers": (lambda z: (z / (z + 3), lax.log(z), lax.tanh(z)), (Z,)),
    "product of complex matrices": (lambda z, x: (z @ x.T, z @ z.conj().T), (Z, X)),
    "fft": (lambda z: (jnp.fft.fft(z), jnp.fft.ifft(z, axis=0), jnp.fft.fft2(z)), (Z,)),
    "fft of real numbers": (
        lambda x, z: (jnp.fft.rfft(x), jnp.fft.irfft(z, 7), jnp.fft.irfft(z, 6)), (X, Z)
    ),
    "derivative through a spectrum": (
        jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x) * (1 + 2j)) ** 2)), (X,)
    ),
    # Forms that functions rarely have
    "threefry2x32": (
        jax.extend.random.threefry_2x32,
        (np.array([1, 2], np.uint32), np.arange(4, dtype=np.uint32)),
    ),
    "scale with a derivative of its own": (doubled, (X,)),
    "name": (lambda x: checkpoint_name(x * 2, "x"), (X,)),
    "device_put": (lambda x: jax.device_put(x) * 2, (X,)),
    "copy": (lambda x: (jnp.array(x, copy=True), lax.cumsum(x)), (X,)),
    "subtraction at indices": (lambda x, i: x.at[i].subtract(1.0), (X, np.array([2, 0]))),
}  # fmt: skip
