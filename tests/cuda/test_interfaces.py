"""Data that lie on the device already are fed without a way by the host."""

import gc

import numpy as np
import pytest

import geon
from geon.op_graph.values.dtypes import DTYPES, FLOAT8S
from geon.transformers.pycuda.runtime import host

from .devices import transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
N, C = geon.Axis("N"), geon.Axis("C", 3)
x = geon.placeholder([N, C], name="x")


class Array:
    """An array of another library: its memory is that of the host device, which is the host's."""

    def __init__(self, array, **told):
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "version": 3,
            **told,
        }

    def __array__(self, *args, **options):
        raise AssertionError("it went by the host")


class WaitingDevice(host.HostDevice):
    """Notes what it waited for, and that nothing was copied in."""

    def __init__(self):
        super().__init__()
        self.waited, self.copied = [], 0

    def wait_for(self, stream):
        self.waited.append(stream)

    def copy_in(self, address, array):
        self.copied += 1
        super().copy_in(address, array)


@pytest.fixture
def transformer():
    with transformer_on(WaitingDevice()) as made:
        yield made


def test_what_lies_on_the_device_is_fed_there(transformer):
    f = transformer.computation(geon.sum(x, reduction_axes=C), x)
    for n in (4, 4, 0, 7):
        given = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        np.testing.assert_array_equal(f(Array(given)), given.sum(1))
    np.testing.assert_array_equal(f(Array(given, strides=(12, 4))), given.sum(1))
    assert transformer.device.copied == 0
    np.testing.assert_array_equal(f(np.ones((4, 3))), np.full(4, 3))  # and arrays beside


def test_its_stream_is_waited_for(transformer):
    f = transformer.computation(x + 1, x)
    f(Array(np.ones((2, 3), np.float32), stream=7))
    assert transformer.device.waited == [7]


@pytest.mark.parametrize("array", [np.ones((2, 3)), np.ones((2, 4), "f"), np.ones(3, "f")])
def test_what_does_not_fit_is_refused(transformer, array):
    f = transformer.computation(x + 1, x)
    with pytest.raises(geon.FeedError, match=r"x.* on a device; it needs float32 of shape"):
        f(Array(array))


def test_what_lies_in_another_order_goes_by_the_host(transformer):
    class Strided(Array):
        def __array__(self, *args, **options):
            return self.array.T

    f = transformer.computation(x + 1, x)
    given = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = f(Strided(given, shape=(2, 3), strides=(4, 8)))
    np.testing.assert_array_equal(found, given.T + 1)


# DLPack -------------------------------------------------------------------------------------------


class CpuDevice(WaitingDevice):
    """The host device under DLPack's name of the CPU, so that NumPy shares memory with it."""

    dlpack = (1, 0)


@pytest.fixture
def on_cpu():
    with transformer_on(CpuDevice()) as made:
        yield made


class Packed:
    """An array that is shown by DLPack alone."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_numpy_takes_results_without_a_copy(on_cpu, dtype):
    y = geon.placeholder([N, C], dtype, name="y")
    f = on_cpu.computation(geon.maximum(y, y), y, on_device=True)
    given = np.arange(12).reshape(4, 3).astype(dtype)
    result = f(given)
    shared = np.from_dlpack(result)
    np.testing.assert_array_equal(shared, given)
    assert shared.dtype == given.dtype and shared.ctypes.data == result.address
    blocks = len(on_cpu.device.blocks)
    del result
    gc.collect()
    np.testing.assert_array_equal(shared, given)  # kept while NumPy has it
    assert len(on_cpu.device.blocks) == blocks
    del shared
    gc.collect()
    assert len(on_cpu.device.blocks) == blocks - 1
    assert on_cpu.device.waited == [0]  # for what others may have begun on it


def test_a_capsule_that_nobody_takes_keeps_nothing(on_cpu):
    result = on_cpu.computation(x + 1, x, on_device=True)(np.ones((2, 3)))
    blocks = len(on_cpu.device.blocks)
    capsule = result.__dlpack__()
    del result
    gc.collect()
    assert len(on_cpu.device.blocks) == blocks
    del capsule
    gc.collect()
    assert len(on_cpu.device.blocks) == blocks - 1


@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_what_dlpack_shows_is_fed_there(on_cpu, n):
    f = on_cpu.computation(geon.sum(x, reduction_axes=C), x)
    for _ in range(3):
        given = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        np.testing.assert_array_equal(f(Packed(given)), given.sum(1))
    assert on_cpu.device.copied == 0


def test_bfloat16_goes_by_dlpack(on_cpu):
    y = geon.placeholder([N, C], "bfloat16", name="y")
    f = on_cpu.computation(y * 2, y, on_device=True)
    given = np.arange(6).reshape(2, 3).astype(y.dtype)
    first = f(given)
    assert not hasattr(first, "__cuda_array_interface__")
    copied = on_cpu.device.copied
    again = f(Packed(first))
    assert on_cpu.device.copied == copied
    assert again.dtype == y.dtype
    np.testing.assert_array_equal(np.asarray(again).astype(float), given.astype(float) * 4)


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_float8_goes_by_dlpack(on_cpu, dtype):
    y = geon.placeholder([N, C], dtype, name="y")
    f = on_cpu.computation(geon.flip(y, C), y, on_device=True)
    given = np.arange(6).reshape(2, 3).astype(y.dtype)
    first = f(given)
    assert not hasattr(first, "__cuda_array_interface__")
    copied = on_cpu.device.copied
    again = f(Packed(first))
    assert on_cpu.device.copied == copied and again.dtype == y.dtype
    np.testing.assert_array_equal(np.asarray(again).view(np.uint8), given.view(np.uint8))


def test_results_are_shown_by_the_array_interface(transformer):
    f = transformer.computation(x + 1, x, on_device=True)
    told = f(np.ones((2, 3))).__cuda_array_interface__
    assert (told["shape"], told["typestr"], told["version"]) == ((2, 3), "<f4", 3)
    result = f(np.ones((2, 3)))
    address, read_only = result.__cuda_array_interface__["data"]
    assert address == result.address and not read_only


def test_another_device_is_refused(on_cpu):
    f = on_cpu.computation(x + 1, x)
    given = np.ones((2, 3), np.float32)
    with pytest.raises(geon.FeedError, match="lies on device 3, and this .* on device 0.*device=3"):
        f(Packed(given, (1, 3)))


def test_what_lies_apart_goes_by_the_host(on_cpu):
    class Turned(Packed):
        def __array__(self, *args, **options):
            return self.array

    f = on_cpu.computation(x + 1, x)
    given = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(f(Turned(given.T)), given.T + 1)
    half = Turned(np.arange(6, dtype=np.complex64).reshape(2, 3))
    with pytest.raises(geon.FeedError, match="complex64"):
        f(half)


class GpuDevice(WaitingDevice):
    """The host device under DLPack's name of a GPU."""

    dlpack = (2, 0)


