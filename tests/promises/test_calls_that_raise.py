"""A call that raises leaves every variable, every stream and every array as it was.

Each way in which a call can fail is tried in a step that would change variables in place, by
copies and by parts, and that draws; afterwards the step goes on as if the call had not been.
"""

import io
import sys
import threading

import numpy as np
import pytest

import geon

N, K = geon.Axis("N"), geon.Axis("K", 5)
GOOD = (np.arange(1, 6, dtype=np.float32), np.int64(2))


class Closed(io.StringIO):
    """A stream that nothing can be written to."""

    def write(self, text):
        raise BrokenPipeError("the reader is gone")


class Refuses:
    """What NumPy asks for an array, and gets an error."""

    def __array__(self, *args, **options):
        raise RuntimeError("no array today")


class Step:
    """A training step with a part that may fail: ``more(variables, x, at)`` are its results."""

    def __init__(self, transformer, more=lambda v, x, at: [], **options):
        self.transformer = transformer
        self.x, self.at = geon.placeholder(N, name="x"), geon.placeholder(dtype="int64", name="at")
        first = np.arange(1, 6, dtype=np.float32)
        self.v = geon.Variable(K, initial_value=first, name="v")
        self.w = geon.Variable(K, initial_value=first, name="w")
        self.shifted = geon.Variable(K, initial_value=first, name="shifted")
        self.total = geon.Variable(initial_value=1, name="total")
        self.state = [self.v, self.w, self.shifted, self.total]
        drawn = geon.Random(7).uniform(K)
        total = geon.sum(self.x)
        effects = [
            geon.assign(self.v, self.v * 2 + drawn),  # in place
            geon.sequential(
                [geon.assign(self.w, self.w + self.v), geon.assign(self.w, geon.flip(self.w, K))]
            ),
            geon.assign(self.shifted[1:], self.shifted[:-1]),
            geon.assign(self.total, self.total + total),
        ]
        results = [geon.doall(effects), drawn, *more(self.state, self.x, self.at)]
        self.f = transformer.computation(results, self.x, self.at, **options)

    def values(self):
        """A copy of every variable."""
        return [self.transformer.get(v) for v in self.state]

    def call(self, *feeds, **options):
        """What the step draws."""
        return self.f(*(feeds or GOOD), **options)[1]


def printed(new):
    """A print of the old or the new value of a variable that changes."""

    def more(v, x, at):
        if not new:
            return [geon.print(v[0], "v")]
        own = geon.Variable(K, initial_value=0)
        v.append(own)
        return [geon.sequential([geon.assign(own, own + 1), geon.print(own, "new")])]

    return more


def put_at(v, x, at):
    own = geon.Variable(K, initial_value=0)
    v.append(own)
    return [geon.assign(own[at], 1.0)]


FAILING = {
    "position": (
        lambda v, x, at: [geon.gather(v[0], at, K)],
        (GOOD[0], 9),
        geon.IndexRangeError,
    ),
    "position in a new value": (
        lambda v, x, at: [geon.sequential([geon.assign(x, x * 2), geon.gather(x * v[3], at, N)])],
        (GOOD[0], -6),
        geon.IndexRangeError,
    ),
    "position of a part": (put_at, (GOOD[0], 5), geon.IndexRangeError),
    "guard": (
        lambda v, x, at: [x[1:4] + v[3]],
        (GOOD[0][:2], 0),
        geon.GuardError,
    ),
    "nothing to take the largest of": (
        lambda v, x, at: [geon.max(x) + v[3]],
        (GOOD[0][:0], 0),
        geon.AxisError,
    ),
    "size": (
        lambda v, x, at: [geon.broadcast(x, [N, geon.Axis("L", 2**40)]) * v[3]],
        None,
        geon.SizeError,
    ),
    "shape": (lambda v, x, at: [], (np.ones((2, 2)), 0), geon.FeedError),
    "dtype": (lambda v, x, at: [], (GOOD[0], 0.5), geon.FeedError),
    "too large": (lambda v, x, at: [], ([1e300], 0), geon.FeedError),
    "no array": (lambda v, x, at: [], (Refuses(), 0), geon.FeedError),
    "too few": (lambda v, x, at: [], (GOOD[0],), geon.ArgumentError),
}


