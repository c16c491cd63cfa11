"""The table of operators: one row for a domain, a name and a range of versions.

A row declares an operator by the signature of its builder: the names, defaults and types of inputs
and attributes say how they are read from a node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import takewhile, zip_longest
from typing import Any

import numpy as np
from onnx import TensorProto

from ...errors import ArgumentError
from ...op_graph.axes.lengths import Length
from ..positional.small_dtypes import SmallArray, is_small, labelled, wide
from ..positional.values import HostArray, Size, Value, host, known_list
from .stacks import PartialStack
from .tensors import dtype_of

STANDARD = ""  # the domain "ai.onnx"
ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"

FAMILIES: Mapping[str, Sequence[str]] = {  # by domain, those of most models first
    STANDARD: (
        "elementwise", "activation", "products", "shapes", "movement", "images.convolution",
        "reductions", "normalisation", "indexing", "selection", "control", "recurrent",
        "quantization", "images.resizing", "images.sampling", "random", "signals", "sequences",
        "texts",
    ),
    ML: ("learning.trees", "learning.features"),
    TRAINING: ("training",),
}  # fmt: skip

# Attributes, of all operators or of one, that say nothing about the result: hints for memory and
# speed, an order that may be any, the dtype of sums, which here is float32 at least, training in
# versions that have none, what the shapes or dtypes of inputs say too, and the case of letters by
# country, which is the same for all in Python.
UNREAD = frozenset(
    """
    consumed_inputs is_test nodes_hitrates stash_type Gemm.broadcast GRU.output_sequence
    LSTM.output_sequence LinearClassifier.multi_class LinearRegressor.targets OneHotEncoder.zeros
    Optional.type RNN.output_sequence SequenceEmpty.dtype StringNormalizer.locale TopK.sorted
    ZipMap.classlabels_int64s ZipMap.classlabels_strings
    """.split()
)

# Operators that move elements without reading them, so that these may have any dtype.
MOVING = frozenset(
    """
    Concat DepthToSpace Expand Flatten Gather Identity Reshape Slice SpaceToDepth Split Squeeze
    Tile Transpose Unsqueeze
    """.split()
)


@dataclass(frozen=True)
class NodeInfo:
    """A node that is built, for operators that need more than its inputs and attributes.

    ``version`` is that of its domain. ``outputs`` are names, "" for those that nothing reads.
    ``find`` returns the value of a name that the node sees.
    """

    name: str
    operator: str
    version: int
    outputs: tuple[str, ...]
    find: Callable[[str], Any]

    def wants(self, number: int) -> bool:
        """Return True if the output of this number is there."""
        return number < len(self.outputs) and bool(self.outputs[number])


def _sizes(value: Value, what: str) -> list[Size]:
    return [n if isinstance(n, Length) else int(n) for n in known_list(value, what)]


def _single(read: Callable[..., list[Any]]) -> Callable[..., Any]:
    def number(value: Value, what: str) -> Any:
        (found,) = read(value, what)
        return found

    return number


# How an input is read, by the type of its parameter; values of other types are passed on.
READERS: dict[str, Callable[[Value, str], Any]] = {
    **dict.fromkeys(("Positions", "Sequence[Size]", "Sequence[int]"), _sizes),
    **dict.fromkeys(("Size", "int"), _single(_sizes)),
    **dict.fromkeys(("bool", "float"), _single(known_list)),
    "Sequence[float]": known_list,
}


@dataclass(frozen=True)
class OperatorRow:
    """An operator: ``build`` returns its results for the inputs and attributes of a node.

    Inputs are positional: values of ``positional``, and lists for sequences. The default of its
    parameter, or None, stands for an optional input that is left out. An input whose parameter has
    one of the types in ``READERS`` must be known when the model is imported, and is passed as a
    number or a list. Attributes are keywords, with the defaults of the operator's schema; an
    attribute that a node lacks is left to the default of the parameter. One of the type ``DType``
    is the number or the name of a dtype in the file. A parameter ``node`` takes the ``NodeInfo``.
    The result is a value, or a tuple with one for each output. The row holds for operator sets from
    version ``since`` to ``until``. ``attributes`` maps those of old versions to the number of the
    input that they are in later ones.
    """

    name: str
    build: Callable[..., Any]
    since: int = 1
    until: int | None = None
    domain: str = STANDARD
    attributes: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of ``build`` by name."""
        return inspect.signature(self.build).parameters

    @cached_property
    def _given_by_position(self) -> list[inspect.Parameter]:
        """The parameters of inputs, up to one that takes any number of them."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return list(takewhile(lambda each: each.kind in kinds, self.parameters.values()))

    def reads(self, attribute: str) -> bool:
        """Return False for an attribute of the standard that says nothing about the result."""
        is_unread = not UNREAD.isdisjoint((attribute, f"{self.name}.{attribute}"))
        return self.domain not in (STANDARD, ML) or not is_unread

    def holds(self, version: int) -> bool:
        """Return True if the row holds for the operator in this version of its domain."""
        return self.since <= version and (self.until is None or version <= self.until)

    def apply(self, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the results of a node. Elements of a small dtype are moved in the wider one."""
        given = {name: self._attribute(name, value) for name, value in keywords.items()}
        inputs = list(inputs)
        for name in self.attributes.keys() & given.keys():
            place = self.attributes[name]
            inputs += [None] * (place + 1 - len(inputs))
            inputs[place] = _as_input(given.pop(name))
        stack = next((v for v in inputs if isinstance(v, PartialStack)), None)
        if stack is not None and self.name != "Shape":
            return (stack.apply(self.name, inputs),)
        dtypes = {v.dtype for v in inputs[:1] if isinstance(v, (HostArray, SmallArray))}
        small = [dtype for dtype in dtypes if self.name in MOVING and is_small(dtype)]
        result = self.build(*self._inputs([wide(v) for v in inputs] if small else inputs), **given)
        results = result if isinstance(result, tuple) else (result,)
        return tuple([labelled(v, small[0]) for v in results]) if small else results

    def _attribute(self, name: str, value: Any) -> Any:
        """Return an attribute; a number or a name of a dtype as a dtype, a default 0 as None."""
        parameter = self.parameters.get(name)
        if parameter is None or type_of(parameter) != "DType":
            return value
        number = TensorProto.DataType.Value(value.upper()) if isinstance(value, str) else value
        is_left_out = number == 0 and parameter.default is None
        return None if is_left_out else dtype_of(number, f"the attribute {name!r}")

    def _inputs(self, inputs: Sequence[Any]) -> Iterator[Any]:
        """Yield inputs as the types of their parameters say, or the defaults of these."""
        for value, each in zip_longest(inputs, self._given_by_position[: len(inputs)]):
            if value is None and each is not None and each.default is not each.empty:
                yield each.default
            elif each is not None and isinstance(value, Value) and type_of(each) in READERS:
                yield READERS[type_of(each)](value, f"the input {each.name!r}")
            else:
                yield value


