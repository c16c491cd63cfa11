"""Predicted times: by hand on a made-up machine, and where they are shown."""

import dataclasses

import pytest

import geon
from geon.transformers.kernels.costs.roofline import predict
from geon.transformers.lowering.planning.cost_report import predictions, written_place

from ..golden.emitting import Native
from .made_machine import made

N, C = geon.Axis("N"), geon.Axis("C", 1024)


class Explaining(Native):
    """The native transformer without a compiler, whose code runs on a made-up machine."""

    target = dataclasses.replace(Native.target, machine=made)


def schedule_of(results, *placeholders):
    return Native().computation(results, *placeholders).stages().schedule


def seconds(results, *placeholders, machine=None, threads=1, **lengths):
    schedule = schedule_of(results, *placeholders)
    machine = machine or made(threads)
    return sum(predict(k.work, lengths, machine, threads).seconds for k in schedule.kernels)


def test_much_arithmetic_takes_its_time():
    x = geon.placeholder([C])
    y = x
    for _ in range(10):
        y = geon.exp(y) + 1
    found = seconds(y, x)
    vectors = 1024 / 16
    assert found == pytest.approx(1e-7 + 10 * 17 * vectors * 1e-9, rel=0.05)


def test_much_traffic_takes_its_time():
    x = geon.placeholder([N, C])
    n = 1 << 15
    bytes_of = 2 * 4 * 1024 * n
    assert seconds(x + 1, x, N=n) == pytest.approx(bytes_of / 8e9, rel=0.05)


def test_a_product_takes_what_its_tiles_take():
    m, k, n = (geon.Axis(name, 1024) for name in "MKL")
    x, y = geon.placeholder([m, k]), geon.placeholder([k, n])
    assert seconds(geon.dot(x, y), x, y) == pytest.approx(2 * 1024**3 / 64e9, rel=0.1)


def test_what_is_written_in_place_costs_no_traffic():
    wide = geon.Axis("W", 1 << 22)
    w, x = geon.Variable([wide], initial_value=1.0), geon.placeholder([wide])
    found = []
    for results in (geon.assign(w, w + x), w + x):
        schedule = schedule_of(results, x)
        each = predictions(schedule, {}, made(), 1, written_place(schedule))
        found.append(sum(predicted.prediction.seconds for predicted in each))
    assert found[0] == pytest.approx(2 / 3 * found[1], rel=0.1)


def test_elements_apart_take_longer_than_those_that_adjoin():
    x = geon.placeholder([C, N])
    near, far = x[{C: 3}] + 1, x[{N: 3}] + 1
    assert seconds(far, x, N=1024) > 3 * seconds(near, x, N=1024)


def test_what_runs_one_by_one_takes_longer():
    x = geon.placeholder([C], dtype="float64")
    assert seconds(geon.power(x, x), x) > 5 * seconds(x * x, x)


@pytest.mark.parametrize("make", [geon.exp, lambda x: geon.softmax(x, C), lambda x: geon.sum(x, C),
                                  lambda x: geon.sum(x, N), lambda x: geon.sort(x, C)])  # fmt: skip
def test_more_takes_longer(make):
    x = geon.placeholder([N, C])
    found = [seconds(make(x), x, N=n) for n in (1, 4, 64, 1000, 20_000)]
    assert found == sorted(found) and found[-1] > 100 * found[0]


def test_threads_share_work_that_is_large():
    x = geon.placeholder([N, C])
    y = geon.exp(geon.exp(geon.exp(x)))
    alone, two = (seconds(y, x, threads=threads, N=2000) for threads in (1, 2))
    assert 1.5 < alone / two < 2.5
    assert seconds(y, x, threads=2, N=1) == pytest.approx(seconds(y, x, N=1))


def test_what_was_touched_long_ago_comes_from_further_away():
    x, w = geon.placeholder([C]), geon.placeholder([N, C])
    y = geon.sum(w * x, C)
    long_ago = geon.exp(geon.placeholder([N, C]))
    alone, behind = schedule_of(y, x, w), schedule_of([y, long_ago], x, w, long_ago.args[0])
    found = []
    for schedule in (alone, behind):
        each = predictions(schedule, {"N": 100}, made(), 1, written_place(schedule))
        kernels = zip(schedule.kernels, each, strict=True)
        found.append(next(p.prediction for k, p in kernels if k.op.axes.names == ("N",)))
    assert found[0].bytes == found[1].bytes
    assert found[0].seconds < found[1].seconds


def test_explain_shows_predictions():
    x = geon.placeholder([N, C], name="x")
    f = Explaining().computation(geon.exp(x), x, lengths={N: 10})
    line, *loops, ending = f.explain("schedule").splitlines()
    assert line.endswith(" us, 81920 bytes, 204800 operations")
    assert loops and all(each.startswith("    ") for each in loops)
    assert ending.startswith("predicted ") and ending.endswith("2 threads of a made-up machine")


def test_explain_says_which_lengths_are_missing():
    x, y = geon.placeholder([N, C]), geon.placeholder([C])
    f = Explaining().computation([geon.exp(x), geon.exp(y)], x, y)
    lines = f.explain("schedule").splitlines()
    assert sum(line.endswith("  time depends on N") for line in lines) == 1
    assert sum(line.endswith(" us, 8192 bytes, 20480 operations") for line in lines) == 1
    assert lines[-1] == "predicted on 2 threads of a made-up machine"


def test_explain_names_a_length_that_is_in_a_body_or_a_fused_op_alone():
    x = geon.placeholder([N])
    limit = geon.fixed_point(lambda z: geon.cos(z) * 0.5 + x, x)
    f = Explaining().computation(geon.deriv(geon.sum(limit), x), x)
    lines = f.explain("schedule").splitlines()
    assert any(line.endswith("  time depends on N") for line in lines)
    with geon.NativeTransformer() as native:
        text = native.computation(geon.deriv(geon.sum(limit), x), x).explain("schedule")
    assert text.count("  time depends on N") > 3


def test_explain_of_a_machine_that_was_not_measured_says_so():
    def stated(threads):
        return dataclasses.replace(made(threads), measured=False)

    class Stated(Native):
        target = dataclasses.replace(Native.target, machine=stated)

    x = geon.placeholder([C])
    shown = Stated().computation(geon.exp(x), x).explain("schedule")
    assert shown.endswith("; a profile measures this one")


def test_targets_without_a_machine_predict_nothing():
    x = geon.placeholder([C])
    assert " us" not in Native().computation(geon.exp(x), x).explain("schedule")
    with geon.NumPyTransformer() as transformer:
        assert " us" not in transformer.computation(geon.exp(x), x).explain("schedule")
