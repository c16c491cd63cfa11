"""Profiles of a device: rows of kernels, of loops and branches too, and that nothing is left."""

import numpy as np
import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.pycuda.products import form_table
from geon.transformers.pycuda.runtime import gpu, host, timed_program

from . import fake_cuda
from .devices import FailingDevice, LateDevice, lost, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
T, N, K, H = geon.Axis("T"), geon.Axis("N"), geon.Axis("K", 5), geon.Axis("H", 16)
x = geon.placeholder([T, N, H], name="x")
w = geon.placeholder([H.prime, H], name="w")
ask = geon.placeholder([], "int64", name="ask")


def step(c, e):
    """Three kinds of regions: a loop of five turns, one that ends by a condition, a branch."""
    inner, _ = geon.scan(lambda d, _: (geon.softmax(d, H), None), c, geon.iota(K))
    body = {"h": inner, "n": geon.constant(0)}
    ended = geon.while_loop(
        lambda d: d["n"] < ask, lambda d: {"h": geon.softmax(d["h"], H), "n": d["n"] + 1}, body, 9
    )
    both = geon.dot(geon.cast_axes(ended["h"], [N, H.prime]), w) + e
    return geon.cond(geon.sum(both) > 0, lambda: both, lambda: geon.softmax(both, H)), None


def graph():
    last, _ = geon.scan(step, geon.broadcast(0.5, [N, H]), x, over=T)
    return geon.sum(geon.sort(last, H))


def feeds(turns, rows, asked, sign=1):
    data = np.full((turns, rows, 16), 100.0 * sign, np.float32)
    return data, np.ones((16, 16), np.float32), asked


def named(rows):
    return {row.computes[0].split()[0]: row for row in rows}


@pytest.fixture(params=[host.HostDevice, LateDevice])
def transformer(request):
    with transformer_on(request.param()) as made:
        yield made


@pytest.mark.parametrize("whole", [True, False])
def test_kernels_of_loops_and_branches_are_counted(transformer, whole, monkeypatch):
    """Of a loop that is one launch, and of one whose turns the host takes."""
    if not whole:
        monkeypatch.setattr(form_table, "region_parts", lambda *given: ())
    monkeypatch.setattr(
        timed_program, "MAX_LOG_ENTRIES", 8
    )  # so that what there is is waited for in between
    f = transformer.computation([graph(), geon.sum(x)], x, w, ask)
    for turns, asked in ((4, 3), (4, 0), (0, 2)):
        given = feeds(turns, 2, asked)
        expected = f(*given)
        profile = f.profile(*given, repeats=2)
        (loop,) = [row for row in profile if row.inner]
        assert loop.runs == 1 and loop.computes[0].startswith("scan (N, H:16)")
        within = named(loop.inner)
        assert all(row.runs == turns for row in loop.inner)
        assert {row.runs for row in within["scan"].inner} == {5 * turns}
        # A condition is looked at once more than there are turns.
        counts = {row.runs for row in within["while"].inner}
        assert counts <= {turns * asked, turns * (asked + 1)} and turns * asked in counts
        taken = [row.runs for row in within["case"].inner]
        assert {*taken} == {0, turns} and (not turns or taken.count(turns) == 1)
        others = [row.seconds for row in within["case"].inner if not row.runs]
        assert not whole or max(others) <= 1e-9  # the block that takes all turns passes them by
        assert all(row.read == 0 == row.written for row in loop.inner if not row.runs)
        for region in (loop, *[row for row in loop.inner if row.inner]):
            spent = sum(row.seconds for row in region.inner)
            assert spent < 1.1 * region.seconds + 1e-8 * len(region.inner)
        again = f(*given)
        assert [a.tobytes() for a in again] == [b.tobytes() for b in expected]
    assert whole == ("_inside(" in f.source)


def test_the_other_branch_is_the_one_that_runs(transformer):
    f = transformer.computation(graph(), x, w, ask)
    counts = []
    for sign in (1, -1):
        (loop,) = [row for row in f.profile(*feeds(3, 2, 1, sign), repeats=1) if row.inner]
        counts.append([row.runs for row in named(loop.inner)["case"].inner])
    assert [3 - each for each in counts[0]] == counts[1]


