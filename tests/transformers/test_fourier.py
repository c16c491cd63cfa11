"""``geon.fft`` against ``numpy.fft`` on each transformer, over lengths, axes, norms and forms."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.errors import UnavailableError
from geon.transformers.native.runtime import external_functions
from geon.transformers.numpy.transformer import TARGET, NumPyTransformer
from tests.kinds import numpy_only

B, M = geon.Axis("B", 3), geon.Axis("M", 7)
RANDOM = np.random.default_rng(11)
TOLERANCES = {"float64": 1e-13, "float32": 4e-6}


def draw(*shape):
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


def assert_near(made, wanted, dtype="float64"):
    assert made.dtype == wanted.dtype
    scale = max(1.0, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(made, wanted, rtol=0, atol=TOLERANCES[dtype] * scale)


def transforms(x, z, n):
    """Transforms of x (B, N, M) and z, by geon and NumPy; ``n`` is the axis N."""
    fft, pair = geon.fft, [n, M]
    return {
        "fft of real numbers": (fft.fft(x, n), lambda x, z: np.fft.fft(x, axis=1)),
        "fft": (fft.fft(z, n), lambda x, z: np.fft.fft(z, axis=1)),
        "ifft, last": (fft.ifft(z, M), lambda x, z: np.fft.ifft(z, axis=2)),
        "fft, first": (
            fft.fft(x, "B", norm="forward"),
            lambda x, z: np.fft.fft(x, axis=0, norm="forward"),
        ),
        "rfft": (fft.rfft(x, n), lambda x, z: np.fft.rfft(x, axis=1)),
        "rfft, odd": (fft.rfft(x, M), lambda x, z: np.fft.rfft(x, axis=2)),
        "irfft": (fft.irfft(z, M), lambda x, z: np.fft.irfft(z, axis=2)),
        "irfft, odd": (fft.irfft(z, M, 13), lambda x, z: np.fft.irfft(z, 13, axis=2)),
        "there and back": (fft.irfft(fft.rfft(x, n), n, n), lambda x, z: x),
        "fftn": (fft.fftn(z, pair), lambda x, z: np.fft.fftn(z, axes=(1, 2))),
        "ifftn": (
            fft.ifftn(z, norm="ortho"),
            lambda x, z: np.fft.ifftn(z, norm="ortho"),
        ),
        "rfftn": (
            fft.rfftn(x, pair, norm="ortho"),
            lambda x, z: np.fft.rfftn(x, axes=(1, 2), norm="ortho"),
        ),
        "irfftn": (fft.irfftn(fft.rfftn(x), n=M), lambda x, z: x),
        "fftshift": (fft.fftshift(x, pair), lambda x, z: np.fft.fftshift(x, axes=(1, 2))),
        "ifftshift": (fft.ifftshift(x, n), lambda x, z: np.fft.ifftshift(x, axes=1)),
        "fftfreq": (
            fft.fftfreq(n, 0.5, dtype="float64"),
            lambda x, z: np.fft.fftfreq(x.shape[1], 0.5),
        ),
        "rfftfreq": (
            fft.rfftfreq(n, 0.5, dtype="float64"),
            lambda x, z: np.fft.rfftfreq(x.shape[1], 0.5),
        ),
    }


def compared(transformer, n, dtype, lengths):
    x = geon.placeholder([B, n, M], dtype, name="x")
    wide = "complex128" if dtype == "float64" else "complex64"
    z = geon.placeholder([B, n, M], wide, name="z")
    cases = transforms(x, z, n)
    f = transformer.computation({name: made for name, (made, _) in cases.items()}, x, z)
    for length in lengths:
        zs = draw(3, length, 7).astype(wide)
        xs = zs.imag.copy()
        for name, value in f(xs, zs).items():
            wanted = np.asarray(cases[name][1](xs, zs))
            if "freq" in name or wanted.dtype == value.dtype:
                assert_near(value, wanted, dtype)
            else:
                raise AssertionError(f"{name} is {value.dtype}, not {wanted.dtype}")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_known_lengths(transformer, dtype):
    compared(transformer, geon.Axis("N", 12), dtype, [12])


@pytest.mark.parametrize("transformer_name", ["numpy", "native"])
def test_open_lengths(transformer):
    compared(transformer, geon.Axis("N"), "float64", [1, 2, 5, 16])


@pytest.mark.parametrize("transformer_name", ["native"])
@pytest.mark.parametrize("threads", [1, 2])
def test_lines_of_several_tasks(make, threads):
    """Fewer lines than a task takes, as many, and more; next to each other and apart."""
    transformer = make(threads=threads)
    rows, n = geon.Axis("R"), geon.Axis("N", 6)
    z = geon.placeholder([rows, n], "complex64")
    f = transformer.computation(
        [geon.fft.fft(z, n), geon.fft.fft(geon.reorder(z, [n, rows]), n)], z
    )
    for count in (0, 1, 7, 8, 9, 40):
        value = draw(count, 6).astype("complex64")
        together, apart = f(value)
        assert_near(together, np.fft.fft(value), "float32")
        assert_near(apart, np.fft.fft(value.T, axis=0), "float32")


def test_open_lengths_on_a_gpu_without_cufft_need_to_be_specialized(transformer):
    n = geon.Axis("N")
    z = geon.placeholder([n], "complex128")
    value = draw(6)
    if "transforms" not in getattr(transformer, "libraries", ["transforms"]):
        f = transformer.computation(geon.fft.fft(z, n), z)
        with pytest.raises(UnavailableError, match=r"'N'.*specialize=\{N: 1024\}"):
            f(value)
    f = transformer.computation(geon.fft.fft(z, n), z, specialize={n: 6})
    assert_near(f(value), np.fft.fft(value))


class Products(NumPyTransformer):
    """A transformer without a library of transforms."""

    target = dataclasses.replace(TARGET, name="numpy without transforms", transforms=False)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 64, 65, 67, 100, 251, 257, 521, 1024, 1052])
def test_transforms_as_products(n):
    """Lengths that are one matrix, that are split, and primes of which one is a convolution."""
    axis = geon.Axis("N", n)
    x, z = geon.placeholder([axis, B], "float64"), geon.placeholder([B, axis], "complex128")
    made = [geon.fft.fft(z, axis), geon.fft.ifft(z, axis), geon.fft.rfft(x, axis)]
    made += [geon.fft.irfft(z, axis, length) for length in {2 * n - 1, max(2 * n - 2, 1)}]
    zs, xs = draw(3, n), RANDOM.normal(size=(n, 3))
    forward, back, half, *real = Products().computation(made, x, z)(xs, zs)
    assert_near(forward, np.fft.fft(zs))
    assert_near(back, np.fft.ifft(zs))
    assert_near(half, np.fft.rfft(xs, axis=0))
    for value in real:
        assert_near(value, np.fft.irfft(zs, value.shape[1]))


# Derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 5])
def test_derivatives_of_real_transforms(n, transformer):
    axis = geon.Axis("N", n)
    half = axis.with_length(n // 2 + 1)
    x, z = geon.placeholder([axis], "float64"), geon.placeholder([half], "complex128")
    weight = geon.constant(np.arange(1.0, n // 2 + 2), [half])
    spectrum = geon.fft.rfft(x, axis)
    loss = geon.sum(abs(spectrum * weight + (1 + 2j)) ** 2) + geon.sum(
        geon.fft.irfft(z * z * spectrum, axis, n) ** 3
    )
    f = transformer.computation([loss, *geon.deriv(loss, [x, z])], x, z)
    at = {"x": RANDOM.normal(size=n), "z": draw(n // 2 + 1)}
    _, in_x, in_z = f(*at.values())
    step = 1e-6

    def along(name, direction):
        ends = [{**at, name: at[name] + sign * step * direction} for sign in (1, -1)]
        first, last = (f(*end.values())[0] for end in ends)
        return (first - last) / (2 * step)

    wanted = [along("x", unit) for unit in np.eye(n)]
    np.testing.assert_allclose(in_x, wanted, rtol=1e-6, atol=1e-5)
    wanted = [along("z", unit) - 1j * along("z", 1j * unit) for unit in np.eye(n // 2 + 1)]
    np.testing.assert_allclose(in_z, wanted, rtol=1e-6, atol=1e-5)


@numpy_only
def test_a_transform_is_its_own_transpose(transformer):
    """Second derivatives too: the Hessian of a quadratic form in a spectrum is constant."""
    axis = geon.Axis("N", 4)
    x = geon.placeholder([axis], "float64")
    loss = geon.sum(abs(geon.fft.fft(x, axis)) ** 2)  # 4 times the sum of squares
    found = transformer.computation(geon.hessian(loss, x), x)(RANDOM.normal(size=4))
    np.testing.assert_allclose(found, 8 * np.eye(4), atol=1e-12)


# Convolution --------------------------------------------------------------------------------------


def test_convolution_by_transform(transformer):
    n, m = geon.Axis("N", 8), geon.Axis("N", 3)
    x, y = geon.placeholder([B, n], "float64"), geon.placeholder([m], "float64")
    modes = ("full", "same", "valid")
    made = [geon.fft.convolve(x, y, n, mode=mode) for mode in modes]
    made.append(geon.fft.convolve(x, y * 1j, n))
    made.append(geon.fft.convolve(x, geon.pad(y, {n: (0, 5)}), n, mode="circular"))
    xs, ys = RANDOM.normal(size=(3, 8)), RANDOM.normal(size=3)
    *plain, rotated, circular = transformer.computation(made, x, y)(xs, ys)
    for mode, value in zip(modes, plain, strict=True):
        assert_near(value, np.array([np.convolve(row, ys, mode) for row in xs]))
    assert_near(rotated, np.array([np.convolve(row, ys * 1j) for row in xs]))
    whole = np.fft.ifft(np.fft.fft(xs) * np.fft.fft(ys, 8)).real
    assert_near(circular, whole)


# Errors -------------------------------------------------------------------------------------------


def test_errors_name_the_cure():
    x = geon.placeholder([B, M], "float32", name="x")
    z = geon.placeholder([B, M], "complex64", name="z")
    with pytest.raises(geon.AxisError, match=r"axis of x\(B:3, M:7\).*geon\.fft\.fft\(x, axis="):
        geon.fft.fft(x)
    with pytest.raises(geon.DTypeError, match=r"rfft.*z\(B:3, M:7\).*geon\.fft\.fft"):
        geon.fft.rfft(z, M)
    with pytest.raises(geon.ArgumentError, match="norm='none' is none of backward"):
        geon.fft.fft(x, M, norm="none")
    with pytest.raises(geon.AxisError, match=r"has 7 frequencies along 'M', and n=8 .* have 5"):
        geon.fft.irfft(z, M, 8)
    with pytest.raises(geon.ArgumentError, match="n=0 is no number of elements"):
        geon.fft.irfft(z, M, 0)
    with pytest.raises(geon.AxisError, match="has no axis to transform"):
        geon.fft.fftn(geon.constant(1.0))
    with pytest.raises(geon.ArgumentError, match="mode='some' is none of full"):
        geon.fft.convolve(x, x, M, mode="some")
    with pytest.raises(geon.AxisError, match="y has length 7 along 'M' and x 2"):
        geon.fft.convolve(x[:, :2], x, M, mode="valid")
    with pytest.raises(AttributeError, match=r"geon\.fft\.rfft"):
        geon.rfft  # noqa: B018


def test_an_unknown_numpy_is_refused(monkeypatch):
    monkeypatch.setattr(external_functions, "_known", {})
    monkeypatch.setitem(
        external_functions.EXPECTED,
        "fft",
        external_functions._LoopSignature("(n)->(n)", {"float64": "Dd->D"}),
    )
    with pytest.raises(UnavailableError, match=r"calls fft of numpy\.fft.*geon\.make_transformer"):
        external_functions.external_address("pocketfft.fft_float64")
    monkeypatch.setattr(external_functions, "MODULE", "numpy.fft._no_such_module")
    with pytest.raises(UnavailableError, match="_no_such_module"):
        external_functions.external_address("pocketfft.irfft_float64")
