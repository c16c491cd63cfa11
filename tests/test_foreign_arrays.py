"""Values that are no plain arrays at every entrance: masked ones, objects, and other libraries'."""

import datetime
import importlib.util

import numpy as np
import pytest

import geon

C, N = geon.Axis("C", 3), geon.Axis("N")
VALUES = np.random.default_rng(0).normal(size=(3, 4))
MASKED = np.ma.masked_array(VALUES, mask=VALUES > 1)
WHERE = tuple(int(k) for k in np.argwhere(VALUES > 1)[0])
OBJECTS = VALUES.astype(object)
OBJECTS[1, 2] = None


def placeholder():
    return geon.placeholder([C, N], "float64", name="x")


def entered(transformer, value):
    """What each entrance does with a value, by name."""
    x = placeholder()
    kept = x * 1
    f = transformer.computation(kept, x, keep=[kept])
    v = geon.Variable([C, N.with_length(4)], "float64", initial_value=0)

    def override():
        f.override(kept, value)
        return f(VALUES)

    def given_first(first):
        return transformer.get(geon.Variable([C, N.with_length(4)], "float64", initial_value=first))

    return {
        "feed": lambda: f(value),
        "override": override,
        "set": lambda: (transformer.set(v, value), transformer.get(v))[1],
        "constant": lambda: transformer.computation(geon.constant(value, [C, N]))(),
        "operand": lambda: transformer.computation(x + value, x)(VALUES),
        "initial value": lambda: given_first(value),
        "callable": lambda: given_first(lambda axes: value),
        "dumps": lambda: geon.dumps(x, feeds={x: value}),
    }


ENTRANCES = list(entered(geon.NumPyTransformer(), VALUES))
# An operand has no axes of its own: it takes those of what it meets, where these have lengths.
BARE = [name for name in ENTRANCES if name != "operand"]


@pytest.mark.parametrize("entrance", BARE)
def test_masked_elements_raise_with_their_place_and_the_cure(entrance, transformer):
    with pytest.raises((geon.FeedError, geon.DTypeError)) as caught:
        entered(transformer, MASKED)[entrance]()
    text = str(caught.value)
    assert f"{np.sum(VALUES > 1)} of them, the first at {WHERE}" in text
    assert ".filled(value)" in text


@pytest.mark.parametrize("entrance", BARE)
def test_masked_arrays_without_masked_elements_are_arrays(entrance, transformer):
    for array in (np.ma.masked_array(VALUES), np.ma.masked_array(VALUES, mask=np.zeros((3, 4)))):
        found = entered(transformer, array)[entrance]()
        if entrance != "dumps":
            np.testing.assert_array_equal(found, VALUES)


def test_masked_operands_and_lists_are_refused(transformer):
    c = geon.placeholder(C, "float64")
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])
    for build in (lambda: c + masked, lambda: geon.where(c > 0, masked, c)):
        with pytest.raises(geon.DTypeError, match=r"first at \(1,\).*filled"):
            build()
    with pytest.raises(geon.SymbolicError):
        masked + c
    f = transformer.computation(x := placeholder(), x)
    with pytest.raises(geon.FeedError, match=r"list of masked arrays.*np\.ma\.stack"):
        f([masked, masked, masked])


@pytest.mark.parametrize("entrance", BARE)
def test_objects_raise_with_what_is_no_number_and_the_cure(entrance, transformer):
    if entrance == "dumps":
        pytest.skip("a dump refuses what it cannot write")
    with pytest.raises((geon.FeedError, geon.DTypeError)) as caught:
        entered(transformer, OBJECTS)[entrance]()
    text = str(caught.value)
    assert "dtype object with None at (1, 2)" in text
    assert "astype('float64')" in text


KINDS = {
    "numbers in objects": (VALUES.astype(object), r"dtype object; .*\.astype\('float64'\)"),
    "texts": (np.full((3, 4), "a"), r"np\.unique"),
    "dates": (np.full((3, 4), datetime.datetime(2020, 1, 1), "M8[s]"), r"dates\[0\]"),
    "spans": (np.full((3, 4), 5, "m8[s]"), r"timedelta64"),
    "complex": (VALUES + 1j, r"\.real and its \.imag"),
    "records": (np.zeros((3, 4), [("a", "f8"), ("b", "f8")]), r"take the numbers out"),
}


@pytest.mark.parametrize(("array", "cure"), KINDS.values(), ids=KINDS)
def test_dtypes_without_numbers_raise_with_the_cure(array, cure, transformer):
    x = placeholder()
    f = transformer.computation(x, x)
    with pytest.raises(geon.FeedError, match=cure) as caught:
        f(array)
    assert x.file_info in str(caught.value) and "float64" in str(caught.value)
    # Complex numbers are numbers, where a tensor may have any dtype.
    dtype = "float64" if array.dtype.kind == "c" else None
    with pytest.raises(geon.DTypeError, match=cure):
        geon.constant(array, [C, N], dtype)


