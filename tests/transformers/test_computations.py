"""Calls: whose the arrays are, kept values, and programs shared by structure."""

import collections
import os
import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, FeedError, IndexRangeError
from geon.op_graph.op_graph import post_order
from geon.transformers import pipeline as stages
from geon.transformers.cache import programs
from geon.transformers.lowering.planning import schedule as schedules

C3, N4 = geon.Axis("C", 3), geon.Axis("N", 4)


# Arrays -----------------------------------------------------------------------------------------


def test_results_belong_to_the_caller(transformer):
    x = geon.placeholder(axes=C3)
    v = geon.Variable(axes=C3, initial_value=1)
    k = geon.constant(np.arange(3.0, dtype=np.float32), axes=C3)
    results = [x, v, k, x + v, geon.reorder(x, [C3]), x[0:2], geon.exp(x)]
    f = transformer.computation(results, x)
    given = np.array([1, 2, 3], np.float32)
    first = f(given)
    expected = [r.copy() for r in first]
    second = f(given * 0)
    for a, b, c in zip(first, second, expected, strict=True):
        np.testing.assert_array_equal(a, c)
        assert a.flags.writeable and not np.shares_memory(a, b)
        assert not np.shares_memory(a, given)
        a[...] = -5
    np.testing.assert_array_equal(given, [1, 2, 3])
    for a, c in zip(f(given), expected, strict=True):
        np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(transformer.get(v), [1, 1, 1])


def test_one_op_asked_for_twice_gives_two_arrays(transformer):
    x = geon.placeholder(axes=C3)
    first, second = transformer.computation([x + 1, x + 1], x)([1, 2, 3])
    first[:] = 0
    np.testing.assert_array_equal(second, [2, 3, 4])


def test_inputs_are_read_only(transformer):
    x = geon.placeholder(axes=[C3, N4])
    v = geon.Variable(axes=[C3, N4], initial_value=0)
    f = transformer.computation(
        [geon.sequential([geon.assign(x, x * 2 + 1), geon.exp(-x)]), geon.assign(v, x * 2 + 1)], x
    )
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    for array in (given, np.asfortranarray(given), given[::-1], np.repeat(given, 2, 0)[::2]):
        before = array.copy()
        array.setflags(write=False)
        f(array)
        np.testing.assert_array_equal(array, before)
        np.testing.assert_array_equal(transformer.get(v), before * 2 + 1)


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float32"])
def test_a_list_of_nothing_has_no_dtype_of_its_own(transformer, dtype):
    x = geon.placeholder([geon.Axis("N")], dtype)
    found = transformer.computation(x, x)([])
    assert (found.shape, found.dtype) == ((0,), x.dtype)


def test_a_variable_is_not_the_array_it_was_assigned(transformer):
    x, v = geon.placeholder(axes=C3), geon.Variable(axes=C3, initial_value=0)
    given = np.array([1, 2, 3], np.float32)
    transformer.computation(geon.assign(v, x), x)(given)
    given[:] = 0
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 3])


def test_a_requested_variable_gives_its_value_at_entry(transformer):
    v = geon.Variable(axes=C3, initial_value=1)
    f = transformer.computation([v, geon.assign(v, v * 2), v + 0])
    for expected in (1, 2, 4):
        before, effect, same = f()
        np.testing.assert_array_equal(before, [expected] * 3)
        np.testing.assert_array_equal(same, [expected] * 3)
        assert effect is None


def test_a_call_that_raises_leaves_variables_as_they_were(transformer):
    v = geon.Variable(axes=C3, initial_value=[1, 2, 3])
    w = geon.Variable(axes=C3, initial_value=0)
    count = geon.Variable(initial_value=0)
    position = geon.placeholder(axes=N4, dtype="int64")
    picked = geon.gather(v, position, C3)
    f = transformer.computation(
        [
            geon.assign(count, count + 1),
            geon.assign(v, v * 2),
            geon.assign(w, w + geon.sum(picked)),
            picked,
        ],
        position,
    )
    np.testing.assert_array_equal(f([0, 1, 2, 0])[3], [1, 2, 3, 1])
    before = [transformer.get(each) for each in (v, w, count)]
    for bad in ([0, 1, 2, 3], [-4, 0, 0, 0]):
        with pytest.raises(IndexRangeError, match="in the forward pass"):
            f(bad)
    with pytest.raises(FeedError):
        f([0.5, 0, 0, 0])
    for old, variable in zip(before, (v, w, count), strict=True):
        np.testing.assert_array_equal(transformer.get(variable), old)
    f([0, 0, 0, 0])
    assert transformer.get(count) == 2


