"""What one kernel calls its memory and its lengths: the parameters of its C function."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from ...op_graph.dtypes import name_of
from ...op_graph.lengths import names_of
from ...op_graph.op_graph import Leaf, Op, Same, among
from ..c_expressions import C_TYPES
from ..forms import Size, c_length
from ..layout import is_bound
from ..memory import Plan
from ..schedule import Kernel
from ..target import Layout

Place = tuple[str, object]  # what kind of memory, and its number or whose it is
NAME = "KERNEL"  # stands for the name of a kernel's function until the module gives it one


def place_of(plan: Plan, op: Op) -> Place:
    """The memory in which ``op`` lies: two ops in one place share it."""
    if isinstance(op, Leaf):
        return "leaf", Same(op)
    if is_bound(op):
        return "constant", Same(op)
    home = plan.homes[op]
    return ("leaf", Same(home.leaf)) if home.leaf is not None else (home.kind, home.number)


@dataclass(slots=True)
class Parameter:
    """A parameter of a kernel's function: a pointer to ``place``, or the length ``place``."""

    name: str
    ctype: str
    place: object
    pointer: bool = True

    def declared(self, restrict: bool = True) -> str:
        """The declaration of the parameter."""
        star = ("*restrict " if restrict else "*") if self.pointer else ""
        return f"{self.ctype} {star}{self.name}"


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel's C text, with ``NAME`` for its name, and the parameters to call it with.

    ``shared`` are texts that several kernels need once in a unit; one that ``fails`` takes a
    report and returns whether it failed. ``units`` define what it calls, the same for all programs.
    """

    text: str
    parameters: tuple[Parameter, ...]
    shared: tuple[str, ...] = ()
    fails: bool = False
    units: tuple[str, ...] = ()


class Operands:
    """How a kernel finds values: in memory, where they are ``computed`` by kernels, or not."""

    def __init__(
        self, layouts: Mapping[Op, Layout], kernel: Kernel, computed: Set[Op] | Mapping[Op, object]
    ) -> None:
        self.layouts, self.kernel, self.computed = layouts, kernel, computed

    def order(self, op: Op) -> tuple[str, ...]:
        """The nesting of the axes of ``op`` in memory, outermost first."""
        return op.axes.names if is_bound(op) else self.layouts[op].order

    def stored(self, op: Op) -> bool:
        """Whether ``op`` is read from memory that an earlier kernel, or the user, has written."""
        if isinstance(op, Leaf):
            return True
        if is_bound(op):
            return bool(len(op.axes))
        return op in self.computed and not among(op, self.kernel.results)


class KernelNames(Operands):
    """The parameters of one kernel, named ``x<n>`` (read), ``y<n>`` (written) and ``n<n>``."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        super().__init__(plan.schedule.layouts, kernel, plan.homes)
        self.plan = plan
        self.pointers: dict[tuple[Place, str], Parameter] = {}
        self.lengths: dict[str, str] = {}
        self.kept = self.keep()
        self.works: Parameter | None = None
        self.written = {place_of(plan, op) for op in kernel.results}
        for op in kernel.results:
            self.pointer(op)

    def scratch(self) -> str | None:
        """The name of the memory that the kernel works in, where it has some."""
        number = self.plan.scratch.get(self.kernel.op)
        if number is None:
            return None
        self.works = Parameter("scratch", "char", ("arena", number))
        return self.works.name

    def keep(self) -> Parameter | None:
        """The copy that the kernel keeps from call to call."""
        if self.kernel.op not in self.plan.kept:
            return None
        return Parameter(
            "kept", "struct geon_kept", ("kept", self.plan.kept_numbers[self.kernel.op])
        )

    def pointer(self, op: Op) -> str:
        """The typed pointer to the memory of ``op``."""
        place, dtype = place_of(self.plan, op), name_of(op.dtype)
        found = self.pointers.get((place, dtype))
        if found is None:
            written = place in self.written
            count = sum(p.name[0] == "xy"[written] for p in self.pointers.values())
            held = "uint8_t" if dtype == "bool" else C_TYPES[dtype]  # bytes load as vectors
            ctype = held if written else f"const {held}"
            found = Parameter(f"{'xy'[written]}{count}", ctype, place)
            self.pointers[place, dtype] = found
        return found.name

    def memory(self, op: Op) -> str:
        """The typed pointer to the memory that ``op`` looks at as a whole."""
        name = self.pointer(self.plan.schedule.base[op])
        return f"(_Bool *){name}" if name_of(op.dtype) == "bool" else name

    def length(self, length: Size) -> str:
        """A length as C over the kernel's parameters."""
        for name in sorted(names_of(length)):
            self.lengths.setdefault(name, f"n{len(self.lengths)}")
        return c_length(length, self.lengths)

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, pointers first."""
        lengths = [Parameter(text, "int64_t", name, False) for name, text in self.lengths.items()]
        further = [each for each in (self.kept, self.works) if each is not None]
        return [*self.pointers.values(), *further, *lengths]

    def declared(self) -> str:
        """The parameter list of the kernel's function."""
        return ", ".join(p.declared() for p in self.parameters)
