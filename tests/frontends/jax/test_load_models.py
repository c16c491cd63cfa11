"""Functions of JAX are loaded with parameters, open lengths, derivatives and their outputs."""

import numpy as np
import pytest

import geon

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

from geon.frontends.jax import UnsupportedError, load  # noqa: E402

RNG = np.random.default_rng(0)


def normal(*shape):
    """Random numbers of float32."""
    return RNG.normal(size=shape).astype(np.float32)


def network(params, x):
    """A multilayer perceptron whose equal layers are a scan."""

    def layer(h, p):
        return jnp.tanh(h @ p["w"] + p["b"]), None

    h, _ = jax.lax.scan(layer, x @ params["first"], params["layers"])
    return h @ params["last"]


def block(params, x):
    """A transformer block with causal attention over two heads."""

    def norm(v):
        return (v - v.mean(-1, keepdims=True)) * jax.lax.rsqrt(v.var(-1, keepdims=True) + 1e-5)

    n, t, c = x.shape
    qkv = (norm(x) @ params["qkv"]).reshape(n, t, 3, 2, c // 2)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("nqhc,nkhc->nhqk", q, k) / np.sqrt(c // 2)
    causal = jnp.arange(t)[None, :] <= jnp.arange(t)[:, None]
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
    x = x + jnp.einsum("nhqk,nkhc->nqhc", weights, v).reshape(n, t, c) @ params["out"]
    return x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]


