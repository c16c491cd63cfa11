"""Loops with small bodies are one launch; all others go turn by turn, and give the same bits."""

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.transformers.pycuda.emit import persistent_loop
from geon.transformers.pycuda.launches.launch_ir import (
    Branches,
    DeviceLoop,
    Launch,
    LaunchVariants,
)
from geon.transformers.pycuda.products import form_table, loop_forms
from geon.transformers.pycuda.runtime import bound_launches, host

from .devices import LateDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
T, N = geon.Axis("T"), geon.Axis("N")
K = geon.Axis("K", 24)
weights = geon.placeholder([K.prime, K], name="weights")
start = geon.placeholder([N, K], name="start")
inputs = geon.placeholder([T, N, K], name="inputs")
ask = geon.placeholder([], "int64", name="ask")
INPUTS = [weights, start, inputs, ask]


def turned(h):
    return geon.cast_axes(geon.dot(h, weights, over=[K]), [N, K])


def recurrent():
    def step(h, x):
        h = geon.tanh(turned(h) + x)
        return h, geon.softmax(h, normalization_axes=K)

    return geon.scan(step, start, inputs, over=T)


def until(limit, ended=ask):
    """Turns until as many as are asked for were taken; each has a sum of its own."""

    def body(c):
        h = geon.sin(turned(c["h"])) + 0.5
        return {"h": h, "n": c["n"] + 1, "s": c["s"] + geon.sum(h)}

    init = {"h": start, "n": geon.constant(0), "s": geon.constant(0.0)}
    return geon.while_loop(lambda c: c["n"] < ended, body, init, limit)


def nested():
    """In each turn of a scan a loop that ends by itself, in one of two branches."""

    def inner(h):
        body = {"h": h, "n": geon.constant(0)}
        found = geon.while_loop(
            lambda c: c["n"] < ask,
            lambda c: {"h": geon.tanh(turned(c["h"])), "n": c["n"] + 1},
            body,
            8,
        )
        return found["h"]

    def step(c, x):
        h = geon.case_of(c["k"] % 2, [lambda: inner(c["h"]), lambda: c["h"] * 2 - x])
        return {"h": h, "k": c["k"] + 1}, geon.sum(h)

    return geon.scan(step, {"h": start, "k": geon.constant(0)}, inputs, over=T)


def branching():
    """Branches outside of loops, one of them with branches of its own, and a loop."""

    def last(h):
        found, _ = geon.scan(
            lambda c, _: (geon.tanh(turned(c)), None), h, over=geon.Axis("five", 5)
        )
        return found

    h = start * 0.5
    return geon.case_of(
        ask,
        [
            lambda: geon.softmax(geon.sin(h), normalization_axes=K),
            lambda: geon.cond(geon.sum(h) > 0, lambda: h, lambda: geon.softmax(-h, K)),
            lambda: last(h),
        ],
        default=lambda: geon.softmax(h, K) - geon.sum(geon.softmax(-h, K)),
    )


def results():
    last, rows = recurrent()
    loss = geon.sum(rows * rows) + geon.sum(last)
    some = until(6)
    carried, sums = nested()
    return {
        "scan": [last, rows, geon.deriv(loss, weights), geon.deriv(loss, start)],
        "while": [until(None)["s"], until(None)["h"]],
        "limited": [some["h"], some["n"], geon.deriv(some["s"], weights)],
        "nested": [carried["h"], sums, geon.deriv(geon.sum(sums), weights)],
        "branches": [branching()],
    }


def feeds(rows, turns, asked, seed=0):
    random = np.random.default_rng(seed)
    shapes = (24, 24), (rows, 24), (turns, rows, 24)
    return [*[random.normal(size=s).astype(np.float32) / 4 for s in shapes], np.asarray(asked)]


def computed(name, made, calls, **options):
    with geon.make_transformer(name, **options) as transformer:
        f = transformer.computation(made, *INPUTS)
        return [f(*feeds(*call)) for call in calls], f


def steps_in(steps):
    for step in steps:
        yield step
        if isinstance(step, LaunchVariants):
            yield from steps_in((*step.steps, *step.others))
        if isinstance(step, DeviceLoop) and step.whole is not None:
            yield step.whole


def steps_of(f):
    return [*steps_in(f.stages().compiled.module.steps)]


