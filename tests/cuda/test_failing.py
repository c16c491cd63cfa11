"""Devices that fail: what the error says, and what goes on afterwards."""

import numpy as np
import pytest

import geon
from geon.errors import ClosedError, DeviceError, DeviceMemoryError
from geon.transformers.pycuda.runtime import host

from .devices import FailingDevice, lost, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
N, C = geon.Axis("N"), geon.Axis("C", 3)
x = geon.placeholder([N, C], name="x")


@pytest.fixture
def failing():
    with transformer_on(FailingDevice()) as made:
        yield made


def refuses(transformer, computation, variable, tmp_path):
    """Check that a transformer does nothing any more, and says why."""
    asked = [
        lambda: computation(np.ones((2, 3))),
        lambda: computation.start(np.ones((2, 3))),
        lambda: transformer.get(variable),
        lambda: transformer.set(variable, np.zeros(3)),
        lambda: transformer.save(tmp_path / "state.safetensors"),
        lambda: transformer.restore(tmp_path / "state.safetensors"),
        lambda: transformer.initialize(),
        lambda: transformer.computation(x + 2, x),
    ]
    for each in asked:
        with pytest.raises(ClosedError, match=r"device of this transformer failed.*\n?.*new proc"):
            each()


def step(transformer):
    """A computation of several kernels, which writes a variable."""
    w = geon.Variable([C], initial_value=1, name="w")
    loss = geon.sum(geon.softmax(x * w, normalization_axes=C))
    return transformer.computation(geon.assign(w, w + loss), x), w


@pytest.mark.parametrize("before", [0, 1])  # the second call is captured
def test_a_launch_that_fails_names_kernel_and_line(failing, before, tmp_path):
    f, w = step(failing)
    failing.get(w)
    for _ in range(before):
        f(np.ones((2, 3)))
    failing.device.fails["launch"] = lost("no such luck")
    with pytest.raises(DeviceError, match=r"\(.*\) made at .*test_failing.py:\d+.*: no such luck"):
        f(np.ones((2, 3)))
    refuses(failing, f, w, tmp_path)


def test_what_fails_between_kernels_leaves_no_half_a_step(failing, tmp_path):
    """Kernels before it may have written variables, which nobody can take back."""
    f, w = step(failing)
    failing.get(w)
    failing.device.fails["launch"] = DeviceError("this once")
    with pytest.raises(DeviceError, match="this once"):
        f(np.ones((2, 3)))
    refuses(failing, f, w, tmp_path)


def test_a_kernel_that_fails_on_its_way_is_one_of_those_named(failing, tmp_path):
    f, w = step(failing)
    for _ in range(3):
        f(np.ones((2, 3)))
    started = f.start(np.ones((2, 3)))
    failing.device.fails["wait"] = lost("an illegal access")
    with pytest.raises(
        DeviceError, match=r"(?s)an illegal access\n.*one of the .*made at .*test_failing"
    ):
        started.result()
    with pytest.raises(DeviceError, match="GEON_DEBUG=launches in the environment"):
        started.result()
    refuses(failing, f, w, tmp_path)


def test_the_only_kernel_is_the_one_that_failed(failing):
    f = failing.computation(geon.tanh(x), x)
    for _ in range(3):
        f(np.ones((2, 3)))
    failing.device.fails["wait"] = lost("an illegal access")
    with pytest.raises(DeviceError, match=r"^tanh\(N, C:3\) made at .*test_failing.py.*: an illeg"):
        f(np.ones((2, 3)))


def test_launches_are_waited_for_where_that_is_asked(failing, monkeypatch):
    monkeypatch.setenv("GEON_DEBUG", "verify,launches")
    f, w = step(failing)
    for _ in range(3):
        f(np.ones((2, 3)))
    assert failing.device.captured == 0
    failing.device.fails["synchronise"] = lost("an illegal access")
    with pytest.raises(DeviceError, match=r"^\w+\(.*\) made at .*test_failing.py.*: an illegal"):
        f(np.ones((2, 3)))


