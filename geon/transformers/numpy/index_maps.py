"""Index maps as NumPy: strided views, and movement ops by index arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder, strides
from ...op_graph.axes.index_map import Map, Position, identity
from ...op_graph.axes.lengths import Length
from ...op_graph.op_graph import Op
from ..lowering.facts.target import Layout


class ArrayNames(Protocol):
    """Interface of the arrays and lengths of a program."""

    @property
    def layouts(self) -> Mapping[Op, Layout]:
        """Return the memory layouts of values."""

    def operand(self, op: Op) -> str:
        """Return the array of a value."""

    def make(self, stem: str, text: str, scope: str) -> str:
        """Return the name of an array that ``text`` makes."""

    def shape(self, lengths: Iterable[int | Length]) -> str:
        """Return a shape as text."""

    def length_text(self, length: int | Length) -> str:
        """Return a length, evaluated in place."""


def map_of(op: Op) -> Map:
    """Return the index map of an op, as a function of its axes."""
    assert op.primitive.index_map is not None
    return op.primitive.index_map(op, identity(op.axes.names))


def view_text(work: ArrayNames, op: Op, source: str) -> str:
    """Return the text of the strided view of an op's argument ``source``, from its index map."""
    (piece,) = map_of(op)
    x = op.args[0]
    starts = [work.length_text(piece.index[name].constant) for name in x.axes.names]
    indices = [piece.index[name] for name in x.axes.names]
    if all(isinstance(atom, str) for index in indices for atom in index.terms):
        units = [f"{source}.strides[{k}]" for k in range(len(indices))]
    else:  # quotients and remainders of one index: the argument's axes are contiguous
        order = work.layouts[x].order
        lengths = tuple([x.axes[name].expression for name in order])
        offset = AffineIndex()
        for name, step in zip(order, strides(lengths), strict=True):
            offset = offset + piece.index[name] * step
        units, indices = [f"{source}.itemsize"], [offset]
    steps = [_stride(work, name, indices, units) for name in op.axes.names]
    return f"rt.view({source}, {_tuple(starts)}, {_tuple(steps)}, {work.shape(op.axes.lengths)})"


def _stride(work: ArrayNames, name: str, indices: list[AffineIndex], units: list[str]) -> str:
    """Return the stride of a view along an axis, in bytes."""
    parts = [
        _times(unit, work.length_text(index.step(name)))
        for index, unit in zip(indices, units, strict=True)
        if index.step(name) != 0
    ]
    return " + ".join(parts) or "0"


def _times(text: str, factor: str) -> str:
    return text if factor == "1" else f"({factor}) * {text}"


def moved_text(work: ArrayNames, op: Op) -> list[str]:
    """Return the statements that fill an op's array from its index map, the last piece first."""
    out = work.operand(op)
    grid = work.make("g", f"rt.grid({work.shape(op.axes.lengths)})", "bind")
    axes = {name: f"{grid}[{k}]" for k, name in enumerate(op.axes.names)}
    lines = []
    for piece in reversed(map_of(op)):
        arg = op.args[piece.arg]
        x = work.operand(arg)
        places = [_index(work, op, piece.index[name], axes) for name in arg.axes.names]
        at = _tuple(places)
        if not piece.guards:
            lines.append(f"np.copyto({out}, {x}[{at}])")
            continue
        inside = [
            _inside(_index(work, op, guard.index, axes), *map(work.length_text, (low, high)))
            for guard, low, high in [(guard, guard.low, guard.high) for guard in piece.guards]
        ]
        lines.append(f"rt.put_piece({out}, {x}, {' & '.join(inside)}, {at})")
    return lines


def _inside(index: str, low: str, high: str) -> str:
    return f"({low} <= {index}) & ({index} < {high})"


def _index(work: ArrayNames, op: Op, index: AffineIndex, axes: dict[str, str]) -> str:
    """Return an affine index as Python over the arrays named in ``axes``, in parentheses."""
    parts = []
    for atom, step in index.terms.items():
        if isinstance(atom, (Quotient, Remainder)):
            sign = "//" if isinstance(atom, Quotient) else "%"
            text = f"({_index(work, op, atom.of, axes)} {sign} ({work.length_text(atom.by)}))"
        elif isinstance(atom, Position):
            place = _tuple([_index(work, op, at, axes) for _, at in atom.index])
            held = work.operand(op.args[atom.arg])
            text = f"rt.wrapped({held}[{place}], {work.length_text(atom.length)})"
        else:
            text = axes[str(atom)]
        parts.append(_times(text, work.length_text(step)))
    constant: int | Length = index.constant
    if constant != 0 or not parts:
        parts.append(work.length_text(constant))
    return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
