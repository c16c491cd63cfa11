"""Rows of the operators of PyTorch give PyTorch's values."""

import numpy as np
import pytest

import geon

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from geon.frontends.torch import load  # noqa: E402
from geon.frontends.torch.loading import key_of  # noqa: E402
from geon.frontends.torch.table import operator_table  # noqa: E402
from tests.frontends.torch.load_cases import CASES  # noqa: E402

GROUP = 40  # cases that are one program: exporting takes most of the time
NAMES = list(CASES)
COUNT = -(-len(NAMES) // GROUP)
GROUPS = [NAMES[k::COUNT] for k in range(COUNT)]  # each has cases of all kinds


class Functions(torch.nn.Module):
    """A module that computes several cases of different inputs."""

    def __init__(self, names):
        super().__init__()
        self.cases = [CASES[name] for name in names]

    def forward(self, *given):
        """Return the values of all cases as lists of tensors."""
        rest = iter(given)
        return [leaves(f(*[next(rest) for _ in inputs])) for f, inputs in self.cases]


def leaves(value):
    """The tensors of an output, in order."""
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@pytest.mark.parametrize(
    "number", [0, *[pytest.param(k, marks=pytest.mark.slow) for k in range(1, len(GROUPS))]]
)
@pytest.mark.filterwarnings("ignore")
def test_values_are_those_of_pytorch(number):
    names = GROUPS[number]
    module = Functions(names).eval()
    given = tuple([each for name in names for each in CASES[name][1]])
    model = load(torch.export.export(module, given))
    found = model.computation(geon.NumPyTransformer())(*[each.numpy() for each in given])
    for name, results, wanted in zip(names, found.values(), module(*given), strict=True):
        assert len(results) == len(wanted), name
        for result, expected in zip(results, wanted, strict=True):
            assert result.dtype == expected.numpy().dtype, name
            tolerance = 1e-3 if expected.dtype == torch.float16 else 2e-5
            np.testing.assert_allclose(result, expected.numpy(), tolerance, tolerance, err_msg=name)


def core_operators():
    """The names of the operators that PyTorch calls its core."""
    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        operator, _, overload = rest.partition(".")
        if namespace == "aten":
            packet = getattr(torch.ops.aten, operator)
            each = getattr(packet, overload or "default", None)
            if each is not None and torch.Tag.core in each.tags:
                found.add(key_of(each))
    return found


def test_most_core_operators_have_rows():
    missing = core_operators() - set(operator_table())
    # Of these PyTorch decomposes most into others that have rows.
    assert len(core_operators()) - len(missing) >= 175, sorted(missing)
