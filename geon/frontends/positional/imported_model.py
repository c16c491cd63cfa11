"""``ImportedModel``: a model of another library as tensors, variables and computations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, GeonError
from ...op_graph.op_graph import Leaf
from ...transformers.base import Transformer, make_transformer


class UnsupportedError(GeonError, NotImplementedError):
    """Operators of a model that geon does not have; ``names`` maps them to how often they occur."""

    def __init__(self, message: str, names: dict[str, int]) -> None:
        super().__init__(message)
        self.names = names


def refuse_unsupported(name: str, unknown: Iterable[Any], kind: str, cure: str) -> None:
    """Raise ``UnsupportedError`` if operators of a model are unknown; it says how often they occur.

    ``kind`` is what the program calls its operators.
    """
    counts = dict(Counter(map(str, unknown)))
    if counts:
        listed = ", ".join([f"{each}: {count}" for each, count in sorted(counts.items())])
        raise UnsupportedError(
            f"{name} has {kind} that geon does not have, with how often they occur: {listed}; "
            f"{cure}",
            counts,
        )


def refuse_other_inputs(option: str, given: Iterable[str], name: str, inputs: list[str]) -> None:
    """Raise ``ArgumentError`` if an option of ``load`` names an input that the model lacks."""
    unknown = sorted(set(given) - set(inputs))
    if unknown:
        raise ArgumentError(
            f"{option}: {name} has no input {unknown[0]!r}; it has {', '.join(inputs) or 'none'}"
        )


@contextmanager
def building_node(what: str, name: str, origin: Callable[[], str] = str) -> Iterator[None]:
    """Raise errors of building a node as ``ArgumentError`` that says which one it is, and why.

    ``what`` begins with the word for a node, and ``origin`` returns a remark where it comes from.
    """
    try:
        yield
    except (GeonError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ArgumentError) and str(error).startswith(f"{what.split()[0]} "):
            raise  # about a node of an inner graph
        reason = str(error) or type(error).__name__
        raise ArgumentError(f"{what} of {name}: {reason}{origin()}") from error


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """A model of a file or of another library.

    ``inputs`` are its placeholders and ``outputs`` its tensors by name, both in their order; an
    output that is a sequence is a list of tensors. ``variables`` are the stored arrays that its
    results need. ``texts`` are outputs that are texts, which no computation has.
    """

    name: str
    inputs: dict[str, Leaf]
    outputs: dict[str, Any]
    variables: dict[str, Leaf]
    texts: dict[str, Any]

    def graph(self) -> dict[str, Any]:
        """Return the output tensors by name, for ``geon.deriv`` and further ops.

        Derivatives are taken with respect to ``variables`` and ``inputs``.
        """
        return dict(self.outputs)

    def computation(self, transformer: Transformer | None = None, **options: Any) -> Any:
        """Return a callable from arrays of the inputs, in order, to a dictionary of the outputs.

        ``options`` are those of ``transformer.computation``; the default transformer is that of
        ``geon.make_transformer``. Raises ``ArgumentError`` for what is no transformer.
        """
        used = make_transformer() if transformer is None else transformer
        if not isinstance(used, Transformer):
            raise ArgumentError(
                f"transformer={used!r} is no transformer; give one, such as "
                "geon.make_transformer('native')"
            )
        return used.computation(self.outputs, *self.inputs.values(), **options)

    def __repr__(self) -> str:
        inputs = ", ".join([f"{leaf.name}{leaf.axes}" for leaf in self.inputs.values()])
        return f"<{self.name}: {inputs} -> {', '.join([*self.outputs, *self.texts])}>"
