"""Emit the CUDA source of a plan: the module's kernels and the steps that launch them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import count, groupby
from typing import NamedTuple

import numpy as np

from ....lazy_dataclasses import dataclass
from ....op_graph.building.constants import constant_value
from ....op_graph.nodes import shown_name
from ....op_graph.op_graph import Op
from ....op_graph.rows.effects import printed_form
from ....op_graph.values.attribute_types import Frozen
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Region
from ...kernels.structural_key import first_occurrences
from ...linking import Linking
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import open_lengths, place_of, pointer_table
from ...lowering.planning.kernel_forms import KernelForm
from ...lowering.planning.plan import Plan
from ...printing.nests.parameters import Parameter, Place
from ...printing.scalars.c_types import comment
from ...printing.scalars.helpers import definitions
from ..kernels.horizontal_fusion import joined, joined_text, launch_groups
from ..kernels.library_kernels import finite_parts
from ..launches.device import Array, CudaSource, Signature, TextPiece
from ..launches.dialect import by_instruction, cuda_text
from ..launches.launch_ir import (
    CLOCKS_POINTER,
    REPORT_POINTER,
    Argument,
    Branches,
    DeviceLoop,
    FixedNumber,
    Grid,
    Grids,
    Launch,
    LaunchVariants,
    Parts,
    Round,
    Show,
    Step,
    Timed,
    Turn,
    describe_steps,
    kernels_in,
)
from ..launches.naming import (
    NAME,
    CudaFunction,
    CudaKernelNames,
    Joined,
    Part,
    relocated,
    types_of,
    with_pointers,
)
from ..products.loop_forms import one_launch
from .kernel_parts import kernel_parts, memory_of
from .loop_steps import LaunchScope, LoopPointers, branches, pairs_of
from .persistent_loop import loop_function

PRELUDE = "prelude.cuh"


@dataclass(frozen=True, eq=False, slots=True)
class CudaModule:
    """A CUDA module and the steps that run it.

    Steps name pointers by their index in one table, in this order: inputs, results, variables,
    large constants, arena buffers, then the constants in ``small``. Index -1 is the error report;
    ``raises`` is True if any kernel can write it.

    ``origins[k]`` is the plan number of the kernel of step ``k``; for a joined launch, that of its
    first kernel. ``waves[k]`` is the wave of step ``k``: steps of one wave with different origins
    run concurrently. No variable is written before wave ``written``. ``lengths`` names the open
    lengths.
    """

    source: CudaSource
    kernels: tuple[Signature, ...]
    steps: tuple[Step, ...]
    origins: tuple[int, ...]
    waves: tuple[int, ...]
    small: tuple[Array, ...]
    lengths: tuple[str, ...]
    raises: bool
    written: int


class Row(NamedTuple):
    """A row of a profile: the kernels of ``plan`` at ``positions``, which are timed together.

    Several positions are one joined launch. ``around`` is the index of the row of the enclosing
    region, None at the top level.
    """

    plan: Plan
    positions: tuple[int, ...]
    around: int | None


def make_module(plan: Plan, linking: Linking, annotate: bool) -> CudaModule:
    """Return the module of a plan; with ``annotate``, comments give the user's names and lines."""
    return _CudaModuleWriter(plan, linking, annotate).make()


def timed_module(plan: Plan, linking: Linking) -> tuple[CudaModule, list[Row]]:
    """Return the module of a plan with ``Timed`` steps around kernels, and its profile rows.

    A row follows the row of its enclosing region.
    """
    rows: list[Row] = []
    return _CudaModuleWriter(plan, linking, False, rows).make(), rows


