"""What geon offers flat under its name: names, keywords, and the golden file of signatures.

``python -m tests.test_public --update`` writes the golden file anew; its change is seen in review.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.testing.cases import for_each

NAMESPACES = ("fft",)  # modules of public functions
GOLDEN = Path(__file__).parent / "golden" / "signatures.txt"

NAMES = """
placeholder Variable variable constant persistent_tensor temporary_tensor iota Random Axis Axes
add subtract multiply divide floordivide mod power negative absolute sign reciprocal square sqrt
rsqrt exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 erf
erfc erfcx ndtr log_ndtr erfinv
lgamma polygamma digamma sigmoid maximum minimum where less less_equal greater greater_equal equal
not_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
bitwise_not left_shift right_shift floor ceil round trunc isnan isinf isfinite cast stop_gradient
sum prod max min any all argmax argmin cumsum cumprod sort argsort top_k
dot broadcast reorder rename cast_axes update flip pad concat stack flatten unflatten expand gather
scatter assign SetItem doall sequential print
mean variance std logsumexp softmax log_softmax cross_entropy_binary cross_entropy_multi squared_L2
L2_norm clip relu leaky_relu elu softplus gelu silu onehot outer tensor_size take_along
interpolation contract
window Window convolution transposed_convolution max_pool average_pool lp_pool resize roll diagonal
deriv jvp vjp hvp custom_deriv dumps loads make_transformer NumPyTransformer
""".split()

KEYWORDS = {
    "axes": "placeholder Variable constant persistent_tensor temporary_tensor broadcast reorder"
    " cast_axes flip flatten unflatten",
    "dtype": "placeholder Variable constant iota cast onehot",
    "initial_value": "Variable",
    "trainable": "Variable",
    "persistent": "Variable",
    "reduction_axes": "sum prod max min any all argmax argmin mean variance std logsumexp"
    " squared_L2 L2_norm cross_entropy_binary cross_entropy_multi tensor_size",
    "out_axes": "sum prod max min any all argmax argmin mean variance std logsumexp"
    " squared_L2 L2_norm cross_entropy_binary cross_entropy_multi tensor_size contract",
    "normalization_axes": "softmax log_softmax",
    "over": "dot contract",
    "usebits": "cross_entropy_binary cross_entropy_multi",
}


@for_each("name", NAMES)
def test_the_name_is_there(name):
    assert callable(getattr(geon, name))
    assert name in dir(geon)


@for_each(("keyword", "function"), [(k, f) for k, names in KEYWORDS.items() for f in names.split()])
def test_the_keyword_has_the_same_name_everywhere(keyword, function):
    assert keyword in inspect.signature(getattr(geon, function)).parameters


N, C = geon.Axis("N"), geon.Axis("C", 3)


@pytest.mark.parametrize("given", [C, [C], (C,), geon.Axes(C), geon.Axes([C])], ids=repr)
def test_a_keyword_takes_one_axis_a_list_or_axes(given):
    x = geon.placeholder(axes=[C, N])
    assert geon.placeholder(axes=given).axes is geon.Axes(C)
    assert geon.Variable(axes=given).axes is geon.Axes(C)
    assert geon.constant(1.0, axes=given).axes is geon.Axes(C)
    assert geon.sum(x, reduction_axes=given).axes is geon.Axes(N)
    assert geon.sum(x, out_axes=given).axes is geon.Axes(C)
    assert geon.mean(x, out_axes=given).axes is geon.Axes(C)
    assert geon.softmax(x, normalization_axes=given).axes is x.axes
    assert geon.dot(x, x, over=given).axes is geon.Axes(N)
    assert geon.contract([x, x], over=given).axes is geon.Axes(N)
    assert geon.flip(x, given).axes is x.axes


# Signatures -------------------------------------------------------------------------------------


def _shown(function: object) -> str:
    text = str(inspect.signature(function))  # type: ignore[arg-type]
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are strings


def _members(name: str, cls: type) -> Iterator[str]:
    yield f"{name}({', '.join(base.__name__ for base in cls.__bases__)})"
    listed = {base for base in cls.__mro__[1:] if getattr(geon, base.__name__, None) is base}
    known = {member for base in listed for member in dir(base)} | set(dir(Exception))
    for member in dir(cls):
        if member.startswith("_") and member != "__call__" or member in known:
            continue
        value = inspect.getattr_static(cls, member)
        if isinstance(value, property):
            yield f"{name}.{member}"
        elif isinstance(value, (classmethod, staticmethod)):
            yield f"{name}.{member}{_shown(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"{name}.{member}{_shown(value)}"


def signatures() -> str:
    """Every public name of geon with its signature, one for each line."""
    lines = []
    for name in sorted(n for n in dir(geon) if not n.startswith("_")):
        value = getattr(geon, name)
        if inspect.ismodule(value) or not callable(value):
            continue
        if inspect.isclass(value):
            lines += _members(name, value)
            if "__init__" in vars(value) and not issubclass(value, geon.Op):
                lines.append(f"{name}.__init__{_shown(value.__init__)}")
        else:
            row = "row " if isinstance(value, Elementwise) else ""
            lines.append(f"{row}{name}{_shown(value)}")
    for space in NAMESPACES:
        module = getattr(geon, space)
        lines += [f"{space}.{name}{_shown(getattr(module, name))}" for name in module.__all__]
    return "\n".join([*lines, ""])


def test_public_signatures_are_the_golden_ones():
    """A difference is a change of the API: note it in CHANGELOG, then update the file."""
    assert signatures().splitlines() == GOLDEN.read_text().splitlines(), (
        "run `python -m tests.test_public --update`"
    )


def test_every_public_function_has_a_docstring_and_annotations():
    for name in dir(geon):
        value = getattr(geon, name)
        if not name.startswith("_") and callable(value):
            assert value.__doc__, name
            if inspect.isfunction(value):
                assert inspect.signature(value).return_annotation is not inspect.Signature.empty


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python -m tests.test_public --update")
    GOLDEN.write_text(signatures())
