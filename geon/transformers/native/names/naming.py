"""What one kernel calls its memory and its lengths: the parameters of its C function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Call, Region
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Parameter, Parameters, Place
from .c_files import FileFunction
from .dialect import ArrayLanes

START = "start"  # what kind of memory begins inside of a place, and its number says where
NAME = "KERNEL"  # stands for the name of a kernel's function until the module gives it one


def begun(place: Place, starts: Mapping[Place, int]) -> Place:
    """A place from where on a kernel uses it: ``starts`` are in elements, by place."""
    return (START, (place, starts[place])) if place in starts else place


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel's C text, with ``NAME`` for its name, and the parameters to call it with.

    ``shared`` are texts that several kernels need once in a unit, ``calls`` the helper functions
    that it calls; one that ``fails`` takes a report and returns whether it failed. ``units`` define
    what else it calls, the same for all programs. One ``of_vectors`` has no loop that a compiler is
    to find vectors for.
    """

    text: str
    parameters: tuple[Parameter, ...]
    shared: tuple[str, ...] = ()
    fails: bool = False
    units: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    of_vectors: bool = False

    @property
    def head(self) -> str:
        """The head of the function in its text, after ``static``."""
        return head(self.parameters, self.fails)

    def of(self, places: Mapping[object, object]) -> Function:
        """The same function called with other memory: ``places`` in place of those it has."""
        moved = [replace(p, place=places.get(p.place)) if p.pointer else p for p in self.parameters]
        return replace(self, parameters=tuple(moved))


def head(parameters: Iterable[Parameter], fails: bool = False) -> str:
    """The head of a kernel's function, which is called ``NAME``."""
    declared = ["int32_t threads", *(p.declared() for p in parameters)]
    if fails:
        declared.append("int64_t *report")
    return f"{'int' if fails else 'void'} {NAME}({', '.join(declared)})"


class KernelNames(Parameters):
    """The parameters of one kernel, with what it keeps and works in.

    ``starts`` says by place how many elements lie before what the kernel uses of it; ``results``
    are what is written, those of the kernel where not given.
    """

    lanes: ArrayLanes = ArrayLanes()

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
        self.plain = False  # whether a nest is of numbers, and not of vectors
        operands = () if isinstance(kernel.work, Call | Region) else kernel.work.operands
        super().__init__(self.place, operands, results)

    def begun(self, place: Place) -> Place:
        """A place from where on a kernel uses it."""
        return begun(place, self.starts)

    def place(self, op: Op) -> Place:
        """The memory in which ``op`` lies."""
        return place_of(self.plan, op)

    def needs(self, function: FileFunction) -> None:
        """Note that the kernel's text calls a function of a C file."""
        self.needed[function] = None

    @property
    def headers(self) -> tuple[str, ...]:
        """What a unit has that calls them."""
        return tuple([function.header for function in self.needed])

    @property
    def units(self) -> tuple[str, ...]:
        """What defines them where a header only declares."""
        return tuple([unit for function in self.needed for unit in function.units])

    def scratch(self) -> str | None:
        """The name of the memory that the kernel works in, where it has some."""
        number = self.plan.scratch.get(self.kernel.op)
        if number is None:
            return None
        self.works = Parameter("scratch", "char", ("arena", number))
        return self.works.name

    def own_scratch(self, each: Size) -> str:
        """The thread's part of that memory, where each has so many bytes."""
        return f"{self.scratch()} + geon_seat() * (int64_t)({self.length(each)})"

    def keep(self) -> Parameter | None:
        """The copy that the kernel keeps from call to call."""
        if self.kernel.op not in self.plan.kept:
            return None
        return Parameter(
            "kept", "struct geon_kept", ("kept", self.plan.kept_numbers[self.kernel.op])
        )

    def memory(self, op: Op) -> str:
        """The typed pointer to the memory that ``op`` looks at as a whole."""
        name = self.pointer(self.plan.schedule.base[op])
        return f"(_Bool *){name}" if name_of(op.dtype) == "bool" else name

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, pointers first."""
        further = [each for each in (self.kept, self.works) if each is not None]
        return [*self.pointers.values(), *further, *self.of_lengths]

    def declared(self) -> str:
        """The parameter list of the kernel's function."""
        return ", ".join(p.declared() for p in self.parameters)
