"""labels=True: results as arrays of xarray, with dims and the coordinates that they keep."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
import xarray

import geon
from geon.op_graph.evaluation.axis_provenance import kept_axes

T, LAT, LON = geon.Axis("time"), geon.Axis("lat", 3), geon.Axis("lon", 4)
DATES = pandas.date_range("2020-01-01", periods=5)
DATA = xarray.DataArray(
    np.random.default_rng(0).normal(size=(5, 3, 4)),
    dims=("time", "lat", "lon"),
    coords={
        "time": DATES,
        "lat": [10.0, 20.0, 30.0],
        "lon": [0, 90, 180, 270],
        "area": (("lat", "lon"), np.ones((3, 4))),
        "month": ("time", DATES.month),
        "level": 500,
    },
)


def placeholder(name="x"):
    return geon.placeholder([T, LAT, LON], "float64", name=name)


def computed(transformer, build, *data):
    x = placeholder()
    return transformer.computation(build(x), x, labels=True)(*(data or (DATA,)))


def test_a_result_has_dims_and_the_coordinates_of_axes_it_keeps(transformer):
    mean = computed(transformer, lambda x: geon.mean(x, T))
    xarray.testing.assert_allclose(mean, DATA.mean("time", keep_attrs=False))
    assert set(mean.coords) == {"lat", "lon", "area", "level"}
    whole = computed(transformer, lambda x: geon.sum(x))
    assert whole.dims == () and set(whole.coords) == {"level"}
    anomaly = computed(transformer, lambda x: x - geon.mean(x, T))
    xarray.testing.assert_allclose(anomaly, DATA - DATA.mean("time"))
    assert set(anomaly.coords) == set(DATA.coords)
    zonal = computed(transformer, lambda x: geon.mean(x, [T, LON]))
    xarray.testing.assert_allclose(zonal, DATA.mean(["time", "lon"]))


@pytest.mark.parametrize("order", [("lon", "time", "lat"), ("lat", "lon", "time")])
def test_dims_of_the_input_in_any_order(order, transformer):
    found = computed(transformer, lambda x: geon.exp(x), DATA.transpose(*order))
    xarray.testing.assert_allclose(found, np.exp(DATA), check_dim_order=False)
    assert found.dims == DATA.dims


def shifted(x):
    """x of the day before, and zeros before the first."""
    return geon.pad(x[{T: slice(0, T.expression - 1)}], {T: (1, 0)})


def steps(x):
    """From each day to the next."""
    return x[{T: slice(1, None)}] - x[{T: slice(0, -1)}]


def test_slices_and_places_of_constant_bounds(transformer):
    """Each as xarray has it, coordinates along several dims and scalars too."""
    data = DATA.assign_attrs(units="K").drop_vars("month")
    mean = geon.mean
    cases = [
        (lambda x: x[{T: slice(1, 4)}], lambda a: a.isel(time=slice(1, 4))),
        (lambda x: 2 * x[{T: slice(1, None, 2), LAT: slice(0, 2)}] + 1,
         lambda a: 2 * a.isel(time=slice(1, None, 2), lat=slice(0, 2)) + 1),
        (lambda x: mean(x[{LON: slice(1, 3)}], T), lambda a: a.isel(lon=slice(1, 3)).mean("time")),
        (lambda x: x[{T: slice(1, None)}][{T: slice(2, None)}], lambda a: a[3:]),
        (lambda x: x[{T: 2}] * 2, lambda a: a.isel(time=2) * 2),
        (lambda x: x[{LAT: -1, LON: slice(2, None)}], lambda a: a.isel(lat=-1, lon=slice(2, None))),
        (lambda x: x[{T: slice(1, None)}][{T: 1}] - x[{T: 2}], lambda a: a.isel(time=2) * 0),
        (lambda x: x[{T: 0}] - x[{T: 1}], lambda a: a.isel(time=0) - a.isel(time=1)),
        (lambda x: x[{T: 1}][{LON: 3}] + mean(x), lambda a: a.isel(time=1, lon=3) + a.mean()),
        (steps, lambda a: a.diff("time").drop_vars("time")),
    ]  # fmt: skip
    x = placeholder()
    results = transformer.computation([build(x) for build, _ in cases], x, labels=True)(data)
    with xarray.set_options(keep_attrs=True):
        for found, (_, expected) in zip(results, cases, strict=True):
            wanted = expected(data)
            xarray.testing.assert_allclose(found, wanted)
            assert set(found.coords) == set(wanted.coords) and found.attrs == wanted.attrs


def test_places_of_which_several_are_joined_have_no_coordinate(transformer):
    k = geon.Axis("k")
    both = computed(transformer, lambda x: geon.stack([x[{T: 0}], x[{T: 1}]], k))
    assert set(both.coords) == {"lat", "lon", "area", "level"}
    moved = computed(transformer, lambda x: geon.pad(x[{T: slice(1, None)}], {T: (0, 1)}))
    assert "time" not in moved.coords
    last = computed(transformer, lambda x: x[{T: slice(T.expression - 2, None)}])
    assert "time" not in last.coords


def test_a_dataset_of_different_parts_is_not_aligned(transformer):
    x = placeholder()
    parts = {"a": x[{T: slice(1, None)}], "b": x[{T: slice(0, T.expression - 1)}]}
    found = transformer.computation(parts, x, labels=True)(DATA)
    assert found.sizes["time"] == 4 and "time" not in found.coords
    np.testing.assert_array_equal(found.a, DATA[1:])
    with pytest.raises(geon.FeedError, match="'month' has the name of a coordinate"):
        transformer.computation({"month": x[{T: slice(1, 3)}]}, x, labels=True)(DATA)


def test_attrs_on_which_inputs_agree(transformer):
    x, y = placeholder(), geon.placeholder([LAT], "float64", name="y")
    f = transformer.computation([x * y, geon.sum(x, T), y + 1], x, y, labels=True)
    one = DATA.assign_attrs(units="K", source="a", levels=[1, 2])
    other = DATA[0, :, 0].drop_vars(["time", "month"]).assign_attrs(units="m", levels=[1, 2], z=1)
    found = [each.attrs for each in f(one, other)]
    assert found == [{"source": "a", "levels": [1, 2], "z": 1}, one.attrs, other.attrs]
    assert f(DATA, other)[1].attrs == {}
    with xarray.set_options(keep_attrs=False):
        assert [each.attrs for each in f(one, other)] == [{}, {}, {}]


KEPT = {
    "elementwise": (lambda x: geon.tanh(x) * 2, "time lat lon"),
    "difference": (lambda x: steps(x), "lat lon"),
    "reversed": (lambda x: geon.flip(x, LAT), "time lon"),
    "reversed twice": (lambda x: geon.flip(geon.flip(x, LAT), LAT), "time lat lon"),
    "sorted": (lambda x: geon.sort(x, T), "lat lon"),
    "places in order": (lambda x: geon.argsort(x, LON), "time lat"),
    "running": (lambda x: geon.cumsum(x, T), "time lat lon"),
    "gathered": (lambda x: geon.gather(x, 2 - geon.iota(LAT), LAT), "time lon"),
    "a row for each": (
        lambda x: geon.gather(geon.mean(x, T), geon.cast(x[{LAT: 0, LON: 0}] > 0, "int64"), LAT),
        "time lon",
    ),
    "permuted": (lambda x: geon.take_along(x, geon.argsort(x, LAT), LAT), "time lon"),
    "renamed": (lambda x: geon.rename(x, {LAT: geon.Axis("phi", 3)}), "time lon"),
    "turned": (lambda x: geon.reorder(x, [LON, LAT, T]), "time lat lon"),
    "shifted": (lambda x: shifted(x), "lat lon"),
    "beside the shifted": (lambda x: x - shifted(x), "time lat lon"),
    "sum of squares": (lambda x: geon.sum(geon.square(x), [LAT, LON]), "time"),
    "largest": (lambda x: geon.argmax(x, T), "lat lon"),
    "product": (lambda x: geon.dot(x, geon.constant(np.ones(4), [LON]), over=LON), "time lat"),
    "gradient": (lambda x: geon.deriv(geon.sum(geon.square(steps(x))), x), "time lat lon"),
    "flat": (lambda x: geon.flatten(x, [LAT, LON], geon.Axis("point", 12)), "time"),
}


@pytest.mark.parametrize("name", KEPT)
def test_which_axes_keep_their_coordinates(name, transformer):
    build, kept = KEPT[name]
    found = computed(transformer, build)
    assert {dim for dim in ("time", "lat", "lon") if dim in found.coords} == set(kept.split())
    for dim in kept.split():
        np.testing.assert_array_equal(found[dim], DATA[dim])
    assert ("area" in found.coords) == ({"lat", "lon"} <= set(kept.split()))
    assert ("month" in found.coords) == ("time" in kept.split())


def test_a_long_way_ends():
    N = geon.Axis("N")
    leaf = x = geon.placeholder(N)
    for _ in range(30):
        x = geon.pad(x[1:], {N: (0, 1)}) + geon.pad(x[:-1], {N: (1, 0)})
    assert kept_axes(x) == {"N": {leaf}}
    only = geon.placeholder(N)
    for _ in range(300):
        only = geon.pad(only[1:], {N: (0, 1)}) * geon.pad(only[2:], {N: (0, 2)})
    assert kept_axes(only) == {}


def test_dictionaries_are_datasets_and_other_structures_what_they_are(transformer):
    x = placeholder()
    count = geon.Variable(initial_value=0, dtype="int64", name="count")
    step = geon.assign(count, count + 1)
    mean = geon.mean(x, T)
    results = {"mean": mean, "anomaly": x - mean, "step": step}
    found = transformer.computation(results, x, labels=True)(DATA)
    assert isinstance(found, xarray.Dataset) and set(found) == {"mean", "anomaly"}
    wanted = xarray.Dataset({"mean": DATA.mean("time"), "anomaly": DATA - DATA.mean("time")})
    xarray.testing.assert_allclose(found, wanted)
    assert transformer.get(count) == 1
    nested = transformer.computation([{"a": mean}, (x, step), {"b": [mean]}], x, labels=True)(DATA)
    assert isinstance(nested[0], xarray.Dataset) and nested[1][1] is None
    assert isinstance(nested[1][0], xarray.DataArray)
    assert isinstance(nested[2], dict) and isinstance(nested[2]["b"][0], xarray.DataArray)
    named = geon.mean(x, T)
    named = geon.multiply(named, 3.0, name="thrice")
    assert transformer.computation(named, x, labels=True)(DATA).name == "thrice"


def test_what_no_dataset_holds_is_refused_when_the_computation_is_made(transformer):
    x = placeholder()
    with pytest.raises(geon.ArgumentError, match="'lat' has the name of an axis"):
        transformer.computation({"lat": geon.mean(x, T)}, x, labels=True)
    with pytest.raises(geon.ArgumentError, match=r"one length along 'time'.*test_labels.*rename"):
        transformer.computation({"a": x, "b": x[{T: slice(1, None)}]}, x, labels=True)


def test_several_inputs_agree_on_coordinates(transformer):
    x, y = placeholder("x"), geon.placeholder([LAT, LON], "float64", name="y")
    f = transformer.computation(x + y, x, y, labels=True)
    other = DATA.isel(time=0, drop=True)
    found = f(DATA, other)
    assert set(found.coords) == set(DATA.coords)
    with pytest.raises(geon.FeedError) as caught:
        f(DATA, other.assign_coords(lat=[30.0, 20.0, 10.0]))
    text = str(caught.value)
    assert "'lat' are [10.0, 20.0, 30.0] in x" in text and "[30.0, 20.0, 10.0] in y" in text
    assert x.file_info in text and "xarray.align" in text and ".drop_vars('lat')" in text
    found = f(DATA, other.drop_vars("lat"))
    np.testing.assert_array_equal(found.lat, DATA.lat)
    found = f(DATA.drop_vars(list(DATA.coords)), other)
    assert set(found.coords) == {"lat", "lon", "area", "level"}
    assert "level" not in f(DATA, other.assign_coords(level=850)).coords  # xarray drops it too


LIKE = DATA.isel(time=0, drop=True)
ENTRANCES = {
    "initial value": lambda t: geon.Variable([LAT, LON], "float64", initial_value=LIKE),
    "own axes": lambda t: geon.Variable(initial_value=LIKE),
    "set": lambda t: set_to(t, geon.Variable([LAT, LON], "float64", initial_value=0)),
    "constant": lambda t: geon.constant(LIKE),
    "constant over axes": lambda t: geon.constant(LIKE.T, [LAT, LON]),
    "operand": lambda t: geon.iota(LAT) * 0 + LIKE,
}


def set_to(transformer, variable):
    transformer.set(variable, LIKE)
    return variable


@pytest.mark.parametrize("enter", ENTRANCES.values(), ids=ENTRANCES)
def test_what_was_made_of_labelled_data_has_its_coordinates(enter, transformer):
    held = enter(transformer)
    found = transformer.computation(held * 2, labels=True)()
    xarray.testing.assert_allclose(found, LIKE * 2)
    x = placeholder()
    f = transformer.computation(x + held, x, labels=True)
    assert set(f(DATA.values).coords) == {"lat", "lon", "area", "level"}
    with pytest.raises(geon.FeedError, match=r"along 'lat' are .* in x.*drop_vars"):
        f(DATA.assign_coords(lat=[3.0, 2.0, 1.0]))


def test_coordinates_over_several_axes_have_the_order_of_the_result(transformer):
    turned = geon.constant((LIKE + 1.25).T, [LAT, LON])
    found = transformer.computation(turned * 2, labels=True)()
    assert found.area.dims == ("lat", "lon")
    xarray.testing.assert_allclose(found, (LIKE + 1.25) * 2)


def test_the_last_value_of_a_variable_counts(transformer, make, tmp_path):
    v = geon.Variable(initial_value=LIKE, name="v")
    f = transformer.computation(v * 1, labels=True)
    transformer.set("v", LIKE.assign_coords(lat=[3.0, 2.0, 1.0]))
    np.testing.assert_array_equal(f().lat, [3, 2, 1])
    transformer.set(v, np.zeros((3, 4)))
    np.testing.assert_array_equal(f().lat, [3, 2, 1])  # bare arrays say nothing else
    transformer.save(tmp_path / "file")
    transformer.restore(tmp_path / "file")
    np.testing.assert_array_equal(f().lat, [3, 2, 1])
    with make() as other:
        np.testing.assert_array_equal(other.computation(v * 1, labels=True)().lat, LIKE.lat)


def test_equal_constants_have_the_coordinates_on_which_they_agree(transformer):
    few = xarray.DataArray([7.5, 8.5], dims="k", coords={"k": [1, 2], "j": ("k", [3, 4])})
    one = geon.constant(few)
    assert transformer.computation(one * 1, labels=True)().k.values.tolist() == [1, 2]
    two = geon.constant(few.assign_coords(k=[5, 6]))
    assert one is two
    assert set(transformer.computation(one * 1, labels=True)().coords) == {"j"}


def test_bare_arrays_and_tables(transformer):
    found = computed(transformer, lambda x: x * 2, DATA.values)
    assert found.dims == DATA.dims and not found.coords
    table = pandas.Series([1.0, 2.0, 3.0], pandas.Index([10.0, 20.0, 30.0], name="lat"))
    lat = geon.placeholder(LAT, "float64")
    found = transformer.computation(lat + 1, lat, labels=True)(table)
    np.testing.assert_array_equal(found.lat, [10, 20, 30])


def test_an_index_of_several_levels_stays_one(transformer):
    stacked = DATA.drop_vars("area").stack(point=("lat", "lon"))
    P = geon.Axis("point", 12)
    x = geon.placeholder([T, P], "float64")
    found = transformer.computation(x - geon.mean(x, T), x, labels=True)(stacked)
    xarray.testing.assert_allclose(
        found.unstack("point"), (DATA - DATA.mean("time")).drop_vars("area")
    )


def test_a_call_that_is_refused_for_its_coordinates_changes_nothing(transformer):
    x, y = placeholder("x"), geon.placeholder([LAT, LON], "float64", name="y")
    count = geon.Variable(initial_value=0, dtype="int64")
    f = transformer.computation([x + y, geon.assign(count, count + 1)], x, y, labels=True)
    for call in (f, f.start):
        with pytest.raises(geon.FeedError, match="'lat'"):
            call(DATA, LIKE.assign_coords(lat=[3.0, 2.0, 1.0]))
    assert transformer.get(count) == 0


def test_started_calls_give_labelled_results(transformer):
    x = placeholder()
    f = transformer.computation({"m": geon.mean(x, T)}, x, labels=True)
    started = f.start(DATA)
    xarray.testing.assert_allclose(started.result()["m"], DATA.mean("time"))
    assert started.done() and started.result() is started.result()
    with pytest.raises(geon.ArgumentError, match="leave out on_device=True"):
        transformer.computation(x + 1, x, labels=True, on_device=True)


def test_other_options_go_with_it(transformer):
    x = placeholder()
    kept = x + 1
    f = transformer.computation(kept * 2, x, labels=True, keep=[kept], name="f")
    xarray.testing.assert_allclose(f(x=DATA), (DATA + 1) * 2)
    np.testing.assert_allclose(f.value(kept), DATA + 1)
    into = np.empty(DATA.shape)
    found = transformer.computation(kept, x, labels=True)(DATA, out=into)
    np.testing.assert_array_equal(into, DATA + 1)
    xarray.testing.assert_allclose(found, DATA + 1)
    assert f.axes is x.axes


WITHOUT = """
import sys
sys.modules["xarray"] = None
import geon
x = geon.placeholder(geon.Axis("N"))
transformer = geon.NumPyTransformer()
transformer.computation(x + 1, x)([1, 2])
try:
    transformer.computation(x + 1, x, labels=True)
except geon.UnavailableError as error:
    print(error)
"""


def test_without_xarray_it_says_what_to_do():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert "`pip install xarray`" in done.stdout, done.stderr


def test_labels_of_results_that_stay_on_a_device_are_refused():
    x = geon.placeholder([geon.Axis("N")])
    with geon.NumPyTransformer() as transformer, pytest.raises(geon.ArgumentError) as caught:
        transformer.computation(x * 2.0, x, labels=True, on_device=True)
    assert str(caught.value) == (
        "labels=True makes arrays of xarray, which lie in the memory of the processor: leave out "
        "on_device=True"
    )
