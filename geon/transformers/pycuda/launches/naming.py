"""Parameters and functions of a CUDA kernel: C names of its memory and lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Nest, Region
from ...kernels.kernel_lowering import Work
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.plan import Plan
from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter, Parameters, Place
from .device import PipelineStages
from .dialect import CUDA
from .launch_ir import THREADS_PER_BLOCK, Copy, Grid, LaunchVariants, Parts, Turn
from .library_requests import Ask

NAME = "KERNEL"  # placeholder for the name of a function, which the module chooses
FAILED = Parameter("failed", "int64_t", ("report", None))
TURN = Parameter("turn", "int64_t", Turn(), False)


@dataclass(frozen=True, slots=True)
class CudaFunction:
    """A CUDA function, whose name is the placeholder ``NAME``, and its launch.

    ``meets`` is True if its threads synchronise. ``stages`` is None without pipeline stages.
    ``calls`` has the helper functions that it calls, ``files`` the files of ``cuda/`` that it
    includes. ``together`` blocks must fit a multiprocessor at the same time. If ``restricts``,
    pointers that no other parameter aliases are declared ``__restrict__``.
    """

    body: str
    parameters: tuple[Parameter, ...]
    grid: Grid
    threads: int
    meets: bool
    calls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    together: int = 1
    stages: PipelineStages | None = None
    restricts: bool = False

    @property
    def declared(self) -> str:
        """Return the declarations of its parameters."""
        places = [p.place for p in self.parameters if p.pointer] if self.restricts else []
        words = ["__restrict__ " if places.count(p.place) == 1 else "" for p in self.parameters]
        return ", ".join(map(Parameter.declared, self.parameters, words))

    @property
    def text(self) -> str:
        """Return its text as a kernel."""
        divided = self.stages is not None
        head = kernel_head(NAME, self.declared, self.threads, self.together, divided)
        return f"{head}\n{self.body}"

    @property
    def part(self) -> str:
        """Return its text as a device function, with block index and grid size as parameters."""
        own = "const geon_blocks blockIdx, const geon_blocks gridDim"
        return f"GEON_INLINE void {NAME}({self.declared}, {own})\n{self.body}"

    @property
    def inner(self) -> str:
        """Return its text as a device function without ``__restrict__``, for use inside a loop.

        There, it may read what an earlier iteration wrote.
        """
        return replace(self, restricts=False).part


@dataclass(frozen=True, slots=True)
class Joined:
    """Functions that one launch runs, each on its own range of blocks."""

    functions: tuple[CudaFunction, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Branch ``branch`` of the case whose index is at pointer ``number``."""

    number: int
    branch: int

    def place(self, k: int) -> Place:
        """Return the place of the index, that of the ``k``-th enclosing case."""
        return "number", (k, self.number)

    def parameter(self, k: int) -> Parameter:
        """Return the kernel parameter that points to the index."""
        return Parameter(f"chosen{k}", "const int64_t", self.place(k))

    def text(self, k: int) -> str:
        """Return the statement that ends the kernel if another branch is taken."""
        return f"if (*chosen{k} != {self.branch}) return;"


# A step of a kernel whose pointers are places and whose launches are functions.
Part = CudaFunction | Joined | LaunchVariants | Copy[Place] | Ask[Place]


def with_pointers(
    part: Part,
    pointer: Callable[[Any], Any],
    launch: Callable[[CudaFunction | Joined], Any],
    origin: int = 0,
) -> Any:
    """Return a part with ``pointer(place)`` for its places and ``launch(function)`` for functions.

    Library requests get the plan number ``origin`` of their kernel.
    """
    if isinstance(part, LaunchVariants):
        steps, others = (
            tuple([with_pointers(each, pointer, launch, origin) for each in side])
            for side in (part.steps, part.others)
        )
        return LaunchVariants(part.holds, steps, others)
    if isinstance(part, Copy):
        return Copy(pointer(part.target), pointer(part.source), part.size)
    if isinstance(part, Ask):
        values = [None if place is None else pointer(place) for place in part.values]
        return replace(part, values=tuple(values), works=pointer(part.works), origin=origin)
    return launch(part)


def relocated(part: Part, places: Mapping[Place | None, Place | None]) -> Part:
    """Return a part with the places among ``places`` replaced by their values."""

    def to(place: Any) -> Any:
        return places.get(place, place)

    def moved(function: CudaFunction | Joined) -> CudaFunction:
        assert isinstance(function, CudaFunction), "kernels are joined later"
        placed = [replace(p, place=to(p.place)) if p.pointer else p for p in function.parameters]
        return replace(function, parameters=tuple(placed))

    found: Part = with_pointers(part, to, moved)
    return found


