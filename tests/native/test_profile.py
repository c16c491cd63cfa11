"""Profiles: what kernels cost, what the machine can do, and that measuring leaves no trace."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geon
from geon.transformers.native import ceilings as ceilings_module
from geon.transformers.native import disk_cache
from geon.transformers.native.ceilings import MIXES, Ceilings, ceilings
from geon.transformers.native.costs import Cost, cost_of, operations_of
from geon.transformers.native.emit import make_module
from geon.transformers.native.profile import KernelProfile, Profile
from geon.transformers.native.toolchain import find_toolchain

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
    """Profiles here compare with made-up ceilings: measuring takes seconds, and is tested apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geon.transformers.native.profile.ceilings", lambda threads: MADE)
        yield


def costs(transformer, results, *placeholders, **lengths) -> list[Cost]:
    plan = transformer.computation(results, *placeholders).plan
    return [cost_of(plan, kernel, lengths) for kernel in plan.schedule.kernels]


def only(found: list[Cost]) -> tuple[int, int, int, int]:
    (cost,) = found
    return cost.read, cost.written, cost.touched, sum(cost.operations.values())


# Costs ----------------------------------------------------------------------------------------


def test_an_elementwise_kernel_reads_writes_and_adds_each_element(transformer):
    x, y = geon.placeholder([N, C]), geon.placeholder([C])
    found = costs(transformer, x * 2 + y, x, y, N=10)
    assert only(found) == (40_000 + 4000, 40_000, 84_000, 20_000)
    (cost,) = found
    assert list(cost.operations) == [np.dtype("float32")]


def test_a_reduction_counts_what_it_goes_over(transformer):
    x = geon.placeholder([N, C], dtype="float64")
    assert only(costs(transformer, geon.sum(x, C), x, N=7)) == (56_000, 56, 56_056, 7000)


def test_a_value_read_twice_counts_once(transformer):
    x = geon.placeholder([C])
    assert only(costs(transformer, x * geon.flip(x, C), x)) == (4000, 4000, 8000, 1000)


def test_of_a_sliced_value_only_the_slice_is_read(transformer):
    x = geon.placeholder([C])
    part = x[{C: slice(0, 10)}]
    assert only(costs(transformer, part + 1, x)) == (40, 40, 80, 10)


def test_a_product_takes_two_operations_for_each_triple(transformer):
    m, k, n = geon.Axis("M", 30), geon.Axis("K", 20), geon.Axis("L", 40)
    x, y = geon.placeholder([m, k]), geon.placeholder([k, n])
    found = costs(transformer, geon.dot(x, y), x, y)
    assert only(found) == (4 * (600 + 800), 4 * 1200, 4 * 2600, 2 * 30 * 20 * 40)


def test_an_update_in_place_touches_the_variable_once(transformer):
    w = geon.Variable([C], initial_value=1.0)
    x = geon.placeholder([C])
    found = costs(transformer, geon.assign(w, w - x * 0.5), x)
    assert only(found) == (8000, 4000, 8000, 2000)


def test_elementary_functions_count_what_their_c_does():
    assert operations_of("x + y") == 1
    assert operations_of("x * y + z") == 2
    assert operations_of("-x") == 0
    assert operations_of("GEON_FMA_F32(x, y, z)") == 2
    assert operations_of("__builtin_sqrtf(x)") == 1
    once, twice = (
        operations_of("geon_exp_f32(x)"),
        operations_of("geon_exp_f32(x) + geon_exp_f32(y)"),
    )
    assert 10 < once < 60 and twice == 2 * once + 1


def test_casts_count_and_copies_do_not(transformer):
    x = geon.placeholder([C], dtype="int32")
    found = costs(transformer, geon.cast(x, "float32"), x)
    assert found[0].operations == {np.dtype("int32"): 1000}
    assert costs(transformer, geon.flip(x, C), x)[0].operations == {}


# Ceilings -------------------------------------------------------------------------------------