def test_arenas_of_many_lengths_share_memory(transformer):
    N = geon.Axis("N", "N of many lengths")
    x = geon.placeholder(axes=N)
    f = transformer.computation(geon.sum(geon.exp(x) * geon.sin(x)), x)
    lengths = [3, 1000, 17, 1000, 1, 0, 64, *range(100), 3]
    for n in lengths:
        data = np.linspace(0, 1, n).astype(np.float32)
        np.testing.assert_allclose(f(data), np.sum(np.exp(data) * np.sin(data)), rtol=1e-5)
    (space,) = f._calls[()].free
    assert space.arena.size < 3 * 1000 * 4
    assert len(f._calls[()].bindings) <= 64


# Kept values ------------------------------------------------------------------------------------


def test_kept_values_are_seen_and_replaced(transformer):
    x = geon.placeholder(axes=C3)
    v = geon.Variable(initial_value=0)
    hidden = geon.tanh(x)
    loss = geon.sum(hidden * hidden)
    f = transformer.computation([loss, geon.assign(v, loss)], x, keep=[hidden])
    with pytest.raises(ArgumentError, match="no value yet"):
        f.value(hidden)
    with pytest.raises(ArgumentError, match="keep="):
        f.value(loss)
    with pytest.raises(ArgumentError, match="keep="):
        f.override(loss, 1)
    given = np.array([1, 2, 3], np.float32)
    f(given)
    np.testing.assert_allclose(f.value(hidden), np.tanh(given), rtol=1e-6)
    f.override(hidden, [1, 0, 2])
    assert f(given) == (5, None)
    assert transformer.get(v) == 5
    np.testing.assert_array_equal(f.value(hidden), [1, 0, 2])
    with pytest.raises(FeedError):
        f.override(hidden, [1, 0])
        f(given)
    f.override(hidden, None)
    np.testing.assert_allclose(f(given)[0], np.sum(np.tanh(given) ** 2), rtol=1e-6)


def test_kept_values_below_an_effect(transformer):
    v = geon.Variable(initial_value=1)
    later = geon.sequential([geon.assign(v, v + 1), v * 10])
    f = transformer.computation(later + 1, keep=[later])
    assert (f(), f.value(later)) == (21, 20)
    f.override(later, 5)
    assert f() == 6
    f.override(later, None)
    assert transformer.get(v) in (2, 3)


# Programs by structure --------------------------------------------------------------------------


def count_compiled(monkeypatch, kind):
    made = []
    compile = kind.compile

    def counting(self, plan, linking):
        made.append(plan)
        return compile(self, plan, linking)

    monkeypatch.setattr(kind, "compile", counting)
    return made


def test_graphs_of_one_structure_compile_once(monkeypatch, transformer):
    made = count_compiled(monkeypatch, type(transformer))

    def build(name, number):
        x = geon.placeholder(axes=C3, name=name)
        w = geon.Variable(axes=C3, initial_value=number, name=f"w of {name}")
        return transformer.computation(geon.sum(geon.exp(x * w) * 1.2345), x)

    results = [build(name, number)([1, 0, 1]) for name, number in (("a", 0), ("b", 1))]
    np.testing.assert_allclose(results, [3 * 1.2345, (1 + 2 * np.e) * 1.2345], rtol=1e-6)
    names = [{op.primitive.name for op in post_order(p.schedule.program.roots)} for p in made]
    assert len([found for found in names if "exp" in found]) == 1


