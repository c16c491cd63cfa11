"""What a library is asked to compute, as data: products of matrices, and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from .convolution import Convolution
from .device import Multiplication

Names = Sequence[str] | dict[int, str]  # of pointers, by number


@dataclass(frozen=True, slots=True)
class Strides:
    """How far apart elements of a matrix are: from batch to batch, down, and across."""

    batch: Size
    down: Size
    across: Size

    def under(self, lengths: Mapping[str, int]) -> tuple[int, int, int]:
        """The three as integers."""
        return (
            evaluate(self.batch, lengths),
            evaluate(self.down, lengths),
            evaluate(self.across, lengths),
        )


@dataclass(frozen=True, slots=True)
class Product:
    """``rows`` times ``columns`` sums of ``deep`` products, ``batch`` times.

    ``left``, ``right``, ``out_operand`` and ``bias``, which is added along columns, are operands of
    a contraction. ``dtype`` is that of both factors, ``result`` that of what is stored. ``ends``
    says that this is all; else a pass over the sums follows, which lie in scratch memory where they
    are put ``apart``.
    """

    batch: Size
    rows: Size
    columns: Size
    deep: Size
    left: int
    right: int
    out_operand: int
    bias: int | None
    left_strides: Strides
    right_strides: Strides
    out_strides: Strides
    dtype: str
    result: str
    ends: bool
    apart: bool

    @property
    def operands(self) -> tuple[int | None, ...]:
        """What it is given, in the order of ``Multiplication``."""
        return self.left, self.right, self.out_operand, self.bias

    @property
    def out(self) -> int:
        """The number of what is computed in ``operands``."""
        return 2

    @property
    def terms(self) -> Size:
        """How many products a sum has."""
        return self.deep

    @property
    def results(self) -> Size:
        """How many sums there are."""
        return self.batch * self.rows * self.columns

    @property
    def multiplications(self) -> Size:
        """How many products there are."""
        return self.results * self.deep

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> Multiplication:
        """The product under these lengths, without addresses."""
        return Multiplication(
            left=0,
            right=0,
            out=0,
            bias=0 if self.bias is None else 1,  # there is one, whose address comes later
            works=works,
            size=size,
            batch=evaluate(self.batch, lengths),
            rows=evaluate(self.rows, lengths),
            columns=evaluate(self.columns, lengths),
            deep=evaluate(self.deep, lengths),
            left_strides=self.left_strides.under(lengths),
            right_strides=self.right_strides.under(lengths),
            out_strides=self.out_strides.under(lengths),
            dtype=self.dtype,
            result=self.result,
        )


LibraryWork = Product | Convolution


@dataclass(frozen=True, slots=True)
class Ask:
    """What a library is asked to compute; ``values`` are pointers to its operands, in order.

    The sums are at ``works`` where they are put apart, and its working memory ``after`` them.
    """

    work: LibraryWork
    values: tuple[int | None, ...]
    works: int
    after: Size


def asked(step: Ask, names: Names) -> str:
    """What a library computes."""
    at, made = step.work.out, ["" if each is None else names[each] for each in step.values]
    into, others = made[at], [*made[:at], *made[at + 1 :]]
    if isinstance(step.work, Convolution):
        return f"{into} = {step.work.made} of {others[0]} and {others[1]}"
    bias = f" + {others[2]}" if others[2] else ""
    return f"{into} = {others[0]} times {others[1]}{bias}"
