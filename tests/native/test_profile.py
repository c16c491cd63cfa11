"""Profiles: what kernels cost, what the machine can do, and that measuring leaves no trace."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import geon
from geon.transformers.cache import disk
from geon.transformers.kernels.costs.kernel_costs import cost_of
from geon.transformers.lowering.planning.cost_report import operand_places, predictions
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.machine import microbenchmarks as speeds_module
from geon.transformers.native.machine import roofline_peaks as ceilings_module
from geon.transformers.native.machine.measured_machine import machine
from geon.transformers.native.machine.microbenchmarks import kept_speeds, speeds
from geon.transformers.native.machine.roofline_peaks import ceilings
from geon.transformers.native.names.naming import place_of
from geon.transformers.native.reports.profile import KernelProfile, Profile
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.sizes.ceilings import READ_WRITE_MIXES, Ceilings

from ..transformers.made_machine import made

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

N, C = geon.Axis("N"), geon.Axis("C", 1000)
MADE = Ceilings(
    2,
    (1024, 4096, 1 << 20),
    ((400e9, 200e9, 20e9), (100e9, 50e9, 5e9), (160e9, 80e9, 8e9), (1e11, 5e10, 5e9),
     (2e11, 1e11, 1e10)),
    {4: 100e9, 8: 50e9},
)  # fmt: skip


@pytest.fixture
def transformer():
    with geon.make_transformer("native", threads=2) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def known_ceilings():
    """Profiles here compare with made-up numbers: measuring takes seconds, and is tested apart."""

    def made_machine(threads, toolchain=None, *, measure=False):
        return made(threads, {1: MADE, threads: MADE})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geon.transformers.native.reports.profile.machine", made_machine)
        yield


# Ceilings -------------------------------------------------------------------------------------


def test_bandwidth_at_the_points_measured():
    for (reads, writes), rates in zip(READ_WRITE_MIXES, MADE.rates, strict=True):
        for size, rate in zip(MADE.sizes, rates, strict=True):
            assert MADE.bandwidth(size, reads, writes) == pytest.approx(rate)
            assert MADE.bandwidth(size, 640 * reads, 640 * writes) == pytest.approx(rate)


def test_bandwidth_between_and_beyond_the_points():
    assert MADE.bandwidth(2048, 1, 0) == pytest.approx(300e9)  # half way in the logarithm
    assert MADE.bandwidth(1, 1, 0) == 400e9
    assert MADE.bandwidth(1 << 40, 1, 0) == 20e9
    # Half way from 1:1 (a half is written) to 0:1: the times per byte are averaged.
    assert MADE.bandwidth(1024, 1, 3) == pytest.approx(2 / (1 / 160e9 + 1 / 100e9))


def test_the_slower_of_traffic_and_arithmetic_counts():
    assert MADE.seconds(4096, 4096, 0, {np.dtype("float32"): 1}) == 4096 / 200e9
    operations = {np.dtype("float32"): 10**6, np.dtype("float64"): 10**6}
    assert MADE.seconds(4096, 4096, 0, operations) == pytest.approx(1e6 / 100e9 + 1e6 / 50e9)
    assert MADE.flops("bfloat16") == MADE.flops("int8") == 100e9
    assert MADE.flops("int64") == 50e9


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Ceilings of small sizes in a cache of their own; gives how often they were measured."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(disk.CACHE, str(folder))
    monkeypatch.setattr(ceilings_module, "WORKING_SET_BYTES", (1 << 15, 1 << 17, 1 << 23))
    monkeypatch.setattr(ceilings_module, "MIN_MEASUREMENT_SECONDS", 0.001)
    monkeypatch.setattr(ceilings_module, "_known", {})
    measured, measure = [], ceilings_module._measured

    def noted(*args):
        measured.append(1)
        return measure(*args)

    monkeypatch.setattr(ceilings_module, "_measured", noted)
    return measured, folder


def test_measured_ceilings_are_those_of_a_machine(small):
    found = ceilings(1)
    assert found.threads == 1 and found.sizes == (1 << 15, 1 << 17, 1 << 23)
    assert [len(rates) for rates in found.rates] == [3] * len(READ_WRITE_MIXES)
    # From the slowest to beyond the fastest processors there are.
    assert all(1e8 < rate < 1e14 for rates in found.rates for rate in rates)
    assert all(1e8 < rate < 1e15 for rate in found.arithmetic.values())
    assert found.arithmetic[4] > found.arithmetic[8]  # a vector holds twice as many


def test_ceilings_are_measured_once_and_kept_on_disk(small, monkeypatch):
    measured, folder = small
    first = ceilings(1)
    assert ceilings(1) is first and len(measured) == 1
    monkeypatch.setattr(ceilings_module, "_known", {})
    assert ceilings(1) == first and len(measured) == 1
    assert ceilings(1, fresh=True) is ceilings(1) and len(measured) == 2
    ceilings(2)
    assert len(measured) == 3


def test_a_damaged_file_is_measured_again(small, monkeypatch):
    measured, folder = small
    ceilings(1)
    (path,) = folder.glob("ceilings-*")
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(ceilings_module, "_known", {})
    ceilings(1)
    assert len(measured) == 2


# Speeds and the machine -----------------------------------------------------------------------


@pytest.fixture
def quick(small, monkeypatch):
    """Speeds that are measured in little memory, and only once."""
    monkeypatch.setattr(speeds_module, "WORKING_SET_BYTES", (1 << 16, 1 << 20))
    monkeypatch.setattr(speeds_module, "MEASUREMENT_ROUNDS", 1)
    monkeypatch.setattr(speeds_module, "_known", {})
    return find_toolchain()


def test_measured_speeds_are_those_of_a_machine(quick):
    found = speeds(quick)
    # From the fastest processors there are to slow and busy ones.
    for each in (found.chain, found.statement, found.serial, *found.far, *found.latency):
        assert 1e-11 < each < 1e-5
    assert found.statement < found.division[4] and found.serial < found.call
    assert 0 <= found.start < 1e-3 and 0 <= found.wake < 1e-2
    for rates in (found.tile, found.stream):
        assert all(1e8 < rate < 1e15 for rate in rates.values()) and rates[4] > rates[8]


def test_speeds_are_measured_once_and_kept_on_disk(quick, monkeypatch):
    assert kept_speeds(quick) is None
    first = speeds(quick)
    assert speeds(quick) is first
    monkeypatch.setattr(speeds_module, "_known", {})
    assert kept_speeds(quick) == first and speeds(quick, fresh=True) is speeds(quick)


def test_a_machine_is_stated_until_it_is_measured(quick):
    stated = machine(2)
    assert not stated.measured and set(stated.ceilings) == {1, 2}
    measured = machine(1, measure=True)
    assert measured.measured and machine(1).speeds == measured.speeds == speeds(quick)
    assert measured.vector_bytes == quick.vector_bytes and machine(1).measured
    assert not machine(2).measured  # two threads were not measured


# Profiles -------------------------------------------------------------------------------------


def test_the_rows_are_the_kernels(transformer):
    x = geon.placeholder([N, C], name="x")
    weights = geon.softmax(x, C)
    weights.name = "weights"
    total = geon.sum(geon.square(geon.cumsum(weights, C)))
    f = transformer.computation([weights, total], x)
    profile = f.profile(np.random.default_rng(0).random((20, 1000), np.float32), repeats=3)
    kernels = f.plan.schedule.kernels
    here = made(2, {1: MADE, 2: MADE})
    assert len(profile) == len(kernels) and profile.repeats == 3 and profile.threads == 2
    assert [row.kind for row in profile] == [kernel.kind for kernel in kernels]
    assert [len(row.computes) for row in profile] == [len(kernel.results) for kernel in kernels]
    texts = [text for row in profile for text in row.computes]
    assert any(text.startswith("weights: ") and "(N, C:1000) float32" in text for text in texts)
    assert all("test_profile.py:" in place for row in profile for place in row.places)
    for row, kernel in zip(profile, kernels, strict=True):
        places = operand_places(f.plan.schedule, kernel, partial(place_of, f.plan))
        cost = cost_of(kernel.work, {"N": 20}, places)
        assert (row.read, row.written, row.touched) == (cost.read, cost.written, cost.touched)
        assert row.operations == cost.operations(here)
        least = MADE.seconds(cost.touched, cost.read, cost.written, row.operations)
        assert row.least == least and row.share == least / row.seconds
    where = partial(place_of, f.plan)
    found = predictions(f.plan.schedule, {"N": 20}, here, 2, where)
    assert [row.predicted for row in profile] == [each.prediction.seconds for each in found]
    assert profile.predicted == sum(row.predicted for row in profile)
    assert profile.least == sum(row.least for row in profile) < profile.predicted
    marked = sum(row.slowed for row in profile)  # by noise: no number here is subnormal
    assert str(profile).count("\n") == len(kernels) + 3 + marked


def test_kernels_of_loops_are_below_them(transformer):
    t, k, h = geon.Axis("T"), geon.Axis("K", 5), geon.Axis("H", 16)
    x, w = geon.placeholder([t, h], name="x"), geon.placeholder([h.prime, h], name="w")

    def step(c, e):
        inner, _ = geon.scan(lambda d, _: (geon.softmax(d, h), None), c, geon.iota(k))
        both = geon.dot(geon.cast_axes(inner, [h.prime]), w) + e
        return geon.cond(geon.sum(both) > 0, lambda: both, lambda: geon.softmax(both, h)), None

    last, _ = geon.scan(step, geon.broadcast(0.5, [h]), x, over=t)
    f = transformer.computation(geon.sum(geon.sort(last)), x, w)
    for count in (7, 0):
        data = np.full((count, 16), 100.0, np.float32), np.ones((16, 16), np.float32)
        profile = f.profile(*data, repeats=2)
        assert [row.kind for row in profile] == [k.kind for k in f.plan.schedule.kernels]
        (loop,) = [row for row in profile if row.inner]
        assert loop.runs == 1 and loop.computes[0].startswith("scan (H:16)")
        within = {row.computes[0].split()[0]: row for row in loop.inner}
        assert within["scan"].runs == count == within["case"].runs
        assert all(row.runs == count for row in loop.inner)
        assert {row.runs for row in within["scan"].inner} == {5 * count}
        assert {row.runs for row in within["case"].inner} == {0, count}
        spent = sum(row.seconds for row in loop.inner)
        assert count == 0 or 0.2 * loop.seconds < spent < 1.1 * loop.seconds
        operations = sum(row.operations.get("float32", 0) for row in loop.inner)
        assert operations >= count * 2 * 16 * 16 and (count > 0 or operations == 0)
        lines = str(profile).split("\n")
        assert " runs " in lines[0]
        (at,) = [
            n for n, line in enumerate(lines) if line.split()[:2] == [str(loop.number), "region"]
        ]
        start = lines[at].index("region")
        assert (
            lines[at + 1][start : start + 3].startswith("  ") and not lines[at + 1][:start].strip()
        )
    plain = transformer.computation(geon.sum(x), x).profile(np.ones((3, 16)), repeats=1)
    assert " runs " not in str(plain)


def test_times_are_seconds(transformer):
    x = geon.placeholder([N], name="x", dtype="float64")
    f = transformer.computation([geon.tanh(x), geon.sum(x)], x)
    data = np.random.default_rng(0).random(3_000_000)
    slow, fast = (f.profile(x=data[:n], repeats=5) for n in (3_000_000, 3))
    # Three million values take milliseconds; busy machines are allowed for.
    assert 1e-4 < slow.kernel_seconds < 10 and fast.kernel_seconds < slow.kernel_seconds / 10
    assert slow.kernel_seconds / 20 < slow.call_seconds < 20 * slow.kernel_seconds
    assert slow.outside_seconds < slow.call_seconds


def test_variables_are_as_before(transformer):
    w = geon.Variable([C], initial_value=geon.Random(1).normal([C]), name="w")
    random = geon.Random(7)
    x = geon.placeholder([C], name="x")
    noisy = w * 0.5 + x * random.uniform([C])
    f = transformer.computation([noisy, geon.assign(w, noisy)], x)
    data = np.linspace(0, 1, 1000, dtype=np.float32)
    f(data)
    names = [slot.label for slot in transformer.state.slots]
    before = [slot.value.copy() for slot in transformer.state.slots]
    f.profile(data, repeats=4)
    assert [slot.label for slot in transformer.state.slots] == names and len(names) >= 2
    for slot, old in zip(transformer.state.slots, before, strict=True):
        assert slot.value.tobytes() == old.tobytes()


def test_a_profile_before_the_first_call_gives_first_values(transformer):
    w = geon.Variable([C], initial_value=3.0)
    f = transformer.computation([w, geon.assign(w, w + 1)])
    f.profile(repeats=2)
    assert (transformer.get(w) == 3).all()
    assert (f()[0] == 3).all()


def test_nothing_is_printed(transformer, capsys):
    x = geon.placeholder([C], name="x")
    f = transformer.computation([x + 1, geon.print(x, "x")], x)
    profile = f.profile(np.zeros(1000, np.float32), repeats=3)
    assert capsys.readouterr().out == ""
    assert any(text.startswith("print") for row in profile for text in row.computes)


def test_overridden_ops_are_given(transformer):
    x = geon.placeholder([C], name="x")
    y = geon.cumsum(x, C)
    f = transformer.computation(geon.sort(y, C), x, keep=[y])
    data = np.zeros(1000, np.float32)
    computed = [row.computes[0].split()[0] for row in f.profile(data, repeats=1)]
    assert sorted(computed) == ["cumsum", "sort"]
    f.override(y, data)
    kept = [row.computes[0].split()[0] for row in f.profile(data, repeats=1)]
    assert sorted(kept) == ["copy", "sort"]


def test_errors_are_those_of_a_call(transformer):
    x = geon.placeholder([N], name="x")
    index = geon.placeholder([], dtype="int64", name="index")
    f = transformer.computation(geon.sum(geon.log(x)), x, check="nan")
    for each in (f, f.profile):
        with pytest.raises(geon.NonFiniteError, match=r"log.*test_profile\.py"):
            each(-np.ones(3, np.float32))
        with pytest.raises(geon.FeedError, match="placeholder x"):
            each(np.ones((3, 3), np.float32))
        with pytest.raises(geon.ArgumentError, match="needed"):
            each()
    gathered = transformer.computation(geon.gather(x, index, N), x, index)
    for each in (gathered, gathered.profile):
        with pytest.raises(geon.IndexRangeError, match="5"):
            each(np.ones(3, np.float32), 5)


@pytest.mark.parametrize("repeats", [0, -1, 2.5, True, "many"])
def test_repeats_is_a_number(transformer, repeats):
    with pytest.raises(geon.ArgumentError, match="repeats="):
        transformer.computation(geon.Variable([C], initial_value=1.0) * 2).profile(repeats=repeats)


def test_a_closed_transformer_profiles_nothing():
    x = geon.placeholder([C])
    transformer = geon.make_transformer("native")
    f = transformer.computation(x + 1, x)
    transformer.close()
    with pytest.raises(geon.ClosedError):
        f.profile(np.zeros(1000, np.float32))


def test_other_transformers_say_which_can():
    x = geon.placeholder([C])
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(x + 1, x)
        with pytest.raises(geon.UnavailableError, match=r'numpy.*make_transformer\("native"\)'):
            f.profile(np.zeros(1000, np.float32))


def test_a_timed_module_has_the_same_kernels(transformer):
    x = geon.placeholder([N, C])
    f = transformer.computation([geon.softmax(x, C), geon.cumsum(x, C)], x)
    plain, timed = (
        make_module(for_vectors(f.plan, 64), f.linking, annotate=False, timed=timed)
        for timed in (False, True)
    )
    assert plain.units[1:] == timed.units[1:]
    assert timed.units[0].count("= geon_now();") == len(f.plan.schedule.kernels) + 1
    text = re.sub(r"struct geon_time \{.*?\n\}\n\n", "", timed.units[0], flags=re.DOTALL)
    text = re.sub(r" *report\[\d+\] = geon_now\(\);\n", "", text)
    assert text == plain.units[0]


def test_the_table():
    rows = (
        KernelProfile(0, "nest", ("loss: sum () float32", "tanh (N, C:1000) float32"),
                      ("model.py:12", "model.py:14"), 2e-6, 1.5e-6, 1e-6, 4000, 96, 4096,
                      {"float32": 26_000}),
        KernelProfile(1, "product", ("dot (N, H:512) float64",),
                      ("a/very/long/path/to/the/folder/of/the/project/network.py:120",), 8e-3,
                      7e-3, 6e-3, 3 << 20, 1 << 20, 4 << 20, {"float64": 2_000_000_000}),
    )  # fmt: skip
    assert str(Profile(rows, 8.1e-3, 98e-6, 2, 20, MADE)) == EXPECTED
    assert repr(Profile(rows, 8.1e-3, 98e-6, 2, 20, MADE)) == EXPECTED
    assert "kernels 0.0 us" in str(Profile((), 1e-6, 1e-6, 1, 1, MADE))


EXPECTED = """\
   kind     computes                         at                                 us  time  bytes  operations  GB/s  GFLOP/s  predicted us  least us  of ceiling
0  nest     loss: sum () float32 and 1 more  model.py:12                      2.00    0%  4 KiB        26 k   2.0     13.0          1.50      1.00         50%
1  product  dot (N, H:512) float64           ...he/project/network.py:120  8000.00  100%  4 MiB         2 G   0.5    250.0       7000.00   6000.00         75%
kernels 8002.0 us, predicted 7001.5 us, least 6001.0 us (75%)
a call 8100.0 us, outside kernels 98.0 us
medians of 20 calls on 2 threads; ceilings: 100 GFLOP/s float32, 50 GFLOP/s float64, reading 400 GB/s of 1 KiB to 20 GB/s of 1 MiB"""  # noqa: E501
