"""geon.frontends.xarray.compile: functions of labelled arrays."""

import re
import warnings

import numpy as np
import pandas
import pytest
import xarray

import geon
from geon.frontends.xarray import Compiled, compile

T, LAT, LON = geon.Axis("time"), geon.Axis("lat"), geon.Axis("lon")


def field(times=6, dtype="float64"):
    values = np.random.default_rng(times).normal(size=(times, 3, 4)).astype(dtype)
    return xarray.DataArray(
        values,
        dims=("time", "lat", "lon"),
        coords={"time": np.arange(times), "lat": [1.0, 2, 3], "lon": [0, 90, 180, 270]},
        name="t2m",
    )


def anomaly(x):
    """What is left of x without its mean."""
    return x - geon.mean(x, T)


def test_one_program_serves_all_lengths_and_orders_of_dims(transformer):
    f = compile(anomaly, transformer=transformer)
    for times in (1, 2, 7, 30):
        data = field(times)
        xarray.testing.assert_allclose(f(data), data - data.mean("time"))
    assert len(f.computations) == 1
    turned = field().transpose("lon", "time", "lat")
    found = f(turned)
    assert found.dims == turned.dims
    xarray.testing.assert_allclose(found, turned - turned.mean("time"))
    f(field(dtype="float32"))
    assert f(x=field(dtype="float32")).dtype == "float32"
    assert len(f.computations) == 4


def test_it_is_what_it_wraps_and_a_decorator():
    made = compile(anomaly)
    assert isinstance(made, Compiled) and made.__doc__ == anomaly.__doc__
    assert made.__name__ == "anomaly"

    @compile
    def doubled(x):
        return 2 * x

    xarray.testing.assert_allclose(doubled(field()), 2 * field())


def test_datasets_in_and_out(transformer):
    data = field()
    both = xarray.Dataset({"t": data, "p": data.isel(time=0, drop=True)})
    f = compile(
        lambda d: {"sum": d["t"] + d["p"], "mean": geon.mean(d["t"], T)}, transformer=transformer
    )
    found = f(both)
    wanted = {"sum": data + both["p"], "mean": data.mean("time")}
    xarray.testing.assert_allclose(found, xarray.Dataset(wanted))


def test_other_arguments_are_part_of_the_program(transformer):
    seen = []

    def scaled(x, factor, *, shift=0, how="mean"):
        seen.append((factor, shift, how))
        return getattr(geon, how)(x, T) * factor + shift

    f = compile(scaled, transformer=transformer)
    data = field()
    xarray.testing.assert_allclose(f(data, 2), data.mean("time") * 2)
    xarray.testing.assert_allclose(f(data, 2), data.mean("time") * 2)
    xarray.testing.assert_allclose(f(data, 2, shift=1, how="max"), data.max("time") * 2 + 1)
    xarray.testing.assert_allclose(f(data, 2, shift=0), data.mean("time") * 2)
    assert seen == [(2, 0, "mean"), (2, 1, "max"), (2, 0, "mean")]
    with pytest.raises(geon.ArgumentError, match=r"1 is or holds a ndarray, .* dims.*dims="):
        f(data, np.ones(3))


def test_axes_with_lengths_of_their_own(transformer):
    lat = geon.Axis("lat", 3)
    weights = geon.constant([1.0, 2.0, 1.0], [lat])
    f = compile(lambda x: geon.dot(x, weights, over=lat), transformer=transformer, axes=[lat])
    data = field()
    wanted = data.dot(xarray.DataArray([1.0, 2.0, 1.0], dims="lat"))
    xarray.testing.assert_allclose(f(data), wanted)
    with pytest.raises(geon.FeedError, match="lat"):
        f(data.isel(lat=[0, 1]))


def test_tables_and_mistakes(transformer):
    f = compile(lambda x: x * 2, transformer=transformer)
    series = pandas.Series([1.0, 2.0], pandas.Index([5, 6], name="lat"))
    found = f(series)
    np.testing.assert_array_equal(found.lat, [5, 6])
    np.testing.assert_array_equal(found, [2, 4])
    frame = pandas.DataFrame({"a": [1.0, 2.0]}, pandas.Index([5, 6], name="lat"))
    np.testing.assert_array_equal(f(frame.rename_axis(columns="what")), [[2], [4]])
    with pytest.raises(geon.AxisError, match=r"dim None.*is no text.*rename_axis"):
        f(frame)
    with pytest.raises(geon.AxisError, match="dim 0.*is no text"):
        f(xarray.DataArray([1.0], dims=[0]))
    with pytest.raises(geon.ArgumentError, match="takes a function"):
        compile(3)
    whole = compile(anomaly, transformer=transformer)
    whole(field())
    with pytest.raises(geon.FeedError, match=r"placeholder x\(time, lat, lon\).*no dim 'lon'"):
        whole.computations[0](field().isel(lon=0))


def test_options_are_those_of_a_computation(transformer):
    f = compile(lambda x: geon.log(x), transformer=transformer, check="nan")
    with pytest.raises(geon.NonFiniteError):
        f(-abs(field()))
    plain = compile(lambda x: x + 1, transformer=transformer, labels=False)
    assert type(plain(field())) is np.ndarray


