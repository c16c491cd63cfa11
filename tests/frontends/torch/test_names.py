"""What the table of PyTorch's operators says is so: expressions of both give the same numbers."""

from typing import Any

import numpy as np
import pytest

import geon
from geon.testing.cases import for_each
from tests.frontends.torch import names, names_page
from tests.frontends.torch.names_data import DATA, NAMES, PLACEHOLDERS

torch = pytest.importorskip("torch", reason="PyTorch is not installed: run make test-frameworks")
database = pytest.importorskip(
    "torch.testing._internal.common_methods_invocations",
    reason="PyTorch's database of operators needs expecttest",
)
OPERATORS = {".".join(filter(None, (op.name, op.variant_test_name))): op for op in database.op_db}
TRANSFORMER = geon.NumPyTransformer()
OPERANDS = (torch.Tensor, bool, int, float)
SAMPLES = 6  # of each operator and dtype: PyTorch has up to hundreds
LEAST = 520


def test_each_operator_is_said_once_or_has_a_reason():
    tables = (names.ELEMENTWISE, names.EXAMPLES, names.DRAWS, names.REASONS)
    listed = [name for table in tables for name in table]
    assert sorted(listed) == sorted(OPERATORS)
    assert len(listed) - len(names.REASONS) >= LEAST


def test_the_page_is_made_of_the_table():
    assert names_page.PAGE.read_text() == names_page.text()


def evaluated(expressions: Any, feeds: dict[geon.Tensor, Any]) -> list[Any]:
    """The arrays of the tensors that an expression gives."""
    made = list(expressions) if isinstance(expressions, (list, tuple)) else [expressions]
    return list(TRANSFORMER.computation(made, *feeds)(*feeds.values()))


def assert_equal(found: list[Any], wanted: Any, rtol: float = 1e-5) -> None:
    wanted = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
    assert len(found) == len(wanted)
    for value, tensor in zip(found, wanted, strict=True):
        array = tensor.resolve_conj().to(wide(tensor.dtype)).numpy()
        assert np.shape(value) == array.shape
        value = np.asarray(value, array.dtype)
        np.testing.assert_allclose(value, array, rtol=rtol, atol=1e-6)


def wide(dtype: Any) -> Any:
    """The dtype of PyTorch in which NumPy has the values."""
    return torch.float32 if dtype == torch.bfloat16 else dtype


# PyTorch's own samples ---------------------------------------------------------------------------


def operand(value: Any, letter: str, feeds: dict[geon.Tensor, Any], shape: Any) -> Any:
    """A tensor as a placeholder over axes counted from the right; length 1 where others repeat."""
    if not isinstance(value, torch.Tensor):
        return value
    lengths = tuple(value.shape)
    offset = len(shape) - len(lengths)
    kept = [k for k, n in enumerate(lengths) if n == shape[k + offset]]
    axes = [geon.Axis(f"d{k + offset}", lengths[k]) for k in kept]
    array = value.detach().resolve_conj().numpy().reshape([lengths[k] for k in kept])
    leaf = geon.placeholder(axes, array.dtype.name, name=letter)
    feeds[leaf] = array
    return geon.broadcast(leaf, [geon.Axis(f"d{k}", n) for k, n in enumerate(shape)])


def broadcast(result: Any, shape: Any) -> Any:
    axes = [geon.Axis(f"d{k}", n) for k, n in enumerate(shape)]
    return geon.broadcast(geon.constant(result) if not hasattr(result, "axes") else result, axes)


def check(name: str, sample: Any) -> bool:
    """Compare geon's expression with PyTorch on a sample; False if the sample has options."""
    given = [sample.input, *sample.args]
    options = {**sample.kwargs, "rounding_mode": None}
    if any(options.values()) or not all(isinstance(each, OPERANDS) for each in given):
        return False
    wanted = OPERATORS[name](sample.input, *sample.args, **sample.kwargs)
    if name == "where":  # whose condition is an argument
        given = [sample.args[0], sample.input, sample.args[1]]
    feeds: dict[geon.Tensor, Any] = {}
    letters = {
        letter: operand(value, letter, feeds, wanted.shape)
        for letter, value in zip("xyz", given, strict=False)
    }
    made = eval(names.ELEMENTWISE[name], {**NAMES, **letters})
    values = evaluated(broadcast(made, wanted.shape), feeds)
    loose = wanted.dtype in (torch.float16, torch.bfloat16) or torch.float32 in (
        wanted.dtype,
        *(each.dtype for each in given if isinstance(each, torch.Tensor)),
    )
    assert_equal(values, wanted, 1e-2 if loose else 1e-5)
    return True


@for_each("name", names.ELEMENTWISE)
def test_an_elementwise_expression_agrees_on_pytorchs_samples(name):
    op = OPERATORS[name]
    known = op.supported_dtypes("cpu")
    first = [t for t in (torch.float64, torch.int64, torch.bool) if t in known]
    compared = 0
    torch.manual_seed(0)
    for dtype in first[:2]:
        for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
            if number >= SAMPLES:
                break
            compared += check(name, sample)
    assert compared > 0


# Examples ----------------------------------------------------------------------------------------


@for_each("pair", dict.fromkeys(names.EXAMPLES.values()), ids=lambda pair: pair[1][:40])
def test_an_example_agrees(pair):
    import torch.masked
    import torch.nn.functional as functional
    import torch.signal

    tensors = {name: torch.tensor(array) for name, (array, _) in DATA.items()}
    theirs = {"torch": torch, "F": functional, "math": NAMES["math"], **tensors}
    feeds = {PLACEHOLDERS[name]: array for name, (array, _) in DATA.items()}
    made = eval(pair[1], {**NAMES, **PLACEHOLDERS})
    assert_equal(evaluated(made, feeds), eval(pair[0], theirs))


@for_each("name", names.DRAWS)
def test_a_draw_has_the_axes_of_its_tensor(name):
    made = eval(names.DRAWS[name], {**NAMES, **PLACEHOLDERS, "stream": geon.Random(4)})
    feeds = {PLACEHOLDERS[letter]: array for letter, (array, _) in DATA.items()}
    (values,) = evaluated(made, feeds)
    assert values.shape == tuple(axis.length for axis in made.axes) and np.isfinite(values).all()
    assert len(np.unique(values)) > 1
