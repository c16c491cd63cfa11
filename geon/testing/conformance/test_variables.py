"""Variables: initial values, reading and setting them, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import Leaf
from geon.testing.samples import A, B, D

Make = Callable[[], geon.Transformer]


def model() -> tuple[list[Leaf], geon.Op]:
    """Return variables of three dtypes and an effect that changes them."""
    w = geon.Variable(axes=[A, B], initial_value=0.5, name="w")
    b = geon.Variable(axes=[B], dtype="float64", initial_value=1, name="b")
    steps = geon.persistent_tensor(dtype="int64", initial_value=0, name="steps")
    step = geon.doall(
        [geon.assign(w, w * 2 + 1), geon.assign(b, b - 0.25), geon.assign(steps, steps + 1)]
    )
    return [w, b, steps], step


def test_every_kind_of_first_value(transformer: geon.Transformer) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    number = geon.Variable(axes=[A], initial_value=3)
    given = geon.Variable(axes=[A, B], initial_value=array)
    called = geon.Variable(
        axes=[B, A], initial_value=lambda axes: np.full([a.length for a in axes], 7)
    )
    computed = geon.Variable(axes=[A, B], initial_value=given * 2 + number)
    copied = geon.Variable(initial_value=computed + 1)
    values = transformer.computation([copied, computed, called, given, number])()
    expected = [array * 2 + 4, array * 2 + 3, np.full((3, 2), 7), array, [3, 3]]
    for value, right in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, right)


def test_get_set_and_initialize(transformer: geon.Transformer) -> None:
    v = geon.Variable(axes=[D], initial_value=1)
    np.testing.assert_array_equal(transformer.get(v), np.ones(5))
    transformer.set(v, np.arange(5))
    transformer.initialize()
    np.testing.assert_array_equal(transformer.get(v), np.arange(5))
    transformer.initialize(force=True)
    np.testing.assert_array_equal(transformer.get(v), np.ones(5))
    with pytest.raises(geon.FeedError):
        transformer.set(v, np.zeros(4))


def test_a_variable_without_a_value_is_refused(transformer: geon.Transformer) -> None:
    v = geon.Variable(axes=[D])
    with pytest.raises(geon.ArgumentError, match="test_variables.py:"):
        transformer.computation(v + 1)()
    transformer.computation(geon.assign(v, 2.0))()
    np.testing.assert_array_equal(transformer.get(v), np.full(5, 2))


def test_allocate_and_lengths_of_variables(transformer: geon.Transformer) -> None:
    n = geon.Axis("N")
    v = geon.Variable(axes=[n], initial_value=1)
    x = geon.placeholder([n])
    f = transformer.computation(geon.sequential([geon.assign(v, v + x), v * 1]), x)
    transformer.allocate(lengths={n: 4})
    np.testing.assert_array_equal(f(np.arange(4)), np.arange(4) + 1)
    with pytest.raises(geon.FeedError):
        f(np.arange(5))


def test_transformers_share_no_state(make: Make) -> None:
    variables, step = model()
    first, second = make(), make()
    first.computation(step)()
    assert int(first.get(variables[2])) == 1 and int(second.get(variables[2])) == 0


def test_saved_and_restored(make: Make, tmp_path: Path) -> None:
    variables, step = model()
    first, second = make(), make()
    f, g = first.computation(step), second.computation(step)
    f()
    f()
    first.save(tmp_path / "state")
    g()
    second.restore(tmp_path / "state")
    for transformer, call in ((first, f), (second, g)):
        call()
        np.testing.assert_array_equal(transformer.get(variables[0]), np.full((2, 3), 11))
        np.testing.assert_array_equal(transformer.get(variables[1]), np.full(3, 0.25))
        assert int(transformer.get(variables[2])) == 3


def test_checkpoints_are_those_of_every_transformer(make: Make, tmp_path: Path) -> None:
    variables, step = model()
    ours, other = make(), geon.make_transformer("numpy")
    ours.computation(step)()
    ours.save(tmp_path / "ours")
    other.computation(step)
    other.restore(tmp_path / "ours")
    other.save(tmp_path / "other")
    ours.initialize(force=True)
    ours.restore(tmp_path / "other")
    assert int(ours.get(variables[2])) == 1


def test_what_does_not_fit_changes_nothing(make: Make, tmp_path: Path) -> None:
    variables, step = model()
    first, second = make(), make()
    first.computation(step)()
    other = geon.Variable(axes=[A], initial_value=1, name="w")
    second.computation([other, *variables[1:]])()
    second.save(tmp_path / "other")
    (tmp_path / "none").write_bytes(b"no checkpoint")
    for name in ("other", "none"):
        with pytest.raises(geon.CheckpointError):
            first.restore(tmp_path / name)
    assert int(first.get(variables[2])) == 1


def test_temporary_variables_are_not_saved(make: Make, tmp_path: Path) -> None:
    kept = geon.Variable(axes=[A], initial_value=1, name="kept")
    scratch = geon.temporary_tensor([A], initial_value=1, name="scratch")
    for transformer in (first := make(), second := make()):
        transformer.computation(geon.doall([geon.assign(v, v + 1) for v in (kept, scratch)]))()
    first.computation(geon.assign(scratch, scratch + 5))()
    first.save(tmp_path / "state")
    second.restore(tmp_path / "state")
    np.testing.assert_array_equal(second.get(scratch), [2, 2])
