"""Fourier transforms by cuFFT, which NumPy computes on the host's memory."""

import importlib.util
import inspect
import sys

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.launches.launch_ir import Launch
from geon.transformers.pycuda.launches.library_requests import Ask, LineTransforms
from geon.transformers.pycuda.products import cufft, nvmath_bindings
from geon.transformers.pycuda.products.nvmath_bindings import SharedWorkspace
from geon.transformers.pycuda.runtime import gpu, host, host_library
from geon.transformers.pycuda.transformer import PyCudaTransformer

from . import fake_cuda
from .devices import LateDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
N, B, C = (geon.Axis(name) for name in "NBC")
RANDOM = np.random.default_rng(7)


@pytest.fixture
def transformer():
    with transformer_on(LateDevice(), transforms="cufft") as made:
        yield made


@pytest.fixture
def driver(monkeypatch):
    return fake_cuda.Driver().install(monkeypatch)


@pytest.fixture(scope="module")
def numpy():
    with geon.NumPyTransformer() as made:
        yield made


def draw(*shape, dtype="complex128"):
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(dtype)


def near(found, expected):
    assert found.dtype == expected.dtype
    digits = 1e-11 if found.dtype in ("complex128", "float64") else 2e-4
    scale = np.max(np.abs(expected), initial=1)
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits * scale)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("axes", [[N], [B, N], [N, B], [B, N, C]], ids=str)
def test_transforms_of_open_lengths_are_those_of_numpy(transformer, numpy, axes, dtype):
    """Even and odd ones, a single element, many outer lines or many inner ones, and none."""
    z = geon.placeholder(axes, dtype, name="z")
    results = [geon.fft.fft(z, N), geon.fft.ifft(z, N), geon.fft.rfft(geon.real(z), N)]
    f, g = (each.computation(results, z) for each in (transformer, numpy))
    for n, b, c in ((8, 3, 5), (9, 5, 2), (1, 2, 2), (1, 1, 1), (64, 1, 3), (7, 0, 2), (30, 7, 1)):
        sizes = {"N": n, "B": b, "C": c}
        value = draw(*[sizes[axis.name] for axis in axes], dtype=dtype)
        for _ in range(2):
            for found, expected in zip(f(value), g(value), strict=True):
                near(found, expected)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_spectra_of_real_values(transformer, numpy, n, dtype):
    """The imaginary parts that do not count are left out, and the operand stays as it is."""
    half = N.with_length(n // 2 + 1)
    z = geon.placeholder([B, half, C], dtype, name="z")
    results = [geon.fft.irfft(z, half, n), z * 2]
    f, g = (each.computation(results, z) for each in (transformer, numpy))
    value = draw(3, n // 2 + 1, 2, dtype=dtype)
    for found, expected in zip(f(value), g(value), strict=True):
        near(found, expected)


def test_derivatives_and_transforms_of_several_axes(transformer, numpy):
    x = geon.placeholder([N, B], "float64", name="x")
    spectrum = geon.fft.rfftn(x, [N, B])
    loss = geon.sum(geon.square(abs(spectrum)) * 0.1)
    results = [spectrum, geon.deriv(loss, x)]
    f, g = (each.computation(results, x, specialize={N: 6, B: 5}) for each in (transformer, numpy))
    value = RANDOM.normal(size=(6, 5))
    for found, expected in zip(f(value), g(value), strict=True):
        near(found, expected)


def test_what_follows_a_failure_changes_no_variable(transformer):
    """Nor does a transform in a branch that is not taken; in loops each step has its slice."""
    n, t = geon.Axis("N", 6), geon.Axis("T")
    z = geon.placeholder([n], "complex128", name="z")
    many = geon.placeholder([t, n], "complex128", name="many")
    at, flag = geon.placeholder([C], "int64", name="at"), geon.placeholder([], "bool", name="flag")
    kept = geon.Variable([n], "complex128", initial_value=1, name="kept")
    taken = geon.gather(geon.real(z), at, n)
    chosen = geon.cond(flag, lambda: geon.fft.fft(z, n), lambda: geon.fft.ifft(z, n) * 2)
    last, every = geon.scan(
        lambda state, x: (geon.fft.fft(state + x, n), geon.fft.rfft(geon.real(x), n)),
        z, many, over=t,
    )  # fmt: skip
    update = geon.assign(kept, geon.fft.fft(kept + z, n))
    f = transformer.computation([taken, chosen, last, every, update], z, many, at, flag)
    value, values = draw(6), draw(3, 6)
    before = transformer.get(kept)
    for branch in (True, False):
        _, first, final, each, _ = f(value, values, [0, 5], branch)
        near(first, np.fft.fft(value) if branch else np.fft.ifft(value) * 2)
        state = value
        for x in values:
            state = np.fft.fft(state + x)
        near(final, state)
        near(each, np.fft.rfft(values.real))
        before = np.fft.fft(before + value)
        near(transformer.get(kept), before)
    with pytest.raises(geon.IndexRangeError):
        f(value, values, [0, 6], True)
    near(transformer.get(kept), before)


def test_results_are_written_in_place_unless_that_may_be_wrong(transformer):
    z = geon.placeholder([B, N], "complex64", name="z")
    f = transformer.computation(geon.fft.fft(z, N), z)
    f(draw(2, 8))
    steps = f.stages().compiled.module.steps
    assert [type(step) for step in steps] == [Ask]
    kept = geon.Variable([B.with_length(2), N.with_length(8)], "complex64", initial_value=1)
    g = transformer.computation(geon.assign(kept, geon.fft.fft(kept, "N")))
    g()
    steps = g.stages().compiled.module.steps
    assert [type(step) for step in steps][-2:] == [Ask, Launch]
    assert "transform c2c of" in g.source


# The binding --------------------------------------------------------------------------------------


def test_plans_are_kept_and_bounded(driver, numpy, monkeypatch):
    monkeypatch.setattr(nvmath_bindings, "MAX_CACHED_PLANS", 2)
    z = geon.placeholder([B, N], "complex64", name="z")
    with transformer_on(gpu.GpuDevice(0), transforms="cufft") as transformer:
        f = transformer.computation([geon.fft.fft(z, N), geon.fft.rfft(geon.real(z), N)], z)
        for n in (8, 9, 8, 8, 10):
            value = draw(3, n, dtype="complex64")
            found, half = f(value)
            near(found, np.fft.fft(value))
            near(half, np.fft.rfft(value.real))
        library = transformer.device.libraries["transforms"]
        assert len(library.known.plans) == 2
        assert driver.called[-2:] == ["exec_c2c", "exec_r2c"]
        assert driver.called.count("exec_c2c") == 5
        driver.fails["exec_c2c"] = host_library.HostLibraryError("CUFFT_EXEC_FAILED")
        with pytest.raises(geon.DeviceError, match=r"cuFFT computes a Fourier.*EXEC_FAILED"):
            f(value)
    assert driver.captured_graphs == 0 and not driver.wrong


class Noted:
    """A binding that notes the arguments of each call, and computes nothing."""

    class cuFFTError(Exception):
        pass

    Type = host_library.HostFourier.Type

    def __init__(self):
        self.called = {}

    def __getattr__(self, name):
        def call(*given):
            self.called[name] = given
            return 1

        return call


def test_the_binding_has_what_is_called():
    """With the numbers of arguments; it needs nvmath-python, and no GPU."""
    pytest.importorskip("nvmath.bindings", reason="nvmath-python is not installed")
    from nvmath.bindings import cufft as binding

    noted = Noted()
    library = cufft.CuFft(noted, SharedWorkspace(lambda size: 256, print))
    for form, dtype in cufft.NAMES:
        call = LineTransforms(form, False, dtype, 8, 3, 1, (1, 1), (8, 8), (64, 64))
        assert library.takes(call)
        library.call(call, (256, 512), 0, 0)
    assert len(noted.called) == len(cufft.NAMES) + 5
    for name, given in noted.called.items():
        known = inspect.signature(getattr(binding, name)).parameters
        assert len(given) == len(known), name
    ours = inspect.signature(host_library.HostFourier().make_plan_many64)
    assert list(ours.parameters) == list(inspect.signature(binding.make_plan_many64).parameters)
    assert {each.name: each.value for each in binding.Type} == {
        each.name: each.value for each in host_library.HostFourier.Type
    }


@pytest.fixture
def first(driver, monkeypatch):
    """The fake device is the first of the machine."""
    monkeypatch.setattr(gpu, "device", gpu.GpuDevice)
    monkeypatch.setattr(gpu, "missing", lambda: None)
    return driver


OTHERS = dict.fromkeys(("products", "convolutions", "matrices"), "generated")


def test_without_the_binding_or_the_library(first, monkeypatch):
    """Open lengths are refused with the command that installs it; known ones are products."""
    z = geon.placeholder([N], "complex128", name="z")
    with PyCudaTransformer(0, **OTHERS) as made:
        assert made.libraries == {"transforms"}

    def get_version():
        raise RuntimeError("Failed to dlopen libcufft.so.12")

    binding = sys.modules["nvmath.bindings.cufft"]
    monkeypatch.setattr(binding, "get_version", get_version, raising=False)
    with PyCudaTransformer(0, **OTHERS) as made:
        assert made.libraries == set()
        with pytest.raises(geon.UnavailableError, match=r"pip install 'geon\[cufft\]'.*special"):
            made.computation(geon.fft.fft(z, N), z)(draw(6))
        value = draw(6)
        near(made.computation(geon.fft.fft(z, N), z, specialize={N: 6})(value), np.fft.fft(value))
    with pytest.raises(geon.DeviceError, match=r"cuFFT does not start \(Failed to dlopen"):
        PyCudaTransformer(0, transforms="cufft")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "nvmath" else find(name)
    )
    with pytest.raises(geon.DeviceError, match=r"nvmath-python.*pip install 'geon\[cufft\]'"):
        PyCudaTransformer(0, transforms="cufft")