def test_settings_are_told_apart_by_their_bits(transformer):
    data = field()
    compiled = compile(lambda a, b: 1 / (a * b[0]), transformer=transformer)
    assert compiled(data, [0.0]).max() == np.inf and compiled(data, [-0.0]).min() == -np.inf
    count = len(compiled.computations)
    for b in (float("nan"), np.float32("nan"), (float("nan"), -0.0)):
        doubled = compile(lambda a, b: a * 2, transformer=transformer)
        doubled(data, b)
        doubled(data, b)
        assert len(doubled.computations) == 1
    assert len({id(c) for c in compiled.computations}) == count == 2
    kinds = compile(lambda a, b: a * 2, transformer=transformer)
    settings = [1, True, 1.0, np.float32(1), (1,), (True,), [1], [0.0], [-0.0], {"k": 1}, slice(1)]
    for number, b in enumerate(settings):
        kinds(data, b)
        kinds(data, b=b)
        assert len(kinds.computations) == 2 * number + 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_inputs_in_the_dtype_that_they_meet(transformer, dtype):
    data, seen = field(dtype=dtype), []

    def step(a, rate, power=2.0, *, shift):
        seen.append(rate)
        return a * rate + geon.where(a > 0, shift, 1.0) ** power

    f = compile(step, transformer=transformer)
    numbers = [0.1, 1 / 3, -0.0, 1e3]
    for rate in numbers:
        found = f(data, rate, shift=rate)
        wanted = data * dtype_of(rate, dtype) + (data > 0) * dtype_of(rate, dtype) ** 2
        xarray.testing.assert_allclose(found, (wanted + (data <= 0)).astype(dtype), rtol=1e-6)
        assert found.dtype == dtype
    assert len(f.computations) == len(seen) == 1
    assert f(data, np.float32(0.1), shift=0.0).dtype == dtype
    assert f(data, np.float64(0.1), shift=0.0).dtype == "float64"
    assert len(f.computations) == 3


def dtype_of(value, dtype):
    return np.dtype(dtype).type(value)


def test_a_function_that_needs_the_value_of_a_float_gets_it_and_the_tenth_program_warns(
    transformer,
):
    data = field()
    signed = compile(lambda a, rate, how: a if rate > 3 else -a, transformer=transformer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(12):
            wanted = data if k > 3 else -data
            xarray.testing.assert_equal(signed(data, float(k), "so"), wanted)
    assert len(signed.computations) == 12
    (warning,) = caught
    assert warning.category is RuntimeWarning and warning.filename == __file__
    assert re.fullmatch(
        r"geon.frontends.xarray.compile\(.*<lambda>\) compiled program number 10 for arguments of "
        rf"the same form at .*test_compile.py:{warning.lineno}: each value of rate makes a program "
        r"of its own, which is kept; give what changes as an array, such as "
        r"xarray.DataArray\(value\), or as a float that is an argument itself and by which the "
        r"function chooses no branch",
        str(warning.message),
    )
    with pytest.raises(geon.AxisError, match="share no axis"):  # raised by the second try
        compile(lambda a, b: geon.iota(geon.Axis("z", 2)) + a, transformer=transformer)(data, 0.5)


def test_settings_may_be_lists_dictionaries_and_slices(transformer):
    data = field()
    taken = compile(lambda a, part: a[{"lat": part}], transformer=transformer)
    xarray.testing.assert_equal(taken(data, slice(1, 3)), data.isel(lat=slice(1, 3)))
    xarray.testing.assert_equal(taken(data, 1), data.isel(lat=1))
    weighed = compile(lambda a, by: a * by["low"] + by["high"][1], transformer=transformer)
    xarray.testing.assert_allclose(weighed(data, {"low": 2.0, "high": [0, 3.0]}), data * 2 + 3)
    for value in ([data], {"a": data}, [np.ones(3)], {1, 2}):
        with pytest.raises(geon.ArgumentError, match=r"is or holds a .* no setting"):
            taken(data, value)


@pytest.mark.parametrize("holder", [list, tuple, lambda both: dict(zip("ab", both, strict=True))])
def test_arrays_in_lists_and_dictionaries_are_refused_with_their_cure(holder):
    array = xarray.DataArray([1.0, 2.0], dims="a")
    with pytest.raises(geon.ArgumentError, match="argument of its own, or several as a Dataset"):
        compile(lambda both: both)(holder([array, array]))
    dataset = xarray.Dataset({"a": array})
    with pytest.raises(geon.ArgumentError, match="argument of its own, or several as a Dataset"):
        compile(lambda both: both)(holder([dataset, dataset]))


@pytest.mark.parametrize(
    "values, cure",
    [
        (np.array(["2020-01-01"], "datetime64[ns]"), r"\(dates - dates\[0\]\)"),
        (np.array([1, "a"], object), "put numbers in the place"),
        (["a"], "give each text a number"),
    ],
)
def test_data_without_numbers_are_refused_with_their_cure(values, cure):
    array = xarray.DataArray(values, dims="a")
    with pytest.raises(geon.FeedError, match=f"argument 'data' of .*{cure}"):
        compile(lambda data: data * 2)(array)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float32", "int16"])
def test_tables_of_dtypes_of_pandas_are_taken(dtype):
    values = pandas.Series([1, 0], dtype=dtype, index=pandas.Index([3, 4], name="i"))
    found = compile(lambda data: data * 2.5)(values)
    assert found.dims == ("i",) and found.values.tolist() == [2.5, 0]
