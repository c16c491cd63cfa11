"""Data that lie on the device already are fed without a way by the host."""

import numpy as np
import pytest

import geon
from geon.transformers.pycuda import host
from geon.transformers.pycuda.transformer import CudaTransformer

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
    with CudaTransformer(WaitingDevice()) as made:
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
