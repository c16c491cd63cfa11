"""Ctrl-C ends a call between parts of a long scan, where no variable is written before its end."""

import signal

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.launches import launch_ir
from geon.transformers.pycuda.products import form_table
from geon.transformers.pycuda.runtime import bound_launches, bound_program, gpu, host

from . import fake_cuda
from .devices import LateDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
T, H = geon.Axis("T"), geon.Axis("H", 24)
first = geon.placeholder([H], name="first")
u = geon.Variable([H], initial_value=1.0, name="u")
v = geon.Variable([H], initial_value=0.0, name="v")
DATA = np.full(24, 0.3, np.float32)


def scanned(start=first):
    return geon.scan(lambda c, _: (geon.softmax(c * 3, H), None), start, geon.iota(T), over=T)[0]


@pytest.fixture
def looks(monkeypatch):
    """How often it was looked whether a call is to end; ``at`` is the look that ends it."""

    class Looks:
        count, at = 0, None

    def look():
        Looks.count += 1
        if Looks.count == Looks.at:
            raise KeyboardInterrupt

    monkeypatch.setattr(bound_program, "stop_if_interrupted", look)
    monkeypatch.setattr(bound_launches, "STEPS_PER_STOP_CHECK", 8)
    monkeypatch.setattr(form_table, "region_parts", lambda *given: ())
    return Looks


@pytest.fixture
def transformer():
    with transformer_on(LateDevice()) as made:
        yield made


def test_a_call_is_ended_and_the_next_is_as_if_there_had_been_none(transformer, looks):
    last = scanned()
    f = transformer.computation([last, geon.assign(v, v + last)], first, lengths={T: 100})
    turns = 1
    for _ in range(3):  # step by step, while graphs are captured, and as graphs
        for at in (1, 5):
            looks.count, looks.at = 0, at
            before = transformer.get(v)
            with pytest.raises(KeyboardInterrupt):
                f(DATA)
            assert not transformer.device.waiting and (transformer.get(v) == before).all()
        looks.count, looks.at = 0, None
        (found, _), parts = f(DATA), looks.count + 1
        assert parts > 10
        np.testing.assert_allclose(transformer.get(v), turns * found, rtol=1e-5)
        turns += 1
    assert transformer.device.captured == parts
    with geon.NumPyTransformer() as other:
        expected = other.computation(last, first, lengths={T: 100})(DATA)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_device_has_the_next_part_while_the_host_looks(transformer, looks, monkeypatch):
    f = transformer.computation(scanned(), first, lengths={T: 60})
    f(DATA), f(DATA)
    left = []
    look = bound_program.stop_if_interrupted
    monkeypatch.setattr(
        bound_program,
        "stop_if_interrupted",
        lambda: (look(), left.append(len(transformer.device.waiting))),
    )
    f(DATA)
    assert len(left) > 5 and min(left) >= 8  # of the last part begun


def test_what_is_written_before_a_loop_lets_it_run_to_its_end(transformer, looks):
    """Else a variable would not be as it was."""
    last = scanned(first + 0 * u)
    made = geon.sequential([geon.assign(u, u + 1), geon.assign(v, v + last)])
    f = transformer.computation(made, first, lengths={T: 100})
    looks.at = 1
    f(DATA)
    module = f.stages().compiled.module
    waves = zip(module.waves, module.steps, strict=True)
    assert module.written <= max(
        wave for wave, step in waves if isinstance(step, launch_ir.DeviceLoop)
    )
    assert looks.count == 0 and (transformer.get(u) == 2).all() and transformer.get(v).any()


def test_a_signal_ends_a_call(transformer, monkeypatch):
    monkeypatch.setattr(bound_launches, "STEPS_PER_STOP_CHECK", 8)
    monkeypatch.setattr(form_table, "region_parts", lambda *given: ())
    f = transformer.computation(geon.assign(v, v + scanned()), first, lengths={T: 100})
    f(DATA), f(DATA)
    before, wait = transformer.get(v), transformer.device.wait

    def interrupted(mark):
        monkeypatch.setattr(transformer.device, "wait", wait)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(transformer.device, "wait", interrupted)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(DATA)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert (transformer.get(v) == before).all()
    f(DATA)
    np.testing.assert_allclose(transformer.get(v), 1.5 * before, rtol=1e-5)


def test_a_call_that_was_started_is_not_waited_for(transformer, looks):
    f = transformer.computation(scanned(), first, lengths={T: 100})
    expected = f(DATA)
    looks.count, looks.at = 0, 1
    started = [f.start(DATA) for _ in range(3)]
    assert looks.count == 0
    for each in started:
        assert each.result().tobytes() == expected.tobytes()


@pytest.mark.parametrize(("turns", "graphs"), [(4, 1), (5, 2), (8, 2), (9, 3)])
def test_loops_of_up_to_so_many_launches_are_one_graph(transformer, looks, turns, graphs):
    """The step is two kernels; 8 launches are one part here."""
    last, _ = geon.scan(lambda c, _: (geon.cumsum(c, H) * 0.1, None), first, geon.iota(T), over=T)
    f = transformer.computation(last, first, lengths={T: turns})
    before = transformer.device.launched
    f(DATA)
    assert transformer.device.launched - before == 2 * turns
    f(DATA)
    assert transformer.device.captured == graphs


def test_parts_are_graphs_of_a_driver(looks, monkeypatch):
    driver = fake_cuda.Driver().install(monkeypatch)
    with transformer_on(gpu.GpuDevice(0)) as transformer:
        f = transformer.computation(scanned(), first, lengths={T: 20})
        found = [f(DATA).tobytes() for _ in range(4)]
        assert len({*found}) == 1 and driver.captured_graphs > 3
