"""``flush_subnormals``: results on all threads, the caller's own arithmetic, and profiles."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.transformers.native.runtime import flushing
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.reports.profile_table import KernelProfile, Profile

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

A = geon.Axis("A")
x = geon.placeholder([A], name="x")
SMALL = np.float32(1e-30)


def results():
    """An elementwise op, a sum, a product, a loop with a function, on values of a long axis."""
    S = geon.Axis("S", 3)
    end, _ = geon.scan(lambda s, _: (s * 1e-3, None), x, geon.iota(S), over=S)
    return [x * 1e-10, geon.sum(x * 1e-10), geon.dot(x, x * 1e-8), end, x + x]


@pytest.mark.skipif(not flushing.is_possible(), reason="another processor")
def test_subnormal_results_and_operands_are_0(tmp_path):
    data = np.full(300_001, SMALL)
    plain = geon.make_transformer("native", threads=2)
    flushing_one = geon.make_transformer("native", threads=2, flush_subnormals=True)
    for turn in range(2):  # the programs of both are kept apart, and threads are shared
        kept = plain.computation(results(), x)(data)
        assert all(np.all(part > 0) for part in (kept[0], kept[1], kept[3], kept[4])), turn
        gone = flushing_one.computation(results(), x)(data)
        for part in gone[:2] + gone[3:4]:
            np.testing.assert_array_equal(part, 0)
        np.testing.assert_array_equal(gone[4], 2 * SMALL)
        tiny = np.full(5, np.float32(1e-40))
        assert not flushing_one.computation(x + x, x)(tiny).any()
        assert plain.computation(x + x, x)(tiny).all()
        assert SMALL * np.float32(1e-10) > 0  # as this thread computes itself
    f = flushing_one.computation(x * 1e-10, x)
    assert "ldmxcsr" in f.source
    assert "ldmxcsr" not in plain.computation(x * 1e-10, x).source
    assert not np.array(f.profile(data, repeats=2)).size == 0
    assert SMALL * np.float32(1e-10) > 0


@pytest.mark.skipif(not flushing.is_possible(), reason="another processor")
def test_a_call_that_fails_leaves_the_thread_as_it_was():
    i = geon.placeholder([A], "int64", name="i")
    transformer = geon.make_transformer("native", flush_subnormals=True)
    f = transformer.computation(geon.gather(geon.constant([1.0, 2.0], [geon.Axis("B", 2)]), i), i)
    with pytest.raises(geon.IndexRangeError):
        f([5])
    assert SMALL * np.float32(1e-10) > 0


def test_other_processors_are_told(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(geon.UnavailableError, match="x86-64.*aarch64; leave it out"):
        geon.make_transformer("native", flush_subnormals=True)
    with pytest.raises(geon.ArgumentError, match="flush_subnormals"):
        geon.make_transformer("native", flush_subnormals="yes")


def test_a_profile_marks_kernels_that_spend_their_time_on_subnormals():
    """Those of which a third, and 2 us, goes where these are flushed."""
    row = KernelProfile(0, "nest", ("x",), ("p.py:1",), 1e-3, 1, 1, 1, 1, 1, {})
    rows = [
        dataclasses.replace(row, number=number, seconds=seconds, subnormal=share)
        for number, (seconds, share) in enumerate(
            [(1e-3, 0.8), (1e-3, 0.1), (1e-6, 0.9), (1e-3, float("nan"))]
        )
    ]
    assert [each.slowed for each in rows] == [True, False, False, False]
    lines = str(Profile(tuple(rows), 1e-3, 0.0, 1, 1, None)).splitlines()
    said = [line for line in lines if "subnormal" in line]
    assert len(said) == 1 and said[0].startswith("kernel 0 spends 80% of its time")


@pytest.mark.skipif(not flushing.is_possible(), reason="another processor")
def test_a_profile_measures_the_share():
    """It is a number where both were measured, also for kernels of loops."""
    transformer = geon.make_transformer("native", threads=1)
    S = geon.Axis("S", 20)
    end, _ = geon.scan(lambda s, _: (geon.tanh(s * 0.5), None), x, geon.iota(S), over=S)
    profile = transformer.computation(end, x).profile(np.full(1000, 1e-37), repeats=3)
    for row in profile:
        assert all(0 <= each.subnormal < 1 for each in (row, *row.inner))