class _CudaModuleWriter:
    """Builder of a module; if ``rows`` is a list, of a timed one, whose rows it receives."""

    def __init__(
        self,
        plan: Plan,
        linking: Linking,
        annotate: bool,
        rows: list[Row] | None = None,
    ) -> None:
        self.plan, self.annotate = plan, annotate
        self.rows = rows
        self.row: int | None = None  # index of the profile row of the enclosing region
        self.table = pointer_table(plan, linking.inputs, linking.variables, linking.constants)
        self.numbers = {place: k for k, place in enumerate(self.table)}
        self.small: list[Array] = []
        self.guarded = any(kernel.raises for kernel in plan.schedule.kernels)
        self.names: dict[str, str] = {}
        # parts by structural key, and the places that they take
        self.printed: dict[Hashable, tuple[list[Place | None], list[Part]]] = {}
        self.kernels: list[Signature] = []
        self.pieces: list[TextPiece] = []
        self.functions: dict[str, CudaFunction] = {}  # emitted kernels by name
        # inner function's text of each kernel that is also called from another kernel
        self.inner: dict[str, str] = {}
        self.calls: dict[str, None] = {}
        self.files: dict[str, None] = {}
        self.top = self.scope = LaunchScope(plan)
        self.origin = 0  # plan number of the present kernel
        self.virtual = count(CLOCKS_POINTER - 1, -1)

    def make(self) -> CudaModule:
        """Return the complete module."""
        steps: list[Step] = []
        origins: list[int] = []
        waves: list[int] = []
        for wave, groups in launch_groups(self.plan):
            for origin, found in self.wave(groups):
                steps += found
                origins += [origin] * len(found)
                waves += [wave] * len(found)
        self.drop_unused(steps)
        order = [TextPiece(line) for line in self.order(steps, origins, waves)]
        files = [cuda_text(name) for name in self.files]
        helpers = definitions(self.calls, by_instruction)
        common = "\n".join([cuda_text(PRELUDE), helpers, *files])
        source = CudaSource(common, (*self.pieces, *order))
        lengths = tuple(open_lengths(self.plan))
        kernels, small = tuple(self.kernels), tuple(self.small)
        all_steps, by, at = tuple(steps), tuple(origins), tuple(waves)
        writing = zip(self.plan.schedule.times, self.plan.schedule.kernels, strict=True)
        written = min(
            [wave for wave, kernel in writing if kernel.writes], default=max(waves, default=0) + 1
        )
        return CudaModule(source, kernels, all_steps, by, at, small, lengths, self.guarded, written)

    def wave(self, groups: Sequence[Sequence[int]]) -> list[tuple[int, list[Step]]]:
        """Return the steps of kernels of one wave as pairs (origin, steps).

        ``groups`` are the positions of kernels that one launch runs.
        """
        scope = self.top
        if len(groups) == len(groups[0]) == 1:
            (position,) = groups[0]
            return [(scope.step(position), self.kernel(scope, position))]
        in_order = sorted(position for group in groups for position in group)
        parts = {position: self.parts(scope, position) for position in in_order}
        found = []
        for group in groups:
            for position in group:
                self.note(scope.plan.schedule.kernels[position])
            self.origin = scope.step(group[0])
            steps = self.steps(joined([parts[position] for position in group]))
            if self.rows is not None:
                steps = [Timed(self.new_row(scope.plan, group), tuple(steps))]
            found.append((self.origin, steps))
        return found

    def new_row(self, plan: Plan, positions: Sequence[int]) -> int:
        """Append a profile row inside the current region's row and return its index."""
        assert self.rows is not None
        self.rows.append(Row(plan, tuple(positions), self.row))
        return len(self.rows) - 1

    def kernel(self, scope: LaunchScope, position: int) -> list[Step]:
        """Return the steps of the kernel at ``position``; timed if the module is."""
        if self.rows is None:
            return self.own_steps(scope, position)
        around, self.row = self.row, self.new_row(scope.plan, [position])
        steps, index, number = self.own_steps(scope, position), None, self.row
        self.row = around
        work = scope.plan.schedule.kernels[position].work
        if isinstance(work, Region) and work.op.primitive.name == "case":
            self.scope = scope
            index = self.pointer(place_of(scope.plan, scope.owners(work.op)[0]))
        return [Timed(number, tuple(steps), pairs_of(scope), index)]

    def own_steps(self, scope: LaunchScope, position: int) -> list[Step]:
        """Return the steps of the kernel at ``position``, without timing."""
        plan = scope.plan
        kernel = plan.schedule.kernels[position]
        self.note(kernel)
        self.scope, self.origin = scope, scope.step(position)
        if isinstance(kernel.work, Region):
            if kernel.work.op.primitive.name != "case":
                return self.loop(scope, kernel)
            inner = branches(kernel, scope, self.pointer)
            taken = tuple([tuple(self.inside(each)) for each in inner])
            return [self.whole(Branches(inner[0].chosen[-1].number, taken), plan.forms[kernel.op])]
        if kernel.op.primitive.name == "print":
            value = self.pointer(place_of(plan, plan.schedule.base[kernel.op]))
            op = kernel.op
            return [Show(op.attrs.label, value, *printed_form(op))]
        return self.steps(self.parts(scope, position))

    def parts(self, scope: LaunchScope, position: int) -> list[Part]:
        """Return the parts of a kernel, and of the finite checks of its result if these are on."""
        plan = scope.plan
        kernel, number = plan.schedule.kernels[position], scope.step(position)
        parts = self.work_parts(scope, kernel, number)
        if plan.schedule.check and kernel.raises and not kernel.has_side_effect:
            names = self.kernel_names(scope, kernel)
            parts += finite_parts(kernel.results[0], names, number, kernel.infinite)
        return parts

    def kernel_names(self, scope: LaunchScope, kernel: Kernel) -> CudaKernelNames:
        """Return new names of a kernel's parameters."""
        where = scope.apart, scope.chosen, scope.looped
        return CudaKernelNames(scope.plan, kernel, self.guarded, *where)

    def work_parts(self, scope: LaunchScope, kernel: Kernel, number: int) -> list[Part]:
        """Return the parts of a kernel; kernels of one structure are printed once."""
        form = scope.plan.forms.get(kernel.op)
        if form is None:
            return kernel_parts(self.kernel_names(scope, kernel), number)
        memory = memory_of(scope.plan, kernel, scope.chosen)
        key = (
            form,
            first_occurrences(memory),
            tuple([place in scope.apart for place in memory]),
            tuple([each.branch for each in scope.chosen]),
            scope.looped,
        )
        if key not in self.printed:
            parts = kernel_parts(self.kernel_names(scope, kernel), number)
            self.printed[key] = memory, parts
        known, parts = self.printed[key]
        places = dict(zip(known, memory, strict=True))
        return [relocated(part, places) for part in parts]

    def steps(self, parts: Sequence[Part]) -> list[Step]:
        """Convert parts to steps: replace memory places by pointer indices."""
        return [with_pointers(x, self.pointer, self.launch, self.origin) for x in parts]

    def loop(self, scope: LaunchScope, kernel: Kernel) -> list[Step]:
        """Emit the kernels of a loop's bodies and return the steps of the loop."""
        made = LoopPointers(kernel, scope, self.pointer, self.virtual)
        before = self.steps(made.before)
        bodies = [self.inside(each) for each in made.scopes]
        return [*before, self.whole(made.loop(bodies), scope.plan.forms[kernel.op])]

    def whole(self, loop: DeviceLoop | Branches, form: KernelForm) -> Step:
        """Return a loop or a case as one launch if its ``form`` is that, else as separate launches.

        If that depends on open lengths, return a ``LaunchVariants`` between both.
        """
        found = one_launch(form.parts)
        if found is None:
            return loop
        holds, one = found
        given = self.functions, self.inner_name, self.row
        step: Step
        step = launch = self.launch(loop_function(loop, one.repeated, *given))
        if isinstance(loop, DeviceLoop) and one.repeated:
            step = replace(loop, whole=launch)
        return LaunchVariants(holds, (step,), (loop,)) if holds else step

    def inner_name(self, kernel: str) -> str:
        """Return the name of the device function that does the work of ``kernel``."""
        if kernel not in self.inner:
            name = f"{kernel}_inside"
            self.inner[kernel] = self.functions[kernel].inner.replace(NAME, name)
        return f"{kernel}_inside"

    def drop_unused(self, steps: Sequence[Step]) -> None:
        """Remove kernels that are called only from inside other kernels."""
        launched, found = set(kernels_in(steps)), list[TextPiece]()
        for piece in self.pieces:
            if piece.kernel in self.inner:
                found.append(TextPiece(self.inner[piece.kernel]))
            if piece.kernel is None or piece.kernel in launched:
                found.append(piece)
        self.pieces = found
        self.kernels = [kernel for kernel in self.kernels if kernel.name in launched]

    def inside(self, scope: LaunchScope) -> list[Step]:
        """Return the steps of a region's body."""
        around = self.scope, self.origin
        positions = range(len(scope.plan.schedule.kernels))
        steps = [step for position in positions for step in self.kernel(scope, position)]
        self.scope, self.origin = around
        return steps

    def launch(self, part: CudaFunction | Joined) -> Launch:
        """Return the launch of a function, or of several, each on its own range of blocks.

        Those with equal text share one kernel.
        """
        functions = part.functions if isinstance(part, Joined) else (part,)
        for function in functions:
            self.needs(function)
        text, further = functions[0].text, tuple[Grid, ...]()
        if isinstance(part, Joined):
            further = tuple([function.grid for function in functions])
            text = joined_text(functions, [self.part_name(function.part) for function in functions])
        if text not in self.names:
            name = self.names[text] = f"kernel_{len(self.names)}"
            files = {file for function in functions for file in function.files}
            work = sum(len(function.body) for function in functions)
            work += sum(len(cuda_text(file)) for file in files)
            self.pieces.append(TextPiece(text.replace(NAME, name), name, work))
            ctypes = (*types_of(functions), *["int64_t"] * len(further))
            meets = any(function.meets for function in functions)
            self.kernels.append(Signature(name, ctypes, meets, functions[0].stages))
            if not further:
                self.functions[name] = functions[0]
        arguments = [self.argument(p) for function in functions for p in function.parameters]
        grid = Grids(further) if further else functions[0].grid
        return Launch(
            self.names[text], grid, functions[0].threads, (*arguments, *further), self.origin
        )

    def part_name(self, text: str) -> str:
        """Return the name of the device function with this text, emitting it at its first use."""
        if text not in self.names:
            name = self.names[text] = f"part_{len(self.names)}"
            self.pieces.append(TextPiece(text.replace(NAME, name)))
        return self.names[text]

    def needs(self, function: CudaFunction) -> None:
        """Add the helpers and header files that a function uses to the module."""
        self.calls.update(dict.fromkeys(c for c in function.calls if c != "geon_floor_div"))
        self.files.update(dict.fromkeys(function.files))

    def argument(self, parameter: Parameter) -> Argument:
        """Return the pointer index of a parameter, or the value that the host evaluates for it."""
        if not parameter.pointer:
            assert isinstance(parameter.place, (str, Parts, FixedNumber, Grid, Turn, Round))
            return parameter.place
        return self.pointer(parameter.place)  # type: ignore[arg-type]

    def pointer(self, place: Place) -> int:
        """Return the table index of a place in the current scope."""
        if place[0] == "report":
            return REPORT_POINTER
        if place[0] == "number":
            return int(place[1][1])  # type: ignore[index]  # which of several, and its number
        return self.scope.pointer(place, self.own_pointer)

    def own_pointer(self, place: Place) -> int:
        """Return the table index of a place of the program."""
        if place[0] == "constant":
            op: Op = place[1].op  # type: ignore[attr-defined]
            value = op.attrs.value
            if isinstance(value, Frozen):
                return self.numbers["frozen", value]
            if place not in self.numbers:
                self.numbers[place] = len(self.table) + len(self.small)
                self.small.append(np.ascontiguousarray(constant_value(op), op.dtype))
        return self.numbers[place]

    def order(
        self, steps: Sequence[Step], origins: Sequence[int], waves: Sequence[int]
    ) -> list[str]:
        """Return comment lines that list the steps in execution order; none unless ``annotate``."""
        if not self.annotate:
            return []
        names = [shown_place(place) for place in self.table]
        names += [f"constant {k}" for k in range(len(self.small))]
        names.append("the report")
        lines: list[str] = []
        for _, wave in groupby(zip(waves, origins, steps, strict=True), lambda each: each[0]):
            chains = [
                [step for _, _, step in chain] for _, chain in groupby(wave, lambda each: each[1])
            ]
            if len(chains) == 1:
                lines += describe_steps(chains[0], names)
                continue
            for number, chain in enumerate(chains):
                lines.append("beside that:" if number else "side by side:")
                lines += describe_steps(chain, names, "    ")
        return ["/*", *lines, "*/", ""]

    def note(self, kernel: Kernel) -> None:
        """Add comments that name the kernel's results with axes, dtype and the user's line."""
        if not self.annotate:
            return
        for op in kernel.results or (kernel.op,):
            named = f"{shown_name(op)}: " if op.name else ""
            text = f"{named}{op.primitive.name} {op.axes} {name_of(op.dtype)}, {op.file_info}"
            self.pieces.append(TextPiece(f"/* {comment(text)} */"))


def shown_place(place: Place) -> str:
    """Return the name of a place in comments."""
    kind, whose = place
    if kind == "leaf":
        return comment(str(whose.op))  # type: ignore[attr-defined]
    if kind == "frozen":
        return "a constant"
    return f"{'buffer' if kind == 'arena' else kind} {whose}"
