"""Library requests as data: products, convolutions, factorisations and transforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import Length, evaluate, product
from ...kernels.products.convolutions import ConvolutionShape

WORKSPACE_BYTES = 1 << 25  # bytes of the workspace of a product or convolution
# Max. rows of a batch of eigenvalue problems or singular values that is one call: the limit of
# cuSOLVER's routines for batches by Jacobi's method.
MAX_JACOBI_ROWS = 32

Pointer = TypeVar("Pointer")  # index in a call's table, or the place that gets an index there
N = TypeVar("N", bound=Size)  # open sizes of a request, or numbers under given lengths


def under_lengths(request: Any, lengths: Mapping[str, int]) -> Any:
    """Return a request with numbers in the place of its sizes."""

    def number(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([number(each) for each in value])
        return evaluate(value, lengths) if isinstance(value, Length) else value

    return replace(request, **{x.name: number(getattr(request, x.name)) for x in fields(request)})


class Convolving(NamedTuple):
    """A convolution for a library; ``made`` names what is computed.

    Its operands, ``shapes`` and ``steps`` (strides) are in the order image, filter, response; each
    shape is outer, inner, then spatial axes, where outer and inner are images and channels, filters
    and channels of a group, or images and filters. ``strides``, ``dilations`` and the padding
    ``before`` and ``after`` have one number per spatial axis. ``dtype`` is the dtype of both
    factors, ``result`` that of the result. Half-precision sums accumulate in float32.
    """

    made: str
    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[int, ...], ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    groups: int
    dtype: str
    result: str


@dataclass(frozen=True, slots=True)
class ConvolutionCall(ConvolutionShape):
    """A convolution that stores values of dtype ``result``.

    ``ends`` is True if no pass over the sums follows. ``apart`` is True if the sums lie in scratch
    memory until that pass.
    """

    result: str
    ends: bool
    apart: bool

    def under(self, lengths: Mapping[str, int]) -> Convolving | None:
        """Return the library call for these lengths, or None if unsupported.

        Spatial axes are in the image's memory order, which libraries expect. Elements beyond the
        last window are padding, or are cut from the image. A computed image cannot be cut, since it
        is 0 there.
        """
        axes = sorted(self.spatial, key=lambda axis: -evaluate(axis.steps[0], lengths))
        return replace(self, spatial=tuple(axes))._ordered(lengths)

    def _ordered(self, lengths: Mapping[str, int]) -> Convolving | None:
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
            self.made, tuple(map(tuple, shapes)),
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
class ProductCall(Generic[N]):
    """A batched matrix product: (batch, rows, deep) times (batch, deep, columns).

    ``left``, ``right``, ``out_operand`` and ``bias`` are operand numbers of a contraction; ``bias``
    is added along columns, None if there is none. Strides are those of batches, rows and columns,
    in elements. ``dtype`` is the dtype of both factors, ``result`` that of the stored value and of
    the bias. Half-precision products accumulate in float32. ``ends`` is True if no pass over the
    sums follows. ``apart`` is True if the sums lie in scratch memory until that pass.
    """

    batch: N
    rows: N
    columns: N
    deep: N
    left: int
    right: int
    out_operand: int
    bias: int | None
    left_strides: tuple[N, N, N]
    right_strides: tuple[N, N, N]
    out_strides: tuple[N, N, N]
    dtype: str
    result: str
    ends: bool
    apart: bool

    @property
    def operands(self) -> tuple[int | None, ...]:
        """Return the operand numbers in the order of a call's addresses."""
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
        return product((self.batch, self.rows, self.columns))

    @property
    def multiplications(self) -> Size:
        """Return the number of multiplications."""
        return self.results * self.deep

    def under(self, lengths: Mapping[str, int]) -> ProductCall[int]:
        """Return the library call for given lengths, whose operands are numbered in order."""
        bias = None if self.bias is None else 3
        numbered = replace(self, left=0, right=1, out_operand=2, bias=bias)
        found: ProductCall[int] = under_lengths(numbered, lengths)
        return found


