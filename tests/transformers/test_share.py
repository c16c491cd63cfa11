"""Variables whose memory is an array of the user's."""

import numpy as np
import pytest

import geon
from geon.errors import FeedError, UnavailableError

A = geon.Axis("A", 3)


@pytest.fixture(params=["numpy", "native"])
def host(request):
    made = geon.make_transformer(request.param)
    yield made
    made.close()


def test_calls_read_and_write_the_array_itself(host):
    v, array = geon.Variable([A], name="v"), np.array([1, 2, 3], np.float32)
    x = geon.placeholder([A])
    add = host.computation([geon.assign(v, v + x), 2 * v], x)
    host.share(v, array)
    np.testing.assert_array_equal(add([1, 1, 1])[1], [2, 4, 6])
    np.testing.assert_array_equal(array, [2, 3, 4])
    array[:] = 0
    host.share(v, array)
    np.testing.assert_array_equal(add([1, 2, 3])[1], [0, 0, 0])
    np.testing.assert_array_equal(host.get(v), [1, 2, 3])
    host.set(v, [7, 7, 7])
    np.testing.assert_array_equal(array, [7, 7, 7])


def test_parts_of_one_array_at_any_place(host):
    whole = np.arange(40, dtype=np.float32)
    variables = [geon.Variable([A], name=f"v{k}") for k in range(3)]
    step = host.computation([geon.assign(v, 2 * v) for v in variables])
    for k, v in enumerate(variables):
        host.share(v, whole[1 + 5 * k : 4 + 5 * k])
    for times in (2, 4):
        step()
        expected = np.arange(40, dtype=np.float32)
        for k in range(3):
            expected[1 + 5 * k : 4 + 5 * k] *= times
        np.testing.assert_array_equal(whole, expected)


def test_other_memory_after_a_call(host):
    big, v = geon.Axis("B", 300), geon.Variable([geon.Axis("B", 300), A], name="w")
    x = geon.placeholder([geon.Axis("N"), big])
    product = host.computation(geon.dot(x, v), x)
    data = np.ones((2, 300), np.float32)
    for value in (1.0, 2.0, 2.0):
        array = np.full((300, 3), value, np.float32)
        host.share(v, array)
        for factor in (1, 3):
            array[:] = factor * value
            host.share(v, array)
            np.testing.assert_allclose(product(data), 300 * factor * value, rtol=1e-6)


@pytest.mark.parametrize(
    "array",
    [
        np.ones(3),
        np.ones(6, np.float32)[::2],
        np.broadcast_to(np.float32(1), (3,)),
        np.ones(4, np.float32),
        [1, 2, 3],
    ],
    ids=["dtype", "strides", "read-only", "shape", "list"],
)
def test_arrays_that_cannot_be_shared(host, array):
    v = geon.Variable([A], initial_value=5, name="v")
    with pytest.raises(FeedError, match="v"):
        host.share(v, array)
    np.testing.assert_array_equal(host.get(v), [5, 5, 5])


def test_a_device_has_memory_of_its_own(transformer):
    if transformer.memory.on_host:
        transformer.share(geon.Variable([A], name="v"), np.ones(3, np.float32))
        return
    with pytest.raises(UnavailableError, match="on a device: copy them with get and set"):
        transformer.share(geon.Variable([A], name="v"), np.ones(3, np.float32))
