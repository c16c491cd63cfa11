"""Which ops become one kernel: results that share what they read, long bodies, rows beside rows."""

import dataclasses
import re

import numpy as np
import pytest

import geon

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

N, M = geon.Axis("N", 300), geon.Axis("M", 70)


def kernels(f):
    """The lines of a schedule that are kernels."""
    return [line for line in f.explain("schedule").splitlines() if line[0].isdigit()]


def check(results, *feeds):
    """Hold native code, with a plan and without, to NumPy; the native computation."""
    placeholders = [placeholder for placeholder, _ in feeds]
    values = [value for _, value in feeds]
    expected = geon.NumPyTransformer().computation(results, *placeholders)(*values)
    f = geon.NativeTransformer().computation(results, *placeholders)
    plain = geon.NativeTransformer().computation(results, *placeholders, plan=False)
    for want, got, other in zip(expected, f(*values), plain(*values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * np.abs(want).max())
        assert got.tobytes() == other.tobytes()
    return f


def matrix(seed, *axes):
    """A placeholder and values for it."""
    lengths = [axis.length for axis in axes]
    values = np.random.default_rng(seed).normal(size=lengths).astype(np.float32)
    return geon.placeholder(axes), values


def test_results_that_share_what_they_read_are_one_pass():
    """Neither uses the other, and both use values between the inputs and them."""
    x, y = matrix(0, N, M), matrix(1, N, M)
    between = geon.tanh(x[0] * y[0])
    f = check([between * x[0], geon.exp(-between) + y[0], between - 1.0], x, y)
    assert len(kernels(f)) == 1


def steps_of(state, steps):
    """Runge-Kutta steps of the Lorenz system, 71 ops each."""

    def slope(x, y, z):
        return [10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.6666667 * z]

    def moved(state, slopes, by):
        return [value + by * each for value, each in zip(state, slopes, strict=True)]

    for _ in range(steps):
        a = slope(*state)
        b = slope(*moved(state, a, 0.005))
        c = slope(*moved(state, b, 0.005))
        d = slope(*moved(state, c, 0.01))
        state = [
            value + 0.0016666667 * ((i + 2.0 * j) + (2.0 * k + m))
            for value, i, j, k, m in zip(state, a, b, c, d, strict=True)
        ]
    return state


@pytest.mark.parametrize(("steps", "most"), [(1, 1), (5, 1), (20, 4)])
def test_a_long_chain_of_several_values_is_few_passes(steps, most):
    """355 ops of five steps are one loop; longer chains are cut where a loop has enough."""
    state = [matrix(seed, N) for seed in range(3)]
    f = check(steps_of([placeholder for placeholder, _ in state], steps), *state)
    assert len(kernels(f)) <= most


def test_elements_and_sums_of_rows_over_one_array_are_one_pass():
    """What is stored for each element and what is reduced read their array once."""
    x = matrix(0, N, M)
    f = check([x[0] * 2.0, geon.sum(x[0] * x[0], reduction_axes=[M])], x)
    assert len(kernels(f)) == 1
    f = check([x[0] * 2.0, geon.sum(x[0])], x)
    assert len(kernels(f)) == 1


def apart(f):
    """What a schedule says of pairs that are not one kernel."""
    lines = f.explain("schedule").splitlines()
    return [line.strip() for line in lines if line.startswith("    not with ")]


def test_a_value_that_two_kernels_read_is_computed_in_one_of_them():
    """Sums over rows and over columns: the first is taken while the elements are stored."""
    x, y = matrix(0, N, M), matrix(1, N, M)
    between = geon.tanh(x[0] * y[0])
    sums = [geon.sum(between, reduction_axes=[axis]) for axis in (M, N)]
    f = check(sums, x, y)
    assert len(kernels(f)) == 2
    assert apart(f) == ["not with 1: their rows are other axes"]


def test_what_stays_apart_says_why():
    """Rows of two, too few along each axis to be taken side by side, are slower than elements and
    then sums of two, by so many microseconds."""
    few, some, two = geon.Axis("few", 60), geon.Axis("some", 60), geon.Axis("two", 2)
    x = matrix(0, few, some, two)
    sigmoid = geon.sigmoid(x[0])
    results = [geon.sum(sigmoid, reduction_axes=[two]), geon.cumsum(sigmoid, few)]
    said = sorted(apart(check(results, x)))
    assert len(said) == 2
    assert re.fullmatch(r"not with \d: one is a call", said[1])
    assert re.fullmatch(r"not with \d: one kernel would take longer by \d+\.\d\d us", said[0])
    x = matrix(0, N, M)
    scaled = geon.tanh(x[0])
    f = check([geon.exp(scaled), geon.reorder(scaled, [M, N]) * 2.0], x)
    assert apart(f) == ["not with 1: their results lie in other orders in memory"]
    swapped = geon.softmax(x[0], M) * geon.flip(geon.softmax(x[0], M), M)
    assert apart(check([swapped], x)) == [
        "not with 1: elements are read at other indices than they are computed at"
    ]


def test_kernels_with_another_between_them_stay_apart():
    """Elements and their sum would be one, but the sum is of what a running sum makes of them."""
    x = matrix(0, N, M)
    elements = geon.tanh(x[0])
    f = check([elements * geon.sigmoid(geon.cumsum(elements, N)), elements], x)
    assert "not with 2: another kernel comes between them" in apart(f)


def test_what_is_chosen_does_not_depend_on_the_machine(monkeypatch):
    """Fusion reads stated numbers: a machine that was measured changes no kernel."""
    x, y = matrix(0, N, M), matrix(1, N, M)
    between = geon.tanh(x[0] * y[0])
    results = [geon.sum(between, reduction_axes=[axis]) for axis in (M, N)]
    assert not geon.NativeTransformer.target.model.measured

    def refused(threads):
        raise AssertionError("a machine was asked for")

    target = dataclasses.replace(geon.NativeTransformer.target, machine=refused)
    monkeypatch.setattr(geon.NativeTransformer, "target", target)
    f = geon.NativeTransformer().computation(results, x[0], y[0])
    assert len(f.plan.schedule.kernels) == 2


def test_axes_of_one_name_and_other_lengths_are_apart():
    """A part of an axis and the whole axis share an array, and no loop."""
    x = matrix(0, N, M)
    f = check([x[0] * 2.0, x[0][{"M": slice(0, 69)}] * 3.0], x)
    assert len(kernels(f)) == 2


def test_a_sum_over_other_elements_does_not_turn_the_loops_of_what_it_is_added_to():
    """Rows along M would go down the columns of what is stored."""
    x, w = matrix(0, N, M), matrix(1, geon.Axis("F", 5), M)
    bordered = geon.pad(x[0][{M: slice(3, 60, 3)}], {M: (4, 47)}) + x[0]
    f = check([bordered * x[0] + geon.sum(w[0], geon.Axis("F", 5))], x, w)
    loops = [kernel.work for kernel in f.stages().plan.schedule.kernels]
    assert [[axis.extent for axis in nest.rows] for nest in loops] == [[], [300]]


def test_a_sum_does_not_take_the_place_of_what_another_pass_reads():
    """What is added to each row is read for a later result, or by a sum over another axis."""
    q = geon.Axis("Q", 9)
    drawn = [matrix(0, N, M), matrix(1, N, q), matrix(2, N)]
    x, w, v = [(placeholder, np.round(values)) for placeholder, values in drawn]  # exact sums
    added = geon.cumsum(v[0], N)
    total = geon.sum(x[0], reduction_axes=[M])
    for one in (added, geon.sum(w[0] * added, reduction_axes=[q])):
        wide = geon.cumsum(geon.cast(one + total, "float64"), N)
        check([total * geon.cast(geon.sin(wide), "float32")], x, w, v)


def test_a_reduction_over_no_axes_beside_elements():
    """The position of the least of one element is 0, whatever is stored beside it."""
    x = geon.placeholder([N], dtype="int32")
    long = geon.cast(geon.cumsum(x, N), "int64")
    results = [geon.argmin(x, reduction_axes=[]), geon.cumprod(long, N), long * 2]
    f = geon.NativeTransformer().computation(results, x)
    values = np.arange(300, dtype=np.int32) - 9
    least, _, doubled = f(values)
    assert not least.any()
    assert (doubled == 2 * values.cumsum()).all()


@pytest.mark.parametrize(("count", "loops"), [(5, 1), (6, 2), (10, 2), (11, 3)])
def test_five_elementary_functions_fill_a_loop(count, loops):
    x, values = matrix(5, N, M)
    y = x
    for k in range(count):
        y = (geon.tanh(y) if k % 2 else geon.sin(y)) * 1.5
    assert len(kernels(check([y], (x, values)))) == loops


@pytest.mark.parametrize(("size", "step"), [(2, 2), (3, 2), (12, 1)])
def test_what_windows_show_is_reduced_in_one_pass(size, step):
    """Pools without a border: the largest, the least and the sum."""
    x = matrix(7, geon.Axis("H", 30), geon.Axis("C", 9))
    shown = geon.window(x[0], {"H": geon.Window(geon.Axis("R", size), stride=step)})
    pooled = [reduce(shown, reduction_axes=["R"]) for reduce in (geon.max, geon.min, geon.sum)]
    f = check(pooled, x)
    assert len(kernels(f)) == 1


def test_what_windows_show_is_no_pass_over_what_is_beside_it():
    """A row that is repeated along windows has fewer axes than these go over."""
    x, y = matrix(8, geon.Axis("H", 30), geon.Axis("C", 9)), matrix(9, geon.Axis("C", 9))
    shown = geon.window(x[0], {"H": geon.Axis("R", 3)})
    f = check([geon.max(shown * y[0], reduction_axes=["R"]), geon.exp(y[0])], x, y)
    assert len(kernels(f)) == 2


def bent(x, *along):
    """The differences of neighbours along some axes, and what lies between them."""

    def at(axis, part):
        return x[{a: part if a is axis else slice(1, -1) for a in along}]

    middle = x[{a: slice(1, -1) for a in along}]
    around = [at(a, part) for a in along for part in (slice(2, None), slice(None, -2))]
    return sum(around[1:], around[0]) - 2 * len(along) * middle, middle


def double_slope(x, function, *along):
    """The slope of two sums of what a function makes of differences."""
    differences, middle = bent(x, *along)
    made = function(differences)
    return geon.deriv(geon.sum(geon.square(made)) + geon.mean(middle * made), x)


@pytest.mark.parametrize(
    ("lengths", "function", "loops", "fields"),
    [
        ((3_000_000,), geon.negative, 1, 1),
        ((3_000_000,), geon.absolute, 2, 2),  # one of two that were stored is enough
        ((1000,), geon.negative, 2, 3),  # what lies in the caches is stored
        ((3_000_000,), geon.sin, 2, 3),  # and what takes long
    ],
)
def test_what_is_sooner_computed_than_stored_is_computed_where_it_is_read(
    lengths, function, loops, fields
):
    """Slopes need a field of differences at its own place, and at those of its neighbours."""
    axes = [geon.Axis(f"N{k}", length) for k, length in enumerate(lengths)]
    x = matrix(0, *axes)
    f = check([double_slope(x[0], function, *axes)], x)
    assert len(kernels(f)) == loops
    assert f.peak_bytes() <= fields * x[1].nbytes + 256