@dataclass(frozen=True, slots=True)
class MatrixCall(Generic[N]):
    """A routine of LAPACK or BLAS for a batch of column-major matrices.

    ``strides`` are the bytes from one matrix to the next of its operands. In their order, by
    routine, with int32 pivots and status (``info``), and with arrays of the addresses of all
    matrices behind:

    - potrf: a, info, pointers to a. The upper triangle is read and written.
    - getrf: a, pivots, info, pointers to a.
    - getrs: factors, pivots, sides, info, pointers to factors, pointers to sides; ``columns`` is
      the number of right-hand sides, and flags are (transposed).
    - trsm: triangle, sides, pointers to triangles, pointers to sides. It solves X op(T) = B in
      place, where ``columns`` is the number of rows of X and flags are (upper, transposed, unit).
    - geqrf and orgqr: a, tau, info.
    - syevd: a, eigenvalues, info; flags are (vectors). The lower triangle is read.
    - gesvdj: a, singular values, left and right vectors, info. The left vectors of a batch that is
      one call (``cusolver.is_batched``) are square matrices.
    """

    routine: str
    batch: N
    rows: N
    columns: N
    strides: tuple[N, ...]
    flags: tuple[int, ...]
    dtype: str

    def under(self, lengths: Mapping[str, int]) -> MatrixCall[int]:
        """Return the library call for given lengths."""
        found: MatrixCall[int] = under_lengths(self, lengths)
        return found


class LineTransforms(NamedTuple):
    """Fourier transforms of lines of ``n`` elements, without a factor, for a library.

    ``form`` is that of ``geon.fft``'s primitive: c2c, r2c or c2r. ``dtype`` is that of the parts of
    complex numbers. Before and after the transform, in complex or real elements, ``strides`` are
    the steps along a line and ``apart`` those from one of ``lines`` lines to the next. That is
    repeated ``repeats`` times, with the addresses ``steps`` bytes apart.
    """

    form: str
    inverse: bool
    dtype: str
    n: int
    lines: int
    repeats: int
    strides: tuple[int, int]
    apart: tuple[int, int]
    steps: tuple[int, int]


@dataclass(frozen=True, slots=True)
class FourierCall:
    """Transforms over (outer, axis, inner) of the form ``form``, as in ``LineTransforms``.

    ``n`` is the length of the transform, in real elements if some are real. ``item`` is the bytes
    of a real element.
    """

    form: str
    inverse: bool
    dtype: str
    item: int
    n: Size
    outer: Size
    inner: Size

    def under(self, lengths: Mapping[str, int]) -> LineTransforms:
        """Return the library call for given lengths.

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
        if outer > inner:
            lines, repeats, apart, steps = outer, inner, blocks, (items[0], items[1])
        else:
            lines, repeats, apart = inner, outer, (1, 1)
            steps = blocks[0] * items[0], blocks[1] * items[1]
        return LineTransforms(
            self.form, self.inverse, self.dtype, n, lines, repeats, (inner, inner), apart, steps,
        )  # fmt: skip


ContractionWork = ProductCall[Size] | ConvolutionCall
LibraryWork = ContractionWork | MatrixCall[Size] | FourierCall
LibraryCall = ProductCall[int] | Convolving | MatrixCall[int] | LineTransforms
# The option of a transformer that selects the library of each kind of call.
OPTIONS: dict[type, str] = {
    ProductCall: "products",
    Convolving: "convolutions",
    MatrixCall: "matrices",
    LineTransforms: "transforms",
}
# Calls that a CUDA graph may contain. The others may wait for the device, and their working memory
# may move.
CAPTURED = (ProductCall, Convolving)


@dataclass(frozen=True, slots=True)
class Ask(Generic[Pointer]):
    """A step in which a library computes ``work``; ``values`` are the pointers of its operands.

    Their first elements are ``offsets`` bytes behind that, by default none. ``works`` is the
    pointer of scratch memory: sums that lie apart, then at byte offset ``after`` the library's
    workspace. ``origin`` is the plan number of the kernel.
    """

    work: LibraryWork
    values: tuple[Pointer | None, ...]
    works: Pointer
    after: Size
    offsets: tuple[Size, ...] = ()
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
