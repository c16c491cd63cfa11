"""geon.frontends.jax.function: JAX's own checks of gradients, programs, memory, refusals."""

import numpy as np
import pytest

import geon

jax = pytest.importorskip("jax", reason="JAX is not installed: run make test-frameworks")

from jax import numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from geon.frontends.base.graph_function import GraphFunction  # noqa: E402
from geon.frontends.jax import function  # noqa: E402

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def leaves(dtype="float64"):
    x = geon.placeholder([N, C], dtype, name="x")
    w = geon.placeholder([C, H], dtype, name="w")
    return x, w


def arrays(*shapes, dtype="float64"):
    random = np.random.default_rng(0)
    return [jnp.asarray(random.normal(size=shape), dtype) for shape in shapes]


def scanned(x):
    """A loop over the open axis, whose derivative is a loop too."""
    return geon.scan(lambda c, part: (geon.tanh(c + part), c * part), geon.sum(x, N) * 0, x, over=N)


GRAPHS = {
    "product": lambda x, w: geon.tanh(geon.dot(x, w)),
    "several results": lambda x, w: {
        "y": geon.softmax(geon.dot(x, w), H),
        "both": [geon.sum(x), geon.sum(geon.square(w), C)],
    },
    "an input without effect": lambda x, w: geon.exp(x),
    "a loop": lambda x, w: geon.dot(scanned(x)[0], w),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_gradients_pass_jaxs_checks(build, compiled, transformer):
    x, w = leaves()
    f = function(build(x, w), x, w, transformer=transformer)
    check_grads(jax.jit(f) if compiled else f, arrays((4, 3), (3, 2)), order=2, modes=["rev"])


def test_results_of_integers_have_no_derivative():
    x, w = leaves()
    f = function([geon.argmax(x, C), geon.dot(x, geon.sin(w))], x, w)
    a, b = arrays((4, 3), (3, 2))
    found = jax.grad(lambda b: f(a, b)[1].sum())(b)
    np.testing.assert_allclose(found, a.sum(0)[:, None] * jnp.cos(b))
    np.testing.assert_array_equal(f(a, b)[0], a.argmax(1))


def test_only_the_gradients_that_are_asked_are_computed():
    made = []
    x, w = leaves()
    f = function([geon.dot(x, w), geon.sum(x)], x, w)
    derived = GraphFunction.vjp

    def watched(self, wanted, given):
        made.append((wanted, given))
        return derived(self, wanted, given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphFunction, "vjp", watched)
        a, b = arrays((4, 3), (3, 2))
        found = jax.grad(lambda b: f(a, b)[0].sum())(b)
    assert made == [((1,), (0,))]
    np.testing.assert_allclose(found, jnp.broadcast_to(a.sum(0)[:, None], (3, 2)))


def test_no_direction_copies(monkeypatch):
    x, w = leaves("float32")
    seen = []
    call = GraphFunction.__call__

    def watched(self, values, out=None):
        results = call(self, values, out)
        seen.append([array.ctypes.data for array in (*values, *results)])
        return results

    monkeypatch.setattr(GraphFunction, "__call__", watched)
    f = function([geon.dot(x, w), geon.argmax(w, C)], x, w)
    a, b = arrays((4, 3), (3, 2), dtype="float32")
    results = f(a, b)
    assert seen == [[array.unsafe_buffer_pointer() for array in (a, b, *results)]]
    _, back = jax.vjp(lambda a: f(a, b)[0], a)
    seed = jnp.ones((4, 2), "float32")
    (found,) = back(seed)
    assert seen[-1] == [array.unsafe_buffer_pointer() for array in (a, b, seed, found)]


def test_one_function_serves_all_lengths_and_programs():
    x, w = leaves("float32")
    f = function(geon.NumPyTransformer().computation([geon.dot(x, w)], x, w))
    compiled = jax.jit(f)
    for length in (1, 5):
        a, b = arrays((length, 3), (3, 2), dtype="float32")
        np.testing.assert_allclose(f(a, b)[0], a @ b, rtol=1e-5)
        np.testing.assert_allclose(compiled(a, b)[0], a @ b, rtol=1e-5)


def test_vmap_adds_an_axis(transformer):
    x, w = leaves()
    f = function((geon.tanh(geon.dot(x, w)), geon.sum(w)), x, w, transformer=transformer)
    many, b = arrays((5, 4, 3), (3, 2))
    expected = jnp.tanh(many @ b)
    found, total = jax.vmap(f, (0, None), (0, None))(many, b)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(total, b.sum())
    turned = jax.jit(jax.vmap(lambda a: f(a, b)[0], 1))(jnp.moveaxis(many, 0, 1))
    np.testing.assert_allclose(turned, expected)
    each = jax.vmap(jax.grad(lambda a: f(a, b)[0].sum()))(many)
    np.testing.assert_allclose(each, (1 - expected**2) @ b.T)
    twice = jax.vmap(jax.vmap(lambda row: f(row[None], b)[0][0]))(many)
    np.testing.assert_allclose(twice, expected)


def test_variables_are_inputs():
    x, _ = leaves()
    w = geon.Variable([C, H], "float64", initial_value=1, name="w")
    with pytest.raises(geon.ArgumentError, match=r"read w.*no state; give variables as further"):
        function(geon.dot(x, w), x)
    check_grads(function(geon.dot(x, w), x, w), arrays((4, 3), (3, 2)), order=2, modes=["rev"])


def test_halves():
    x = geon.placeholder([N], "bfloat16", name="x")
    f = function(geon.square(x), x)
    (a,) = arrays((4,), dtype="bfloat16")
    np.testing.assert_array_equal(f(a), a * a)
    np.testing.assert_array_equal(jax.grad(lambda a: f(a).sum())(a), 2 * a)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_float8(name):
    x = geon.placeholder([N], name, name="x")
    f = function([x, x.cast("float32") * 2], x)
    given = jnp.array([0.3, -1.0, 7.0, 100.0]).astype(name)
    same, twice = f(given)
    assert same.dtype == given.dtype
    np.testing.assert_array_equal(same.astype("float32"), given.astype("float32"))
    np.testing.assert_array_equal(twice, given.astype("float32") * 2)


X = geon.placeholder([C], name="x")
UNKNOWN = geon.iota(geon.Axis("Q"))
REFUSED = {
    "too many": (lambda: function(X * 2, X)(1, 2), r"takes 1 arrays \(x\), not 2"),
    "a dtype": (
        lambda: function(X * 2, X)(jnp.ones(3, "float64")),
        r"is float32 and .*of float64.*astype\('float32'\)",
    ),
    "a missing input": (lambda: function(leaves()[0] * 2, X), "which is no input"),
    "a shape": (
        lambda: function(X * 2, X)(jnp.ones(4, "float32")),
        r"array of shape \(4,\); it needs C",
    ),
    "a rank": (lambda: function(X * 2, X)(jnp.ones((3, 1), "float32")), r"shape \(3, 1\)"),
    "a shape in a program": (
        lambda: jax.jit(function(X * 2, X))(jnp.ones(4, "float32")),
        r"array of shape \(4,\)",
    ),
    "a length": (lambda: function([X, UNKNOWN], X)(jnp.ones(3, "float32")), "fixes Q"),
}


@pytest.mark.parametrize(("call", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(call, text):
    with pytest.raises(geon.GeonError, match=text):
        call()


def test_the_cure_of_wide_dtypes_is_jaxs_setting():
    x, _ = leaves()
    with jax.enable_x64(False), pytest.raises(geon.DTypeError, match="jax_enable_x64"):
        function(x * 2, x)(jnp.ones((1, 3)))