@pytest.mark.parametrize("planned", [True, False], ids=["plan", "no plan"])
@pytest.mark.parametrize("way", FAILING)
def test_what_fails_changes_nothing(make, way, planned):
    more, bad, error = FAILING[way]
    step = Step(make(), more, plan=planned)
    if bad is None:  # it never succeeds
        before = step.values()
        with pytest.raises(error):
            step.call()
        np.testing.assert_equal(step.values(), before)
        return
    other = Step(make(), more, plan=planned)
    for s in (step, other):
        s.call()
        s.call()
    before = step.values()
    for _ in range(2):
        with pytest.raises(error):
            step.call(*bad)
    np.testing.assert_equal(step.values(), before)
    np.testing.assert_array_equal(step.call(), other.call())  # the stream goes on where it was
    np.testing.assert_equal(step.values(), other.values())


@pytest.mark.parametrize("planned", [True, False], ids=["plan", "no plan"])
@pytest.mark.parametrize("new", [False, True], ids=["old value", "new value"])
def test_a_print_that_fails_changes_nothing(make, monkeypatch, new, planned):
    step = Step(make(), printed(new), plan=planned)
    step.call()
    before = step.values()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Closed())
        with pytest.raises(BrokenPipeError, match="the reader is gone"):
            step.call()
    np.testing.assert_equal(step.values(), before)
    step.call()
    assert not np.array_equal(step.values()[0], before[0])


@pytest.mark.parametrize("what", ["a value that is not finite", "a new value that is not"])
def test_the_check_changes_nothing(make, what):
    def more(v, x, at):
        if what == "a new value that is not":
            own = geon.Variable(K, initial_value=0)
            v.append(own)
            return [geon.assign(own, own + geon.sum(geon.log(x)))]
        return [geon.log(x) * v[3]]

    step = Step(make(), more, check="nan")
    step.call()
    before = step.values()
    with pytest.raises(geon.NonFiniteError):
        step.call(-GOOD[0], 2)
    np.testing.assert_equal(step.values(), before)


def test_a_first_value_that_fails_changes_nothing(make):
    answers = iter([3.0])
    late = geon.Variable(initial_value=lambda axes: next(answers), name="late")
    fed = iter([ValueError("not yet"), 4.0])

    def first(axes):
        found = next(fed)
        if isinstance(found, Exception):
            raise found
        return found

    failing = geon.Variable(initial_value=first, name="failing")
    step = Step(make(), lambda v, x, at: [late * failing])
    with pytest.raises(ValueError, match="not yet"):
        step.call()
    np.testing.assert_array_equal(step.values()[0], np.arange(1, 6))
    assert step.f(*GOOD)[2] == 12


def test_where_a_size_is_refused_nothing_was_allocated(make):
    """No variable got memory or its first value."""
    asked = []

    def first(axes):
        asked.append(axes)
        return 0.0

    transformer = make()
    v = geon.Variable(K, initial_value=first, name="v")
    x = geon.placeholder(N)
    large = geon.broadcast(x, [N, geon.Axis("L", 2**40)])
    f = transformer.computation([v * 1, large * 2], x)
    with pytest.raises(geon.SizeError, match="nothing was allocated"):
        f(np.ones(5))
    assert asked == []
    assert all(slot.value is None for slot in transformer.state.slots)
    np.testing.assert_array_equal(transformer.get(v), np.zeros(5))


@pytest.mark.parametrize("out", ["shape", "dtype", "read-only", "count"])
def test_arrays_to_write_that_do_not_fit_change_nothing(make, out):
    step = Step(make())
    step.call()
    before = step.values()
    arrays = {
        "shape": [None, np.zeros(4, np.float32)],
        "dtype": [None, np.zeros(5)],
        "read-only": [None, np.zeros(5, np.float32)],
        "count": [None],
    }[out]
    if out == "read-only":
        arrays[1].setflags(write=False)
    with pytest.raises(geon.GeonError):
        step.f(*GOOD, out=arrays)
    np.testing.assert_equal(step.values(), before)


def test_calls_that_only_read_are_inside_at_the_same_time(make, monkeypatch):
    """Both print, and wait there for each other: alone, neither would end."""
    transformer = make()
    v = geon.Variable(K, initial_value=2, name="v")
    x = geon.placeholder(K)
    f = transformer.computation([v * x, geon.print(geon.sum(x), "sum")], x)
    f(np.zeros(5))
    both = threading.Barrier(2, timeout=20)
    monkeypatch.setattr("builtins.print", lambda *_: both.wait())
    found = {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: f(np.full(5, k))[0]}))
        for k in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        np.testing.assert_array_equal(found[k], np.full(5, 2 * k))
