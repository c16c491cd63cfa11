"""An axis of a tensor may be given by its name, wherever a tensor can tell."""

import inspect

import pytest

import geon

A, B, C = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("C", 6)
x = geon.placeholder([A, B], name="x")
y = geon.placeholder([B, C], name="y")
z = geon.placeholder([C], name="z")
whole = geon.placeholder([A], "int64", name="whole")
new = geon.Axis("new", 4)
D, R = geon.Axis("D", 2), geon.Axis("R", 2)
SQUARE, FILTER = [[1.0, 2.0], [3.0, 4.0]], geon.constant([1.0, -1.0], [R])
parts = [geon.Axis("left", 2), geon.Axis("right", 3)]

# For each function that takes axes of a tensor: a call, given axes or their names.
CALLS = {
    "sum": [lambda a, b: geon.sum(x, a), lambda a, b: geon.sum(x, out_axes=[b])],
    "prod": [lambda a, b: geon.prod(x, [a, b])],
    "max": [lambda a, b: geon.max(x, a)],
    "min": [lambda a, b: geon.min(x, a)],
    "any": [lambda a, b: geon.any(x > 0, a)],
    "all": [lambda a, b: geon.all(x > 0, a)],
    "argmax": [lambda a, b: geon.argmax(x, b)],
    "argmin": [lambda a, b: geon.argmin(x, b)],
    "tensor_size": [lambda a, b: geon.tensor_size(x, a)],
    "mean": [lambda a, b: geon.mean(x, a), lambda a, b: geon.mean(x, out_axes=b)],
    "variance": [lambda a, b: geon.variance(x, a)],
    "std": [lambda a, b: geon.std(x, a)],
    "squared_L2": [lambda a, b: geon.squared_L2(x, a)],
    "L2_norm": [lambda a, b: geon.L2_norm(x, a)],
    "logsumexp": [lambda a, b: geon.logsumexp(x, a), lambda a, b: geon.logsumexp(x, out_axes=a)],
    "softmax": [lambda a, b: geon.softmax(x, a)],
    "log_softmax": [lambda a, b: geon.log_softmax(x, normalization_axes=[b])],
    "cross_entropy_binary": [lambda a, b: geon.cross_entropy_binary(x, x, out_axes=[a])],
    "cross_entropy_multi": [lambda a, b: geon.cross_entropy_multi(x, x, reduction_axes=a)],
    "dot": [lambda a, b: geon.dot(x, y, b), lambda a, b: geon.dot(x, x, over=[a])],
    "contract": [
        lambda a, b: geon.contract([x, y], over=b),
        lambda a, b: geon.contract([x, y], [b, a]),
    ],
    "round": [lambda a, b: geon.round(x, axes=[b, a])],
    "reorder": [lambda a, b: geon.reorder(x, [b, a])],
    "broadcast": [lambda a, b: geon.broadcast(x, [b, new, a])],
    "flip": [lambda a, b: geon.flip(x, a), lambda a, b: geon.flip(x, [a, b])],
    "flatten": [lambda a, b: geon.flatten(x, [b, a])],
    "unflatten": [lambda a, b: geon.unflatten(z, C if a is A else "C", parts)],
    "rename": [lambda a, b: geon.rename(x, {a: "Q", b: new.named("R").with_length(3)})],
    "pad": [lambda a, b: geon.pad(x, {b: 1, a: (0, 2)})],
    "cumsum": [lambda a, b: geon.cumsum(x, a)],
    "cumprod": [lambda a, b: geon.cumprod(x, a)],
    "cummax": [lambda a, b: geon.cummax(x, a)],
    "cummin": [lambda a, b: geon.cummin(x, a)],
    "argcummax": [lambda a, b: geon.argcummax(x, a)],
    "argcummin": [lambda a, b: geon.argcummin(x, a)],
    "logcumsumexp": [lambda a, b: geon.logcumsumexp(x, a)],
    "lexsort": [lambda a, b: geon.lexsort([x, x], b)],
    "kthvalue": [lambda a, b: geon.kthvalue(x, 2, b)[0]],
    "mode": [lambda a, b: geon.mode(x, b)[0]],
    "interp": [lambda a, b: geon.interp(x[{A: 0}], z, z, C if a is A else "C")],
    "searchsorted": [lambda a, b: geon.searchsorted(x, x[{B: 0}], b)],
    **{
        name: [lambda a, b, f=f: f(x, 0.5, a), lambda a, b, f=f: f(x, 0.5, out_axes=b)]
        for name, f in (
            ("quantile", geon.quantile),
            ("nanquantile", geon.nanquantile),
            ("percentile", geon.percentile),
        )
    },
    **{
        name: [lambda a, b, f=f: f(x, a)]
        for name, f in (
            ("median", geon.median),
            ("nanmedian", geon.nanmedian),
            ("nansum", geon.nansum),
            ("nanmean", geon.nanmean),
            ("count_nonzero", geon.count_nonzero),
        )
    },
    "allclose": [lambda a, b: geon.allclose(x, x + 1, reduction_axes=a)],
    "cdist": [lambda a, b: geon.cdist(x, y[{C: 0}], b)],
    "cross": [lambda a, b: geon.cross(x, x, b)],
    "cumulative_trapezoid": [lambda a, b: geon.cumulative_trapezoid(x, b)],
    "diag_embed": [lambda a, b: geon.diag_embed(x, b, geon.Axis("Q", 3))],
    "diff": [lambda a, b: geon.diff(x, b)],
    "trapezoid": [lambda a, b: geon.trapezoid(x, b)],
    "aminmax": [lambda a, b: geon.aminmax(x, a)[0]],
    "renorm": [lambda a, b: geon.renorm(x, a, 1.0)],
    "bincount": [lambda a, b: geon.bincount(whole, geon.Axis("K", 3), a)],
    "histogram": [lambda a, b: geon.histogram(x, geon.Axis("K", 3), 0, 1, a)],
    **{
        name: [lambda a, b, f=f: f(x, whole, geon.Axis("K", 3), a)]
        for name, f in (
            ("segment_sum", geon.segment_sum),
            ("segment_prod", geon.segment_prod),
            ("segment_max", geon.segment_max),
            ("segment_min", geon.segment_min),
            ("segment_mean", geon.segment_mean),
        )
    },
    "nonzero": [lambda a, b: geon.nonzero(x, over=a).count],
    "masked_scatter": [
        lambda a, b: geon.masked_scatter(x, x > 0, z, C if a is A else "C"),
    ],
    "sort": [lambda a, b: geon.sort(x, b)],
    "argsort": [lambda a, b: geon.argsort(x, b)],
    "top_k": [lambda a, b: geon.top_k(x, 2, b)[1]],
    "associative_scan": [lambda a, b: geon.associative_scan(geon.add, x, over=a)],
    "scan": [lambda a, b: geon.scan(lambda c, each: (c + geon.sum(each), c), 0.0, x, over=a)[1]],
    "diagonal": [lambda a, b: geon.diagonal(geon.constant(SQUARE, [A, D]), [a, "D"])],
    "convolution": [lambda a, b: geon.convolution(x, FILTER, {b: geon.Window(R)}, over=[])],
    "transposed_convolution": [
        lambda a, b: geon.transposed_convolution(x, FILTER, {b: geon.Window(R)}, over=[])
    ],
    "concat": [lambda a, b: geon.concat([x, x], b)],
    "gather": [lambda a, b: geon.gather(y, whole, b)],
    "take_along": [lambda a, b: geon.take_along(y, whole, b)],
    "scatter": [lambda a, b: geon.scatter(y, whole, 1.0, b)],
    "update": [lambda a, b: geon.update(x, 0.0, {b: 1})],
    "an index": [lambda a, b: x[{b: 1, a: slice(1, None)}]],
    "axes= of an op": [lambda a, b: geon.exp(x, axes=[b, a])],
}
# The axes of these are new: no tensor can tell what a name means.
NEW = {
    "placeholder", "Variable", "variable", "constant", "persistent_tensor", "temporary_tensor",
    "iota", "linspace", "logspace", "expand", "stack", "onehot", "cast_axes", "lengths",
    "while_loop", "from_sympy",
}  # fmt: skip
PARAMETERS = {"axis", "axes", "over", "reduction_axes", "out_axes", "normalization_axes", "widths"}


