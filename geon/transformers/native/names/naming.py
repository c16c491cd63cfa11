"""Parameters of one kernel's C function: names of its memory and of open lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Call, Region
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Parameter, Parameters, Place
from .c_files import FileFunction
from .dialect import NATIVE

START = "start"  # kind of a memory location that is (location, start offset in elements)
NAME = "KERNEL"  # placeholder of a kernel function's name, which the module replaces


def offset_place(place: Place, starts: Mapping[Place, int]) -> Place:
    """Return ``place`` with its start offset from ``starts`` (in elements), if it has one."""
    return (START, (place, starts[place])) if place in starts else place


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A kernel's C function.

    ``text`` is its C text with ``NAME`` for its name, ``parameters`` are those to call it with.
    ``shared`` are texts that a unit needs once for all its kernels. ``fails`` is True if it takes a
    report and returns whether it failed. ``units`` are program-independent units that define other
    functions that it calls. ``calls`` are the helper functions that it calls. ``of_vectors`` is
    True if it has no loop that the compiler should vectorise. ``external`` are the keys of external
    functions that the units call.
    """

    text: str
    parameters: tuple[Parameter, ...]
    shared: tuple[str, ...] = ()
    fails: bool = False
    units: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    of_vectors: bool = False
    external: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """Return the head of the function as in its text, after ``static``."""
        return head(self.parameters, self.fails)

    def of(self, places: Mapping[object, object]) -> NativeFunction:
        """Return the function with the memory locations of its parameters replaced."""
        moved = [replace(p, place=places.get(p.place)) if p.pointer else p for p in self.parameters]
        return replace(self, parameters=tuple(moved))


def head(parameters: Iterable[Parameter], fails: bool = False) -> str:
    """Return the head of a kernel's function, with the name ``NAME``."""
    declared = ["int32_t threads", *(p.declared() for p in parameters)]
    if fails:
        declared.append("int64_t *report")
    return f"{'int' if fails else 'void'} {NAME}({', '.join(declared)})"


class KernelNames(Parameters):
    """The parameters of one kernel, with its cached packed operand and its scratch memory.

    ``starts`` has the start offset of operands in elements, by memory location. ``results`` are the
    values that the function writes, by default those of the kernel.
    """

    dialect = NATIVE

    def __init__(
        self,
        plan: Plan,
        kernel: Kernel,
        starts: Mapping[Place, int],
        results: Sequence[Op] | None = None,
    ) -> None:
        results = kernel.results if results is None else results
        self.starts = starts
        self.plan, self.kernel = plan, kernel
        self.kept = self.keep()
        self.works: Parameter | None = None
        self.needed: dict[FileFunction, None] = {}
        self.plain = False  # True if the nest has scalar statements, not vector ones
        operands = () if isinstance(kernel.work, Call | Region) else kernel.work.operands
        super().__init__(self.place, operands, results)

    def begun(self, place: Place) -> Place:
        """Return ``place`` with its start offset, if it has one."""
        return offset_place(place, self.starts)

    def place(self, op: Op) -> Place:
        """Return the memory location of ``op``."""
        return place_of(self.plan, op)

    def needs(self, function: FileFunction) -> None:
        """Record that the kernel's text calls a function of a C file."""
        self.needed[function] = None

    @property
    def headers(self) -> tuple[str, ...]:
        """Return the headers of the C file functions that the kernel calls."""
        return tuple([function.header for function in self.needed])

    @property
    def units(self) -> tuple[str, ...]:
        """Return the units that define them, where headers only declare them."""
        return tuple([unit for function in self.needed for unit in function.units])

    def scratch(self) -> str | None:
        """Return the name of the kernel's scratch memory, or None if it has none."""
        number = self.plan.scratch.get(self.kernel.op)
        if number is None:
            return None
        self.works = Parameter("scratch", "char", ("arena", number))
        return self.works.name

    def own_scratch(self, each: Size) -> str:
        """Return the pointer to this thread's ``each`` bytes of scratch memory."""
        return f"{self.scratch()} + geon_seat() * (int64_t)({self.length(each)})"

    def keep(self) -> Parameter | None:
        """Return the parameter of the kernel's cached packed operand, or None."""
        if self.kernel.op not in self.plan.kept:
            return None
        return Parameter(
            "kept", "struct geon_kept", ("kept", self.plan.kept_numbers[self.kernel.op])
        )

    def memory(self, op: Op) -> str:
        """Return the typed pointer to the memory of which ``op`` is a whole view."""
        name = self.pointer(self.plan.schedule.base[op])
        return f"(_Bool *){name}" if name_of(op.dtype) == "bool" else name

    @property
    def parameters(self) -> list[Parameter]:
        """Return all parameters, pointers first."""
        further = [each for each in (self.kept, self.works) if each is not None]
        return [*self.pointers.values(), *further, *self.of_lengths]

    def declared(self) -> str:
        """Return the parameter list of the kernel's function."""
        return ", ".join(p.declared() for p in self.parameters)