def test_what_differs_compiles_again(monkeypatch, transformer):
    made = count_compiled(monkeypatch, type(transformer))
    x = geon.placeholder(axes=C3)
    y = geon.sum(geon.exp(x * 5.4321))
    for options in ({}, {"plan": False}, {"check": "nan"}, {}):
        transformer.computation(y, x, **options)([1, 2, 3])
    transformer.computation(geon.sum(geon.exp(x * 5.4322)), x)([1, 2, 3])
    assert len(made) == 4


def test_large_constants_are_no_part_of_the_program(monkeypatch, transformer):
    made = count_compiled(monkeypatch, type(transformer))
    K = geon.Axis("K", 100)
    x = geon.placeholder()
    arrays = [np.arange(100.0), np.arange(100.0) * 2]
    for array in arrays:
        k = geon.constant(array.astype(np.float32), axes=K)
        f = transformer.computation(geon.sum(k * 0.777) * x, x)
        np.testing.assert_allclose(f(1), array.sum() * 0.777, rtol=1e-6)
    assert len(made) == 1


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(programs, "MAX_CACHED_PROGRAMS", 3)
    monkeypatch.setattr(programs, "_programs", None)
    for number in range(10):
        assert programs.program(f"key {number}", lambda number=number: number) == number
    assert programs.cached_programs() == 3
    assert not programs._making


def test_a_program_that_cannot_be_made_is_tried_again(monkeypatch):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        programs.program("key of a failure", fail)
    assert programs.program("key of a failure", lambda: 5) == 5


def test_each_stage_runs_once_and_is_what_was_compiled(make, monkeypatch):
    runs = collections.Counter()

    def counted(module, name):
        stage = getattr(module, name)

        def run(*args, **options):
            runs[name] += 1
            return stage(*args, **options)

        monkeypatch.setattr(module, name, run)

    for name in ("build_program", "plan_memory"):
        counted(stages, name)
    for name in ("lay_out", "schedule"):
        counted(schedules, name)
    transformer, plans = make(), []
    compile = transformer.compile
    monkeypatch.setattr(transformer, "compile", lambda *a: plans.append(a[0]) or compile(*a))
    x = geon.placeholder([geon.Axis("N")], name="x")
    hidden = geon.sin(x) * 765.25
    f = transformer.computation(geon.cos(hidden), x, keep=[hidden])
    f([1, 2])
    for stage in ("simplify", "schedule", "plan", "emit"):
        assert f.explain(stage)
    assert f.source and f.peak_bytes()
    assert plans == [f.plan] and f.plan.schedule is f.stages().schedule
    assert set(runs.values()) == {1} and len(runs) == 4
    f.override(hidden, [1, 2])
    f([1, 2])
    assert len(plans) == 2 and set(runs.values()) == {2}


KEYS = """
import sys
import numpy as np
import geon
from geon.transformers.cache import programs as cache

keys = []
program = cache.structure_key
def recording(*parts):
    keys.append(program(*parts))
    return keys[-1]
cache.structure_key = recording

N, C = geon.Axis("N"), geon.Axis("C", 3)
x = geon.placeholder(axes=[C, N], name="x")
w = geon.Variable(axes=C, initial_value=geon.Random(3).normal([C]), name="w")
b = geon.Variable(initial_value=0)
y = geon.softmax(geon.dot(w, x) + b, normalization_axes=N)
k = geon.constant(np.arange(200.0), axes=geon.Axis("K", 200))
loss = geon.mean(y * y) + geon.cast(geon.sum(k), "float32")
updates = geon.doall([geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in loss.variables()])
with geon.make_transformer(sys.argv[1]) as t:
    f = t.computation([loss, updates], x)
    f(np.ones((3, 4)))
    print("\\n".join(keys))
    print(f.source.replace(__file__, ""))
"""


def test_keys_and_programs_are_the_same_in_every_process(transformer_name, tmp_path):
    (tmp_path / "build.py").write_text(KEYS)
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, tmp_path / "build.py", transformer_name],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1]
    assert len(found[0].splitlines()[0]) == 64