def test_a_branch_outside_of_loops(transformer):
    y = geon.case_of(
        ask, [lambda: geon.sin(w), lambda: geon.softmax(geon.sort(w, H), H)], lambda: w * 2
    )
    f = transformer.computation(y, w, ask)
    for number in range(3):
        (case,) = [row for row in f.profile(feeds(0, 0, 0)[1], number, repeats=1) if row.inner]
        branches = [row.runs for row in case.inner]
        assert case.runs == 1 and branches == [number == 0, *[number == 1] * (len(branches) - 2),
                                               number == 2]  # fmt: skip


def test_a_loop_without_end_is_timed_by_its_launches(transformer):
    init = {"h": w, "n": geon.constant(0)}
    made = geon.while_loop(
        lambda c: c["n"] < ask, lambda c: {"h": geon.softmax(c["h"], H), "n": c["n"] + 1}, init
    )
    f = transformer.computation([made["h"], made["n"]], w, ask)
    (loop,) = [row for row in f.profile(feeds(0, 0, 0)[1], 7, repeats=1) if row.inner]
    assert {row.runs for row in loop.inner} == {7, 8}


def test_kernels_that_are_one_launch_have_one_row(transformer):
    leaves = [geon.placeholder([geon.Axis(f"A{k}", 3 + k)]) for k in range(4)]
    f = transformer.computation([geon.tanh(leaf) for leaf in leaves], *leaves)
    profile = f.profile(*[np.zeros(3 + k) for k in range(4)], repeats=1)
    (row,) = profile
    assert len(row.computes) == 4 == len(row.places)
    assert row.written == 4 * (3 + 4 + 5 + 6)
    assert " and 3 more" in str(profile) and "runs" not in str(profile)


def test_the_table_has_no_ceilings(transformer):
    f = transformer.computation(graph(), x, w, ask)
    profile = f.profile(*feeds(2, 2, 2), repeats=3)
    text = str(profile)
    assert "runs" in text and "ceiling" not in text and "predicted" not in text
    assert text.endswith(f"medians of 3 calls on {transformer.device.name}")
    assert np.isnan(profile.predicted) and np.isnan(profile[0].share)
    assert profile.kernel_seconds > 0 and profile.call_seconds > 0


def test_variables_are_as_before_and_nothing_is_printed(transformer, capsys):
    v = geon.Variable([H], initial_value=3.0, name="v")
    f = transformer.computation([v, geon.assign(v, v + 1), geon.print(v, "v")])
    assert len(f.profile(repeats=2)) >= 2
    assert (transformer.get(v) == 3).all() and capsys.readouterr().out == ""
    assert (f()[0] == 3).all() and capsys.readouterr().out


def test_errors_are_those_of_a_call(transformer):
    at = geon.placeholder([N], "int64", name="at")
    f = transformer.computation(geon.sum(geon.gather(w, at, H), H.prime), w, at)
    for each in (f, f.profile):
        with pytest.raises(geon.IndexRangeError, match=r"test_profile\.py.*16"):
            each(feeds(0, 0, 0)[1], [16])
        with pytest.raises(geon.FeedError, match="placeholder w"):
            each(np.ones(3), [0])
    with pytest.raises(geon.ArgumentError, match="repeats="):
        f.profile(feeds(0, 0, 0)[1], [0], repeats=0)


def test_a_device_that_fails_is_lost():
    with transformer_on(FailingDevice()) as transformer:
        f = transformer.computation(geon.tanh(w), w)
        data = feeds(0, 0, 0)[1]
        f.profile(data, repeats=1)
        transformer.device.fails["clock"] = lost("the bus is gone")
        with pytest.raises(DeviceError, match="the bus is gone"):
            f.profile(data, repeats=1)
        with pytest.raises(geon.ClosedError, match="the bus is gone"):
            f(data)


def test_a_driver_is_asked_for_events_with_times(monkeypatch):
    monkeypatch.setattr(form_table, "region_parts", lambda *given: ())
    fake_cuda.Driver().install(monkeypatch)
    with transformer_on(gpu.GpuDevice(0)) as transformer:
        f = transformer.computation(graph(), x, w, ask)
        profile = f.profile(*feeds(2, 2, 2), repeats=2)
        assert {row.runs for row in profile} == {1} and profile.kernel_seconds > 0
