"""Programs with complex inputs, results, variables and carries, on each transformer."""

import importlib.util

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from tests.kinds import numpy_only

N, K, T = geon.Axis("N"), geon.Axis("K", 3), geon.Axis("T", 4)
RANDOM = np.random.default_rng(5)


def draw(*shape):
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


Z, W = draw(2, 3), draw(3)


@pytest.fixture
def z():
    return geon.placeholder([N, K], "complex128", name="z")


def test_loops_and_branches_carry_complex_values(transformer, z):
    w = geon.placeholder([K], "complex128", name="w")

    def step(c, each):
        return c * each + w, abs(c) + 1j

    last, seen = geon.scan(step, geon.sum(z, N), geon.broadcast(w * w, [T, K]), over=T)

    def halve(c):
        return c / 2j

    whole = geon.while_loop(lambda c: geon.sum(abs(c)) > 0.1, halve, last, 40)[0]
    chosen = geon.cond(geon.sum(geon.real(z)) > 0, lambda: (last, w), lambda: (w, last * 2))
    loss = geon.sum(abs(seen * last)) + geon.sum(abs(chosen[0] * chosen[1])) + abs(geon.sum(whole))
    results = [last, seen, whole, *chosen, *geon.deriv(loss, [z, w])]
    assert_agrees(transformer, results, {z: Z, w: W})


def test_open_lengths_and_python_numbers(transformer, z):
    f = transformer.computation([z * (1 + 2j), geon.mean(z, N), z[:, 0] - 3], z)
    for n in (1, 2, 5):
        value = draw(n, 3)
        first, mean, part = f(value)
        np.testing.assert_allclose(first, value * (1 + 2j), rtol=1e-12)
        np.testing.assert_allclose(mean, value.mean(0), rtol=1e-12)
        np.testing.assert_allclose(part, value[:, 0] - 3, rtol=1e-12)
    real = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(f(real)[0], real * (1 + 2j))
    np.testing.assert_array_equal(f([[1, 2j, 3]])[2], [-2])
    g = transformer.computation(z * 2, z, specialize={N: 2})
    np.testing.assert_array_equal(g(Z), Z * 2)


def test_feeds_that_do_not_fit(transformer, z):
    f = transformer.computation(z * 2, z)
    with pytest.raises(geon.FeedError, match=r"z\(N, K:3\).*shape \(2, 2\); it needs \(N, 3\)"):
        f(Z[:, :2])
    with pytest.raises(geon.FeedError, match=r"complex128; it needs float32: take its \.real"):
        x = geon.placeholder([N], "float32")
        transformer.computation(x, x)(W)
    single = geon.placeholder([N], "complex64", name="single")
    with pytest.raises(geon.FeedError, match="too large for complex64"):
        transformer.computation(single, single)([1e300j])


def test_results_in_arrays_of_the_user(transformer, z):
    f = transformer.computation([z * 2, geon.real(z)], z)
    whole = np.zeros((4, 6), complex)
    for out in (np.empty((2, 3), complex), whole[::2, ::2]):
        made = f(Z, out=[out, None])
        assert made[0] is out
        np.testing.assert_array_equal(out, Z * 2)
        np.testing.assert_array_equal(made[1], Z.real)
    with pytest.raises(geon.FeedError, match=r"shape \(1, 3\) for the result"):
        f(Z, out=[np.empty((1, 3), complex), None])
    with pytest.raises(geon.FeedError, match="dtype float64 for the result"):
        f(Z, out=[np.empty((2, 3)), None])


def test_started_calls_and_values_that_are_kept(transformer, z):
    inner = z * 1j
    f = transformer.computation(inner + 1, z, keep=[inner])
    np.testing.assert_array_equal(f.start(Z).result(), Z * 1j + 1)
    np.testing.assert_array_equal(f.value(inner), Z * 1j)
    f.override(inner, Z)
    np.testing.assert_array_equal(f(Z), Z + 1)