def test_no_room_leaves_all_as_it_was(failing):
    f, w = step(failing)
    failing.get(w)
    for size in (2, 40):
        failing.device.fails["allocate"] = DeviceMemoryError("8 bytes are free")
        with pytest.raises(DeviceMemoryError, match="8 bytes are free"):
            f(np.ones((size, 3)))
        assert np.array_equal(failing.get(w), np.ones(3))
    f(np.ones((2, 3)))
    np.testing.assert_allclose(failing.get(w), np.full(3, 3), rtol=1e-6)


def test_more_than_is_free_says_both_numbers_and_what_helps(failing, monkeypatch):
    f = failing.computation(geon.sort(x, C), x)
    needed = f.peak_bytes({N: 1000}) + 12_000
    monkeypatch.setattr(failing.device, "room", lambda: 10_000)
    message = (
        rf"needs {needed:,} bytes and the device .* has 10,000 free; nothing was allocated. Use "
        r"smaller lengths or a smaller batch, or close what else uses the device\n  its largest "
        r"value is .* made at .*test_failing"
    )
    with pytest.raises(DeviceMemoryError, match=message) as caught:
        f(np.ones((1000, 3), np.float32))
    assert isinstance(caught.value, (geon.SizeError, MemoryError))
    assert not failing.device.blocks


def test_variables_that_do_not_fit_are_refused_so(failing, monkeypatch):
    v = geon.Variable([geon.Axis("V", 5000)], initial_value=0, name="v")
    monkeypatch.setattr(failing.device, "room", lambda: 10_000)
    with pytest.raises(DeviceMemoryError, match="variable v.* needs 20,000 bytes .* 10,000 free"):
        failing.get(v)
    assert not failing.device.blocks


def test_text_that_does_not_compile_loses_nothing(failing):
    f, w = step(failing)
    g = failing.computation(geon.exp(x), x)
    failing.device.fails["load"] = DeviceError("NVRTC does not compile for sm_1000")
    with pytest.raises(DeviceError, match="sm_1000"):
        f(np.ones((2, 3)))
    np.testing.assert_allclose(g(np.zeros((2, 3))), np.ones((2, 3)))
    f(np.ones((2, 3)))


def test_a_lost_device_is_named_where_variables_are_asked_for(failing):
    f, w = step(failing)
    f(np.ones((2, 3)))
    failing.device.fails["synchronise"] = lost("the bus is gone")
    for _ in range(2):
        with pytest.raises(DeviceError, match="the bus is gone"):
            failing.get(w)


def test_what_others_started_ends_when_the_device_is_lost(failing):
    f = failing.computation(x * 2, x)
    f(np.ones((2, 3)))
    first, second = f.start(np.ones((2, 3))), f.start(np.ones((2, 3)))
    failing.device.fails["wait"] = lost("an illegal access")
    for each in (first, second):
        with pytest.raises(DeviceError, match="an illegal access"):
            each.result()
        assert each.done()


@pytest.mark.parametrize("count", range(4, 9))
def test_inputs_and_results_too_large_to_be_pinned(failing, count, monkeypatch):
    """Below so many bytes they are staged in pinned memory, from there on they are copied as is."""
    from geon.transformers.pycuda.runtime import pinned_buffers

    monkeypatch.setattr(pinned_buffers, "MAX_SHARED_COPY_BYTES", 0)
    monkeypatch.setattr(pinned_buffers, "MIN_UNPINNED_BYTES", 4 * 3 * 6)
    f = failing.computation([x * 2, geon.sum(x, reduction_axes=C)], x)
    for k in range(4):
        given = np.full((count, 3), k, np.float32)
        started = f.start(given)
        given[...] = -1
        double, total = started.result()
        np.testing.assert_array_equal(double, np.full((count, 3), 2 * k))
        np.testing.assert_array_equal(total, np.full(count, 3 * k))
    pinned = sum(block.nbytes for block in failing.device.pinned.values())
    assert pinned == (28 * count if count < 6 else 4 * count)
