"""The table of operators: one row for a domain, a name and a range of versions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

STANDARD = ""  # the domain "ai.onnx"
ML = "ai.onnx.ml"

FAMILIES = (
    "elementwise", "activation", "reductions", "shapes", "movement", "products", "indexing",
    "convolution", "normalisation", "control",
)  # fmt: skip


@dataclass(frozen=True)
class OperatorRow:
    """An operator: ``build`` returns its results for the inputs and attributes of a node.

    Inputs are positional: values of ``positional``, lists for sequences, and None for an optional
    input that is left out. Attributes are keywords, with the defaults of the operator's schema; an
    attribute that a node lacks is left to the default of the parameter. A parameter ``node`` takes
    the ``NodeInfo``. The result is a value, or a tuple with one for each output. The row holds for
    operator sets from version ``since`` to ``until``.
    """

    name: str
    build: Callable[..., Any]
    since: int = 1
    until: int | None = None
    domain: str = STANDARD
    takes_node: bool = field(default=False)

    def holds(self, version: int) -> bool:
        """Return True if the row holds for the operator in this version of its domain."""
        return self.since <= version and (self.until is None or version <= self.until)


def row(
    name: str,
    build: Callable[..., Any],
    since: int = 1,
    until: int | None = None,
    domain: str = STANDARD,
) -> OperatorRow:
    """Return the row of an operator."""
    return OperatorRow(
        name, build, since, until, domain, "node" in inspect.signature(build).parameters
    )


Table = dict[tuple[str, str], list[OperatorRow]]
_REGISTERED: Table = {}


@cache
def standard_table() -> Table:
    """Return the rows of all families, by domain and name."""
    table: Table = {}
    for family in FAMILIES:
        for each in import_module(f".operators.{family}", __package__).ROWS:
            table.setdefault((each.domain, each.name), []).append(each)
    return table


def find_row(domain: str, name: str, version: int) -> OperatorRow | None:
    """Return the row of an operator, the user's first; None if there is none."""
    for table in (_REGISTERED, standard_table()):
        for each in table.get((domain, name), ()):
            if each.holds(version):
                return each
    return None


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

    def add(build: Callable[..., Any]) -> Callable[..., Any]:
        since, until = versions
        _REGISTERED.setdefault((domain, name), []).insert(0, row(name, build, since, until, domain))
        return build

    return add
