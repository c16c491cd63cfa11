"""What one kernel calls its memory and its lengths: the parameters of its CUDA functions."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Nest, Region
from ...kernels.kernel_lowering import Work
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Parameter, Parameters, Place
from ...printing.scalars.dialect import Lanes
from .device import Stages
from .dialect import ThreadLanes
from .launch_ir import Grid, Turn
from .library_requests import LibraryWork

NAME = "KERNEL"  # stands for the name of a function until the module gives it one
FAILED = Parameter("failed", "int64_t", ("report", None))
TURN = Parameter("turn", "int64_t", Turn(), False)


@dataclass(frozen=True, slots=True)
class Function:
    """A CUDA function, with ``NAME`` for its name, and how it is launched.

    Its threads ``meet`` where they have barriers, and share so many bytes of memory, None where
    nobody has counted, beside its ``stages``. ``calls`` are the helper functions that it calls,
    ``files`` those of ``cuda/`` that it needs. So many blocks ``together`` must fit a processor of
    the device.
    """

    declared: str
    body: str
    parameters: tuple[Parameter, ...]
    grid: Grid
    threads: int
    meets: bool
    calls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    together: int = 1
    shared: int | None = None
    stages: Stages | None = None

    @property
    def text(self) -> str:
        """Its text, as a kernel."""
        divided = self.stages is not None
        head = kernel_head(NAME, self.declared, self.threads, self.together, divided)
        return f"{head}\n{self.body}"

    @property
    def part(self) -> str:
        """Its text, as a part of a kernel: the blocks that it knows of are its own."""
        own = "const geon_blocks blockIdx, const geon_blocks gridDim"
        return f"GEON_INLINE void {NAME}({self.declared}, {own})\n{self.body}"

    @property
    def inner(self) -> str:
        """Its text, as a part of a kernel that goes through turns: what it reads may be what it
        has written in another one.
        """
        declared = ", ".join([declaration(p, False) for p in self.parameters])
        return replace(self, declared=declared).part


@dataclass(frozen=True, slots=True)
class Either:
    """Parts that run where none of the sizes in ``holds`` is negative, else others."""

    holds: tuple[Size, ...]
    parts: tuple[Part, ...]
    others: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """``size`` bytes copied from place to place."""

    target: Place
    source: Place
    size: Size


@dataclass(frozen=True, slots=True)
class Asked:
    """What a library is asked to compute, with the places of its operands: see ``Ask``."""

    work: LibraryWork
    values: tuple[Place | None, ...]
    works: Place
    after: Size


@dataclass(frozen=True, slots=True)
class Joined:
    """Functions that are one launch: blocks are divided among them."""

    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A branch: number ``branch`` of the case whose index is the pointer ``number``."""

    number: int
    branch: int

    def parameter(self, k: int) -> Parameter:
        """The parameter of a kernel that has the index."""
        return Parameter(f"chosen{k}", "const int64_t", ("number", (k, self.number)))

    def text(self, k: int) -> str:
        """The statement that ends a kernel of another branch."""
        return f"if (*chosen{k} != {self.branch}) return;"


Part = Function | Either | Moved | Asked | Joined


