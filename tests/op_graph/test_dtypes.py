"""The promotion table, weak numbers, and what a dtype cannot hold."""

import numpy as np
import pytest

import geon
from geon.op_graph.values.dtypes import (
    DTYPES,
    FLOATS,
    SIGNED,
    UNSIGNED,
    as_dtype,
    check_number,
    kind,
    promote,
    sum_dtype,
    weak_meets,
)

from .computing import compute

A = geon.Axis("A", 2)
# Each line: the dtypes that the first meets, and what each gives; the table is symmetric.
TABLE = """
bool     | bool:bool int8:int8 uint64:uint64 float16:float16 bfloat16:bfloat16 float64:float64
int8     | int8:int8 int16:int16 int64:int64 uint8:int16 uint16:int32 uint32:int64 float16:float16
int16    | int32:int32 uint8:int16 uint16:int32 uint32:int64 bfloat16:bfloat16 float32:float32
int32    | int64:int64 uint8:int32 uint16:int32 uint32:int64 float16:float16 float64:float64
int64    | uint8:int64 uint16:int64 uint32:int64 float16:float16 float32:float32
uint8    | uint16:uint16 uint32:uint32 uint64:uint64 bfloat16:bfloat16
uint16   | uint32:uint32 uint64:uint64 float32:float32
uint32   | uint64:uint64 float64:float64
uint64   | float16:float16 float32:float32
float16  | bfloat16:float32 float32:float32 float64:float64
bfloat16 | float32:float32 float64:float64
float32  | float64:float64
"""
CASES = [
    (line.split("|")[0].strip(), *pair.split(":"))
    for line in TABLE.strip().splitlines()
    for pair in line.split("|")[1].split()
]


@pytest.mark.parametrize(("left", "right", "expected"), CASES)
def test_promotion_table(left, right, expected):
    a, b = as_dtype(left), as_dtype(right)
    assert promote(a, b) is as_dtype(expected) and promote(b, a) is as_dtype(expected)
    x, y = geon.placeholder([A], left), geon.placeholder([A], right)
    assert geon.maximum(x, y).dtype is as_dtype(expected)


@pytest.mark.parametrize("signed", SIGNED)
def test_uint64_and_signed_integers_do_not_meet(signed):
    x, y = geon.placeholder([A], "uint64", name="x"), geon.placeholder([A], signed, name="y")
    with pytest.raises(geon.DTypeError, match=f"uint64.*{signed}.*cast") as caught:
        x + y
    assert str(caught.value).count("test_dtypes.py:") == 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_meets_itself_and_survives_a_round_trip(dtype):
    found = as_dtype(dtype)
    assert found.name == dtype and as_dtype(found) is found and promote(found, found) is found
    x = geon.placeholder([A], dtype)
    assert compute(x, {x: np.ones(2, found)}).dtype == found


def test_names_types_and_byte_orders():
    assert as_dtype(float) is as_dtype("float32") and as_dtype(int) is as_dtype("int64")
    assert as_dtype(bool) is as_dtype("bool") and as_dtype(np.float16) is as_dtype("float16")
    assert as_dtype(np.dtype(">f8")) is as_dtype("float64")
    for wrong in ("complex256", "float128", object, "nothing", np.dtype("S3")):
        with pytest.raises(geon.DTypeError, match="geon has"):
            as_dtype(wrong)


def test_kinds():
    assert {kind(as_dtype(d)) for d in FLOATS} == {"f"}
    assert {kind(as_dtype(d)) for d in (*SIGNED, *UNSIGNED)} == {"i"} and kind(
        as_dtype("bool")
    ) == "b"


# Weak numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_a_number_takes_the_tensors_dtype(dtype):
    x = geon.placeholder([A], dtype)
    assert (x + 1).dtype is x.dtype and (1 - x).dtype is x.dtype and (x * True).dtype is x.dtype


def test_a_float_beside_integers_is_float32():
    for dtype in ("bool", "int8", "uint64", "int64"):
        assert (geon.placeholder([A], dtype) + 0.5).dtype is as_dtype("float32")
    assert (geon.placeholder([A], "float16") + 0.5).dtype is as_dtype("float16")
    assert (geon.placeholder([A], "bfloat16") * 2).dtype is as_dtype("bfloat16")
    assert (geon.placeholder([A], "bool") + 1).dtype is as_dtype("int64")


def test_integers_divide_as_float32():
    x = geon.placeholder([A], "int64")
    assert (x / x).dtype is as_dtype("float32") and (x // x).dtype is as_dtype("int64")


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (300, "int8"),
        (-1, "uint8"),
        (2**63, "int64"),
        (1e39, "float32"),
        (10**400, "float64"),
        (70000.0, "float16"),
    ],  # fmt: skip
)
def test_a_number_that_does_not_fit_is_refused(number, dtype):
    with pytest.raises(geon.DTypeError, match="does not fit|too large"):
        geon.placeholder([A], dtype) + number


def test_numbers_that_fit():
    assert (geon.placeholder([A], "uint64") + (2**64 - 1)).dtype is as_dtype("uint64")
    check_number(float("inf"), as_dtype("float16"))
    check_number(-128, as_dtype("int8"))
    with pytest.raises(geon.DTypeError, match="no integer"):
        check_number(0.5, as_dtype("int8"))