def test_variables_are_complex_and_are_saved(transformer, tmp_path):
    v = geon.Variable([K], "complex128", initial_value=np.array([1, 2j, 3]), name="v")
    u = geon.Variable([K], "complex64", initial_value=lambda axes: np.full(3, 1j), name="u")
    f = transformer.computation([geon.assign(v, v * (1 + 1j)), geon.assign(u[{K: 1}], 2), v + u])
    *_, total = f()
    np.testing.assert_allclose(total, [1 + 1j, 3j, 3 + 1j])
    after = np.array([1, 2j, 3]) * (1 + 1j)
    np.testing.assert_array_equal(transformer.get(v), after)
    np.testing.assert_array_equal(transformer.get(u), np.array([1j, 2, 1j], np.complex64))
    path = tmp_path / "state.safetensors"
    transformer.save(path)
    transformer.set(v, W)
    np.testing.assert_array_equal(transformer.exchange(v, [0, 0, 0]), W)
    transformer.restore(path)
    np.testing.assert_array_equal(transformer.get(v), after)
    assert transformer.get(u).dtype == np.complex64
    with pytest.raises(geon.FeedError, match=r"variable v.*needs \(3,\)"):
        transformer.set(v, np.zeros(2))


def test_gradient_descent_on_a_complex_variable(transformer):
    """Steps go against the conjugate of the derivative."""
    v = geon.Variable([K], "complex64", initial_value=0, name="v")
    target = geon.constant(W.astype(np.complex64), [K])
    loss = geon.sum(abs(v - target) ** 2)
    step = geon.assign(v, v - 0.25 * geon.conj(geon.deriv(loss, v)))
    f = transformer.computation([loss, step])
    losses = [float(f()[0]) for _ in range(30)]
    assert losses[-1] < 1e-8 < losses[0]
    np.testing.assert_allclose(transformer.get(v), W, rtol=1e-4)


def test_extreme_values_neither_overflow_nor_vanish(transformer):
    z = geon.placeholder([N], "complex128")
    results = [abs(z), geon.log(z), geon.sqrt(z), 1 / z, geon.tanh(z)]
    values = np.array([3e200 + 4e200j, -3e-200 + 4e-200j, 1e308j, -5, 1 + 1e-9j, 0.6 - 0.8j])
    found = transformer.computation(results, z)(values)
    for made, wanted in zip(
        found, [np.abs, np.log, np.sqrt, lambda v: 1 / v, np.tanh], strict=True
    ):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(made, wanted(values), rtol=1e-13)
    zeros = transformer.computation([abs(z), geon.sqrt(z), z**2, z**0.5, z**0, z == 0], z)([0j])
    np.testing.assert_array_equal(np.array(zeros)[:, 0], [0, 0, 0, 0, 1, 1])


@numpy_only
def test_reports_and_dumps_show_complex_values(transformer, z):
    f = transformer.computation(geon.exp(z), z)
    f(Z)
    (entry,) = [entry for entry in f.trace(Z) if entry.op.primitive.name == "exp"]
    np.testing.assert_allclose(entry.value, np.exp(Z))
    assert "complex128" in f.explain("build") and "re*im:2" in f.explain("simplify")
    (made,) = geon.loads(f.dumps(Z))
    assert made.dtype.name == "complex128"


@numpy_only
def test_written_modules_take_and_return_complex_arrays(transformer, z, tmp_path):
    v = geon.Variable([K], "complex128", initial_value=W, name="v")
    f = transformer.computation([z * v, geon.assign(v, v * 2)], z, name="f")
    transformer.write(tmp_path / "written.py")
    spec = importlib.util.spec_from_file_location("written", tmp_path / "written.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    np.testing.assert_array_equal(module.f(Z)[0], f(Z)[0])
    np.testing.assert_array_equal(module.get("v"), W * 2)
    with pytest.raises(Exception, match=r"z\(N, K:3\).*needs \(N, 3\)"):
        module.f(Z[:, :2])


@pytest.mark.slow
@pytest.mark.parametrize("transformer_name", ["native"])
def test_profiles_take_complex_values(transformer, z):
    f = transformer.computation(geon.exp(z), z)
    assert len(f.profile(Z, repeats=2)) >= 1


@pytest.mark.parametrize("transformer_name", ["native"])
def test_programs_as_c_have_pairs_of_floats(transformer, z, tmp_path):
    v = geon.Variable([K], "complex128", initial_value=W, name="v")
    f = transformer.computation(z * v, z)
    f.write_c(tmp_path / "c")
    header = (tmp_path / "c" / "model.h").read_text()
    assert "const double *z" in header and "z: (N, K:3, re*im:2) float64" in header
    assert [pointer.kind for pointer in f.c_function.pointers][:3] == [
        "input",
        "result",
        "variable",
    ]
