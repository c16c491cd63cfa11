"""Library requests as data: products, convolutions, factorisations and transforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from ...kernels.products.convolutions import ConvolutionShape
from .device import Convolving, LineTransforms, MatrixRoutine, Multiplication


@dataclass(frozen=True, slots=True)
class ConvolutionCall(ConvolutionShape):
    """A convolution that stores values of dtype ``result``.

    ``ends`` is True if no pass over the sums follows. ``apart`` is True if the sums lie in scratch
    memory until that pass.
    """

    result: str
    ends: bool
    apart: bool

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> Convolving | None:
        """Return the library call for these lengths, without addresses; None if unsupported.

        Spatial axes are in the image's memory order, which libraries expect. Elements beyond the
        last window are padding, or are cut from the image. A computed image cannot be cut, since it
        is 0 there.
        """
        axes = sorted(self.spatial, key=lambda axis: -evaluate(axis.steps[0], lengths))
        return replace(self, spatial=tuple(axes))._ordered(lengths, works, size)

    def _ordered(self, lengths: Mapping[str, int], works: int, size: int) -> Convolving | None:
        """Return the library call with spatial axes in the present order."""
        shapes = [[evaluate(n, lengths) for n in shape] for shape in self.shapes()]
        steps = [
            [evaluate(step, lengths) for step in (outer, inner, *along)]
            for outer, inner, along in zip(self.outer, self.inner, self._along(), strict=True)
        ]
        before = [evaluate(axis.before, lengths) for axis in self.spatial]
        after = []
        for k, axis in enumerate(self.spatial, 2):
            image, window, positions = (shape[k] for shape in shapes)
            reach = axis.stride * (positions - 1) + axis.dilation * (window - 1) + 1
            beyond = reach - before[k - 2] - image
            after.append(max(beyond, 0))
            if beyond < 0 and self.made == "image" and -beyond >= axis.stride:
                return None
            if beyond < 0 and self.made != "image":
                shapes[0][k] = image + beyond
        if min(before) < 0 or any(n < 1 for shape in shapes for n in shape):
            return None
        return Convolving(
            (0, 0, 0), works, size, self.made, tuple(map(tuple, shapes)),
            tuple(tuple(_distinct(s, n)) for s, n in zip(steps, shapes, strict=True)),
            tuple(axis.stride for axis in self.spatial),
            tuple(axis.dilation for axis in self.spatial),
            tuple(before), tuple(after), evaluate(self.groups, lengths), self.dtype, self.result,
        )  # fmt: skip

    def _along(self) -> Iterator[list[Size]]:
        """Yield the spatial strides of image, filter and response."""
        return ([axis.steps[k] for axis in self.spatial] for k in range(3))


def _distinct(steps: list[int], shape: list[int]) -> Iterator[int]:
    """Yield strides, replacing that of each axis of length 1 by the stride over the whole value."""
    whole = max(step * n for step, n in zip(steps, shape, strict=True))
    return (whole if n == 1 else step for step, n in zip(steps, shape, strict=True))


Names = Sequence[str] | dict[int, str]  # names of pointers, by index


@dataclass(frozen=True, slots=True)
class Strides:
    """Element strides of a matrix: between batches, rows (``down``) and columns (``across``)."""

    batch: Size
    down: Size
    across: Size

    def under(self, lengths: Mapping[str, int]) -> tuple[int, int, int]:
        """Return the three strides for given lengths."""
        return (
            evaluate(self.batch, lengths),
            evaluate(self.down, lengths),
            evaluate(self.across, lengths),
        )


@dataclass(frozen=True, slots=True)
class ProductCall:
    """A batched matrix product: (batch, rows, deep) times (batch, deep, columns).

    ``left``, ``right``, ``out_operand`` and ``bias`` are operand numbers of a contraction; ``bias``
    is added along columns, None if there is none. ``dtype`` is the dtype of both factors,
    ``result`` that of the stored value. ``ends`` is True if no pass over the sums follows.
    ``apart`` is True if the sums lie in scratch memory until that pass.
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
        """Return the operand numbers in the order of the addresses of ``Multiplication``."""
        return self.left, self.right, self.out_operand, self.bias

    @property
    def out(self) -> int:
        """Return the index of the result in ``operands``."""
        return 2

    @property
    def terms(self) -> Size:
        """Return the number of products per sum."""
        return self.deep

    @property
    def results(self) -> Size:
        """Return the number of sums."""
        return self.batch * self.rows * self.columns

    @property
    def multiplications(self) -> Size:
        """Return the number of multiplications."""
        return self.results * self.deep

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> Multiplication:
        """Return the library call for given lengths, without addresses."""
        return Multiplication(
            left=0,
            right=0,
            out=0,
            # 1 says that there is a bias, whose address is set later
            bias=0 if self.bias is None else 1,
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


@dataclass(frozen=True, slots=True)
class MatrixCall:
    """A routine for a batch of matrices, as ``MatrixRoutine`` describes it.

    ``offsets`` are the bytes from the pointer of each operand to its first matrix.
    """

    routine: str
    batch: Size
    rows: Size
    columns: Size
    offsets: tuple[Size, ...]
    strides: tuple[Size, ...]
    flags: tuple[int, ...]
    dtype: str

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> MatrixRoutine:
        """Return the library call for given lengths; its addresses are offsets."""
        offsets, strides = (
            tuple([evaluate(each, lengths) for each in sizes])
            for sizes in (self.offsets, self.strides)
        )
        batch, rows, columns = (
            evaluate(each, lengths) for each in (self.batch, self.rows, self.columns)
        )
        return MatrixRoutine(
            self.routine, offsets, strides, batch, rows, columns, self.flags, self.dtype
        )


@dataclass(frozen=True, slots=True)
class FourierCall:
    """Transforms over (outer, axis, inner) of the form ``form``, as in ``LineTransforms``.

    ``n`` is the length of the transform, in real elements if some are real. ``offsets`` are the
    bytes from the pointers of operand and result to their first elements. ``item`` is the bytes of
    a real element.
    """

    form: str
    inverse: bool
    dtype: str
    item: int
    n: Size
    outer: Size
    inner: Size
    offsets: tuple[Size, Size]

    def under(self, lengths: Mapping[str, int], works: int, size: int) -> LineTransforms:
        """Return the library call for given lengths; its addresses are offsets.

        Lines are those along the inner axes, repeated for the outer ones, or the other way round if
        these are more.
        """
        n, outer, inner = (evaluate(each, lengths) for each in (self.n, self.outer, self.inner))
        half = n // 2 + 1
        before = half if self.form == "c2r" else n
        after = half if self.form == "r2c" else n
        real = (self.form == "r2c", self.form == "c2r")
        items = [self.item * (1 if is_real else 2) for is_real in real]
        blocks = before * inner, after * inner
        source, target = (evaluate(each, lengths) for each in self.offsets)
        if outer > inner:
            lines, repeats, apart, steps = outer, inner, blocks, (items[0], items[1])
        else:
            lines, repeats, apart = inner, outer, (1, 1)
            steps = blocks[0] * items[0], blocks[1] * items[1]
        return LineTransforms(
            self.form, self.inverse, self.dtype, n, lines, repeats, (inner, inner), apart, steps,
            (source, target),
        )  # fmt: skip


ContractionWork = ProductCall | ConvolutionCall
LibraryWork = ContractionWork | MatrixCall | FourierCall


Pointer = TypeVar("Pointer")  # index in a call's table, or the place that gets an index there


@dataclass(frozen=True, slots=True)
class Ask(Generic[Pointer]):
    """A step in which a library computes ``work``; ``values`` are the pointers of its operands.

    ``works`` is the pointer of scratch memory: sums that lie apart, then at byte offset ``after``
    the library's workspace. ``origin`` is the plan number of the kernel.
    """

    work: LibraryWork
    values: tuple[Pointer | None, ...]
    works: Pointer
    after: Size
    origin: int = 0


def describe_request(step: Ask[int], names: Names) -> str:
    """Return the text that describes a library request."""
    if isinstance(step.work, MatrixCall):
        shown = [names[each] for each in dict.fromkeys(step.values) if each is not None]
        return f"{step.work.routine} in {' and '.join(shown)}"
    if isinstance(step.work, FourierCall):
        source, target = (names[each] for each in step.values if each is not None)
        return f"{target} = transform {step.work.form} of {source}"
    at, made = step.work.out, ["" if each is None else names[each] for each in step.values]
    into, others = made[at], [*made[:at], *made[at + 1 :]]
    if isinstance(step.work, ConvolutionCall):
        return f"{into} = {step.work.made} of {others[0]} and {others[1]}"
    bias = f" + {others[2]}" if others[2] else ""
    return f"{into} = {others[0]} times {others[1]}{bias}"