class Refusing(Packed):
    """An array on a GPU, which its library gives as a copy on the host, if at all."""

    def __init__(self, array, copies):
        super().__init__(array, (2, 0))
        self.copies = copies

    def __dlpack__(self, *, dl_device=None, copy=None, **options):
        if dl_device is None or not self.copies:
            raise BufferError("call .detach() first")
        return self.array.__dlpack__()


def test_what_is_not_shown_goes_by_the_host_or_says_why_not():
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    w = geon.Variable([N.with_length(2), C], initial_value=0, name="w")
    with transformer_on(GpuDevice()) as transformer:
        f = transformer.computation(x + 1, x)
        np.testing.assert_array_equal(f(Refusing(given, copies=True)), given + 1)
        transformer.set(w, Refusing(given, copies=True))
        np.testing.assert_array_equal(transformer.get(w), given)
        message = r"x.* was given Refusing.* by DLPack \(call \.detach\(\) first\).*copy it first"
        with pytest.raises(geon.FeedError, match=message):
            f(Refusing(given, copies=False))
        with pytest.raises(geon.FeedError, match="variable w.* was given Refusing.*detach"):
            transformer.set(w, Refusing(given, copies=False))


def test_no_copy_and_no_other_device_are_given(transformer):
    result = transformer.computation(x + 1, x, on_device=True)(np.ones((2, 3)))
    with pytest.raises(BufferError, match="where it lies"):
        result.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="where it lies"):
        result.__dlpack__(dl_device=(1, 0))
    with pytest.raises(ValueError, match="by a copy alone"):
        np.array(result, copy=False)


@pytest.mark.parametrize("offset", [0, 1, 3, 64])
def test_addresses_between_lines_are_copied_on_the_device(on_cpu, offset):
    """Kernels read whole groups of elements, which must not lie across their places."""
    f = on_cpu.computation(geon.tanh(x) + x, x)
    buffer = np.zeros(4096, np.float32)
    start = (-buffer.ctypes.data % 256) // 4 + offset
    expected = None
    for _ in range(4):
        given = buffer[start : start + 33].reshape(11, 3)
        given[...] = np.linspace(-1, 1, 33).reshape(11, 3)
        found = f(Packed(given))
        expected = found if expected is None else expected
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, np.tanh(given) + given, rtol=1e-5)
    assert on_cpu.device.copied == 0


def test_variables_are_set_from_what_lies_on_the_device(on_cpu):
    w = geon.Variable([N, C], initial_value=0, name="w")
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    on_cpu.set(w, Packed(given))
    np.testing.assert_array_equal(on_cpu.get(w), given)
    double = on_cpu.computation(w * 2, on_device=True)
    on_cpu.set(w, double())
    given[...] = 0  # it was copied
    np.testing.assert_array_equal(on_cpu.get(w), 2 * np.arange(6).reshape(2, 3))
    assert on_cpu.device.copied == 0
    for wrong in (np.ones((3, 2), np.float32), np.ones((2, 3))):
        with pytest.raises(geon.FeedError, match="variable w.* on a device; it needs float32 of"):
            on_cpu.set(w, Packed(wrong))
    on_cpu.set(w, Packed(np.ones((3, 3), np.float32)))
    np.testing.assert_array_equal(double(), np.full((3, 3), 2))
    v = geon.Variable([C, C.prime], initial_value=0, name="v")
    with pytest.raises(geon.FeedError, match="variable v"):
        on_cpu.set(v, Packed(given))