class CudaKernelNames(Parameters):
    """The parameters of one kernel, its scratch memory, and its guards.

    With ``guarded``, the kernel does nothing after an earlier one has failed. Values at places
    ``apart`` may have any element alignment. The kernel runs only if all branches in ``chosen`` are
    taken. With ``looped``, it reports the iteration in which it fails.
    """

    dialect = CUDA

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
        self.numbers: dict[str, Parts] = {}  # lengths that are numbers of parts

    def unguarded(self) -> CudaKernelNames:
        """Return names for a function that runs after a failure too, and in all branches."""
        return CudaKernelNames(self.plan, self.kernel, False, self.apart)

    def is_apart(self, number: int) -> bool:
        """Return True if an operand may have any element alignment."""
        return self.place_of(self.operands[number]) in self.apart

    def scratch(self) -> str:
        """Return the name of the kernel's scratch memory and make it a parameter."""
        self.works = Parameter("scratch", "char", ("arena", self.plan.scratch[self.kernel.op]))
        return self.works.name

    @property
    def of_lengths(self) -> list[Parameter]:
        """Return the parameters that are lengths or numbers of parts."""
        return [
            replace(each, place=self.numbers.get(str(each.place), each.place))
            for each in super().of_lengths
        ]

    def noted_turn(self) -> list[str]:
        """Return the statement that stores the iteration in the error report, inside of loops."""
        return ["failed[5] = turn;"] if self.turns else []

    def memory(self, op: Op) -> str:
        """Return the pointer to the memory of the value of which ``op`` is a view."""
        return self.pointer(self.plan.schedule.base[op])

    @property
    def parameters(self) -> list[Parameter]:
        """Return all parameters, pointers first."""
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
        stages: PipelineStages | None = None,
    ) -> CudaFunction:
        """Return the function with these statements behind quotients of lengths that they name.

        ``stages`` is None without pipeline stages.
        """
        parameters = [*self.parameters, *further]
        guard = ["    if (*failed) return;"] if self.guarded else []
        guard += [f"    {each.text(k)}" for k, each in enumerate(self.chosen)]
        quotients = [] if self.quotients is None else self.quotients.lines
        self.quotients = None
        text = "\n".join(["{", *guard, *indent([*quotients, *body]), "}", ""])
        return CudaFunction(
            text, tuple(parameters), grid, threads, meets, tuple(self.called), files, together,
            stages, restricts=True,
        )  # fmt: skip

    def by_elements(self, count: Size, body: Sequence[str]) -> CudaFunction:
        """Return the function with a thread for each ``at`` of ``count`` elements."""
        lines = [
            f"const int64_t at = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
            f"if (at >= {self.length(count)}) return;",
            *body,
        ]
        grid = Grid(count, THREADS_PER_BLOCK)
        return self.function(lines, grid, THREADS_PER_BLOCK, False)


def types_of(functions: Sequence[CudaFunction]) -> tuple[str, ...]:
    """Return the C types of the parameters of functions, concatenated."""
    parameters = [p for function in functions for p in function.parameters]
    return tuple([f"{p.ctype} *" if p.pointer else p.ctype for p in parameters])


def kernel_head(
    name: str, declared: str, threads: int, together: int = 1, divided: bool = False
) -> str:
    """Return the head of a kernel's text with its launch bounds.

    If ``divided``, the bounds name the blocks per multiprocessor even if that is 1: the kernel
    reassigns registers among its warps.
    """
    bounds = f"{threads}, {together}" if together > 1 or divided else f"{threads}"
    return f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({declared})'


def is_by_elements(work: Work) -> bool:
    """Return True for a nest that only stores elements, so that each has a thread of its own."""
    if not isinstance(work, Nest):
        return False
    return not work.ending and not any(step.reductions or step.keeps for step in work.passes)


def copied(moved: Copy[Place], chosen: Sequence[Chosen]) -> Part:
    """Return a copy, or a function that copies only if all ``chosen`` branches are taken."""
    if not chosen:
        return moved
    names = Parameters(lambda op: ("none", None), (), ())
    size = names.length(moved.size)
    pointers = [Parameter("to", "char", moved.target), Parameter("of", "const char", moved.source)]
    parameters = [*(each.parameter(k) for k, each in enumerate(chosen)), *pointers,
                  *names.of_lengths]  # fmt: skip
    lines = [
        "{",
        *(f"    {each.text(k)}" for k, each in enumerate(chosen)),
        f"    const int64_t at = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
        f"    if (at < {size}) to[at] = of[at];",
        "}",
        "",
    ]
    grid, called = Grid(moved.size, THREADS_PER_BLOCK), tuple(names.called)
    return CudaFunction(
        "\n".join(lines), tuple(parameters), grid, THREADS_PER_BLOCK, False, called,
    )  # fmt: skip
