"""Values of eager arrays that stay on a device, here a simulated one that counts copies."""

import numpy as np
import pytest

import geon
from geon import eager
from geon.transformers.pycuda.runtime import host
from tests.cuda.devices import CountingDevice, transformer_on
from tests.eager.random_programs import Program

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
SLACK = 512  # bytes of scalars, whose copies are padded
N, C = geon.Axis("N"), geon.Axis("C")


@pytest.fixture
def gpu():
    eager.sync()  # what other tests have left is computed elsewhere
    device = CountingDevice()
    with transformer_on(device) as made, eager.use(made):
        device.transformer = made
        yield device


def test_a_value_is_copied_to_the_host_once_and_only_if_it_is_read(gpu):
    data = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    x = eager.array(data, [N, C])
    y = geon.tanh(x)
    eager.sync()
    assert gpu.moved == data.nbytes
    z = geon.tanh(y)
    eager.sync()
    assert gpu.moved == data.nbytes
    for _ in range(2):
        np.testing.assert_allclose(z.numpy(), np.tanh(np.tanh(data)), rtol=1e-5)
        assert gpu.moved == 2 * data.nbytes
    assert not z.numpy().flags.writeable


def test_variables_are_copied_to_the_device_once(gpu):
    first = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    w = geon.Variable([geon.Axis("N", 64), geon.Axis("C", 64)], initial_value=first)
    step = eager.function(lambda scale: geon.assign(w, w * scale))
    for _ in range(3):
        step(eager.array(np.float32(2), []))
        eager.sync()
        assert gpu.moved <= first.nbytes + SLACK
    np.testing.assert_allclose(np.asarray(eager.array(w)), 8 * first, rtol=1e-6)
    eager.sync()
    assert gpu.moved <= 2 * first.nbytes + SLACK
    assert abs(geon.sum(eager.array(w)).item() - (8 * first).sum()) < 0.1
    assert gpu.moved <= 2 * first.nbytes + SLACK


def test_another_transformer_reads_what_is_on_the_device(gpu):
    data = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    y = geon.tanh(eager.array(data, [N, C]))
    eager.sync()
    for name in ("numpy", "native"):
        with eager.use(name):
            np.testing.assert_allclose(geon.exp(y).numpy(), np.exp(np.tanh(data)), rtol=1e-5)
    with transformer_on(CountingDevice()) as second, eager.use(second):
        np.testing.assert_allclose((y * 3).numpy(), np.tanh(data) * 3, rtol=1e-5)


def test_complex_and_small_values_come_back_with_the_call(gpu):
    data = np.random.default_rng(0).normal(size=(64, 64)).astype("complex64")
    z = geon.conj(eager.array(data, [N, C]))
    np.testing.assert_allclose(z.numpy(), data.conj(), rtol=1e-6)
    small = eager.array(data.real[:4, :4].copy(), [N, C]) + 1
    eager.sync()
    assert isinstance(small._node.value, np.ndarray)


def test_random_programs_of_values_that_stay_on_the_device(gpu, monkeypatch):
    monkeypatch.setattr("geon.eager.evaluation.MIN_DEVICE_BYTES", 0)
    compared = 0
    for seed in range(2000, 2006):
        program = Program(seed, gpu.transformer)
        program.run()
        compared += program.compared
    assert compared > 40