# Exchange ----------------------------------------------------------------------------------------


class Exchanged:
    """An array that shows itself by DLPack alone, as one on a device where ``device`` says so."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, *, dl_device=None, copy=None, **options):
        if self.device != 1 and dl_device is None:
            raise BufferError("it lies on a device")
        return self.array.__dlpack__()


class Interface:
    """An array that shows itself by NumPy's array interface."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__

    @property
    def __array_interface__(self):
        return self.array.__array_interface__

    @__array_interface__.setter
    def __array_interface__(self, value):
        pass


class Undetachable(Exchanged):
    """One that refuses NumPy with a word about the cure, as PyTorch does."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("use .detach() first")


class OnGPU:
    """Memory of a GPU, shown by CUDA's array interface alone."""

    __cuda_array_interface__ = {"shape": (3, 4), "typestr": "<f8", "data": (1, False), "version": 3}


EXCHANGES = {
    "dlpack": lambda a: Exchanged(a),
    "dlpack of a device": lambda a: Exchanged(a, device=2),
    "array interface": Interface,
    "refusing array, on a device": lambda a: Undetachable(a, device=2),
}


@pytest.mark.parametrize("entrance", BARE)
@pytest.mark.parametrize("show", EXCHANGES.values(), ids=EXCHANGES)
def test_other_libraries_arrays_enter_everywhere(entrance, show, transformer):
    found = entered(transformer, show(VALUES.copy()))[entrance]()
    if entrance != "dumps":
        np.testing.assert_array_equal(found, VALUES)


@pytest.mark.parametrize("show", EXCHANGES.values(), ids=EXCHANGES)
def test_other_libraries_arrays_are_operands(show, transformer):
    x = geon.placeholder(C, "float64")
    values = np.array([1.0, 2.0, 3.0])
    found = transformer.computation([x + show(values), geon.where(x > 1, show(values), x)], x)
    added, chosen = found(values)
    np.testing.assert_array_equal(added, 2 * values)
    np.testing.assert_array_equal(chosen, values)
    with pytest.raises(geon.AxisError, match=r"shape \(2,\) beside .* has no axes"):
        x + show(values[:2].copy())


def test_a_variable_takes_the_dtype_of_another_librarys_array():
    made = geon.Variable(C, initial_value=Exchanged(np.array([1, 2, 3])))
    assert made.dtype == "int64"


@pytest.mark.parametrize("entrance", BARE)
def test_memory_of_a_gpu_that_nothing_copies_is_refused_with_the_cure(entrance, transformer):
    if transformer.target.name not in ("numpy", "native"):
        pytest.skip("a device may take it")
    with pytest.raises((geon.FeedError, geon.DTypeError), match=r"memory is a GPU's.*\.cpu\(\)"):
        entered(transformer, OnGPU())[entrance]()


def test_what_refuses_says_why(transformer):
    f = transformer.computation(x := placeholder(), x)
    with pytest.raises(geon.FeedError, match=r"given Undetachable.*use \.detach\(\) first"):
        f(Undetachable(VALUES))
    with pytest.raises(geon.FeedError, match=r"by DLPack.*copy it first"):
        f(Exchanged(None, device=2))


# The libraries themselves, where they are installed -----------------------------------------------


def library(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return importlib.import_module(name)


def test_arrays_of_pytorch(transformer):
    torch = library("torch")
    x = geon.placeholder(C, "float64")
    values = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    f = transformer.computation([x + values, values + x, values * x, x > values], x)
    added, reflected, product, more = f(values)
    np.testing.assert_array_equal(added, [2, 4, 6])
    np.testing.assert_array_equal(reflected, [2, 4, 6])
    np.testing.assert_array_equal(product, [1, 4, 9])
    assert not more.any()
    with pytest.raises(geon.FeedError, match="detach"):
        f(values.clone().requires_grad_())
    half = geon.placeholder(C, "bfloat16")
    with pytest.raises(geon.FeedError, match="given Tensor"):
        transformer.computation(half, half)(values.bfloat16())
    assert geon.Variable(C, initial_value=values.int()).dtype == "int32"


def test_arrays_of_jax(transformer):
    jnp = pytest.importorskip("jax.numpy")
    x = geon.placeholder(C)
    values = jnp.asarray([1.0, 2.0, 3.0], "float32")
    f = transformer.computation([x + values, values + x, values * x, x > values], x)
    added, reflected, product, more = f(values)
    np.testing.assert_array_equal(added, [2, 4, 6])
    np.testing.assert_array_equal(reflected, [2, 4, 6])
    np.testing.assert_array_equal(product, [1, 4, 9])
    assert not more.any()
    half = geon.placeholder(C, "bfloat16")
    np.testing.assert_array_equal(
        transformer.computation(half, half)(values.astype("bfloat16")).astype("float32"), values
    )
