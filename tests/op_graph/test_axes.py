"""Axis and Axes: identity, defaults of open names, and what is refused."""

import copy
import gc
import pickle

import numpy as np
import pytest

import geon
from geon.op_graph.axes.axes import as_axes, default_lengths
from geon.op_graph.axes.lengths import Length

N, C = geon.Axis("N"), geon.Axis("C", 4)


@pytest.fixture
def fresh():
    """An open axis whose name no other test uses."""
    name = f"fresh{next(_numbers)}"
    return geon.Axis(name)


_numbers = iter(range(10**6))


def test_an_axis_is_a_name_and_a_length():
    assert C.name == "C" and C.length == 4 and C.expression == 4
    assert N.expression == Length.of("N") and N.open_name == "N"
    assert geon.Axis("rows", "N").open_name == "N"
    assert geon.Axis("half", N.expression // 2).open_name is None
    assert geon.Axis("C", np.int64(4)) == C
    assert geon.Axis("Z", 0).length == 0


def test_equality_and_hash_cover_both():
    assert geon.Axis("C", 4) == C and hash(geon.Axis("C", 4)) == hash(C)
    assert geon.Axis("C", 5) != C and geon.Axis("D", 4) != C and C != "C"


@pytest.mark.parametrize("length", [-1, 2.5, True, [3]])
def test_a_wrong_length_is_refused(length):
    with pytest.raises(geon.AxisError, match="'C'.*integer of at least 0"):
        geon.Axis("C", length)


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_wrong_name_is_refused(name):
    with pytest.raises(geon.AxisError, match="non-empty string"):
        geon.Axis(name)


def test_prime_named_and_with_length():
    assert N.prime.name == "N'" and N.prime.expression == N.expression
    assert N.prime.prime.name == "N''"
    assert C.named("D") == geon.Axis("D", 4) and C.with_length(2) == geon.Axis("C", 2)


def test_a_default_is_no_part_of_identity(fresh):
    before = hash(fresh)
    same = geon.Axis(fresh.name)
    assert fresh.length == fresh.expression
    fresh.length = 128
    assert fresh.length == 128 and same.length == 128 and default_lengths()[fresh.name] == 128
    assert fresh == same and hash(fresh) == before and fresh.open_name == fresh.name
    doubled = geon.Axis("doubled", fresh.expression * 2)
    assert doubled.length == 256
    fresh.length = 3
    assert doubled.length == 6


@pytest.mark.parametrize("length", [-1, 1.5, True, "N"])
def test_a_wrong_default_is_refused(fresh, length):
    with pytest.raises(geon.AxisError, match="integer of at least 0"):
        fresh.length = length


def test_a_fixed_length_cannot_be_set():
    with pytest.raises(geon.AxisError, match="C:4.*fixed.*geon.Axis"):
        C.length = 5
    with pytest.raises(AttributeError, match="immutable"):
        C.name = "D"


def test_axes_are_made_of_anything_like_them():
    want = geon.Axes(N, C)
    for made in (geon.Axes([N, C]), geon.Axes((N, C)), geon.Axes([N], C), geon.Axes(want)):
        assert made is want
    assert as_axes(N) is geon.Axes(N) and as_axes([N, [C]]) is want and as_axes(want) is want
    assert geon.Axes() is geon.Axes([]) and len(geon.Axes()) == 0


def test_axes_refuse_what_is_none_and_a_name_twice():
    with pytest.raises(geon.AxisError, match="geon.Axis values, not of 'N'"):
        geon.Axes("N")
    with pytest.raises(geon.AxisError, match="C.*twice"):
        geon.Axes(C, geon.Axis("C", 5))


def test_axes_are_looked_up_by_name():
    axes = geon.Axes(N, C)
    assert axes["C"] == C and axes[0] == N and list(axes) == [N, C]
    assert C in axes and "N" in axes and geon.Axis("C", 9) in axes and "D" not in axes
    assert axes.index(C) == 1 and axes.index("N") == 0
    assert axes.get("D") is None and axes.get("C") == C
    with pytest.raises(geon.AxisError, match="'D'.*N, C:4"):
        axes.index("D")


def test_parts_and_sizes():
    axes = geon.Axes(N, C)
    assert axes.without([C]) is geon.Axes(N) and axes.only(["C"]) is geon.Axes(C)
    assert axes.same_set(geon.Axes(C, N)) and not axes.same_set(geon.Axes(C))
    assert axes.size == 4 * Length.of("N") and axes.lengths == (N.expression, 4)
    assert str(axes) == "(N, C:4)" and repr(axes) == "Axes(Axis('N'), Axis('C', 4))"


def test_axes_are_immutable_and_one_object():
    axes = geon.Axes(N, C)
    with pytest.raises(AttributeError, match="immutable"):
        axes.names = ()
    assert copy.copy(axes) is axes and copy.deepcopy(axes) is axes
    assert pickle.loads(pickle.dumps(axes)) is axes
    assert pickle.loads(pickle.dumps(C)) == C


def test_dead_axes_are_forgotten():
    table = geon.Axes._table
    made = geon.Axes(geon.Axis("mortal", 3))
    key = tuple(made)
    assert key in table
    del made
    gc.collect()
    assert key not in table


# Axes that meet ----------------------------------------------------------------------------------


def test_elementwise_axes_are_the_lefts_then_the_rights_new_ones():
    x, y = geon.placeholder([N, C]), geon.placeholder([geon.Axis("D", 2), N])
    assert (x + y).axes.names == ("N", "C", "D") and (y + x).axes.names == ("D", "N", "C")


def test_lengths_that_never_agree_are_refused_at_the_users_line():
    x, y = geon.placeholder([C], name="x"), geon.placeholder([geon.Axis("C", 5)], name="y")
    with pytest.raises(geon.AxisError, match=r"'C' has length 4.*and 5") as caught:
        x + y
    assert str(caught.value).count("test_axes.py:") == 3 and "geon.rename" in str(caught.value)
    with pytest.raises(geon.AxisError):
        geon.placeholder([N]) + geon.placeholder([geon.Axis("N", N.expression + 1)])


def test_lengths_that_may_agree_are_guarded():
    x, y = geon.placeholder([N]), geon.placeholder([geon.Axis("N", 3)])
    (guard,) = (x + y).guards
    assert guard.relation == "==" and guard.holds(3, 3) and not guard.holds(3, 4)
    assert "test_axes.py:" in guard.meaning


def test_length_one_does_not_stretch():
    with pytest.raises(geon.AxisError):
        geon.placeholder([C]) + geon.placeholder([geon.Axis("C", 1)])


def test_tensors_without_a_shared_axis_are_refused():
    x, y = geon.placeholder([N], name="x"), geon.placeholder([C], name="y")
    with pytest.raises(geon.AxisError, match=r"share no axis(.|\n)*geon.outer\(add") as caught:
        x + y
    assert str(caught.value).count("test_axes.py:") == 3  # of the sum, and of both operands
    outer = geon.outer(geon.add, x, y)
    assert outer.axes is geon.Axes(N, C)
    with pytest.raises(geon.AxisError, match="share no axis"):
        x + y  # although the very op is alive now
    with pytest.raises(geon.AxisError, match="share no axis"):
        geon.add(x, y)
    assert (x + 1.0).axes is x.axes
    assert (geon.placeholder(()) + x).axes is x.axes


def test_three_operands_share_in_a_chain():
    a, b = geon.Axis("A", 2), geon.Axis("B", 3)
    op = geon.where(geon.placeholder([a], "bool"), geon.placeholder([a, b]), geon.placeholder([b]))
    assert op.axes is geon.Axes(a, b)
    with pytest.raises(geon.AxisError):
        geon.where(geon.placeholder([a], "bool"), geon.placeholder([b]), 0.0)


def test_a_string_of_another_type_is_taken_as_pythons():
    axis = geon.Axis(np.str_("M"))
    x = geon.placeholder([axis], name=np.str_("x"))
    stream = geon.Random(0, name=np.str_("r"))
    assert [type(each) for each in (axis.name, x.name, stream.name)] == [str, str, str]
    (loaded,) = geon.loads(geon.dumps([geon.sum(x)]))
    assert loaded.args[0].axes is x.axes