def test_numpy_scalars_keep_their_dtype():
    x = geon.placeholder([A], "float32")
    assert (x * np.float64(2)).dtype is as_dtype("float64")
    assert (x * np.float16(2)).dtype is as_dtype("float32")


@pytest.mark.parametrize("value", [0.1, 1e300, 2**53 + 1])
def test_a_weak_number_keeps_its_precision(value):
    wide = "int64" if isinstance(value, int) else "float64"
    x = geon.placeholder((), wide)
    feeds = {x: np.asarray(1, wide)}
    exact = np.asarray(value, wide)
    assert compute(geon.constant(value) * x, feeds) == exact
    assert compute(x * value, feeds) == exact
    v = geon.placeholder([A], wide)
    assert compute(geon.update(v, value, 0), {v: np.zeros(2, wide)})[0] == exact
    assert (
        compute(geon.sequential([geon.assign(v[1], value), v]), {v: np.zeros(2, wide)})[1] == exact
    )
    assert compute(geon.Variable(dtype=wide, initial_value=value).initial_value) == exact


def test_weak_numbers_meet_and_stay_weak():
    both = geon.constant(1) + geon.constant(0.5)
    assert both.weak and both.dtype is as_dtype("float32")
    assert (both * geon.placeholder((), "float16")).dtype is as_dtype("float16")
    assert weak_meets(as_dtype("int64"), as_dtype("bool")) is as_dtype("int64")


def test_tensor_size_is_a_weak_integer():
    n = geon.Axis("N")
    x = geon.placeholder([n], "float16")
    assert (x / geon.tensor_size(x)).dtype is as_dtype("float16")
    assert (x * (geon.tensor_size(x) * 0.5)).dtype is as_dtype("float16")
    assert compute(geon.tensor_size(x) + 0.5, lengths={"N": 3}) == 3.5
    assert (geon.placeholder((), "int8") + geon.tensor_size(x)).dtype is as_dtype("int8")


# Where dtypes are wanted -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_accumulate_wide(dtype):
    x = geon.placeholder([A], dtype)
    small = dtype in ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32")
    expected = as_dtype("int64") if small else as_dtype(dtype)
    assert sum_dtype(x.dtype) is expected
    for op in (geon.sum(x), geon.prod(x), geon.cumsum(x), geon.dot(x, x)):
        assert op.dtype is expected
    assert geon.argmax(x).dtype is as_dtype("int64") and geon.any(x).dtype is as_dtype("bool")


def test_a_sum_of_many_halves():
    many = geon.Axis("M", 4096)
    for dtype in ("float16", "bfloat16"):
        x = geon.placeholder([many], dtype)
        found = compute(geon.sum(x), {x: np.full(4096, 1.0, x.dtype)})
        assert found.dtype == x.dtype and found == 4096


def test_bits_take_integers_only():
    x = geon.placeholder([A], "float32", name="x")
    for build in (lambda: x & 1, lambda: x << 2, lambda: ~x):
        with pytest.raises(geon.DTypeError, match=r"float32.*test_dtypes.py:\d+.*integers"):
            build()
    flags = geon.placeholder([A], "bool")
    assert (flags & flags).dtype is as_dtype("bool")
    with pytest.raises(geon.DTypeError):
        flags << flags


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([2.7, -2.7], "int32", [2, -2]),
        ([1e30, -1e30], "int8", [127, -128]),
        ([np.nan, np.inf], "int64", [0, 2**63 - 1]),
        ([-1.0, 300.0], "uint8", [0, 255]),
        ([0.0, -0.5], "bool", [False, True]),
    ],
)
def test_casts_hold_at_the_ends(value, dtype, expected):
    x = geon.placeholder([A], "float64")
    found = compute(geon.cast(x, dtype), {x: np.array(value)})
    np.testing.assert_array_equal(found, np.array(expected, dtype))


def test_assignments_need_the_same_dtype_or_a_number():
    v = geon.Variable(axes=[A], dtype="int32", name="v")
    geon.assign(v, 3)
    with pytest.raises(geon.DTypeError, match=r"assign.*int64.*v.*int32.*cast") as caught:
        geon.assign(v, geon.placeholder([A], "int64"))
    assert str(caught.value).count("test_dtypes.py:") == 2
    with pytest.raises(geon.DTypeError, match="0.5"):
        geon.assign(v, 0.5)


@pytest.mark.parametrize("given", FLOATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_an_initial_tensor_is_cast_among_floats(given, dtype, transformer):
    first = geon.Variable([A], given, initial_value=1.5)
    for value in (first, first + 1):
        v = geon.Variable([A], dtype, initial_value=value)
        assert transformer.get(v).dtype == as_dtype(dtype)
        np.testing.assert_array_equal(
            np.float64(transformer.get(v)), np.float64(value is not first) + 1.5
        )


@pytest.mark.parametrize(
    ("given", "dtype"),
    [("bfloat16", "int32"), ("int32", "bfloat16"), ("float32", "int8"), ("int64", "uint8")],
)
def test_an_initial_tensor_of_another_kind_is_refused(given, dtype):
    first = geon.Variable([A], given, initial_value=1)
    for value in (first, first + 1):
        with pytest.raises(geon.DTypeError, match=rf"test_dtypes.py:\d+.*{given}.*{dtype}.*cast"):
            geon.Variable([A], dtype, initial_value=value)