@pytest.mark.parametrize(
    ("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls]
)
def test_every_function_takes_a_name(name, call):
    assert call("A", "B") is call(A, B)
    assert call("A", B) is call(A, B)


def test_no_function_that_takes_axes_is_left_out():
    found = set()
    for name in (each for each in dir(geon) if each[0] != "_"):
        value = getattr(geon, name)
        if inspect.isfunction(value) and PARAMETERS & {*inspect.signature(value).parameters}:
            found.add(name)
    assert found - NEW <= CALLS.keys()


@pytest.mark.parametrize(
    "call",
    [
        lambda: geon.sum(x, "Z"),
        lambda: geon.dot(x, y, over="Z"),
        lambda: x[{"Z": 0}],
        lambda: geon.reorder(x, ["A", "Z"]),
        lambda: geon.contract([x, y], "Z"),
        lambda: geon.rename(x, {"Z": "Q"}),
        lambda: geon.sort(x, "Z"),
    ],
)
def test_a_name_that_is_not_there(call):
    with pytest.raises(geon.AxisError, match=r"axis 'Z' is no axis of x\(A:2, B:3\) .*(it|they) h"):
        call()


def test_a_new_axis_by_name_says_how_to_make_one():
    with pytest.raises(geon.AxisError, match=r"no axis of x.*; geon.Axis\(name, length\) is a new"):
        geon.broadcast(x, ["A", "B", "Z"])
    with pytest.raises(geon.AxisError, match=r"write geon.Axis\('Z'\)"):
        geon.expand(x, "Z")


def test_lengths_take_names(transformer):
    N = geon.Axis("N by name")
    count = geon.sum(geon.iota(N))
    assert transformer.computation(count, lengths={N.name: 4})() == 6
    assert transformer.computation(count, specialize={N.name: 3})() == 3
    with geon.lengths({N.name: 5}):
        assert transformer.computation(count)() == 10
    with pytest.raises(geon.ArgumentError, match="N by name is 3 and 4; give it once"):
        transformer.computation(count, lengths={N: 3, N.name: 4})


def test_methods_are_the_functions():
    assert x.sum("A") is geon.sum(x, A)
    assert x.sum(out_axes=A) is geon.sum(x, out_axes=A)
    assert x.mean(B) is geon.mean(x, B)
    assert x.max() is geon.max(x)
    assert x.min([A, B]) is geon.min(x)
    assert x.dot(y) is geon.dot(x, y)
    assert x.dot(x, "A") is geon.dot(x, x, A)
    assert x.cast("float64") is geon.cast(x, "float64")
    assert x.rename({"A": "Q"}) is geon.rename(x, {A: "Q"})
    assert x.reorder(["B", "A"]) is geon.reorder(x, [B, A])
    assert x.broadcast([A, B, new]) is geon.broadcast(x, [A, B, new])
    assert x.shape == (2, 3) and geon.placeholder(geon.Axis("N")).shape == (geon.Axis("N").length,)
    assert (x * x).sum().deriv(x) is geon.deriv(geon.sum(x * x), x)
    assert x.mean("A", name="centre").name == "centre"
    for name in ("sum", "mean", "max", "min", "dot", "cast", "rename", "reorder", "broadcast"):
        assert f"geon.{name}" in getattr(geon.Tensor, name).__doc__