def test_bandwidth_at_the_points_measured():
    for (reads, writes), rates in zip(MIXES, MADE.rates, strict=True):
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
    monkeypatch.setenv(disk_cache.CACHE, str(folder))
    monkeypatch.setattr(ceilings_module, "SIZES", (1 << 15, 1 << 17, 1 << 23))
    monkeypatch.setattr(ceilings_module, "SECONDS", 0.001)
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
    assert [len(rates) for rates in found.rates] == [3] * len(MIXES)
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


# Profiles -------------------------------------------------------------------------------------


def test_the_rows_are_the_kernels(transformer):
    x = geon.placeholder([N, C], name="x")
    weights = geon.softmax(x, C)
    weights.name = "weights"
    total = geon.sum(geon.square(geon.cumsum(weights, C)))
    f = transformer.computation([weights, total], x)
    profile = f.profile(np.random.default_rng(0).random((20, 1000), np.float32), repeats=3)
    kernels = f.plan.schedule.kernels
    assert len(profile) == len(kernels) and profile.repeats == 3 and profile.threads == 2
    assert [row.kind for row in profile] == [kernel.kind for kernel in kernels]
    assert [len(row.computes) for row in profile] == [len(kernel.results) for kernel in kernels]
    texts = [text for row in profile for text in row.computes]
    assert any(text.startswith("weights: ") and "(N, C:1000) float32" in text for text in texts)
    assert all("test_profile.py:" in place for row in profile for place in row.places)
    for row, kernel in zip(profile, kernels, strict=True):
        cost = cost_of(f.plan, kernel, {"N": 20})
        assert (row.read, row.written, row.touched) == (cost.read, cost.written, cost.touched)
        least = MADE.seconds(cost.touched, cost.read, cost.written, cost.operations)
        assert row.predicted == least and row.share == least / row.seconds
    assert str(profile).count("\n") == len(kernels) + 2


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
        make_module(f.plan, f.linking, 64, annotate=False, timed=timed) for timed in (False, True)
    )
    assert plain.units[1:] == timed.units[1:]
    assert timed.units[0].count("= geon_now();") == len(f.plan.schedule.kernels) + 1
    text = re.sub(r"struct geon_time \{.*?\n\}\n\n", "", timed.units[0], flags=re.DOTALL)
    text = re.sub(r" *report\[\d+\] = geon_now\(\);\n", "", text)
    assert text == plain.units[0]


def test_the_table():
    rows = (
        KernelProfile(0, "nest", ("loss: sum () float32", "tanh (N, C:1000) float32"),
                      ("model.py:12", "model.py:14"), 2e-6, 1e-6, 4000, 96, 4096,
                      {"float32": 26_000}),
        KernelProfile(1, "product", ("dot (N, H:512) float64",),
                      ("a/very/long/path/to/the/folder/of/the/project/network.py:120",), 8e-3,
                      6e-3, 3 << 20, 1 << 20, 4 << 20, {"float64": 2_000_000_000}),
    )  # fmt: skip
    assert str(Profile(rows, 8.1e-3, 98e-6, 2, 20, MADE)) == EXPECTED
    assert repr(Profile(rows, 8.1e-3, 98e-6, 2, 20, MADE)) == EXPECTED
    assert "kernels 0.0 us" in str(Profile((), 1e-6, 1e-6, 1, 1, MADE))


EXPECTED = """\
   kind     computes                         at                                 us  time  bytes  operations  GB/s  GFLOP/s  least us  of ceiling
0  nest     loss: sum () float32 and 1 more  model.py:12                      2.00    0%  4 KiB        26 k   2.0     13.0      1.00         50%
1  product  dot (N, H:512) float64           ...he/project/network.py:120  8000.00  100%  4 MiB         2 G   0.5    250.0   6000.00         75%
kernels 8002.0 us, least 6001.0 us (75%); a call 8100.0 us, outside kernels 98.0 us
medians of 20 calls on 2 threads; ceilings: 100 GFLOP/s float32, 50 GFLOP/s float64, reading 400 GB/s of 1 KiB to 20 GB/s of 1 MiB"""  # noqa: E501
