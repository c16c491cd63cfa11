"""The table of operators: one row for a domain, a name and a range of versions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ..positional.small_dtypes import SmallArray, is_small, labelled, wide
from ..positional.values import HostArray, host
from .stacks import PartialStack

STANDARD = ""  # the domain "ai.onnx"
ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"

FAMILIES: Mapping[str, Sequence[str]] = {  # by domain, those of most models first
    STANDARD: (
        "elementwise", "activation", "products", "shapes", "movement", "images.convolution",
        "reductions", "normalisation", "indexing", "casts", "selection", "control", "recurrent",
        "quantization", "images.resizing", "images.spreading", "images.sampling", "random",
        "signals", "sequences", "texts",
    ),
    ML: ("learning.trees", "learning.features"),
    TRAINING: ("training",),
}  # fmt: skip

# Attributes that say nothing about the result: hints for memory and speed, the dtype of sums, which
# here is float32 at least, and training in versions that have no training.
UNREAD = frozenset("consumed_inputs is_test nodes_hitrates stash_type".split())

# Operators that move elements without reading them, so that these may have any dtype.
MOVING = frozenset(
    """
    Concat DepthToSpace Expand Flatten Gather Identity Reshape Slice SpaceToDepth Split Squeeze
    Tile Transpose Unsqueeze
    """.split()
)


@dataclass(frozen=True)
class OperatorRow:
    """An operator: ``build`` returns its results for the inputs and attributes of a node.

    Inputs are positional: values of ``positional``, lists for sequences, and None for an optional
    input that is left out. Attributes are keywords, with the defaults of the operator's schema; an
    attribute that a node lacks is left to the default of the parameter. A parameter ``node`` takes
    the ``NodeInfo``. The result is a value, or a tuple with one for each output. The row holds for
    operator sets from version ``since`` to ``until``. ``attributes`` maps those of old versions to
    the number of the input that they are in later ones.
    """

    name: str
    build: Callable[..., Any]
    since: int = 1
    until: int | None = None
    domain: str = STANDARD
    attributes: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters of ``build``."""
        return frozenset(inspect.signature(self.build).parameters)

    def reads(self, attribute: str) -> bool:
        """Return False for an attribute of the standard that says nothing about the result."""
        is_standard = self.domain in (STANDARD, ML)
        return not is_standard or attribute not in UNREAD or attribute in self.parameters

    def holds(self, version: int) -> bool:
        """Return True if the row holds for the operator in this version of its domain."""
        return self.since <= version and (self.until is None or version <= self.until)

    def apply(self, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the results of a node. Elements of a small dtype are moved in the wider one."""
        given = dict(keywords)
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
        result = self.build(*([wide(v) for v in inputs] if small else inputs), **given)
        results = result if isinstance(result, tuple) else (result,)
        return tuple([labelled(v, small[0]) for v in results]) if small else results


def _as_input(attribute: Any) -> HostArray:
    """Return a number or a list in an attribute as a value."""
    found = np.asarray(attribute)
    return host(found, np.float32 if found.size and found.dtype.kind == "f" else np.int64)


def row(
    name: str,
    build: Callable[..., Any],
    since: int = 1,
    until: int | None = None,
    domain: str = STANDARD,
    attributes: Mapping[str, int] | None = None,
) -> OperatorRow:
    """Return the row of an operator."""
    return OperatorRow(name, build, since, until, domain, attributes or {})


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
    attributes as keywords, and returns a value or a tuple of values:

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
