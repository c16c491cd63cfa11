"""Parameters of a kernel's function: pointers to its memory, and open lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import FloorDiv, names_of
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ..scalars.c_expressions import C_TYPES
from ..scalars.c_types import c_length, divides, division, divisions

Place = tuple[str, object]  # kind of memory, and its number or the value that owns it


@dataclass(slots=True)
class Parameter:
    """A parameter of a kernel's function: a pointer to ``place``, or the length ``place``."""

    name: str
    ctype: str
    place: object
    pointer: bool = True

    def declared(self, restrict: str = "restrict ") -> str:
        """Return the declaration of the parameter; ``restrict`` qualifies a pointer, if not ""."""
        star = f"*{restrict}" if self.pointer else ""
        return f"{self.ctype} {star}{self.name}"


class NamedQuotients:
    """Quotients of lengths that a function computes first, by ``lines``, and their names."""

    def __init__(self) -> None:
        self.names: dict[FloorDiv, str] = {}
        self.lines: list[str] = []

    def named(self, length: Size, lengths: Mapping[str, str]) -> Mapping[FloorDiv, str]:
        """Return the names of all quotients, after naming those in ``length``."""
        for each in divisions(length):
            if each not in self.names:
                text, name = division(each, {**lengths, **self.names}), f"length{len(self.names)}"
                self.lines.append(f"const int64_t {name} = {text};")
                self.names[each] = name
        return self.names


class Parameters:
    """The parameters of a kernel, named ``x<n>`` (read), ``y<n>`` (written), ``n<n>`` (length).

    ``place_of`` returns the memory of an op. ``operands`` are those of the kernel, by number.
    ``results`` are the ops that it writes. ``called`` are the helper functions that its text calls.
    """

    def __init__(
        self, place_of: Callable[[Op], Place], operands: Sequence[Op], results: Iterable[Op]
    ) -> None:
        self.place_of, self.operands = place_of, operands
        self.pointers: dict[tuple[Place, str], Parameter] = {}
        self.lengths: dict[str, str] = {}
        self.called: dict[str, None] = {}
        self.quotients: NamedQuotients | None = (
            None  # those of the current function, if it has them
        )
        self.own: Mapping[str, str] = {}  # names of lengths that only the current function has
        results = tuple(results)
        self.written = {place_of(op) for op in results}
        for op in results:
            self.pointer(op)

    def pointer(self, op: Op) -> str:
        """Return the name of the typed pointer to the memory of ``op``."""
        place, dtype = self.place_of(op), name_of(op.dtype)
        found = self.pointers.get((place, dtype))
        if found is None:
            written = place in self.written
            count = sum(p.name[0] == "xy"[written] for p in self.pointers.values())
            held = "uint8_t" if dtype == "bool" else C_TYPES[dtype]  # loads of bytes vectorise
            ctype = held if written else f"const {held}"
            found = Parameter(f"{'xy'[written]}{count}", ctype, self.begun(place))
            self.pointers[place, dtype] = found
        return found.name

    def begun(self, place: Place) -> Place:
        """Return the place where the kernel's pointer starts: here, that of the memory itself."""
        return place

    def operand(self, number: int) -> str:
        """Return the name of the typed pointer to the memory of operand ``number``."""
        return self.pointer(self.operands[number])

    def length(self, length: Size) -> str:
        """Return a length as C over the kernel's parameters."""
        for name in sorted(names_of(length) - self.own.keys()):
            self.lengths.setdefault(name, f"n{len(self.lengths)}")
        if divides(length):
            self.calls(["geon_floor_div"])
        lengths = {**self.lengths, **self.own}
        quotients = {} if self.quotients is None else self.quotients.named(length, lengths)
        return c_length(length, {**lengths, **quotients})

    def calls(self, helpers: Iterable[str]) -> None:
        """Record that the kernel calls these helper functions."""
        self.called.update(dict.fromkeys(helpers))

    @property
    def of_lengths(self) -> list[Parameter]:
        """Return the parameters that are lengths."""
        return [Parameter(text, "int64_t", name, False) for name, text in self.lengths.items()]
