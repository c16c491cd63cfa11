"""The common axes are open axes under their own names."""

import geon
import geon.frontends.base.axis as ax


def test_every_common_axis_is_open_and_called_what_it_is_called():
    axes = {name: axis for name, axis in vars(ax).items() if isinstance(axis, geon.Axis)}
    assert set("CDHWNTRSKMY") <= axes.keys()
    for name, axis in axes.items():
        assert axis == geon.Axis(name)
        assert axis.open_name == name


def test_they_match_axes_of_the_same_name():
    x = geon.placeholder(axes=[ax.C, ax.N])
    w = geon.placeholder(axes=[geon.Axis("C", 3), ax.Y])
    assert geon.dot(w, x).axes == geon.Axes(ax.Y, ax.N)