class KernelNames(Parameters):
    """The parameters of one kernel, its scratch memory, and what says that an earlier one failed.

    With ``guarded`` nothing is done once a kernel has failed. What is at places ``apart`` may begin
    at any element. It is done only where all ``chosen`` branches were. What is ``looped`` notes the
    turn where it fails.
    """

    lanes: Lanes

    def __init__(
        self,
        plan: Plan,
        kernel: Kernel,
        guarded: bool,
        apart: Set[Place] = frozenset(),
        chosen: Sequence[Chosen] = (),
        looped: bool = False,
    ) -> None:
        self.turns = (TURN,) if looped else ()
        self.plan, self.kernel, self.guarded, self.apart = plan, kernel, guarded, apart
        self.chosen = tuple(chosen)
        operands = () if isinstance(kernel.work, Call | Region) else kernel.work.operands
        super().__init__(lambda op: place_of(plan, op), operands, kernel.results)
        self.works: Parameter | None = None
        self.lanes = ThreadLanes(is_by_elements(kernel.work))

    def is_apart(self, number: int) -> bool:
        """Whether the operand of this number may begin at any element."""
        return self.place_of(self.operands[number]) in self.apart

    def scratch(self) -> str:
        """The name of the memory that the kernel works in."""
        self.works = Parameter("scratch", "char", ("arena", self.plan.scratch[self.kernel.op]))
        return self.works.name

    def noted_turn(self) -> list[str]:
        """The statement that puts the turn into the report, for a function with ``turns``."""
        return ["failed[5] = turn;"] if self.turns else []

    def memory(self, op: Op) -> str:
        """The typed pointer to the memory that ``op`` looks at as a whole."""
        return self.pointer(self.plan.schedule.base[op])

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, pointers first."""
        further = [] if self.works is None else [self.works]
        guard = [FAILED] if self.guarded else []
        guard += [each.parameter(k) for k, each in enumerate(self.chosen)]
        return [*guard, *self.pointers.values(), *further, *self.of_lengths]

    def function(
        self,
        body: Sequence[str],
        grid: Grid,
        threads: int,
        meets: bool,
        further: Sequence[Parameter] = (),
        files: tuple[str, ...] = (),
        together: int = 1,
        shared: int | None = None,
        stages: Stages | None = None,
    ) -> Function:
        """The function that runs these statements; its threads share ``shared`` bytes, 0 where
        they do not meet, beside ``stages``.
        """
        parameters = [*self.parameters, *further]
        places = [p.place for p in parameters if p.pointer]
        declared = ", ".join(declaration(p, places.count(p.place) == 1) for p in parameters)
        guard = ["    if (*failed) return;"] if self.guarded else []
        guard += [f"    {each.text(k)}" for k, each in enumerate(self.chosen)]
        text = "\n".join(["{", *guard, *indented(body), "}", ""])
        return Function(
            declared, text, tuple(parameters), grid, threads, meets, tuple(self.called), files,
            together, shared if meets else 0, stages,
        )  # fmt: skip


def types_of(functions: Sequence[Function]) -> tuple[str, ...]:
    """The types of the parameters of functions, one after the other."""
    parameters = [p for function in functions for p in function.parameters]
    return tuple([f"{p.ctype} *" if p.pointer else p.ctype for p in parameters])


def kernel_head(
    name: str, declared: str, threads: int, together: int = 1, divided: bool = False
) -> str:
    """The head of a kernel's text; where registers are ``divided`` among its threads, it says how
    many blocks there are together even of one.
    """
    bounds = f"{threads}, {together}" if together > 1 or divided else f"{threads}"
    return f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({declared})'


def is_by_elements(work: Work) -> bool:
    """Whether a nest does nothing but store elements, each by a thread."""
    if not isinstance(work, Nest):
        return False
    return not work.ending and not any(step.reductions or step.keeps for step in work.passes)


def declaration(parameter: Parameter, alone: bool) -> str:
    """The declaration of a parameter; ``alone`` where no other one is in its place."""
    if not parameter.pointer:
        return f"{parameter.ctype} {parameter.name}"
    return f"{parameter.ctype} *{'__restrict__ ' if alone else ''}{parameter.name}"


def indented(lines: Sequence[str]) -> list[str]:
    """Lines of a block; those of the preprocessor stay at the margin."""
    return ["    " + line if line[:1] != "#" else line for line in lines]


COPIED = 256  # threads of a block that copies, a byte each at a time


def copy_function(moved: Moved, chosen: Sequence[Chosen]) -> Function:
    """A copy that is made only where all ``chosen`` branches were."""
    names = Parameters(lambda op: ("none", None), (), ())
    size = names.length(moved.size)
    pointers = [Parameter("to", "char", moved.target), Parameter("of", "const char", moved.source)]
    parameters = [*(each.parameter(k) for k, each in enumerate(chosen)), *pointers,
                  *names.of_lengths]  # fmt: skip
    declared = ", ".join([declaration(p, False) for p in parameters])
    lines = [
        "{",
        *(f"    {each.text(k)}" for k, each in enumerate(chosen)),
        f"    const int64_t at = (int64_t)blockIdx.x * {COPIED} + threadIdx.x;",
        f"    if (at < {size}) to[at] = of[at];",
        "}",
        "",
    ]
    grid = Grid(moved.size, COPIED)
    text = "\n".join(lines)
    called = tuple(names.called)
    return Function(declared, text, tuple(parameters), grid, COPIED, False, called, shared=0)