def type_of(parameter: inspect.Parameter) -> str:
    """Return the type that a parameter is declared with, as a text without ``None``."""
    return str(parameter.annotation).removesuffix(" | None")


def _as_input(attribute: Any) -> HostArray:
    """Return a number or a list in an attribute as a value."""
    found = np.asarray(attribute)
    return host(found, np.float32 if found.size and found.dtype.kind == "f" else np.int64)


row = OperatorRow  # as tables call it

Table = dict[tuple[str, str], list[OperatorRow]]
_REGISTERED: Table = {}


@cache
def rows_of(family: str) -> Table:
    """Return the rows of a family by domain and name; its module is imported."""
    table: Table = {}
    for each in import_module(f".operators.{family}", __package__).ROWS:
        table.setdefault((each.domain, each.name), []).append(each)
    return table


@cache
def standard_rows(domain: str, name: str) -> Sequence[OperatorRow]:
    """Return the rows of an operator, all of one family; families are imported until then."""
    families = FAMILIES.get(domain, ())
    return next((r for f in families if (r := rows_of(f).get((domain, name)))), ())


def find_row(domain: str, name: str, version: int) -> OperatorRow | None:
    """Return the row of an operator, the user's first; None if there is none."""
    rows = [*_REGISTERED.get((domain, name), ()), *standard_rows(domain, name)]
    return next((each for each in rows if each.holds(version)), None)


def register(
    domain: str, name: str, versions: tuple[int, int | None] = (1, None)
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds an operator of another domain, or replaces a standard one.

    ``versions`` are the first and the last version of the domain, both included; None for no last.
    The function takes the inputs of a node, values of ``geon.frontends.positional``, and its
    attributes as keywords, and returns a value or a tuple of values. An input whose parameter has a
    type that is written as a text, such as "int" or "Sequence[int]", is a known number or list:

        @geon.frontends.onnx.register("com.example", "Scale")
        def scale(x, factor=1.0):
            return elementwise(geon.multiply, x, host(factor, "float32"))
    """

    match versions:
        case (int(), int() | None):
            since, until = versions
        case _:
            raise ArgumentError(
                f"register: versions={versions!r} is no pair of versions; give the first and the "
                "last one, or None for no last, such as (1, None)"
            )

    def add(build: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTERED.setdefault((domain, name), []).insert(0, row(name, build, since, until, domain))
        return build

    return add