CALLS = [(2, 3, 3), (3, 0, 0), (1, 4, 9), (0, 2, 2), (300, 1, 1), (2, 2, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", results())
def test_one_launch_gives_the_same_bits_as_one_each_turn(name, monkeypatch):
    made = results()[name]
    whole, f = computed("cuda-on-host", made, CALLS)
    assert "_inside(" in f.source and any(isinstance(step, Launch) for step in steps_of(f))
    monkeypatch.setattr(form_table, "region_parts", lambda *given: ())
    each, g = computed("cuda-on-host", [*made, ask * 2], CALLS)  # another program, by its graph
    assert "_inside(" not in g.source and any(
        isinstance(s, DeviceLoop | Branches) for s in steps_of(g)
    )
    expected, _ = computed("numpy", made, CALLS)
    for found, same, right in zip(whole, each, expected, strict=True):
        for a, b, c in zip(found, same[:-1], right, strict=True):
            assert a.tobytes() == b.tobytes()
            np.testing.assert_allclose(a, c, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", results())
def test_threads_of_a_loop_do_not_race(name):
    calls = CALLS if name == "branches" else CALLS[:1]
    computed("cuda-on-host", results()[name], calls, checks="races")


def test_lengths_say_what_is_small():
    """Some rows are few blocks of each kernel of the body, 5000 are many."""
    _, f = computed("cuda-on-host", results()["scan"], CALLS[:1])
    choices = [s for s in steps_of(f) if isinstance(s, LaunchVariants) and s.others]
    choice = next(s for s in choices if isinstance(s.others[0], DeviceLoop))
    begun = []
    for rows in (1, 16, 5000):
        lengths = {"N": rows, "T": 3}
        begun.append(all(evaluate(size, lengths) >= 0 for size in choice.holds))
    assert begun == [True, True, False]


@pytest.mark.parametrize("turns", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("limit", [None, 9])
def test_launches_share_the_turns_of_a_loop_without_end(turns, limit, monkeypatch):
    """What ends nobody knows when is asked for after so many turns; an odd number too."""
    for module in (persistent_loop, bound_launches):
        monkeypatch.setattr(module, "TURNS_PER_LAUNCH", 4)
    monkeypatch.setattr(loop_forms, "MAX_UNINTERRUPTED_TURNS", 2)
    made = until(limit)
    made = [made["h"] * 2, made["n"], made["s"]]  # a program of its own, by its graph
    (found,), f = computed("cuda-on-host", made, [(2, 1, turns)])
    whole = [s for s in steps_of(f) if isinstance(s, DeviceLoop) and s.whole is not None]
    assert whole
    (expected,), _ = computed("numpy", made, [(2, 1, turns)])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_fails_in_a_turn_says_which():
    at = geon.placeholder([T], "int64", name="at")

    def step(h, each):
        h = (
            turned(h)
            + geon.gather(inputs, geon.broadcast(each, [geon.Axis("one", 1)]), T)[{"one": 0}]
        )
        return h, geon.sum(h)

    _, sums = geon.scan(step, start, at, over=T)
    random = feeds(2, 5, 0)
    for name in ("numpy", "cuda-on-host"):
        with geon.make_transformer(name) as transformer:
            f = transformer.computation(sums, weights, start, inputs, at)
            good = f(*random[:3], np.arange(5))
            assert good.shape == (5,)
            with pytest.raises(geon.IndexRangeError, match="step 3|3 of T|T = 3"):
                f(*random[:3], np.asarray([0, 1, 2, 7, 0]))
    assert "_inside(" in f.source


def test_a_program_whose_loops_are_launches_waits_for_none():
    """A loop with a condition and a limit is captured like any other launch."""
    device = LateDevice()
    made = until(6)
    with transformer_on(device) as transformer:
        f = transformer.computation([made["h"], made["n"]], *INPUTS)
        for _ in range(3):
            f(*feeds(2, 1, 4))
        assert device.replayed == 2
        for _ in range(3):
            f(*feeds(5000, 1, 4))
        assert device.replayed == 2  # turn by turn, and asked in each


def test_small_branches_are_one_launch_and_others_one_for_each_kernel():
    """Rows are a block's here, eight warps of it: one block is small, and more are not."""
    device = LateDevice()
    with transformer_on(device) as transformer:
        made = branching()
        f = transformer.computation(made, *INPUTS)
        counts = []
        for rows in (1, 8, 9):
            before = device.launched
            f(*feeds(rows, 1, 0))
            counts.append(device.launched - before)
        assert counts[0] == counts[1] < counts[2] - 4
        begun = [step for step in steps_of(f) if isinstance(step, Launch)]
        assert begun and "where " in f.source  # that says which branch is taken