MODELS = {
    "network": (
        network,
        {
            "first": normal(3, 4), "last": normal(4, 2),
            "layers": {"w": normal(5, 4, 4) * 0.5, "b": normal(5, 4)},
        },
        (6, 3),
    ),
    "block": (
        block,
        {"qkv": normal(8, 24), "out": normal(8, 8), "up": normal(8, 16), "down": normal(16, 8)},
        (3, 5, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_values_and_gradients_are_those_of_jax(name):
    function, params, shape = MODELS[name]
    x = normal(*shape)
    model = load(function, params, x, parameters=["params"])
    assert list(model.inputs) == ["x"]
    assert all(variable.trainable for variable in model.variables.values())
    loss = geon.sum(geon.square(model.outputs["output"]))
    gradients = geon.deriv(loss, list(model.variables.values()))
    value, found = geon.make_transformer("numpy").computation([loss, gradients], model.inputs["x"])(
        x
    )
    wanted, by_jax = jax.value_and_grad(lambda p: (function(p, x) ** 2).sum())(params)
    assert value == pytest.approx(float(wanted), rel=1e-4)
    paths = jax.tree_util.tree_flatten_with_path(by_jax)[0]
    keys = [".".join(["params", *[entry.key for entry in path]]) for path, _ in paths]
    assert keys == list(model.variables)
    for gradient, (_, expected) in zip(found, paths, strict=True):
        np.testing.assert_allclose(gradient, expected, 1e-3, 1e-3)


@pytest.mark.parametrize("name", ["network", pytest.param("block", marks=pytest.mark.slow)])
def test_derivatives_of_jax_are_loaded(name):
    function, params, shape = MODELS[name]
    x = normal(*shape)
    step = jax.value_and_grad(lambda p, x: (function(p, x) ** 2).mean())
    model = load(step, params, x)
    leaves = jax.tree_util.tree_leaves(params)
    found = model.computation(geon.make_transformer("numpy"))(*leaves, x)
    assert list(found) == ["output_0", "output_1"]
    expected = jax.tree_util.tree_leaves(jax.jit(step)(params, x))
    for value, wanted in zip(
        jax.tree_util.tree_leaves(list(found.values())), expected, strict=True
    ):
        np.testing.assert_allclose(value, wanted, 1e-4, 1e-5)


@pytest.mark.slow
def test_symbolic_dimensions_are_open_axes():
    n, t = jax.export.symbolic_shape("n, t")
    params = MODELS["block"][1]
    shape = jax.ShapeDtypeStruct((n, t, 8), np.float32)
    model = load(block, params, shape, parameters=["params"])
    assert str(model.inputs["x"].axes) == "(n, t, x_2:8)"
    f = model.computation(geon.make_transformer("native"))
    for lengths in ((2, 7), (5, 2)):
        x = normal(*lengths, 8)
        np.testing.assert_allclose(f(x)["output"], jax.jit(block)(params, x), 1e-4, 1e-4)


def test_expressions_of_symbolic_dimensions_are_lengths():
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 3"])

    def windows(x):
        return x[1:].sum() / x.shape[0], x.reshape(-1), jnp.concatenate([x, x[:3]])[::2]

    model = load(windows, jax.ShapeDtypeStruct((n, 2), np.float32), axes={"x": ["rows", "C"]})
    assert str(model.inputs["x"].axes) == "(rows:n, C:2)"
    f = model.computation(geon.make_transformer("numpy"))
    for count in (4, 7):
        x = normal(count, 2)
        for value, wanted in zip(f(x).values(), windows(x), strict=True):
            np.testing.assert_allclose(value, wanted, 1e-5)


def test_vmap_and_constants():
    table = normal(60, 40)
    model = load(
        jax.vmap(lambda i, x: jnp.asarray(table)[i] @ x), np.array([3, 9, 1]), normal(3, 40)
    )
    (variable,) = model.variables.values()
    assert variable.name == "constant_0" and not variable.trainable
    x, index = normal(3, 40), np.array([5, 0, 59])
    found = model.computation(geon.make_transformer("numpy"))(index, x)["output"]
    np.testing.assert_allclose(found, (table[index] * x).sum(1), 1e-4, 1e-5)


def test_a_jaxpr_has_numbered_inputs():
    closed = jax.make_jaxpr(lambda x, y: (x * y, x + y))(normal(3), normal(3))
    model = load(closed, axes={"input_0": ["N"]})
    assert list(model.inputs) == ["input_0", "input_1"]
    found = model.computation(geon.make_transformer("numpy"))([1, 2, 3], [4, 5, 6])
    np.testing.assert_array_equal(found["output_0"], [4, 10, 18])
    with pytest.raises(geon.ArgumentError, match="a jaxpr has its shapes"):
        load(closed, normal(3))


def test_complex_numbers_and_transforms():
    def f(x):
        half, whole = jnp.fft.rfft(x), jnp.fft.fft2(x + 2j)
        return {
            "half": half.real,
            "back": jnp.fft.irfft(half, 4),
            "odd": jnp.fft.irfft2(jnp.fft.rfft2(x[:, :3]), s=(3, 3)),
            "whole": jnp.abs(jnp.fft.ifft(whole, axis=0)),
            "angle": jnp.angle(x + 2j),
            "conjugate": jnp.conj(x * 1j),
            "joined": jnp.exp(jax.lax.complex(x, x)).imag,
            "slope": jax.grad(lambda y: jnp.sum(jnp.abs(jnp.fft.rfft(y) * (1 + 2j)) ** 2))(x),
        }

    x = normal(3, 4)
    found = load(f, x).computation(geon.make_transformer("numpy"))(x)
    for name, wanted in f(x).items():
        assert found[name].dtype == wanted.dtype
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)


def test_unknown_primitives_are_named_at_once():
    def f(x):
        return jnp.linalg.cholesky(x) @ jnp.linalg.svd(x)[0], jax.lax.scan(
            lambda c, r: (jnp.linalg.eigh(c)[1], r), x, x
        )

    with pytest.raises(UnsupportedError, match="primitives that geon does not have") as caught:
        load(f, normal(3, 3))
    assert {"cholesky", "svd", "eigh"} <= set(caught.value.names)
    assert caught.value.names["cholesky"] == 1


def test_mistakes_are_named():
    with pytest.raises(geon.ArgumentError, match="no argument 'weights'; it has params, x"):
        load(network, MODELS["network"][1], normal(6, 3), parameters=["weights"])
    with pytest.raises(geon.ArgumentError, match="2 dimensions; name each"):
        load(lambda x: x, normal(2, 3), axes={"x": ["N"]})
    with pytest.raises(geon.ArgumentError, match=r"equation 0 \(bitcast_convert_type\).*float32"):
        load(lambda x: jax.lax.bitcast_convert_type(x, np.int16), normal(3))
